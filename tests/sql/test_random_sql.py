"""Random SQL from a grammar: after every flush each materialized view equals what DuckDB answers on the same tables.

``python -m tests.sql.test_random_sql FIRST COUNT`` runs as many scripts by hand; each that fails is printed with its seed.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from pathlib import Path

import duckdb
import pytest

from tests.sql.grammar import DECLARED, EVENTS, WATERMARK, Changes, Grammar, Query
from tests.sql.in_process import spread_session
from windowpane.sql import Session

__all__ = ["spread_session"]

FAILED_ONCE = ()
"""Seeds of scripts that found a mistake, kept."""


@pytest.mark.parametrize("seed", [*range(4), *FAILED_ONCE])
def test_views_equal_duckdb_after_every_flush(seed: int, tmp_path: Path) -> None:
    Script(seed).run(partial(Session, store=str(tmp_path / "store.duckdb")))


@pytest.mark.parametrize("seed", range(100, 103))
def test_views_spread_over_buckets_equal_duckdb_after_every_flush(spread_session: Session, seed: int) -> None:
    Script(seed, restarts=False).check(spread_session)


class Script:
    """A script: views, and rounds of changes, after each of which every view is compared; in the middle the session restarts."""

    def __init__(self, seed: int, *, restarts: bool = True) -> None:
        self.seed, self._restarts = seed, restarts
        self._rng = random.Random(seed)
        self._changes = Changes(self._rng)
        grammar = Grammar(self._rng)
        self.queries = [grammar.query() for _ in range(5)]
        readable = [f"mv{number}" for number, query in enumerate(self.queries) if " AS x FROM a WHERE" in query.text]
        self.queries += [grammar.query(readable) for _ in range(2)]

    def run(self, open_session: Callable[[], Session]) -> None:
        """Run it on sessions over one store."""
        with open_session() as session, duckdb.connect() as oracle:
            self._declare(session, oracle)
            self._rounds(session, oracle, 2)
            if not self._restarts:
                self._rounds(session, oracle, 2)
                return
            session.close()
            with open_session() as again:
                self._rounds(again, oracle, 2)

    def check(self, session: Session) -> None:
        """Run it on one session."""
        with duckdb.connect() as oracle:
            self._declare(session, oracle)
            self._rounds(session, oracle, 4)

    def _declare(self, session: Session, oracle: duckdb.DuckDBPyConnection) -> None:
        for statement in DECLARED:
            session.run(statement)
            oracle.execute(statement.replace(" PRIMARY KEY", ""))
        session.run(EVENTS.format(*WATERMARK))
        oracle.execute(EVENTS.format("", ""))
        for number, query in enumerate(self.queries):
            session.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query.view}")
            oracle.execute(f"CREATE VIEW mv{number} AS {query.oracle}")

    def _rounds(self, session: Session, oracle: duckdb.DuckDBPyConnection, count: int) -> None:
        for left in reversed(range(count)):
            for _ in range(self._rng.randint(2, 7)):
                statement = self._changes.change()
                session.run(statement)
                oracle.execute(statement)
            session.run("FLUSH")
            for number, query in enumerate(self.queries):
                self._compare(session, oracle, number, query, asks=not left)

    def _compare(self, session: Session, oracle: duckdb.DuckDBPyConnection, number: int, query: Query, *, asks: bool) -> None:
        expected = _rows(oracle.execute(f"SELECT * FROM mv{number}").fetchall())
        got = _rows(session.query(f"SELECT * FROM mv{number}").rows())
        assert got == expected, f"seed {self.seed}: {query.view}"
        if asks and not query.closes:
            asked = _rows(session.query(query.text).rows())
            assert asked == expected, f"seed {self.seed}, as a query: {query.text}"


def _rows(rows: Iterable[Iterable[object]]) -> list[str]:
    return sorted(repr([_cell(cell) for cell in row]) for row in rows)


def _cell(cell: object) -> object:
    """Return a cell to compare: DuckDB divides and averages numerics as doubles."""
    return round(float(cell), 5) + 0.0 if isinstance(cell, Decimal | float | int) and not isinstance(cell, bool) else cell


def main(first: int, count: int) -> int:
    """Run scripts by hand, and return how many failed."""
    failed = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                Script(seed).run(partial(Session, store=f"{folder}/store.duckdb"))
            except Exception as error:
                failed += 1
                print(f"{type(error).__name__}: {str(error)[:900]}", f"seed {seed}", flush=True)
        if not (seed - first + 1) % 25:
            print(f"{seed - first + 1} scripts, {failed} failed", flush=True)
    print(f"{count - failed} passed, {failed} failed, seeds {first} to {first + count - 1}")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]))))
