"""UNNEST and generate_series as relations, kept up to date and asked."""

from __future__ import annotations

import pytest

from tests.sql.against_duckdb import check
from windowpane.errors import SqlNameError, SqlTypeError, UnsupportedSqlError
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
    "SELECT id, u.x FROM t, LATERAL unnest(t.a) AS u(x)",
    "SELECT id, u.x FROM t LEFT JOIN unnest(a) AS u(x) ON TRUE",
    "SELECT id, g FROM t, generate_series(1, t.id) AS g",
    "SELECT id, g.n FROM t LEFT JOIN LATERAL generate_series(2, id) AS g(n) ON TRUE",
    "SELECT n, x FROM generate_series(5, 1, -2) AS g(n), unnest(ARRAY[10, 20]) AS u(x)",
    "SELECT moment FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-02', INTERVAL '12 hours') AS g(moment)",
    "SELECT id, (SELECT sum(x) FROM unnest(a) AS u(x)) AS s, (SELECT count(*) FROM unnest(t.a) AS u(x)) AS n FROM t",
    "SELECT id, (SELECT max(x) FROM unnest([id, a[1], NULL]) AS u(x)) AS m FROM t",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM unnest(a) AS u(x) WHERE x = 7)",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM unnest(a) AS u(x) WHERE x > t.id + 3)",
    "SELECT id FROM t WHERE 7 NOT IN (SELECT x FROM unnest(a) AS u(x))",
    "SELECT id, (SELECT count(*) FROM unnest(a) AS u(x) JOIN t AS o ON o.id + 3 = u.x) AS n FROM t",
    "SELECT id, s.least, s.most FROM t, LATERAL (SELECT min(x) AS least, max(x) AS most FROM unnest(a) AS u(x)) AS s",
    "SELECT id, (SELECT sum(n) FROM generate_series(1, id) AS g(n)) AS s FROM t",
]


def test_rows_from_lists() -> None:
    check(QUERIES, TABLES, ROUNDS)


def test_keys_of_an_object_with_their_values() -> None:
    queries = {
        "SELECT id, key, value FROM t, jsonb_each(j)": [(1, "a", "7"), (1, "b", '["x"]'), (2, "c", '"d"')],
        "SELECT id, e.key, e.value FROM t, LATERAL jsonb_each_text(t.j) AS e": [(1, "a", "7"), (1, "b", '["x"]'), (2, "c", "d")],
        "SELECT id, e.v FROM t LEFT JOIN jsonb_each(j) AS e(k, v) ON TRUE WHERE k IS NULL": [(3, None), (4, None)],
        "SELECT * FROM jsonb_each('{\"a\":1}')": [("a", "1")],
        "SELECT id, x FROM t, jsonb_array_elements_text(t.j -> 'b') AS x": [(1, "x")],
        "SELECT id, value, x.value || '!' AS more FROM t, jsonb_array_elements_text(t.j -> 'b') AS x": [(1, "x", "x!")],
        "SELECT id, (SELECT count(*) FROM jsonb_object_keys(j)) AS n FROM t": [(1, 2), (2, 1), (3, 0), (4, 0)],
        "SELECT id, (SELECT max(e.value) FROM jsonb_each_text(j) AS e WHERE key <> 'a') AS m FROM t": [
            (1, '["x"]'),
            (2, "d"),
            (3, None),
            (4, None),
        ],
    }
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY, j jsonb)")
        for number, query in enumerate(queries):
            session.run(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
        session.run("""INSERT INTO t VALUES (1, '{"a":7,"b":["x"]}'), (2, '{"c":"d"}'), (3, NULL), (4, '{}'), (5, '{"e":0}')""")
        session.run("FLUSH")
        session.run("DELETE FROM t WHERE id = 5")
        session.run("FLUSH")
        for number, expected in enumerate(queries.values()):
            assert sorted(session.query(f"SELECT * FROM v{number}").rows()) == expected


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT * FROM unnest(ARRAY[30, 10]) WITH ORDINALITY AS u(x, n)", [(10, 2), (30, 1)]),
        (
            "SELECT id, n, x FROM t LEFT JOIN unnest(a) WITH ORDINALITY AS u(x, n) ON TRUE WHERE id < 3",
            [(1, 1, 5), (1, 2, 6), (2, None, None)],
        ),
        ("SELECT id, ordinality FROM t, generate_series(7, 6 + id) WITH ORDINALITY WHERE id < 3", [(1, 1), (2, 1), (2, 2)]),
        ("SELECT * FROM jsonb_each('{\"a\":1}') WITH ORDINALITY AS e(k, v, n)", [("a", "1", 1)]),
    ],
)
def test_with_ordinality(query: str, rows: list[tuple[object, ...]]) -> None:
    with Session(":memory:") as session:
        session.run(TABLES[0])
        session.run(ROUNDS[0][0])
        session.run("FLUSH")
        assert sorted(session.query(query).rows()) == rows


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        ("SELECT * FROM unnest(1)", SqlTypeError, "UNNEST: it takes an array, not integer"),
        ("SELECT * FROM t RIGHT JOIN unnest(a) AS u ON TRUE", UnsupportedSqlError, "CROSS JOIN UNNEST"),
        ("SELECT * FROM t LEFT JOIN generate_series(1, id) AS u ON u > 1", UnsupportedSqlError, "LEFT JOIN generate_series"),
        ("SELECT * FROM t JOIN unnest(a) AS u(id) USING (id)", UnsupportedSqlError, "a join with UNNEST on a condition"),
        ("SELECT * FROM t NATURAL JOIN unnest(a) AS u(id)", UnsupportedSqlError, "a join with UNNEST on a condition"),
        ("SELECT * FROM t JOIN LATERAL (SELECT 1 AS id) AS u USING (id)", UnsupportedSqlError, "LATERAL on a condition"),
        ("SELECT * FROM t, unnest(a) AS t(x)", SqlNameError, "stands in FROM twice"),
        ("SELECT * FROM t, LATERAL (SELECT 1 AS x) AS t", SqlNameError, "stands in FROM twice"),
        ("SELECT * FROM t WITH ORDINALITY", UnsupportedSqlError, "It numbers the rows of UNNEST"),
        ("SELECT * FROM t, LATERAL (SELECT 1) WITH ORDINALITY AS u", UnsupportedSqlError, "LATERAL with anything but a subquery"),
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
