"""What sessions of Spark Connect refuse, where a classic one goes on: no JVM is needed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.sql.in_process import NO_SPARK, on_connect, run_in_process
from windowpane.errors import UnsupportedSqlError, UnsupportedStoreError
from windowpane.spark.queries import batch_query
from windowpane.sql import Session
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.on_spark.pending_changes import PendingChanges
from windowpane.sql.on_spark.queries import ViewQueries

SOURCES = """
CREATE SOURCE s (k int, v int) WITH (connector = 'parquet', path = '{folder}');
CREATE SOURCE keyed (k int PRIMARY KEY, v int) WITH (connector = 'parquet', path = '{folder}');
"""
TABLE = "CREATE TABLE filled (k int, v int) WITH (connector = 'parquet', path = '{folder}');"
VIEWS = "CREATE TABLE t (k int, v int); CREATE MATERIALIZED VIEW totals AS SELECT k, sum(v) AS v FROM t GROUP BY k;"
SINK = "WITH (connector = 'blackhole')"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let sessions run in this process, on a file of rows."""
    run_in_process(monkeypatch)
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([2], pa.int32())}), tmp_path / "in" / "0.parquet")
    return tmp_path / "in"


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (TABLE, "storing the rows of 'filled' on Spark Connect is not supported"),
        ("CREATE MATERIALIZED VIEW m AS SELECT * FROM totals JOIN s USING (k)", None),
        ("CREATE MATERIALIZED VIEW m AS SELECT * FROM keyed", "storing the rows of 'keyed'"),
        (f"CREATE SINK out FROM s {SINK}", "storing the rows of 's'"),
        (f"CREATE SINK out AS SELECT k FROM keyed {SINK}", "storing the rows of 'keyed'"),
        (f"CREATE SINK out FROM totals {SINK}", None),
    ],
)
def test_what_passes_the_process_of_the_session_is_refused_and_nothing_is_left_of_it(
    folder: Path, statement: str, reason: str | None
) -> None:
    with on_connect(), Session(NO_SPARK) as session:
        session.run(SOURCES.format(folder=folder) + VIEWS)
        before = session.relations()
        if reason is None:
            session.run(statement)
        else:
            with pytest.raises(UnsupportedSqlError, match=reason):
                session.run(statement.format(folder=folder))
            assert session.relations() == before
        session.run("INSERT INTO t VALUES (1, 5); FLUSH")
        assert session.query("SELECT * FROM totals").rows() == [(1, 5)]


def test_a_store_with_what_needs_a_classic_session_is_refused_and_left_as_it_is(tmp_path: Path, folder: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    with Session(NO_SPARK, store) as session:
        session.run(TABLE.format(folder=folder))
    with on_connect():
        for _ in range(2):
            with pytest.raises(UnsupportedStoreError, match="filled need a classic SparkSession"):
                Session(NO_SPARK, store)
    with Session(NO_SPARK, store) as session:
        assert "filled" in session.relations()


def test_a_folder_that_the_server_does_not_see_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def sees(spark: object, file: Path) -> bool:
        seen.append(file.read_text())
        return False

    monkeypatch.setattr(batch_query, "sees", sees)
    store = str(tmp_path / "views.duckdb")
    storage = Storage(store)
    with pytest.raises(UnsupportedStoreError, match="the server of Spark Connect does not see this folder"):
        ViewQueries(NO_SPARK, store, PendingChanges(storage), lambda *_: None)
    storage.close()
    assert len(seen) == 1
    assert list(Path(f"{store}.streams").iterdir()) == []
