"""Random SQL from a grammar: after every flush each materialized view equals what DuckDB answers on the same tables.

``python -m tests.sql.embedded.test_random_sql FIRST COUNT`` runs as many scripts by hand, with ``spark`` behind it on Spark; a
failure is printed with its seed.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from pathlib import Path

import duckdb
import pytest

from tests.sql.grammar import Grammar, Query
from tests.sql.in_process import CHECKPOINTS, spread_session
from tests.sql.random_changes import DECLARED, Changes, declared_for_duckdb
from tests.sql.windows_grammar import WindowsGrammar
from windowpane.demo.session import quiet_session
from windowpane.errors import UnsupportedSqlError
from windowpane.sql import Session

__all__ = ["spread_session"]

FAILED_ONCE = ()
"""Seeds of scripts that found a mistake, kept."""


@pytest.mark.slow_but("0")
@pytest.mark.parametrize("seed", [*range(4), *FAILED_ONCE])
def test_views_equal_duckdb_after_every_flush(seed: int, tmp_path: Path) -> None:
    Script(seed).run(partial(Session, store=str(tmp_path / "store.duckdb")))


@pytest.mark.slow_but("100")
@pytest.mark.parametrize("seed", range(100, 103))
def test_views_spread_over_buckets_equal_duckdb_after_every_flush(spread_session: Session, seed: int) -> None:
    """The number of buckets changes on the way."""
    Script(seed, restarts=False).check(spread_session, (2, 5, 1, 3))


@pytest.mark.slow_but("0")
@pytest.mark.parametrize("seed", range(3))
def test_views_that_are_replaced_equal_duckdb_after_every_flush(seed: int, tmp_path: Path) -> None:
    Script(seed).replaced(partial(Session, store=str(tmp_path / "store.duckdb")))


class Script:
    """A script: views, and rounds of changes, after each of which every view is compared.

    In the middle of every second script the session restarts, so opening stores does not take the time of more scripts.
    """

    def __init__(self, seed: int, *, restarts: bool = True) -> None:
        self.seed, self._restarts = seed, restarts and not seed % 2
        self._rng = random.Random(seed)
        self._changes = Changes(self._rng)
        grammar, windows = Grammar(self._rng), WindowsGrammar(self._rng)
        self.queries = [windows.query() if self._rng.random() < 0.35 else grammar.query() for _ in range(5)]
        readable = [(f"mv{number}", query.columns) for number, query in enumerate(self.queries) if query.columns]
        for _ in range(2):
            view = self._rng.choice([None, *readable])
            self.queries.append(grammar.query() if view is None else grammar.above(view[0], *view[1]))

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

    def replaced(self, open_session: Callable[[], Session]) -> int:
        """Run it with views that get the queries of another script in the middle; return how many were refused."""
        others, refused = Script(self.seed + 10_000).queries[:5], 0
        with open_session() as session, duckdb.connect() as oracle:
            self._declare(session, oracle)
            self._rounds(session, oracle, 1)
            for number, query in enumerate(self._rng.sample(others, 5)):
                try:
                    session.run(f"ALTER MATERIALIZED VIEW mv{number} AS {query.view}")
                except UnsupportedSqlError as error:
                    if "as these read it" not in str(error):
                        raise
                    refused += 1
                    continue
                self.queries[number] = query
                for place, each in enumerate(self.queries):
                    oracle.execute(f"CREATE OR REPLACE VIEW mv{place} AS {each.oracle}")
                for place, each in enumerate(self.queries):
                    self._compare(session, oracle, place, each, asks=False)
            session.close()
            with open_session() as again:
                self._rounds(again, oracle, 2)
        return refused

    def check(self, session: Session, buckets: Iterable[int] = ()) -> None:
        """Run it on one session, whose views go to another number of buckets after each round."""
        with duckdb.connect() as oracle:
            self._declare(session, oracle)
            for count in buckets:
                self._rounds(session, oracle, 1)
                for checkpoint in CHECKPOINTS.values():
                    checkpoint.rescale(count)
            self._rounds(session, oracle, 1)

    def _declare(self, session: Session, oracle: duckdb.DuckDBPyConnection) -> None:
        for statement in DECLARED:
            session.run(statement)
            oracle.execute(declared_for_duckdb(statement))
        for number, query in enumerate(self.queries):
            session.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query.view}")
            oracle.execute(f"CREATE VIEW mv{number} AS {query.oracle}")

    def _rounds(self, session: Session, oracle: duckdb.DuckDBPyConnection, count: int) -> None:
        for left in reversed(range(count)):
            for _ in range(self._rng.randint(2, 7)):
                statement, in_duckdb = self._changes.change()
                session.run(statement)
                if in_duckdb:
                    oracle.execute(in_duckdb)
            session.run("FLUSH")
            for number, query in enumerate(self.queries):
                self._compare(session, oracle, number, query, asks=not left)

    def _compare(self, session: Session, oracle: duckdb.DuckDBPyConnection, number: int, query: Query, *, asks: bool) -> None:
        expected = _rows(oracle.execute(f"SELECT * FROM mv{number}").fetchall())
        got = _rows(session.query(f"SELECT * FROM mv{number}").rows())
        assert got == expected, f"seed {self.seed}: {query.view}{_difference(got, expected)}"
        if asks and not query.closes:
            asked = _rows(session.query(query.text).rows())
            assert asked == expected, f"seed {self.seed}, as a query: {query.text}{_difference(asked, expected)}"


def _rows(rows: Iterable[Iterable[object]]) -> list[str]:
    return sorted(repr([_cell(cell) for cell in row]) for row in rows)


def _difference(got: Iterable[str], expected: Iterable[str]) -> str:
    """Return the rows of which there are too many or too few."""
    many, few = Counter(got) - Counter(expected), Counter(expected) - Counter(got)
    return "".join(f"\n  {word}: {', '.join(rows.elements())}" for word, rows in (("surplus", many), ("missing", few)) if rows)


def _cell(cell: object) -> object:
    """Return a cell to compare: DuckDB divides and averages numerics as doubles."""
    if isinstance(cell, list):
        return [_cell(each) for each in cell]
    if isinstance(cell, bool) or not isinstance(cell, Decimal | float | int):
        return cell
    return float(f"{round(float(cell), 8):.9g}") + 0.0


def main(first: int, count: int, where: str = "") -> int:
    """Run scripts by hand, on Spark where ``where`` says so, and return how many failed."""
    with tempfile.TemporaryDirectory() as folder:
        if not where:
            return _run(first, count, Session)
        with quiet_session(Path(folder) / "log.txt") as spark:
            return _run(first, count, partial(Session, spark))


def _run(first: int, count: int, session: Callable[..., Session]) -> int:
    failed = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                Script(seed).run(partial(session, store=f"{folder}/store.duckdb"))
            except Exception as error:
                failed += 1
                print(f"{type(error).__name__}: {str(error)[:900]}", f"seed {seed}", flush=True)
        if not (seed - first + 1) % 25:
            print(f"{seed - first + 1} scripts, {failed} failed", flush=True)
    print(f"{count - failed} passed, {failed} failed, seeds {first} to {first + count - 1}")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])))
