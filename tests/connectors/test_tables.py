"""Delta and Iceberg tables without a jar: appends of tasks, merges by key, each batch once, schemas compared."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.helpers import Feed, instant
from windowpane import TumblingEventTimeWindows
from windowpane.connectors import delta, iceberg
from windowpane.connectors.tables import refuse_nested
from windowpane.errors import ConnectorError, DuplicateColumnError, InvalidSpecError, TableSchemaError

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

ROWS = pa.table({"k": ["a", "b"], "v": [1, 2]})


def catalog_in(folder: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}


def read(table: Any) -> list[dict[str, Any]]:
    there = table.opened()
    found = pa.table(there.to_pyarrow_table()) if isinstance(table, delta.Table) else there.scan().to_arrow()
    return sorted(found.to_pylist(), key=repr)


def appended(table: Any, rows: pa.Table, number: int) -> None:
    if isinstance(table, delta.Table):
        there = table.prepared(rows.schema)
        by = tuple(there.metadata().partition_columns)
        written = delta.FileWriter(table.uri, {}, rows.schema, by, "part")(rows.to_batches())
        table.append(there, [each for batch in written for each in batch.to_pylist()], "q", number)
    else:
        table.prepared(rows.schema)
        written = iceberg.FileWriter(table, rows.schema, "part")(rows.to_batches())
        table.append([each for batch in written for each in batch["path"].to_pylist()], "q", number)


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return delta.Table(str(tmp_path / "t")) if request.param == "delta" else iceberg.Table("db.t", catalog_in(tmp_path))


def test_an_append_has_its_number_and_is_there_once(table: Any) -> None:
    assert table.taken("q") == -1
    appended(table, ROWS, 0)
    assert (table.taken("q"), table.taken("other")) == (0, -1)
    if isinstance(table, iceberg.Table):
        appended(table, ROWS, 0)  # it is read again before each commit
    assert read(table) == ROWS.to_pylist()
    appended(table, ROWS.slice(0, 0), 1)
    assert (table.taken("q"), read(table)) == (1, ROWS.to_pylist())


def test_a_merge_leaves_the_last_row_of_each_key(table: Any) -> None:
    appended(table, pa.table({"k": ["a", "b", None], "n": [1, 1, 1], "v": [1, 2, 3]}), 0)
    kinds = ["update_preimage", "update_postimage", "delete", "insert", "insert", "delete", "insert"]
    changes = pa.table(
        {"k": ["a", "a", None, "c", "d", "d", "b"], "n": [1, 1, 1, 1, 1, 1, 2], "v": [1, 9, 3, 4, 5, 5, 7], "_change_type": kinds}
    )
    assert table.merge(changes.to_batches(), ("k", "n"), "q", 1) == 5
    assert read(table) == [
        {"k": "a", "n": 1, "v": 9},
        {"k": "b", "n": 1, "v": 2},
        {"k": "b", "n": 2, "v": 7},
        {"k": "c", "n": 1, "v": 4},
    ]
    assert table.taken("q") == 1


def test_a_merge_takes_columns_of_any_name(table: Any) -> None:
    rows = pa.table({"User Id": ["a", "b"], "net.eur": [1, 2], "we`ird": [1, 1], 'quo"ted': [2, 2], "select": [3, 3]})
    for number in range(2):
        table.prepared(rows.schema)
        assert table.merge(rows.to_batches(), ("User Id", "net.eur"), "q", number) == 2
    assert read(table) == rows.to_pylist()


def test_a_merge_takes_nan_for_one_key(table: Any) -> None:
    rows = pa.table({"k": [math.nan, 1.0, math.nan], "v": [1, 2, 3]})
    for key in (("k",), ("k", "v")):
        table.prepared(rows.schema)
        table.merge(rows.to_batches(), key, "q", len(key))
        assert sorted(each["v"] for each in read(table)) == ([2, 3] if key == ("k",) else [1, 2, 3])


def test_a_key_of_structs_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match=r"key of t: 's' is struct<x: int64>"):
        refuse_nested("t", pa.schema([("k", pa.int64()), ("s", pa.struct([("x", pa.int64())]))]), ("k", "s"))


def test_columns_of_delta_whose_names_differ_by_case_alone_are_refused(tmp_path: Path) -> None:
    table = delta.Table(str(tmp_path / "t"), evolve=True)
    with pytest.raises(DuplicateColumnError, match="'at', 'At', which are one name"):
        table.prepared(pa.schema([("at", pa.int64()), ("At", pa.int64())]))
    appended(table, pa.table({"at": [1]}), 0)
    with pytest.raises(DuplicateColumnError, match="'at', 'At', which are one name"):
        table.prepared(pa.schema([("At", pa.int64())]))


def test_two_that_write_one_batch_at_once_write_it_once(table: Any) -> None:
    appended(table, ROWS, 0)
    if isinstance(table, iceberg.Table):
        opened, others = table.opened, [table.opened()]
        object.__setattr__(table, "opened", lambda: others.pop() if others else opened())
        appended_first = iceberg.Table(table.name, table.catalog)
        appended(appended_first, ROWS, 1)
        table.append([], "q", 1)
        assert len(read(appended_first)) == 4
        return
    one, other = table.opened(), table.opened()
    table.append(one, [], "q", 1)
    with pytest.raises(ConnectorError, match="The batch is not in the table"):
        table.append(other, [], "q", 1)


def test_other_columns_are_refused_and_new_ones_are_added_on_request(table: Any) -> None:
    appended(table, ROWS, 0)
    more = pa.table({"k": ["c"], "v": [3], "w": [0.5]})
    with pytest.raises(TableSchemaError, match=r"w: table absent, rows double"):
        table.prepared(more.schema)
    with pytest.raises(TableSchemaError, match=r"v: table int64, rows string"):
        table.prepared(pa.schema([("k", pa.string()), ("v", pa.string())]))
    object.__setattr__(table, "evolve", True)
    appended(table, more, 1)
    assert read(table)[2] == {"k": "c", "v": 3, "w": 0.5}
    assert read(table)[0] == {"k": "a", "v": 1, "w": None}


def test_a_partitioned_table_is_written_by_partition(tmp_path: Path) -> None:
    table = delta.Table(str(tmp_path / "t"), ("day", "k"))
    rows = pa.table({"k": ["a b", None, "a b"], "v": [1, 2, 3], "day": pa.array([instant(0).date()] * 3)})
    appended(table, rows, 0)
    assert read(table) == sorted(rows.to_pylist(), key=repr)
    assert table.opened().metadata().partition_columns == ["day", "k"]  # type: ignore[union-attr]


@pytest.mark.spark
def test_results_are_in_tables_once_over_a_restart(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([("a", 1, 5), ("b", 2, 7)])
    counts = (
        wp.stream(feed.stream(spark), event_time="t", watermark="0 seconds")
        .key_by("k")
        .window(TumblingEventTimeWindows.of("10 seconds"))
        .side_output_late_data("late")
        .aggregate(**{"sum.v": wp.sum("v")})
    )
    merged, late = delta.Table(str(tmp_path / "merged")), iceberg.Table("db.late", catalog_in(tmp_path))
    sinks: dict[str, Any] = {
        "main": wp.sinks.delta(merged.uri, key="k"),
        "late": wp.sinks.iceberg("db.late", catalog=catalog_in(tmp_path)),
    }
    for rows in [("a", 12, 1)], [("a", 31, 1)], [("b", 3, 9)], []:
        query = counts.start(**sinks, checkpoint=str(tmp_path / "ck"), trigger={"availableNow": True})
        query.awaitTermination()
        feed.add(*([rows] if rows else []))
    commits = sorted((tmp_path / "ck" / "commits").iterdir(), key=lambda path: path.name)
    commits[-1].unlink()
    counts.start(**sinks, checkpoint=str(tmp_path / "ck"), trigger={"availableNow": True}).awaitTermination()
    assert [(row["k"], row["sum.v"]) for row in read(merged)] == [("a", 1), ("b", 7)]
    assert [(row["k"], row["v"]) for row in read(late)] == [("b", 9)]
