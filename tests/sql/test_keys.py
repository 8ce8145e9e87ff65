"""Keys of nodes: a row of a view that shares its key with another vanishes with the next change."""

from __future__ import annotations

import pytest

from tests.sql.against_duckdb import check
from tests.sql.watched_keys import watching_keys
from windowpane.errors import StaleViewError
from windowpane.sql import Session
from windowpane.sql.streaming.job import Job

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
