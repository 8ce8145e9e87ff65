"""A column that the source has got since a checkpoint was written stops no restart; joins and OVER windows that select it ask."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.helpers import Feed, run

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def noted(table):
    keys = ["k", "window_start", "window_end"]
    rows = table.append_column("note", pa.nulls(len(table), pa.string())) if "note" not in table.column_names else table
    groups = rows.group_by(keys, use_threads=False).aggregate([("note", "list")])
    notes = pa.array([str(each) for each in groups["note_list"].to_pylist()])
    return groups.select(keys).append_column("notes", notes)


def programs(source):
    """Yield OVER windows, joins, deduplications, and functions of whole rows."""
    stream = wp.stream(source, event_time="t", watermark="0 seconds")
    windows = stream.key_by("k").window(wp.TumblingEventTimeWindows.of("1 hour"))
    over = wp.over(source, event_time="t", watermark="0 seconds", key=("k", "t")).partition_by("k").order_by("t")
    yield over.select("*", before=wp.lag("v")).emit_on_window_close()
    yield wp.join(stream, stream).on("k").within("0 seconds", "10 seconds")
    yield stream.key_by("k").deduplicate(within="5 seconds")
    yield stream.key_by("k").deduplicate(within="10 seconds", keep="last")
    yield wp.join(stream, stream).on("k").window(wp.TumblingEventTimeWindows.of("1 hour")).how("semi")
    yield windows.apply_in_arrow(noted, schema="notes string")
    yield windows.apply(lambda key, window, found: [{"notes": str([row.get("note") for row in found])}], schema="notes string")


def test_programs_go_on_with_a_new_column(spark, tmp_path):
    feed = Feed(tmp_path / "in", "k string, t timestamp, v long").add([("a", 10, 1), ("a", 20, 2)])
    for number, result in enumerate(programs(feed.stream(spark))):
        run(result, checkpoint=tmp_path / str(number))
    feed.schema += ", note string"
    feed.add([("a", 25, 3, "new")], [("a", 100_000, 4, "newest")])
    verdicts, found = [], []
    for number, result in enumerate(programs(feed.stream(spark))):
        verdicts.append(wp.changes(result, str(tmp_path / str(number))).verdict)
        found.append(run(result, checkpoint=tmp_path / str(number), changes="accept").rows())
    assert verdicts == ["accept", "accept", *["same"] * 2, "accept", *["same"] * 2]
    assert found == [
        [("a", 20, 2, None, 1), ("a", 25, 3, "new", 2)],
        [
            ("a", 100_000, 4, "newest", 100_000, 4, "newest"),
            ("a", 20, 2, None, 25, 3, "new"),
            ("a", 25, 3, "new", 25, 3, "new"),
        ],
        [("a", 100_000, 4, "newest"), ("a", 25, 3, "new")],
        [
            ("a", 100_000, 4, "newest", "insert"),
            ("a", 20, 2, None, "update_preimage"),
            ("a", 25, 3, "new", "update_postimage"),
        ],
        [("a", 10, 1, None, 0, 3600), ("a", 20, 2, None, 0, 3600), ("a", 25, 3, "new", 0, 3600)],
        [("a", 0, 3600, "[None, None, 'new']")],
        [("a", 0, 3600, "[None, None, 'new']")],
    ]
