"""DuckDB macros: the clock, and texts as instants."""

from __future__ import annotations

from windowpane.sql.values.instant_text import INSTANT_MACROS

NOW = "windowpane_now()"
"""The clock of a session as SQL: that of DuckDB, unless the session was given one."""

NOW_VARIABLE = "windowpane_now"
"""The variable that holds the time of a session's own clock."""

MACROS = (
    f"CREATE OR REPLACE TEMP MACRO {NOW} AS coalesce(getvariable('{NOW_VARIABLE}'), now())",
    *INSTANT_MACROS,
)
