"""MATCH_RECOGNIZE over rows by hand, in a SELECT and in a view that emits on window close; expected values are the standard's.

Where SQL:2016 is read differently, it is as Trino documents it: an empty match has a number, a row that is excluded counts in
measures, and aggregates leave NULLs out.
"""

from __future__ import annotations

from typing import Any

import pytest

from windowpane.sql import Session

NAN = float("nan")
TABLE = "CREATE TABLE e (at timestamp, kind varchar, v int, x double precision, WATERMARK FOR at AS at) APPEND ONLY"
LOOPS: list[tuple[Any, ...]] = [(minute, "r", value) for minute, value in enumerate([1, 2, 3, 4, 5, 2, 3, 4], start=1)]
EMPTY = [(1, "c", None), (2, "a", 10), (3, "a", None), (4, "c", 7), (5, "a", 1), (6, "b", 2)]
BETWEEN = [(1, "a", 1), (2, "c", 100), (3, "b", 4)]
COUNTED = (
    "COUNT(*) AS n, COUNT(v) AS c, COUNT(a.v) AS ca, SUM(v) AS s, FINAL COUNT(*) AS f, MATCH_NUMBER() AS m, CLASSIFIER() AS p"
)
"""Of the rows so far: rows, values, values of a's, their sum; rows of the match, its number, and the variable of the row."""
SHOWN = "minute, n, c, ca, s, f, m, p"
NUMBER_1, NUMBER_3, NUMBER_5 = [(minute, 0, 0, 0, None, 0, number, None) for minute, number in ((1, 1), (4, 3), (6, 5))]
LOOP_2 = [(2, 1, 1, 1, 10, 2, 2, "a"), (3, 2, 1, 1, 10, 2, 2, "a")]
LOOP_4 = (5, 1, 1, 1, 1, 1, 4, "a")
IN_ORDER = "COUNT(*) AS n, LAST(v) AS w, CLASSIFIER() AS p"

