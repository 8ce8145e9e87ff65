"""Planning of views: where filters go, what joins have as keys, which columns stay, and what is refused."""

from __future__ import annotations

import random

import pytest

from tests.sql.against_duckdb import check
from windowpane.errors import SqlError, UnsupportedSqlError
from windowpane.sql import Session

DECLARED = (
    "CREATE TABLE a (id int PRIMARY KEY, g int, v int, unread text)",
    "CREATE TABLE b (id int PRIMARY KEY, g int, w int, unread text)",
    "CREATE TABLE c (id int PRIMARY KEY, g int, x int, unread text)",
    "CREATE TABLE d (id int PRIMARY KEY, g double precision, v interval)",
)


def explained(query: str) -> list[str]:
    with Session(":memory:") as session:
        session.run("; ".join(DECLARED))
        session.run("CREATE TABLE few (v int) WITH (small = 'true'); CREATE MATERIALIZED VIEW high AS SELECT max(v) AS v FROM a")
        lines = [row[0].strip() for row in session.query(f"EXPLAIN CREATE MATERIALIZED VIEW mv AS {query}").rows()]
        return [line for line in lines if not line.startswith("[")]


def joins(query: str) -> list[str]:
    return [line.split(": ", 1)[1] for line in explained(query) if line.startswith("Join")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT 1 FROM a, b WHERE a.g = b.g", ["inner on g#1 = g#2"]),
        ("SELECT 1 FROM a, b, c WHERE a.g = b.g AND b.w = c.x", ["inner on w#2 = x#3", "inner on g#1 = g#2"]),
        ("SELECT 1 FROM a, b, c WHERE c.g = b.g AND a.g = c.g", ["inner on g#3 = g#2", "inner on g#1 = g#3"]),
        ("SELECT 1 FROM a JOIN b ON a.v > b.w WHERE a.g = b.g", ['inner on g#1 = g#2 and ("v#1" > "w#2")']),
        ("SELECT 1 FROM a LEFT JOIN b ON a.g = b.g, c WHERE c.x = b.w", ["inner on w#2 = x#3", "left on g#1 = g#2"]),
        ("SELECT 1 FROM a, b WHERE (a.g = b.g AND v = 1) OR (a.g = b.g AND w = 2)", ["inner on g#1 = g#2"]),
        ("SELECT 1 FROM a JOIN b ON a.g IS NOT DISTINCT FROM b.g", ["inner on g#1 = g#2"]),
        ("SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.g = a.g AND b.w > 3)", ["semi on g#1 = g#2"]),
    ],
)
def test_joins_have_the_equalities_around_them_as_keys(query: str, expected: list[str]) -> None:
    found = joins(query)
    assert [line.split(" and ")[0] for line in found] == [line.split(" and ")[0] for line in expected]


NUMBERED = "(SELECT *, row_number() OVER (PARTITION BY g ORDER BY v) AS n FROM a) AS q"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT id FROM {NUMBERED} WHERE n <= 3", "limit 3, offset 0"),
        (f"SELECT id FROM {NUMBERED} WHERE 3 > n", "limit 2, offset 0"),
        (f"SELECT id FROM {NUMBERED} WHERE n BETWEEN 2 AND 4 AND v > 1", "limit 3, offset 1"),
        (f"SELECT id FROM {NUMBERED} WHERE n = 2", "limit 1, offset 1"),
        (f"SELECT q.id FROM {NUMBERED} JOIN b ON q.id = b.id WHERE n < 3 AND b.w > 0", "limit 2, offset 0"),
        ("SELECT id FROM a QUALIFY rank() OVER (ORDER BY v) <= 2", "limit 2, offset 0 with ties"),
        ("SELECT id FROM a QUALIFY rank() OVER (PARTITION BY g ORDER BY v) BETWEEN 2 AND 3", None),
        (f"SELECT id FROM {NUMBERED} WHERE n <= 3 OR v = 1", None),
        (f"SELECT id FROM {NUMBERED} WHERE n <= v", None),
        (f"SELECT id FROM {NUMBERED} WHERE n > 3 AND n < 2", None),
        ("SELECT id FROM a QUALIFY dense_rank() OVER (PARTITION BY g ORDER BY v) <= 2", None),
    ],
)
def test_a_limit_on_the_number_of_a_row_is_a_top_n(query: str, expected: str | None) -> None:
    found = [line for line in explained(query) if line.startswith("TopN")]
    assert [line.split(": ", 1)[1].split(" partition")[0].split(" order")[0] for line in found] == (
        [expected] if expected else []
    )


