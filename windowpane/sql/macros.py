"""DuckDB macros: the clock, and operators of PostgreSQL that DuckDB lacks, such as intervals times numbers."""

from __future__ import annotations

from windowpane.sql.instant_text import INSTANT_MACROS

NOW = "windowpane_now()"
"""The clock of a session as SQL: that of DuckDB, unless the session was given one."""

NOW_VARIABLE = "windowpane_now"
"""The variable that holds what a session's own clock says."""

MACROS = (
    f"CREATE OR REPLACE TEMP MACRO {NOW} AS coalesce(getvariable('{NOW_VARIABLE}'), now())",
    *INSTANT_MACROS,
    # Months and days that are not whole spill into days and microseconds, as in PostgreSQL.
    "CREATE OR REPLACE TEMP MACRO windowpane_scale_interval(i, f) AS "
    "(to_months(CAST(trunc((datepart('year', i) * 12 + datepart('month', i)) * f) AS INTEGER)) "
    "+ to_days(CAST(trunc(datepart('day', i) * f) + trunc("
    "30 * ((datepart('year', i) * 12 + datepart('month', i)) * f "
    "- trunc((datepart('year', i) * 12 + datepart('month', i)) * f))) AS INTEGER)) "
    "+ to_microseconds(CAST(round((datepart('hour', i) * 3600000000.0 + datepart('minute', i) * 60000000.0 "
    "+ datepart('microsecond', i)) * f + 86400000000.0 * (datepart('day', i) * f + "
    "30 * ((datepart('year', i) * 12 + datepart('month', i)) * f - trunc((datepart('year', i) * 12 + datepart('month', i)) * f)) "
    "- trunc(datepart('day', i) * f) - trunc(30 * ((datepart('year', i) * 12 + datepart('month', i)) * f "
    "- trunc((datepart('year', i) * 12 + datepart('month', i)) * f))))) AS BIGINT)))",
)
