"""Tables of Delta and Iceberg read without a jar: as they are, and their changes as a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from tests.connectors.test_tables import appended, catalog_in
from tests.spark.helpers import rows
from windowpane.connectors import delta, iceberg
from windowpane.connectors.table_changes import DeltaChanges, IcebergChanges
from windowpane.errors import ConnectorError, TableChangesError

ROWS = pa.table({"k": ["a", "b"], "v": [1, 2]})
MORE = pa.table({"k": ["c"], "v": [3]})


def changes_of(table: Any, since: int, until: int | None = None, skips: bool = False) -> list[tuple[Any, ...]]:
    changes: Any = DeltaChanges(table, True, None) if isinstance(table, delta.Table) else IcebergChanges(table, True, None, skips)
    parts = changes.parts(since, changes.last() if until is None else until)
    return [tuple(row.values()) for part in parts for found in changes.read(*part) for row in found.to_pylist()]


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return delta.Table(str(tmp_path / "t")) if request.param == "delta" else iceberg.Table("db.t", catalog_in(tmp_path))


def test_what_is_appended_is_read_once(table: Any) -> None:
    appended(table, ROWS, 0)
    changes = DeltaChanges(table, True, None) if isinstance(table, delta.Table) else IcebergChanges(table, True, None, False)
    whole = changes.last()
    appended(table, MORE, 1)
    assert sorted(changes_of(table, -1, whole)) == [("a", 1, "insert"), ("b", 2, "insert")]
    assert changes_of(table, whole) == [("c", 3, "insert")]
    assert len(changes_of(table, -1)) == 3


def test_rows_that_are_changed_stop_a_reader_that_cannot_know_them(table: Any) -> None:
    appended(table, ROWS, 0)
    before = (
        DeltaChanges(table, True, None).last()
        if isinstance(table, delta.Table)
        else table.opened().current_snapshot().snapshot_id
    )
    table.merge(pa.table({"k": ["a"], "v": [9]}).to_batches(), ("k",), "q", 1)
    with pytest.raises(TableChangesError, match=r"version \d+ \(MERGE\) changed rows|snapshot \d+ \(\w+\) took rows away"):
        changes_of(table, before)
    if isinstance(table, iceberg.Table):
        assert changes_of(table, before, skips=True) == [("a", 9, "insert")]


def test_the_feed_of_a_delta_table_is_a_changelog(tmp_path: Path) -> None:
    table = delta.Table(str(tmp_path / "t"))
    table.prepared(ROWS.schema, feed=True)
    table.merge(ROWS.to_batches(), ("k",), "q", 0)
    kinds = pa.table({"k": ["a", "b", "c"], "v": [9, 2, 3], "_change_type": ["update_postimage", "delete", "insert"]})
    table.merge(kinds.to_batches(), ("k",), "q", 1)
    assert sorted(changes_of(table, 0, 1)) == [("a", 1, "insert"), ("b", 2, "insert")]
    second = changes_of(table, 1, 2)
    assert sorted(second[:2]) == [("a", 1, "update_preimage"), ("b", 2, "delete")]
    assert sorted(second[2:]) == [("a", 9, "update_postimage"), ("c", 3, "insert")]


@pytest.mark.spark
def test_a_tables_changes_are_a_stream(spark: Any, tmp_path: Path) -> None:
    table = delta.Table(str(tmp_path / "t"))
    table.prepared(ROWS.schema, feed=True)
    table.merge(ROWS.to_batches(), ("k",), "q", 0)
    assert rows(wp.read_delta(spark, table.uri)) == [("a", 1), ("b", 2)]
    changes = wp.read_delta(spark, table.uri, changes=True)
    sums = wp.over(changes, key="k").order_by("k").select("k", total=wp.sum("v")).emit_on_update()
    for _ in range(2):
        query = sums.start(
            main=wp.sinks.delta(str(tmp_path / "out"), key="k"), checkpoint=str(tmp_path / "ck"), trigger={"availableNow": True}
        )
        query.awaitTermination()
        table.merge(pa.table({"k": ["a", "c"], "v": [5, 7]}).to_batches(), ("k",), "q", 1)
    assert rows(wp.read_delta(spark, str(tmp_path / "out")).select("k", "total")) == [("a", 5), ("b", 7), ("c", 14)]
    with pytest.raises(ConnectorError, match="there is no such table"):
        wp.read_delta(spark, str(tmp_path / "nowhere"))
