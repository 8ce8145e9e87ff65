"""Runs queries as materialized views, round by round of changes, and as SELECTs, and compares both with DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb

from windowpane.sql import Session


def check(queries: Sequence[str], declared: Iterable[str], rounds: Sequence[Sequence[str]]) -> None:
    """Compare all queries after each round: as views, and after the last one as queries, too."""
    with Session(":memory:") as session, duckdb.connect() as oracle:
        for statement in declared:
            session.run(statement)
            oracle.execute(statement)
        for number, query in enumerate(queries):
            session.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query}")
        for left, statements in zip(reversed(range(len(rounds))), rounds, strict=True):
            for statement in statements:
                session.run(statement)
                oracle.execute(statement)
            session.run("FLUSH")
            for number, query in enumerate(queries):
                expected = _rows(oracle.execute(query).fetchall())
                assert _rows(session.query(f"SELECT * FROM mv{number}").rows()) == expected, query
                if not left:
                    assert _rows(session.query(query).rows()) == expected, f"as a query: {query}"


def _rows(cells: Iterable[Sequence[object]]) -> list[str]:
    return sorted(repr(tuple(row)) for row in cells)