def test_a_filter_stands_on_the_relation_it_is_about() -> None:
    lines = explained("SELECT a.id FROM a LEFT JOIN b ON a.g = b.g AND b.w > 1, c WHERE c.g = a.g AND a.v > 2 AND c.x IN (3, 4)")
    above = {lines[index + 1]: line for index, line in enumerate(lines) if line.startswith("Filter")}
    assert set(above) == {"Scan: a", "Scan: b", "Scan: c"}


def test_a_filter_on_what_an_outer_join_may_leave_out_stays_above_it() -> None:
    lines = explained("SELECT a.id FROM a LEFT JOIN b ON a.g = b.g WHERE b.w IS NULL")
    assert next(index for index, line in enumerate(lines) if line.startswith("Filter")) < lines.index(
        next(line for line in lines if line.startswith("Join"))
    )


def test_a_filter_on_groups_is_asked_of_their_rows() -> None:
    lines = explained("SELECT * FROM (SELECT g, count(*) AS n FROM a GROUP BY g) AS q WHERE g > 3 AND n > 2")
    kinds = [line.split(":")[0] for line in lines]
    assert kinds[kinds.index("Filter") :] == ["Filter", "Aggregate", "Filter", "Scan"]


def test_state_has_only_the_columns_that_are_read() -> None:
    with Session(":memory:") as session:
        session.run("; ".join(DECLARED))
        session.run("CREATE MATERIALIZED VIEW mv AS SELECT a.v FROM a, b WHERE a.g = b.g")
        kept = session._storage.run("SELECT column_name FROM information_schema.columns WHERE table_schema = 'windowpane_state'")
    names = sorted(name.split("#")[0] for (name,) in kept if name.split("#")[0] not in ("windowpane_w",) and "#" in name)
    assert names == ["g", "g", "id", "id", "v"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 FROM a, b",
        "SELECT 1 FROM a, b WHERE a.v > b.w",
        "SELECT 1 FROM a LEFT JOIN b ON a.v > b.w",
        "SELECT 1 FROM a FULL JOIN b ON TRUE",
        "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.w > a.v)",
        "SELECT 1 FROM a WHERE v NOT IN (SELECT w FROM b WHERE b.g > a.g)",
        "SELECT 1 FROM a, b, c WHERE a.g = b.g AND c.x > a.v",
        "SELECT 1 FROM a CROSS JOIN (SELECT * FROM b ORDER BY id LIMIT 100000) AS q",
    ],
)
def test_a_join_of_streams_without_keys_is_refused_with_a_way_out(query: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=r"line 1, column \d+: a join of two streams .* WITH \(small = 'true'\)"):
        explained(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 FROM a, few WHERE a.v > few.v",
        "SELECT 1 FROM a, (SELECT v + 1 AS v FROM few WHERE v > 2) AS f WHERE a.v > f.v",
        "SELECT 1 FROM a, high WHERE a.v > high.v",
        "SELECT 1 FROM a WHERE v > (SELECT avg(w) FROM b)",
        "SELECT 1 FROM a, (SELECT * FROM b ORDER BY w LIMIT 10) AS q",
        "SELECT 1 FROM a, (VALUES (1), (2)) AS v(x)",
        "SELECT 1 FROM a LEFT JOIN few ON a.v > few.v",
    ],
)
def test_a_join_without_keys_with_something_small_is_made(query: str) -> None:
    assert joins(query)