CASES: dict[str, tuple[list[Any], str, str, str, list[Any]]] = {
    "empty matches are shown": (
        EMPTY,
        SHOWN,
        f"MEASURES {COUNTED} ALL ROWS PER MATCH",
        "PATTERN (a*) WITHIN INTERVAL '1 hour' DEFINE a AS kind = 'a'",
        [NUMBER_1, *LOOP_2, NUMBER_3, LOOP_4, NUMBER_5],
    ),
    "empty matches are omitted": (
        EMPTY,
        SHOWN,
        f"MEASURES {COUNTED} ALL ROWS PER MATCH OMIT EMPTY MATCHES",
        "PATTERN (a*) WITHIN INTERVAL '1 hour' DEFINE a AS kind = 'a'",
        [*LOOP_2, LOOP_4],
    ),
    "empty matches have one row each": (
        EMPTY,
        "m, n, c, s",
        "MEASURES MATCH_NUMBER() AS m, COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS s ONE ROW PER MATCH",
        "PATTERN (a*) WITHIN INTERVAL '1 hour' DEFINE a AS kind = 'a'",
        [(1, 0, 0, None), (2, 2, 1, 10), (3, 0, 0, None), (4, 1, 1, 1), (5, 0, 0, None)],
    ),
    "excluded rows are rows of the match": (
        BETWEEN,
        "minute, n, s, before",
        "MEASURES COUNT(*) AS n, SUM(v) AS s, PREV(v) AS before ALL ROWS PER MATCH",
        "PATTERN (a {- x* -} b) WITHIN INTERVAL '1 hour' DEFINE a AS kind = 'a', x AS kind = 'c', b AS kind = 'b'",
        [(1, 1, 1, None), (3, 3, 105, 100)],
    ),
    "rows that are passed over are none": (
        BETWEEN,
        "minute, n, s, before",
        "MEASURES COUNT(*) AS n, SUM(v) AS s, PREV(v) AS before ALL ROWS PER MATCH",
        "PATTERN (a -> b) WITHIN INTERVAL '1 hour' DEFINE a AS kind = 'a', b AS kind = 'b'",
        [(1, 1, 1, None), (3, 2, 5, 100)],
    ),
    "a choice in a loop in a loop": (
        LOOPS,
        "minute, n, w, p",
        f"MEASURES {IN_ORDER} ALL ROWS PER MATCH",
        "PATTERN (((x | y z)+ w){1,2}) WITHIN INTERVAL '1 hour' DEFINE x AS v % 2 = 1, z AS v = 3, w AS v = 4",
        [(row[0], row[0], row[2], part) for row, part in zip(LOOPS, "xyzwxyzw", strict=True)],
    ),
    "a loop gives rows back to the loop around it": (
        [(1, "r", 1), (2, "r", 3), (3, "r", 5), (4, "r", 4)],
        "minute, n, w, p",
        f"MEASURES {IN_ORDER} ALL ROWS PER MATCH",
        "PATTERN ((x* y)+ w) WITHIN INTERVAL '1 hour' DEFINE y AS v % 2 = 1, w AS v = 4",
        [(1, 1, 1, "x"), (2, 2, 3, "x"), (3, 3, 5, "y"), (4, 4, 4, "w")],
    ),
    "measures of rows that no match has are NULL": (
        BETWEEN,
        "minute, c, s, n",
        "MEASURES 7 AS c, COALESCE(SUM(v), 0) AS s, COUNT(*) + 1 AS n ALL ROWS PER MATCH WITH UNMATCHED ROWS",
        "PATTERN (a) WITHIN INTERVAL '1 hour' DEFINE a AS kind = 'a'",
        [(1, 7, 1, 2), (2, None, None, None), (3, None, None, None)],
    ),
    "measures of empty matches are those of no rows": (
        BETWEEN,
        "minute, c, s",
        "MEASURES 7 AS c, COALESCE(SUM(v), 0) AS s ALL ROWS PER MATCH WITH UNMATCHED ROWS",
        "PATTERN (a | b*) WITHIN INTERVAL '1 hour' DEFINE a AS kind = 'a', b AS kind = 'b'",
        [(1, 7, 1), (2, 7, 0), (3, 7, 4)],
    ),
    "rows of one time go by the next column": (
        [(1, "r", 5), (1, "r", None), (1, "r", 7), (2, "end", 0)],
        "n, w, p",
        f"ORDER BY at, v DESC MEASURES {IN_ORDER} ALL ROWS PER MATCH",
        "PATTERN (r+) WITHIN INTERVAL '1 second' DEFINE r AS kind = 'r'",
        [(1, None, "r"), (2, 7, "r"), (3, 5, "r")],
    ),
    "NaN is larger than numbers before it": (
        [(1, "r", 1, 1.0), (2, "r", 2, NAN), (3, "r", 3, NAN), (4, "r", 4, 2.0)],
        "v",
        "MEASURES b.v AS v",
        "PATTERN (b) WITHIN INTERVAL '1 hour' DEFINE b AS x > PREV(x)",
        [(2,)],
    ),
    "NaN is NaN": (
        [(1, "r", 1, 1.0), (2, "r", 2, NAN), (3, "r", 3, NAN), (4, "r", 4, 2.0)],
        "v",
        "MEASURES b.v AS v AFTER MATCH SKIP TO NEXT ROW",
        "PATTERN (a b) WITHIN INTERVAL '1 hour' DEFINE b AS x = a.x OR x IS NOT DISTINCT FROM a.x + 1",
        [(3,)],
    ),
    "offsets go on from the row that is found": (
        LOOPS,
        "f, l, p, n",
        "MEASURES FIRST(r.v, 1) AS f, LAST(r.v, 2) AS l, PREV(FIRST(r.v), 1) AS p, NEXT(LAST(r.v, 1), 1) AS n",
        "PATTERN (any r{4,}) WITHIN INTERVAL '1 hour' DEFINE r AS v > 1",
        [(3, 2, 1, 4)],
    ),
}


def text(columns: str, clauses: str, pattern: str) -> str:
    order = "" if clauses.startswith("ORDER") else "ORDER BY at "
    shown = columns.replace("minute", "extract(minute FROM at)::int AS minute")
    return f"SELECT {shown} FROM e MATCH_RECOGNIZE ({order}{clauses} {pattern})"


@pytest.mark.parametrize("name", CASES)
def test_rows_of_matches(name: str) -> None:
    rows, columns, clauses, pattern, expected = CASES[name]
    query = text(columns, clauses, pattern).replace("FROM e ", "FROM (SELECT * FROM e WHERE kind <> 'last') AS e ")
    with Session(":memory:") as session:
        session.run(TABLE)
        session.run(f"CREATE MATERIALIZED VIEW found AS {query} EMIT ON WINDOW CLOSE")
        for minute, kind, value, *more in [*rows, (1439, "last", None)]:
            at = f"TIMESTAMP '2024-01-01 00:00' + INTERVAL '{minute} minutes'"
            x = f"'{more[0]}'" if more else "NULL"
            session.run(f"INSERT INTO e VALUES ({at}, '{kind}', {'NULL' if value is None else value}, {x})")
        session.run("FLUSH")
        for asked in ("SELECT * FROM found", query):
            assert sorted(session.query(asked).rows(), key=repr) == sorted(expected, key=repr)
