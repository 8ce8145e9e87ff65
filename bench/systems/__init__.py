"""The systems: for each its name, the script that runs it, and the environment that the script needs."""

from __future__ import annotations

from dataclasses import dataclass

from bench.environments import BYTEWAX, FLINK, OWN, Environment


@dataclass(frozen=True)
class System:
    """A system.

    Args:
        name: as it is written in results.
        title: as it is written in tables.
        module: the script below ``bench.systems``, called with the folder of a task.
        environment: where the script runs.
    """

    name: str
    title: str
    module: str
    environment: Environment = OWN


WINDOWPANE = System("windowpane", "windowpane", "on_windowpane")
WINDOWPANE_ARROW = System("windowpane-arrow", "windowpane, in Arrow", "on_windowpane_arrow")
WINDOWPANE_CALENDAR = System("windowpane-calendar", "windowpane, windows of a calendar", "on_windowpane_calendar")
WINDOWPANE_SOURCES = System("windowpane-sources", "windowpane, 64 sources", "on_windowpane_sources")
NATIVE = System("spark", "native Spark", "on_spark")
TWS = System("tws", "hand-written TWS", "on_tws")
SHUFFLE = System("shuffle", "scan + shuffle", "on_shuffle")
HOP = System("hop", "scan + hop + fixed cost of a batch", "on_hop")
USERS_DEFAULT = System("users-default", "windowpane, as it comes", "on_users_windowpane")
USERS_ROWS = System("users-rows", "windowpane, rows from Spark", "on_users_rows")
USERS_SPARK = System("users-spark", "native Spark", "on_users_spark")
OWN_DEFAULT = System("own-default", "windowpane, as it comes", "on_own_functions")
OWN_ROWS = System("own-rows", "windowpane, rows from Spark", "on_own_functions_rows")
OWN_PROCESS = System("own-process", "windowpane, rows from Spark, process function", "on_own_process")
OWN_TWS = System("own-tws", "hand-written TWS", "on_own_tws")
OWN_TWS_ROWS = System("own-tws-rows", "hand-written TWS that keeps rows", "on_own_tws_rows")
FLINK_SQL = System("flink-sql", "Flink SQL", "on_flink_sql", FLINK)
PYFLINK = System("pyflink", "PyFlink DataStream", "on_pyflink", FLINK)
BYTEWAX_FLOW = System("bytewax", "Bytewax", "on_bytewax", BYTEWAX)
OVER_ENGINE = System("over-engine", "windowpane's engine alone", "on_over_engine")
DUCKDB = System("duckdb", "DuckDB alone", "on_duckdb")
SQL = System("sql", "windowpane SQL", "on_sql")
SQL_DUCKDB = System("sql-duckdb", "DuckDB from scratch", "on_sql_duckdb")

_OURS = (WINDOWPANE, WINDOWPANE_ARROW, WINDOWPANE_CALENDAR, WINDOWPANE_SOURCES)
OURS = tuple(each.name for each in (*_OURS, USERS_DEFAULT, USERS_ROWS, OWN_DEFAULT, OWN_ROWS, OWN_PROCESS))
"""The names of windowpane, however it reads its rows and whatever its outputs are."""

_SPARK = (*_OURS, NATIVE, TWS, SHUFFLE, HOP)
_USERS = (USERS_DEFAULT, USERS_ROWS, USERS_SPARK, OWN_DEFAULT, OWN_ROWS, OWN_PROCESS, OWN_TWS, OWN_TWS_ROWS)
_OTHERS = (FLINK_SQL, PYFLINK, BYTEWAX_FLOW, OVER_ENGINE, DUCKDB, SQL, SQL_DUCKDB)

TITLES = {each.name: each.title for each in (*_SPARK, *_USERS, *_OTHERS)}
"""Titles by name."""
