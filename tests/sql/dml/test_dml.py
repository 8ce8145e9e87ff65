"""ON CONFLICT of tables and of INSERT, RETURNING, and indexes; rules of RisingWave and PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from windowpane.errors import SqlError, SqlNameError, UnsupportedSqlError
from windowpane.sql import Session


@pytest.fixture
def session():
    with Session(":memory:") as opened:
        yield opened


def _rows(session: Session, query: str) -> list[list[str | None]]:
    return session.query(query).text_rows()


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("ON CONFLICT OVERWRITE", [["1", "5", None], ["2", None, "b"], ["3", "3", None]]),
        ("ON CONFLICT DO UPDATE FULL", [["1", "5", None], ["2", None, "b"], ["3", "3", None]]),
        ("ON CONFLICT DO UPDATE IF NOT NULL", [["1", "5", "a"], ["2", "2", "b"], ["3", "3", "c"]]),
        ("ON CONFLICT IGNORE", [["1", None, "a"], ["2", "2", None], ["3", None, "c"]]),
        ("ON CONFLICT DO NOTHING", [["1", None, "a"], ["2", "2", None], ["3", None, "c"]]),
    ],
)
def test_a_table_says_which_row_of_a_key_stays(session: Session, clause: str, expected: list[list[str | None]]) -> None:
    session.run(f"CREATE TABLE t (k int PRIMARY KEY, v int, w text) {clause}; CREATE MATERIALIZED VIEW m AS SELECT * FROM t")
    session.run("INSERT INTO t VALUES (1, NULL, 'a'), (2, 2, NULL); FLUSH")
    session.run("INSERT INTO t VALUES (1, 5, NULL), (2, NULL, 'b'), (3, NULL, 'c'), (3, 3, NULL); FLUSH")
    assert _rows(session, "SELECT * FROM m ORDER BY k") == expected


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        # RisingWave, e2e streaming: a row whose version is lower is passed over, an equal one counts.
        ("DO UPDATE IF NOT NULL", [["1", "5", "2", "5"], ["2", "3", "6", "1"], ["3", None, "5", "2"]]),
        ("DO UPDATE FULL", [["1", "5", None, "5"], ["2", None, "6", "1"], ["3", None, "5", "2"]]),
    ],
)
def test_version_columns_decide_between_rows(session: Session, clause: str, expected: list[list[str | None]]) -> None:
    session.run(f"CREATE TABLE t (v1 int PRIMARY KEY, v2 int, v3 int, v4 int) ON CONFLICT {clause} WITH VERSION COLUMN(v4)")
    session.run("INSERT INTO t VALUES (1, NULL, 2, 4), (2, 3, NULL, 1)")
    session.run("INSERT INTO t VALUES (3, NULL, 5, 2), (3, 6, NULL, 1)")
    session.run("INSERT INTO t VALUES (1, 5, NULL, 5), (2, NULL, 6, 1)")
    assert _rows(session, "SELECT * FROM t ORDER BY v1") == expected
    session.run("INSERT INTO t VALUES (1, 9, 9, NULL)")
    assert _rows(session, "SELECT v2 FROM t WHERE v1 = 1") == [["5"]]


def test_versions_are_compared_one_after_the_other(session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY, a int, b text, v int) ON CONFLICT OVERWRITE WITH VERSION COLUMN (a, b)")
    session.run("INSERT INTO t VALUES (1, 1, 'b', 1), (1, 1, 'a', 2), (1, 0, 'z', 3), (1, 2, NULL, 4), (1, 2, NULL, 5)")
    assert _rows(session, "SELECT v FROM t") == [["5"]]
    with pytest.raises(SqlNameError, match="no version column 'x'"):
        session.run("CREATE TABLE u (k int PRIMARY KEY) ON CONFLICT OVERWRITE WITH VERSION COLUMN (x)")
    with pytest.raises(UnsupportedSqlError, match="IGNORE"):
        session.run("CREATE TABLE u (k int PRIMARY KEY) ON CONFLICT DO NOTHING WITH VERSION COLUMN (k)")
    with pytest.raises(SqlError, match="counts no versions"):
        session.run("CREATE TABLE u (k int PRIMARY KEY, j jsonb) ON CONFLICT OVERWRITE WITH VERSION COLUMN (j)")


@pytest.mark.parametrize("columns", ["k jsonb PRIMARY KEY", "k int, j jsonb[], PRIMARY KEY (k, j)"])
def test_jsonb_is_no_primary_key(session: Session, columns: str) -> None:
    """``1`` and ``1.0`` are one value (PostgreSQL), and would be two rows."""
    with pytest.raises(UnsupportedSqlError, match="a primary key of jsonb"):
        session.run(f"CREATE TABLE t ({columns})")


def _version(row: tuple[int, int | None, int | None]) -> int:
    return -1 if row[2] is None else row[2]


def _inserted_one_by_one(rule: str, rows: list[tuple[int, int | None, int | None]]) -> list[tuple[int, int | None, int | None]]:
    kept: dict[int, tuple[int, int | None, int | None]] = {}
    for row in rows:
        old = kept.get(row[0])
        if old is None:
            kept[row[0]] = row
        elif rule != "IGNORE" and _version(row) >= _version(old):
            filled = (row[0], old[1] if row[1] is None else row[1], old[2] if row[2] is None else row[2])
            kept[row[0]] = filled if "NULL" in rule else row
    return sorted(kept.values())


@pytest.mark.parametrize("seed", range(12))
def test_one_insert_of_many_rows_is_many_inserts_of_one(session: Session, seed: int) -> None:
    draw = Random(seed)
    rule = draw.choice(["IGNORE", "OVERWRITE WITH VERSION COLUMN (w)", "DO UPDATE IF NOT NULL WITH VERSION COLUMN (w)"])
    session.run(f"CREATE TABLE t (k int PRIMARY KEY, v int, w int) ON CONFLICT {rule}")
    rows = [(draw.randint(1, 3), draw.choice([None, 1, 2]), draw.choice([None, 1, 2, 3])) for _ in range(draw.randint(1, 20))]
    cut = draw.randint(0, len(rows))
    for part in (rows[:cut], rows[cut:]):
        values = ", ".join(f"({k}, {'NULL' if v is None else v}, {'NULL' if w is None else w})" for k, v, w in part)
        if part:
            session.run(f"INSERT INTO t VALUES {values}")
    assert session.query("SELECT * FROM t ORDER BY k").rows() == _inserted_one_by_one(rule, rows), f"seed {seed}, {rule}"


def test_an_insert_has_no_rule_of_its_own(session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)")
    for rule in ("ON CONFLICT DO NOTHING", "ON CONFLICT (k) DO UPDATE SET v = excluded.v"):
        with pytest.raises(UnsupportedSqlError, match=r"ON CONFLICT of an INSERT .* CREATE TABLE ... ON CONFLICT DO NOTHING"):
            session.run(f"INSERT INTO t VALUES (1, 2) {rule}")
    assert session.query("SELECT * FROM t").rows() == [(1, 1)]


def test_changes_return_their_rows(session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int, w text DEFAULT 'd', at timestamp AS timestamp '2024-01-01')")
    assert session.query("INSERT INTO t (k, v) VALUES (1, 2), (2, 3) RETURNING *, v * 2 AS twice").text_rows() == [
        ["1", "2", "d", "2024-01-01 00:00:00", "4"],
        ["2", "3", "d", "2024-01-01 00:00:00", "6"],
    ]
    updated = session.query("UPDATE t SET v = v + 1 WHERE k = 2 RETURNING t.k, v")
    assert (updated.tag, updated.rows(), updated.names) == ("UPDATE 1", [(2, 4)], ("k", "v"))
    assert session.query("DELETE FROM t RETURNING k").rows() in ([(1,), (2,)], [(2,), (1,)])
    assert session.query("DELETE FROM t RETURNING k").rows() == []


def test_returning_sees_rows_only(session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)")
    for items in ("count(*)", "(SELECT max(v) FROM t)", "row_number() OVER (ORDER BY k)"):
        with pytest.raises(UnsupportedSqlError, match="RETURNING"):
            session.run(f"UPDATE t SET v = 2 RETURNING {items}")
    with pytest.raises(SqlError):
        session.run("DELETE FROM t RETURNING k FROM t")
    assert session.query("SELECT v FROM t").rows() == [(1,)]


def test_late_rows_are_not_returned(session: Session) -> None:
    session.run("CREATE TABLE t (at timestamp, WATERMARK FOR at AS at) APPEND ONLY; INSERT INTO t VALUES ('2024-01-02')")
    assert session.query("INSERT INTO t VALUES ('2024-01-01'), ('2024-01-03') RETURNING at").text_rows() == [
        ["2024-01-03 00:00:00"]
    ]


def test_an_index_is_a_name(tmp_path: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    with Session(store) as session:
        session.run("CREATE TABLE t (k int, v int)")
        made = session.query("CREATE INDEX i ON t (k DESC, v) INCLUDE (v)")
        assert made.tag == "CREATE_INDEX"
        assert "no effect" in made.notice
        session.run("CREATE INDEX IF NOT EXISTS i ON t (k)")
        with pytest.raises(SqlNameError, match="no column 'x'"):
            session.run("CREATE INDEX j ON t (x)")
        with pytest.raises(SqlNameError, match="no table or materialized view 'u'"):
            session.run("CREATE INDEX j ON u (x)")
    with Session(store) as session:
        assert session.query("SHOW INDEXES").rows() == [("i",)]
        session.run("DROP INDEX i; CREATE INDEX i ON t (v); DROP TABLE t")
        assert session.query("SHOW INDEXES").rows() == []
