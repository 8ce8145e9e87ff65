"""Keys of nodes: a row of a view that shares its key with another vanishes with the next change."""

from __future__ import annotations

import pytest

from tests.sql.against_duckdb import check
from tests.sql.in_process import spread_session
from tests.sql.watched_keys import watching_keys
from windowpane.errors import StaleViewError
from windowpane.sql import Session
from windowpane.sql.streaming.job import Job

__all__ = ["spread_session"]

DECLARED = ("CREATE TABLE l (k int, v int)", "CREATE TABLE r (k int, v int)")
GROUPS = "(SELECT k, count(*) AS n FROM {table} GROUP BY k)"
TOTAL = "(SELECT sum(v) AS n FROM {table})"
ROUNDS = (
    ["INSERT INTO l VALUES (NULL, 1)", "INSERT INTO r VALUES (NULL, 2)"],
    ["INSERT INTO l VALUES (NULL, 3), (1, 1)"],
    ["INSERT INTO r VALUES (1, 5), (2, 6)", "UPDATE l SET v = 9 WHERE v = 1"],
    ["DELETE FROM l WHERE k IS NULL", "INSERT INTO r VALUES (NULL, 2)"],
    ["DELETE FROM r WHERE k = 1"],
)


def _sides(one: str, other: str) -> str:
    return f"{one.format(table='l')} AS a {{kind}} {other.format(table='r')} AS b"


@pytest.mark.slow_but("FULL")
@pytest.mark.parametrize("kind", ["FULL JOIN", "LEFT JOIN", "RIGHT JOIN", "JOIN"])
def test_joins_of_groups_with_null_keys_and_of_totals(kind: str) -> None:
    groups, totals, mixed = _sides(GROUPS, GROUPS), _sides(TOTAL, TOTAL), _sides(TOTAL, GROUPS)
    queries = [
        f"SELECT a.n AS an, b.n AS bn FROM {groups.format(kind=kind)} ON a.k = b.k",
        f"SELECT k, a.n AS an, b.n AS bn FROM {groups.format(kind=kind)} USING (k)",
        f"SELECT a.n AS an, b.n AS bn FROM {totals.format(kind=kind)} ON a.n = b.n",
        f"SELECT a.n AS an, b.n AS bn FROM {mixed.format(kind=kind)} ON a.n = b.n",
        f"SELECT an, count(*) AS c FROM (SELECT a.n AS an FROM {groups.format(kind=kind)} ON a.k = b.k) AS q GROUP BY an",
    ]
    check(queries, DECLARED, ROUNDS)


def test_a_full_join_of_full_joins() -> None:
    one = f"SELECT a.n AS n FROM {_sides(GROUPS, GROUPS).format(kind='FULL JOIN')} ON a.k = b.k"
    check([f"SELECT x.n AS xn, y.n AS yn FROM ({one}) AS x FULL JOIN ({one}) AS y ON x.n = y.n"], DECLARED, ROUNDS)


def test_a_union_tells_zeros_by_value() -> None:
    """-0.0 and 0.0 are one group; which of them stands for it may change, and the identity of its row may not."""
    query = "SELECT x FROM (SELECT x, count(*) AS n FROM f GROUP BY x) AS q UNION ALL SELECT x FROM f WHERE x > 5"
    rounds = [["INSERT INTO f VALUES ('-0.0')"], ["INSERT INTO f VALUES (0.0), (6)"], ["DELETE FROM f WHERE x < 1"]]
    with Session(":memory:") as session:
        session.run(f"CREATE TABLE f (x double precision); CREATE MATERIALIZED VIEW v AS {query}")
        counts = []
        for statements in rounds:
            session.run("; ".join([*statements, "FLUSH"]))
            counts.append(len(session.query("SELECT * FROM v")))
    assert counts == [1, 3, 2]


def test_the_watch_sees_a_key_that_is_not_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check that all tests of this room run under can fail."""
    plain = Job._set_up

    def without_key(job: Job, node) -> None:
        object.__setattr__(node, "key", ())
        plain(job, node)

    monkeypatch.setattr(Job, "_set_up", without_key)
    with watching_keys(monkeypatch), Session(":memory:") as session:
        session.run("CREATE TABLE t (v int); CREATE MATERIALIZED VIEW mv AS SELECT v FROM t")
        with pytest.raises(StaleViewError, match=r"has the key \(\) twice"):
            session.run("INSERT INTO t VALUES (1), (2); FLUSH")


def test_a_row_whose_key_is_written_in_another_way_changes_that_row() -> None:
    with Session() as session:
        session.run("CREATE TABLE t (i interval, d double precision, v int, PRIMARY KEY (i, d))")
        session.run("CREATE MATERIALIZED VIEW mv AS SELECT i, d, v FROM t")
        session.run("INSERT INTO t VALUES ('24:00', 0, 1)")
        session.run("FLUSH")
        session.run("DELETE FROM t WHERE d = 0")
        session.run("INSERT INTO t VALUES ('1 day', '-0', 1)")
        session.run("FLUSH")

        changes = session.changelog("mv").to_pylist()
        assert [(each["_change_type"], each["i"].days, str(each["d"])) for each in changes] == [
            ("update_preimage", 0, "0.0"),
            ("update_postimage", 1, "-0.0"),
        ]


def test_equal_values_that_are_written_differently_meet_in_one_bucket(spread_session: Session) -> None:
    session = spread_session
    session.run("CREATE TABLE l (n int PRIMARY KEY, i interval, d double precision, a double precision[])")
    session.run("CREATE TABLE r (n int PRIMARY KEY, i interval, d double precision, a double precision[])")
    session.run("CREATE MATERIALIZED VIEW by_length AS SELECT l.n, r.n AS other FROM l JOIN r ON l.i = r.i")
    session.run("CREATE MATERIALIZED VIEW by_array AS SELECT l.n, r.n AS other FROM l JOIN r ON l.a = r.a")
    session.run("CREATE MATERIALIZED VIEW peers AS SELECT n, count(*) OVER (PARTITION BY i) AS peers FROM l")
    session.run("CREATE MATERIALIZED VIEW groups AS SELECT d, a, count(*) AS n FROM l GROUP BY d, a")
    numbers = range(1, 9)
    session.run("INSERT INTO l VALUES " + ", ".join(f"({n}, '{n} days', 0, '{{0,{n}}}')" for n in numbers))
    session.run("INSERT INTO r VALUES " + ", ".join(f"({n}, '{24 * n} hours', '-0', '{{-0,{n}}}')" for n in numbers))
    session.run("INSERT INTO l SELECT n + 10, i, d, a FROM r")
    session.run("FLUSH")

    met = [(n, n) for n in numbers] + [(n + 10, n) for n in numbers]
    assert sorted(session.query("SELECT * FROM by_length").rows()) == met
    assert sorted(session.query("SELECT * FROM by_array").rows()) == met
    assert {peers for _, peers in session.query("SELECT * FROM peers").rows()} == {2}
    assert sorted(session.query("SELECT * FROM groups").text_rows()) == [["0", f"{{0,{n}}}", "2"] for n in numbers]

    session.run("UPDATE l SET d = -d, a = array[-0.0::double precision, n - 10] WHERE n > 10; DELETE FROM l WHERE n <= 10; FLUSH")
    assert sorted(session.query("SELECT * FROM by_array").rows()) == met[8:]
    assert sorted(session.query("SELECT * FROM groups").text_rows()) == [["0", f"{{0,{n}}}", "1"] for n in numbers]
