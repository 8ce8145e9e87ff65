"""DuckDB macros behind operators of PostgreSQL that DuckDB lacks: exact division, and intervals times numbers."""

from __future__ import annotations

_BLOCK = "100000000000000::HUGEINT"

MACROS = (
    # The digits of a numeric as an integer: 1.5 at scale 2 is 150.
    "CREATE OR REPLACE TEMP MACRO windowpane_digits(x, places) AS "
    "CAST(replace(CAST(x AS VARCHAR), '.', '') || repeat('0', places - "
    "CASE WHEN strpos(CAST(x AS VARCHAR), '.') = 0 THEN 0 "
    "ELSE length(CAST(x AS VARCHAR)) - strpos(CAST(x AS VARCHAR), '.') END) AS HUGEINT)",
    # Long division in two blocks of 14 digits and one more digit to round by.
    "CREATE OR REPLACE TEMP MACRO windowpane_quotient_of(a, b) AS "
    f"CAST(a // b AS VARCHAR) || '.' || lpad(CAST(((a % b) * {_BLOCK}) // b AS VARCHAR), 14, '0')"
    f" || lpad(CAST(((((a % b) * {_BLOCK}) % b) * {_BLOCK}) // b AS VARCHAR), 14, '0')"
    f" || CAST(((((((a % b) * {_BLOCK}) % b) * {_BLOCK}) % b) * 10::HUGEINT) // b AS VARCHAR)",
    "CREATE OR REPLACE TEMP MACRO windowpane_quotient(a, b) AS "
    "(CASE WHEN (a < 0) <> (b < 0) THEN '-' ELSE '' END) || windowpane_quotient_of(abs(a), abs(b))",
    # Months and days that are not whole spill into days and microseconds, as in PostgreSQL.
    "CREATE OR REPLACE TEMP MACRO windowpane_scale_interval(i, f) AS "
    "(to_months(CAST(trunc((datepart('year', i) * 12 + datepart('month', i)) * f) AS INTEGER)) "
    "+ to_days(CAST(trunc(datepart('day', i) * f + "
    "30 * ((datepart('year', i) * 12 + datepart('month', i)) * f "
    "- trunc((datepart('year', i) * 12 + datepart('month', i)) * f))) AS INTEGER)) "
    "+ to_microseconds(CAST(round((datepart('hour', i) * 3600000000.0 + datepart('minute', i) * 60000000.0 "
    "+ datepart('microsecond', i)) * f + 86400000000.0 * (datepart('day', i) * f + "
    "30 * ((datepart('year', i) * 12 + datepart('month', i)) * f - trunc((datepart('year', i) * 12 + datepart('month', i)) * f)) "
    "- trunc(datepart('day', i) * f + 30 * ((datepart('year', i) * 12 + datepart('month', i)) * f "
    "- trunc((datepart('year', i) * 12 + datepart('month', i)) * f))))) AS BIGINT)))",
)