def test_small_is_true_or_false() -> None:
    with Session(":memory:") as session:
        with pytest.raises(UnsupportedSqlError, match="small = 'perhaps'"):
            session.run("CREATE TABLE t (v int) WITH (small = 'perhaps')")
        with pytest.raises(UnsupportedSqlError, match="'color' of a view"):
            session.run("CREATE MATERIALIZED VIEW v WITH (color = 'red') AS SELECT 1 AS x")
        session.run("CREATE TABLE t (v int); CREATE MATERIALIZED VIEW s WITH (small = 'true') AS SELECT v FROM t")
        session.run("CREATE MATERIALIZED VIEW pairs AS SELECT t.v, s.v AS w FROM t, s; INSERT INTO t VALUES (1), (2); FLUSH")
        assert len(session.query("SELECT * FROM pairs")) == 4


QUERIES = [
    "SELECT a.id, b.id AS j, c.x FROM a, b, c WHERE a.g = b.g AND b.w = c.x + 1 AND (a.v > 2 OR c.g = 1) AND a.v < 9",
    "SELECT a.id, q.n FROM a, (SELECT g, count(*) AS n FROM b GROUP BY g) AS q WHERE q.g = a.g AND q.g > 0 AND q.n > 1",
    "SELECT a.id, b.id AS j FROM a LEFT JOIN b ON a.g = b.g AND a.v > 1 AND b.w < 8 WHERE a.v < 9 AND b.w IS NULL",
    "SELECT a.id, b.id AS j FROM a RIGHT JOIN b ON a.g = b.g AND a.v > 1 AND b.w < 8 WHERE b.w > 0 AND a.v IS NULL",
    "SELECT a.id, b.id AS j FROM a FULL JOIN b ON a.g = b.g AND a.v > 1 AND b.w < 8 WHERE coalesce(b.w, a.v) > 2",
    "SELECT a.id, b.id AS j FROM a JOIN b ON a.g IS NOT DISTINCT FROM b.g WHERE a.v = b.w OR a.v IS NULL",
    "SELECT g, v FROM (SELECT g, v FROM a UNION ALL SELECT g, w FROM b) AS u WHERE v > 3 AND g = 1",
    "SELECT g, v FROM (SELECT g, v FROM a EXCEPT SELECT g, w FROM b) AS u WHERE v > 3 OR g = 1",
    "SELECT a.id FROM a, b, c WHERE (a.g = b.g AND a.v = 1 AND c.id = b.id) OR (a.g = b.g AND b.w = 2 AND c.id = b.id)",
    "SELECT id, n FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM a) AS q WHERE g = 1 AND n < 3",
    "SELECT a.id, b.id AS j FROM a, b WHERE a.g = b.g AND 'a \"g#2\" b' <> a.unread",
    "SELECT count(*) AS n FROM a, b WHERE a.g = b.g AND 1 = 2",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.g = a.g AND b.w > 2 AND a.v < b.w) AND a.v IN (SELECT x FROM c)",
]


COMMAS = [
    "SELECT a.id, b.id AS j, c.id AS k FROM a, b RIGHT JOIN c ON b.g = c.g WHERE a.g = c.id",
    "SELECT a.id, b.id AS j, c.id AS k FROM a, b FULL JOIN c ON b.g = c.g WHERE a.g = c.id",
    "SELECT a.id, g, c.id AS k FROM (SELECT id, v FROM a) AS a, (SELECT g, w FROM b) AS b NATURAL JOIN c WHERE a.id = w",
    "SELECT a.id, x.n FROM a, b LEFT JOIN LATERAL (SELECT count(*) AS n FROM c WHERE c.g = a.g) AS x ON TRUE WHERE a.g = b.g",
]


def test_join_binds_closer_than_a_comma() -> None:
    rounds = (
        ["INSERT INTO c VALUES (1, 1, 2, 'x'), (2, 1, 3, 'y'), (3, 2, 4, 'z')", "INSERT INTO b VALUES (1, 1, 1, 'x')"],
        ["INSERT INTO a VALUES (1, 1, 2, 'x'), (2, 3, 3, NULL), (3, NULL, 1, 'y')"],
        ["INSERT INTO b VALUES (2, 9, 3, 'x')", "DELETE FROM c WHERE id = 1"],
    )
    check(COMMAS, DECLARED, rounds)


