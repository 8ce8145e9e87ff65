"""EXPLAIN says of each node with state what it keeps, and until when; EXPLAIN ANALYZE, how much that is and what a batch cost."""

from __future__ import annotations

import re

import pytest

from windowpane.errors import SqlNameError, UnsupportedSqlError
from windowpane.sql import Session

DECLARED = """
    CREATE TABLE t (k int, ts timestamp, v int, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') APPEND ONLY;
    CREATE TABLE u (k int PRIMARY KEY, x int);
"""
WINDOWS = "SELECT k, window_start, max(v) AS m FROM tumble(t, ts, INTERVAL '10 seconds') GROUP BY k, window_start"


def explained(session: Session, statement: str) -> list[str]:
    return [str(row[0]) for row in session.query(f"EXPLAIN {statement}").rows()]


def state(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip().startswith("[")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k FROM t WHERE v > 1", []),
        (WINDOWS, ['[folded; keeps a partial result of each group, until "window_start@1" < its watermark]']),
        (
            "SELECT k, sum(v) FROM t GROUP BY k",
            ["[folded; keeps a partial result of each group, for ever: no watermark, and no deleted row, ends it]"],
        ),
        (
            "SELECT x, max(k) FROM u GROUP BY x",
            ["[folded; keeps a partial result of each group, and its rows, until its rows are deleted]"],
        ),
        (
            "SELECT t.k FROM t JOIN u ON t.k = u.k",
            ["[changes of each side with the rows of the other; keeps the rows of both sides, until its rows are deleted]"],
        ),
        (
            "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS p FROM t) WHERE p <= 2",
            ["[the touched partitions anew; keeps the top of each partition, until rows are beyond it]"],
        ),
        (
            "SELECT k, lag(v) OVER (PARTITION BY k ORDER BY ts) AS b FROM t EMIT ON WINDOW CLOSE",
            [
                "[engine over close; keeps the last rows of each partition, until no frame of a later row reaches them]",
                "[sorted by event time; keeps rows that wait, until the watermark has passed them]",
            ],
        ),
    ],
)
def test_explain_says_what_each_node_keeps_and_until_when(query: str, expected: list[str]) -> None:
    with Session(":memory:") as session:
        session.run(DECLARED)
        assert state(explained(session, f"CREATE MATERIALIZED VIEW v AS {query}")) == expected


def test_a_join_within_a_time_keeps_a_row_until_no_later_one_can_match_it() -> None:
    query = "SELECT l.k FROM t l JOIN t r ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '3 seconds' AND r.ts"
    with Session(":memory:") as session:
        session.run(DECLARED)
        (line,) = state(explained(session, f"CREATE MATERIALIZED VIEW v AS {query}"))
        assert line.count("< its watermark") == 2
        (join,) = (line for line in explained(session, f"CREATE MATERIALIZED VIEW v AS {query}") if "Join" in line)
        assert "ts - INTERVAL '3 seconds'" in join  # as it was written
        assert not re.search('to_microseconds|"', f"{join}{line}")


def test_explain_analyze_says_how_much_is_kept_and_what_the_last_batch_cost() -> None:
    with Session(":memory:") as session:
        session.run(f"{DECLARED} CREATE MATERIALIZED VIEW w AS {WINDOWS}")
        session.run(
            "INSERT INTO t VALUES (1, '2020-01-01 00:00:00', 1), (1, '2020-01-01 00:00:20', 1), (2, '2020-01-01 00:00:01', 5)"
        )
        session.run("FLUSH")
        lines = explained(session, "ANALYZE MATERIALIZED VIEW w")
        # The watermark is 00:00:15, so the two groups of the window from 00:00:00 on are closed, and one is left.
        assert [line.endswith("; rows now: 1]") for line in state(lines)] == [True]
        assert re.fullmatch(r"cost of the last batch: \d+\.\d{3} s, 3 changes of the view", lines[-1])


def test_explain_analyze_of_a_view_that_has_run_nothing_says_so(tmp_path) -> None:
    store = str(tmp_path / "store.duckdb")
    with Session(store=store) as session:
        session.run(f"{DECLARED} CREATE MATERIALIZED VIEW w AS {WINDOWS}")
    with Session(store=store) as session:
        assert explained(session, "ANALYZE MATERIALIZED VIEW w")[-1] == "cost: no batch has run in this session"


def test_explain_analyze_of_anything_else_is_refused() -> None:
    with Session(":memory:") as session:
        session.run(DECLARED)
        with pytest.raises(UnsupportedSqlError, match="EXPLAIN ANALYZE MATERIALIZED VIEW name"):
            session.run("EXPLAIN ANALYZE SELECT 1")
        with pytest.raises(SqlNameError, match="there is no materialized view 't'"):
            session.run("EXPLAIN ANALYZE MATERIALIZED VIEW t")
