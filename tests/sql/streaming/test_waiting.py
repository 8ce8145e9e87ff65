"""What waits for a flush: the view of a table is what the table was at the last flush, whatever changed since and was undone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.examples import first
from windowpane.errors import SqlRunError
from windowpane.sql import Session

_TABLES = {
    "numbered": "CREATE TABLE t (k int NOT NULL, v int)",
    "with a default": "CREATE TABLE t (k int NOT NULL, v int DEFAULT 7)",
    "with a key": "CREATE TABLE t (k int PRIMARY KEY, v int)",
    "with a generated column": "CREATE TABLE t (k int NOT NULL, v int, w int AS k + v)",
}
_VIEWS = """
    CREATE MATERIALIZED VIEW whole AS SELECT k, v FROM t;
    CREATE MATERIALIZED VIEW s AS SELECT k % 3 AS g, sum(v) FROM t GROUP BY g
"""


def _change(session: Session, rows: dict[int, int | None], draw: random.Random, at: int) -> None:
    """Change the table by one statement, and the model with it."""
    some = draw.randrange(5)
    if draw.random() < 0.5:
        new = {at * 10 + index: draw.choice([None, *range(5)]) for index in range(draw.randrange(1, 4))}
        rows |= new
        written = ", ".join(f"({k}, {'NULL' if v is None else v})" for k, v in new.items())
        session.run(f"INSERT INTO t (k, v) VALUES {written}")
    elif draw.random() < 0.5:
        rows |= {k: some for k in rows if k % 5 == some}
        session.run(f"UPDATE t SET v = {some} WHERE k % 5 = {some}")
    else:
        for k in [k for k in rows if k % 5 == some]:
            del rows[k]
        session.run(f"DELETE FROM t WHERE k % 5 = {some}")


def _sums(rows: dict[int, int | None]) -> list[tuple[int, int | None]]:
    groups: dict[int, list[int]] = {}
    for k, v in rows.items():
        groups.setdefault(k % 3, []).extend([] if v is None else [v])
    return sorted((g, sum(values) if values else None) for g, values in groups.items())


@pytest.mark.slow_but("0-numbered", "0-with a generated")
@pytest.mark.parametrize("table", _TABLES)
@pytest.mark.parametrize("seed", range(4))
def test_a_view_is_its_table_at_the_last_flush(tmp_path: Path, table: str, seed: int) -> None:
    draw, rows, path = random.Random(f"{table} {seed}"), dict[int, int | None](), str(tmp_path / "store.duckdb")
    session, flushed = Session(path), dict[int, int | None]()
    session.run(f"{_TABLES[table]}; {_VIEWS}")
    for at in range(1, first(20) or 40):
        _change(session, rows, draw, at)
        if draw.random() < 0.1:
            with pytest.raises(SqlRunError):
                session.run("INSERT INTO t (k, v) VALUES (1000, 1), (1 / 0, 1)")
        if draw.random() < 0.3:
            session.run("FLUSH")
            flushed = dict(rows)
        if draw.random() < 0.2:
            session.close()
            session = Session(path)
        if draw.random() < 0.05:
            session.run("ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t")
        assert sorted(session.query("SELECT k, v FROM whole ORDER BY k").rows()) == sorted(flushed.items())
        assert sorted(session.query("SELECT * FROM s").rows()) == _sums(flushed)
    session.close()


def test_a_row_that_may_not_be_null_leaves_nothing_behind() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int NOT NULL, v int); CREATE MATERIALIZED VIEW n AS SELECT k FROM t")
        with pytest.raises(SqlRunError, match="'k' of 't' is NOT NULL"):
            session.run("INSERT INTO t VALUES (1, 1), (NULL, 2)")
        session.run("INSERT INTO t VALUES (3, 3); FLUSH")
        assert session.query("SELECT k FROM n").rows() == [(3,)]


def test_a_table_is_filled_from_itself() -> None:
    with Session(":memory:") as session:
        session.run(
            "CREATE TABLE t (k int); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t; INSERT INTO t VALUES (1), (2)"
        )
        session.run("INSERT INTO t SELECT k FROM t; INSERT INTO t SELECT k FROM t; FLUSH")
        assert session.query("SELECT n FROM n").rows() == [(8,)]


def test_new_rows_that_are_gone_before_the_flush_change_nothing() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int); CREATE MATERIALIZED VIEW n AS SELECT k FROM t")
        session.run("INSERT INTO t VALUES (1); FLUSH; INSERT INTO t VALUES (2); DELETE FROM t WHERE k = 2; FLUSH")
        assert session.changelog("n").num_rows == 0