@pytest.mark.parametrize("source", ["a, b JOIN c ON c.g = a.g", "a LEFT JOIN b", "a INNER JOIN b"])
def test_a_join_that_is_none_is_refused(source: str) -> None:
    with pytest.raises(SqlError, match="line 1"):
        explained(f"SELECT 1 FROM {source}")


def test_a_natural_outer_join_without_a_shared_column_keeps_its_side() -> None:
    query = "SELECT v, n FROM (SELECT v FROM a) AS q NATURAL LEFT JOIN (SELECT max(w) AS n FROM b HAVING count(*) > 1) AS p"
    rounds = (["INSERT INTO a VALUES (1, 1, 2, 'x')"], ["INSERT INTO b VALUES (1, 1, 2, 'x'), (2, 1, 2, 'x')"])
    with Session(":memory:") as session:
        session.run("; ".join(DECLARED) + f"; CREATE MATERIALIZED VIEW mv AS {query}")
        found = []
        for statements in rounds:
            session.run("; ".join([*statements, "FLUSH"]))
            found.append(session.query("SELECT v, n FROM mv").rows())
            assert session.query(query).rows() == found[-1]
    assert found == [[(2, None)], [(2, 2)]]


def test_planned_views_equal_duckdb() -> None:
    rounds = (
        [
            "INSERT INTO a VALUES (1, 1, 2, 'x'), (2, 1, 3, NULL), (3, NULL, 1, 'y'), (4, 2, NULL, 'x')",
            "INSERT INTO b VALUES (1, 1, 3, 'x'), (2, 2, 4, 'y'), (3, NULL, 5, 'z')",
            "INSERT INTO c VALUES (1, 1, 2, 'x'), (2, 1, 3, 'y'), (3, 2, 4, 'z')",
        ],
        ["UPDATE a SET v = 5 WHERE id < 3", "INSERT INTO b VALUES (4, 1, 5, 'x'), (5, 1, 2, 'x')", "DELETE FROM c WHERE id = 2"],
        ["UPDATE b SET g = NULL WHERE id = 1", "DELETE FROM a WHERE id = 2", "INSERT INTO c VALUES (4, 1, 5, 'q')"],
        ["DELETE FROM b WHERE TRUE"],
    )
    check(QUERIES, DECLARED, rounds)


