"""A store that another version of windowpane wrote is refused by name, and left as it was."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.sql.watched_keys import Watch
from windowpane.errors import StoreVersionError
from windowpane.sql import Session
from windowpane.sql.expressions import operators

_EVERY_TYPE = """
CREATE TABLE t (
    a boolean, b smallint, c int, d bigint, e numeric, f numeric(10, 2), g real, h double precision, i text, j bytea, k date,
    l time, m timestamp, n timestamptz, o interval, p jsonb, q int[], r text[][]
);
CREATE MATERIALIZED VIEW m AS SELECT * FROM t;
CREATE MATERIALIZED VIEW s AS SELECT c, sum(e) AS e, avg(f) AS f, count(*) AS n FROM t GROUP BY c;
"""


def _made(store: Path) -> str:
    with Session(str(store)) as session:
        session.run(_EVERY_TYPE)
        session.run("INSERT INTO t (c, e) VALUES (1, 2.5); FLUSH")
    return str(store)


def test_what_this_version_wrote_is_opened(tmp_path: Path, every_key_is_unique: Watch) -> None:
    store = _made(tmp_path / "views.duckdb")
    with Session(store) as session:
        session.run("ALTER MATERIALIZED VIEW s RENAME TO totals; ALTER TABLE t RENAME TO base; DROP MATERIALIZED VIEW m")
    every_key_is_unique.renamed("s", "totals")
    with Session(store) as session:
        session.run("INSERT INTO base (c, e) VALUES (1, 1); FLUSH")
        assert session.query("SELECT c, e, n FROM totals").text_rows() == [["1", "3.5", "2"]]


def test_a_store_is_opened_where_expressions_are_written_in_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The structure of its plans is kept, not the SQL that is made of them."""
    store, view = str(tmp_path / "views.duckdb"), "SELECT c + 7 AS d, count(*) AS n FROM t GROUP BY 1"
    with Session(store) as session:
        session.run(f"CREATE TABLE t (c int); CREATE MATERIALIZED VIEW v AS {view}; INSERT INTO t VALUES (1); FLUSH")
        before = session.query(f"EXPLAIN {view}").rows()
    monkeypatch.setattr(operators, "_NAMED", {})
    with Session(store) as session:
        assert session.query(f"EXPLAIN {view}").rows() != before
        session.run("INSERT INTO t VALUES (1); FLUSH")
        assert session.query("SELECT * FROM v").text_rows() == [["8", "2"]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE windowpane.plans SET plan = replace(plan, 'Aggregate', 'Group') WHERE view = 's'", "the plan of 's': was "),
        ("UPDATE windowpane.format SET version = 2", "the format: was 2\n    is 1"),
        ("DROP TABLE windowpane.format", "the format: was not kept"),
        ("DELETE FROM windowpane.plans WHERE view = 'm'", "the plan of 'm': was not kept"),
        ("ALTER TABLE main.t ALTER e TYPE DECIMAL(38, 3)", r"column 'e' of 't': was DECIMAL\(38,3\)"),
        ("ALTER TABLE main.t DROP COLUMN i", "column 'i' of 't': was not kept"),
    ],
)
def test_what_another_version_wrote_is_refused(tmp_path: Path, change: str, words: str) -> None:
    store = _made(tmp_path / "views.duckdb")
    with duckdb.connect(store) as file:
        file.execute(change)
    for _ in range(2):
        with pytest.raises(StoreVersionError, match=words):
            Session(store)
    with duckdb.connect(store) as file:
        assert file.sql("SELECT count(*) FROM main.t").fetchall() == [(1,)]
