"""UNNEST and generate_series as relations, kept up to date and asked."""

from __future__ import annotations

import pytest

from tests.sql.against_duckdb import check
from windowpane.errors import SqlTypeError, UnsupportedSqlError
from windowpane.sql import Session

TABLES = ("CREATE TABLE t (id int PRIMARY KEY, a int[])",)
ROUNDS = (
    ("INSERT INTO t VALUES (1, ARRAY[5, 6]), (2, NULL), (3, ARRAY[7, 7])",),
    ("DELETE FROM t WHERE id = 1", "UPDATE t SET a = ARRAY[7] WHERE id = 3", "INSERT INTO t VALUES (4, ARRAY[NULL, 1])"),
)
QUERIES = [
    "SELECT id, u.x FROM t, unnest(t.a) AS u(x)",
    "SELECT x, count(*) AS n FROM t CROSS JOIN unnest(a) AS u(x) GROUP BY x",
    "SELECT t.id, g.n FROM t JOIN generate_series(1, 3) AS g(n) ON g.n <= t.id",
    "SELECT n, x FROM generate_series(5, 1, -2) AS g(n), unnest(ARRAY[10, 20]) AS u(x)",
    "SELECT moment FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-02', INTERVAL '12 hours') AS g(moment)",
]


def test_rows_from_lists() -> None:
    check(QUERIES, TABLES, ROUNDS)


def test_with_ordinality() -> None:
    with Session(":memory:") as session:
        rows = session.query("SELECT * FROM unnest(ARRAY[30, 10]) WITH ORDINALITY AS u(x, n) ORDER BY n").rows()
    assert rows == [(30, 1), (10, 2)]


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        ("SELECT * FROM unnest(1)", SqlTypeError, "UNNEST: it takes an array, not integer"),
        ("SELECT * FROM t LEFT JOIN unnest(a) AS u ON TRUE", UnsupportedSqlError, "CROSS JOIN UNNEST"),
        ("SELECT * FROM generate_series(1, 2.5)", SqlTypeError, "whole numbers"),
        ("SELECT id FROM t WHERE unnest(a) = 1", UnsupportedSqlError, "unnest returns rows"),
    ],
)
def test_lists_that_are_refused(query: str, error: type[Exception], words: str) -> None:
    with Session(":memory:") as session:
        session.run(TABLES[0])
        with pytest.raises(error, match=words):
            session.run(query)


def test_a_subscript_is_any_integer_counted_from_one() -> None:
    subscripts = [
        "i",
        "i + 1",
        "1 + 1",
        "i::int",
        "abs(i)",
        "(2)",
        "'2'",
        "length('ab')",
        "CASE WHEN true THEN 2 END",
        "2::bigint",
    ]
    items = ", ".join(f"(ARRAY[10, 20, 30])[{subscript}]" for subscript in [*subscripts, "-i", "i - 2", "9"])
    with Session(":memory:") as session:
        rows = session.query(f"SELECT {items} FROM (VALUES (2)) AS t(i)").rows()
        assert rows == [(20, 30, 20, 20, 20, 20, 20, 20, 20, 20, None, None, None)]
        with pytest.raises(SqlTypeError, match="an array subscript is an integer, not numeric"):
            session.query("SELECT (ARRAY[10, 20])[1.5]")
