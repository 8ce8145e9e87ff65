"""Joins with EMIT ON WINDOW CLOSE: each row is emitted once, is in DuckDB's result in the end, and state is freed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pytest

from tests.examples import first, some
from tests.sql.in_process import spread_session
from windowpane.errors import UnsupportedSqlError
from windowpane.sql import Session

__all__ = ["spread_session"]

DECLARED = """
    CREATE TABLE l (k int, ts timestamp, v int, till timestamp, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') APPEND ONLY;
    CREATE TABLE r (k int, ts timestamp, p int, WATERMARK FOR ts AS ts - INTERVAL '3 seconds') APPEND ONLY;
"""
NEAR = [
    "r.ts BETWEEN l.ts - INTERVAL '5 seconds' AND l.ts + INTERVAL '3 seconds'",
    "r.ts > l.ts AND r.ts < l.ts + INTERVAL '4 seconds'",
    "r.ts >= l.ts - INTERVAL '6 seconds' AND r.ts <= l.ts - INTERVAL '2 seconds'",
    "l.ts = r.ts",
    "l.ts BETWEEN r.ts - INTERVAL '2 seconds' AND r.ts AND l.v < r.p",
    "r.ts >= l.ts AND r.ts <= l.till",
]
WINDOWS = [
    "TUMBLE({0}, ts, INTERVAL '5 seconds') AS {0}",
    "HOP({0}, ts, INTERVAL '2 seconds', INTERVAL '4 seconds') AS {0}",
]
SAME = "l.window_start = r.window_start AND l.window_end = r.window_end"


def _joins(left: str, right: str, on: str) -> dict[str, str]:
    """Return a query of each kind of join, without a time in its result."""
    queries = {
        kind: f"SELECT l.v, r.p FROM {left} {kind} JOIN {right} ON l.k = r.k AND {on}" for kind in ("", "LEFT", "RIGHT", "FULL")
    }
    for word in ("", "NOT"):
        queries[f"{word} EXISTS"] = f"SELECT l.v FROM {left} WHERE {word} EXISTS (SELECT 1 FROM {right} WHERE l.k = r.k AND {on})"
    return queries


INTERVALS = {f"{near} {kind}": query for near in NEAR for kind, query in _joins("l", "r", near).items()}
OF_WINDOWS = {
    f"{windows} {kind}": query
    for windows in WINDOWS
    for kind, query in _joins(windows.format("l"), windows.format("r"), SAME).items()
}
QUERIES = {**INTERVALS, **OF_WINDOWS}
ORACLE = {
    "TUMBLE({0}, ts, INTERVAL '5 seconds') AS {0}": """(SELECT *, time_bucket(INTERVAL '5 seconds', ts) AS window_start,
        time_bucket(INTERVAL '5 seconds', ts) + INTERVAL '5 seconds' AS window_end FROM {0}) AS {0}""",
    "HOP({0}, ts, INTERVAL '2 seconds', INTERVAL '4 seconds') AS {0}": """(SELECT *,
        time_bucket(INTERVAL '2 seconds', ts) - n * INTERVAL '2 seconds' AS window_start,
        time_bucket(INTERVAL '2 seconds', ts) - n * INTERVAL '2 seconds' + INTERVAL '4 seconds' AS window_end
        FROM {0}, range(2) AS numbers(n)) AS {0}""",
}


def _round(rng: random.Random, now: int, number: int) -> list[str]:
    statements = []
    for table in rng.sample("lr", rng.choice([1, 2, 2])):
        rows = []
        for _ in range(rng.choice([1, 3, 6])):
            number += 1
            second = max(now + rng.randint(-12, 3), 0)
            till = rng.choice(["NULL", f"TIMESTAMP '2024-01-01' + INTERVAL '{second + rng.randint(-2, 4)} seconds'"])
            row = [rng.choice(["NULL", "1", "1", "2"]), f"TIMESTAMP '2024-01-01' + INTERVAL '{second} seconds'", str(number)]
            rows.append(f"({', '.join([*row, till] if table == 'l' else row)})")
        statements.append(f"INSERT INTO {table} VALUES {', '.join(rows)}")
    return [*statements, "FLUSH"]


END = "INSERT INTO l VALUES (9, '2025-01-01', -1, NULL); INSERT INTO r VALUES (8, '2025-01-01', -1); FLUSH"


class Watched:
    """Views of some queries, and what they have put out so far."""

    def __init__(self, names: Iterable[str]) -> None:
        self.queries = {name: QUERIES[name] for name in names}
        self.seen: dict[str, Counter[str]] = {}

    def create(self, session: Session) -> None:
        session.run(DECLARED)
        for number, query in enumerate(self.queries.values()):
            session.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query} EMIT ON WINDOW CLOSE")

    def look(self, session: Session) -> None:
        """Emitted rows stay."""
        for number, query in enumerate(self.queries):
            found = Counter(map(repr, session.query(f"SELECT * FROM mv{number}").rows()))
            assert self.seen.get(query, Counter()) <= found, query
            self.seen[query] = found

    def compare(self, session: Session) -> None:
        """In the end there is what DuckDB answers on the rows that were not late, but for the rows that ended it."""
        with duckdb.connect() as oracle:
            for table in "lr":
                oracle.execute(DECLARED.split(";")["lr".index(table)].split(", WATERMARK")[0] + ")")
                for row in session.query(f"SELECT * FROM {table}").rows():
                    oracle.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", list(row))
            for name, query in self.queries.items():
                asked = query
                for windows, text in ORACLE.items():
                    for table in "lr":
                        asked = asked.replace(windows.format(table), text.format(table))
                expected = Counter(repr(row) for row in oracle.execute(asked).fetchall() if -1 not in row)
                assert Counter({row: n for row, n in self.seen[name].items() if "-1" not in row}) == expected, name


@pytest.mark.parametrize("part_of", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 10))])
def test_each_row_comes_once_and_is_final_over_a_restart(part_of: int, tmp_path: Path) -> None:
    # Of the kinds of joins and conditions each part has others beside each other.
    rng, watched, store = random.Random(part_of), Watched(list(QUERIES)[part_of::10]), str(tmp_path / "store.duckdb")
    for part in range(2):
        with Session(store=store) as session:
            if part == 0:
                watched.create(session)
            for number in range(part * 5, part * 5 + 5):
                for statement in _round(rng, 4 * number, 100 * number):
                    session.run(statement)
                watched.look(session)
            if part == 1:
                session.run(END)
                watched.look(session)
                watched.compare(session)


def test_rows_come_in_the_batch_that_makes_them_final() -> None:
    with Session(":memory:") as session:
        session.run(f"{DECLARED}; CREATE MATERIALIZED VIEW m AS {INTERVALS[NEAR[0] + ' LEFT']} EMIT ON WINDOW CLOSE")
        session.run("INSERT INTO l VALUES (1, '2024-01-01 00:00:10', 1, NULL), (2, '2024-01-01 00:00:10', 2, NULL); FLUSH")
        session.run("INSERT INTO r VALUES (1, '2024-01-01 00:00:13', 5), (3, '2024-01-01 00:00:16', 6); FLUSH")
        # Right rows are expected from second 13 on, and one of that second may still match.
        assert session.query("SELECT * FROM m").rows() == []
        session.run("INSERT INTO r VALUES (3, '2024-01-01 00:00:16.000001', 7); FLUSH")
        assert sorted(session.query("SELECT * FROM m").rows(), key=repr) == [(1, 5), (2, None)]


def test_state_ends_where_both_sides_have_watermarks() -> None:
    with Session(":memory:") as session:
        Watched(some(list(QUERIES)[::5], 2)).create(session)
        rng = random.Random(3)
        for number in range(4):
            for statement in _round(rng, 4 * number, 100 * number):
                session.run(statement)
        session.run(END)
        session.run("INSERT INTO l VALUES (9, '2026-01-01', -1, NULL); INSERT INTO r VALUES (8, '2026-01-01', -1); FLUSH")
        tables = [name for (name,) in session._storage.run("SELECT table_name FROM duckdb_tables()") if "/" in name]
        sizes = {name: session._storage.value(f'SELECT count(*) FROM windowpane_state."{name}"') for name in tables}
        assert {name: size for name, size in sizes.items() if size > 4} == {}


def test_rows_that_are_spread_over_buckets_come_once(spread_session: Session) -> None:
    chosen = [INTERVALS[f"{NEAR[0]} {kind}"] for kind in ("", "LEFT", "FULL", "NOT EXISTS")]
    spread_session.run(DECLARED)
    for number, query in enumerate(chosen):
        spread_session.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query} EMIT ON WINDOW CLOSE")
    with Session(":memory:") as embedded:
        embedded.run(DECLARED)
        for number, query in enumerate(chosen):
            embedded.run(f"CREATE MATERIALIZED VIEW mv{number} AS {query} EMIT ON WINDOW CLOSE")
        rng, rounds = random.Random(5), first(4) or 6
        for number in range(rounds):
            for statement in [*_round(rng, 4 * number, 100 * number), *([END] if number == rounds - 1 else [])]:
                spread_session.run(statement)
                embedded.run(statement)
            for view in range(len(chosen)):
                found, expected = (session.query(f"SELECT * FROM mv{view}").rows() for session in (spread_session, embedded))
                assert sorted(map(repr, found)) == sorted(map(repr, expected)), chosen[view]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT l.v, r.p FROM l JOIN r ON l.k = r.k",
        "SELECT l.v, r.p FROM l FULL JOIN r ON l.k = r.k AND r.ts <= l.ts + INTERVAL '1 second'",
        "SELECT l.v, c.p FROM l LEFT JOIN c ON l.k = c.k AND c.ts <= l.ts",
    ],
)
def test_a_join_of_which_nothing_says_when_rows_are_final_is_refused(query: str) -> None:
    with Session(":memory:") as session:
        session.run(f"{DECLARED}; CREATE TABLE c (k int PRIMARY KEY, ts timestamp, p int)")
        with pytest.raises(UnsupportedSqlError, match="without a watermark column"):
            session.run(f"CREATE MATERIALIZED VIEW m AS {query} EMIT ON WINDOW CLOSE")
