"""Makes the functions and macros of this room known to a DuckDB connection."""

from __future__ import annotations

from typing import Any

import duckdb

from windowpane.sql.scalar.kernels import KERNELS
from windowpane.sql.scalar.macros import MACROS


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Register them; outside of a transaction, which could take them back."""
    create: Any = connection.create_function  # its types know enums where it takes their names
    for name, (kernel, result) in KERNELS.items():
        create(f"windowpane_{name}", kernel, None, result, type="arrow", null_handling="special")
    define(connection)


def define(connection: duckdb.DuckDBPyConnection) -> None:
    """Define the macros, on a further connection to a database whose functions are registered."""
    for macro in MACROS:
        connection.execute(macro)
