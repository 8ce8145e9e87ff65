"""Macros are defined once a statement names them, on each connection, and again where a transaction took them back."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from windowpane.errors import SqlRunError
from windowpane.sql import Session
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.scalar.macros import MACROS
from windowpane.sql.scalar.registry import Macros, register


def defined(storage: Storage) -> set[str]:
    found = storage.run("SELECT function_name FROM duckdb_functions() WHERE database_name = 'temp' AND function_type = 'macro'")
    return {name for (name,) in found if name.startswith("windowpane_")}


def test_a_statement_defines_what_it_names_and_what_that_is_made_of() -> None:
    storage = Storage(":memory:")
    before = defined(storage)
    assert storage.value("SELECT windowpane_initcap('a b')") == "A B"
    capitals = {"windowpane_initcap", "windowpane_upper"}
    assert defined(storage) - before == capitals
    storage.run("SELECT windowpane_shift(TIMESTAMP '2024-01-31', INTERVAL '1 month', 'UTC')")
    made_of = {"windowpane_shift", "windowpane_interval_micros", "windowpane_interval_months"}
    assert defined(storage) - before == capitals | made_of
    storage.close()


def test_what_a_transaction_took_back_is_defined_again() -> None:
    storage = Storage(":memory:")

    def failing() -> None:
        with storage.transaction():
            assert storage.value("SELECT windowpane_initcap('a b')") == "A B"
            storage.run("SELECT CAST('x' AS INTEGER)")

    with pytest.raises(SqlRunError):
        failing()
    assert "windowpane_initcap" not in defined(storage)
    assert storage.value("SELECT windowpane_initcap('c d')") == "C D"
    with storage.transaction():
        assert storage.value("SELECT windowpane_chr(97)") == "a"
    assert storage.value("SELECT windowpane_chr(98)") == "b"
    storage.close()


def test_a_result_that_is_streamed_beside_the_session_has_them_too() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (x text); INSERT INTO t VALUES ('a b'), ('c d'); FLUSH")
        parts = session.stream("SELECT initcap(x) AS y FROM t ORDER BY y", rows=1)
        assert [row for part in parts for row in part.rows()] == [("A B",), ("C D",)]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that has the functions; macros are those of a connection."""
    with duckdb.connect() as connection:
        register(connection)
        yield connection


@pytest.mark.parametrize("macro", MACROS, ids=lambda macro: macro.split("(")[0].split()[-1])
def test_each_is_defined_by_its_name_alone(macro: str, database: duckdb.DuckDBPyConnection) -> None:
    name = macro.split("(")[0].split()[-1]
    with database.cursor() as connection:
        Macros(connection).define(f"SELECT {name}(1)")
        assert connection.execute("SELECT count(*) FROM duckdb_functions() WHERE function_name = ?", [name]).fetchall() == [(1,)]