COUNTED = "(SELECT g, v, count(*) AS n FROM a GROUP BY g, v)"
OWN_EXTREMES = {
    "of a table": "SELECT a.id, m.most FROM a JOIN (SELECT g, max(v) AS most FROM a GROUP BY g) m ON a.g = m.g AND a.v = m.most",
    "the other way round": "SELECT a.* FROM (SELECT min(v) AS least, g FROM a GROUP BY g) m JOIN a "
    "ON m.g = a.g AND m.least >= a.v",
    "with WHERE": "SELECT a.id FROM a, (SELECT g, max(v) AS most FROM a GROUP BY g) m WHERE a.g = m.g AND m.most <= a.v",
    "of groups": f"SELECT c.g, c.v, c.n FROM {COUNTED} c JOIN (SELECT g, max(n) AS most FROM {COUNTED} d GROUP BY g) m "
    "ON c.g = m.g AND c.n >= m.most",
    "of a part": "SELECT p.id FROM (SELECT * FROM a WHERE v > 2) p JOIN "
    "(SELECT g, max(id) AS last FROM (SELECT id, g FROM a WHERE v > 2) q GROUP BY g) m "
    "ON p.g = m.g AND p.id = m.last",
    "with a third table": "SELECT a.id, b.w FROM a JOIN (SELECT g, max(v) AS most FROM a GROUP BY g) m ON a.g = m.g "
    "AND a.v = m.most JOIN b ON b.g = a.g",
}
OTHER_JOINS = {
    "of other rows": "SELECT a.id FROM a JOIN (SELECT g, max(v) AS most FROM a WHERE id > 1 GROUP BY g) m "
    "ON a.g = m.g AND a.v = m.most",
    "of another column": "SELECT a.id FROM a JOIN (SELECT g, max(id) AS most FROM a GROUP BY g) m ON a.g = m.g AND a.v = m.most",
    "of another group": "SELECT a.id FROM a JOIN (SELECT v, max(id) AS most FROM a GROUP BY v) m ON a.g = m.v AND a.id = m.most",
    "of another table": "SELECT a.id FROM a JOIN (SELECT g, max(w) AS most FROM b GROUP BY g) m ON a.g = m.g AND a.v = m.most",
    "below the extreme": "SELECT a.id FROM a JOIN (SELECT g, max(v) AS most FROM a GROUP BY g) m ON a.g = m.g AND a.v < m.most",
    "beyond the least": "SELECT a.id FROM a JOIN (SELECT g, min(v) AS most FROM a GROUP BY g) m ON a.g = m.g AND a.v >= m.most",
    "of a part of the values": "SELECT a.id FROM a JOIN (SELECT g, max(v) FILTER (WHERE id > 1) AS most FROM a GROUP BY g) m "
    "ON a.g = m.g AND a.v = m.most",
    "with another call": "SELECT a.id, m.n FROM a JOIN (SELECT g, max(v) AS most, count(*) AS n FROM a GROUP BY g) m "
    "ON a.g = m.g AND a.v = m.most",
    "that keeps all rows": "SELECT a.id FROM a LEFT JOIN (SELECT g, max(v) AS most FROM a GROUP BY g) m "
    "ON a.g = m.g AND a.v = m.most",
    "where NULL is a value": "SELECT a.id FROM a JOIN (SELECT g, max(v) AS most FROM a GROUP BY g) m "
    "ON a.g IS NOT DISTINCT FROM m.g AND a.v IS NOT DISTINCT FROM m.most",
    "of fewer columns": "SELECT a.id FROM a JOIN (SELECT g, id, max(v) AS most FROM a GROUP BY g, id) m "
    "ON a.g = m.g AND a.v = m.most",
    "where equal groups are not the same": "SELECT d.id FROM d JOIN (SELECT g, max(id) AS most FROM d GROUP BY g) m "
    "ON d.g = m.g AND d.id = m.most",
    "of spans": "SELECT d.id FROM d JOIN (SELECT id, max(v) AS most FROM d GROUP BY id) m ON d.id = m.id AND d.v = m.most",
    "on a sum": "SELECT a.id FROM a JOIN (SELECT g, max(v) AS most FROM a GROUP BY g) m ON a.g = m.g AND a.v + 0 = m.most",
}


@pytest.mark.parametrize("name", OWN_EXTREMES)
def test_a_join_with_the_extreme_of_its_own_group_is_a_top_n(name: str) -> None:
    tops = [line for line in explained(OWN_EXTREMES[name]) if line.startswith("TopN")]
    assert [line.split(" partition")[0] for line in tops] == ["TopN: limit 1, offset 0 with ties"]
    assert len(joins(OWN_EXTREMES[name])) == (name == "with a third table")


@pytest.mark.parametrize("name", OTHER_JOINS)
def test_another_join_with_an_extreme_stays_a_join(name: str) -> None:
    assert len(joins(OTHER_JOINS[name])) == 1


def test_the_extremes_of_own_groups_are_those_of_duckdb_with_nulls_and_ties() -> None:
    rng = random.Random(20261130)

    def change(number: int) -> str:
        table, (g, v) = rng.choice("aaab"), (rng.choice(["NULL", "1", "2"]) for _ in range(2))
        if number > 10 and rng.random() < 0.4:
            key = rng.randrange(number)
            return rng.choice([f"DELETE FROM {table} WHERE id = {key}", f"UPDATE {table} SET g = {g} WHERE id = {key}"])
        return f"INSERT INTO {table} VALUES ({number}, {g}, {v if v == 'NULL' else rng.randrange(5)}, 'x')"

    rounds = [[change(24 * n + i) for i in range(24)] for n in range(5)]
    check([*OWN_EXTREMES.values()], DECLARED, rounds)
