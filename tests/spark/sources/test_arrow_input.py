"""Rows made in Python: encoded where they are made, with the results, late rows and watermarks of rows that Spark has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import EVENTS, Feed, failure, rows, run, table
from windowpane.spark.session.settings import MANY_ROWS
from windowpane.spark.sources.arrow_rows import TypedFunction

pytestmark = pytest.mark.spark

LATE = wp.OutputTag("late")
TENS = wp.TumblingEventTimeWindows.of("10 seconds")
BEATING = "k string, t timestamp, v long, beat boolean"


def as_they_are(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    for batch in batches:
        values = batch["v"]
        yield pa.Table.from_batches([batch]).set_column(2, "v", pc.multiply(values, 2))


def windowed(source, **arguments):
    stream = wp.stream(source, event_time="t", watermark="2 seconds", **arguments).key_by("k").window(TENS)
    return stream.side_output_late_data(LATE).aggregate(n=wp.count(), s=wp.sum("v"))


def rewrite(path: Path, content: bytes) -> None:
    """Write a file anew, as old as it was: Spark passes over files that are a week older than the newest."""
    age = path.stat().st_mtime
    path.write_bytes(content)
    os.utime(path, (age, age))


def rows_line(result) -> str:
    return next((line for line in result.explain().splitlines() if line.startswith("  rows ")), "")


def test_large_tables_are_encoded_in_pieces_as_large_as_those_from_spark():
    def large(batches):
        yield pa.table({"v": range(2 * MANY_ROWS + 1)})

    pieces = list(TypedFunction(large, pa.schema([("v", pa.int64())]))([]))
    assert [piece.num_rows for piece in pieces] == [MANY_ROWS, MANY_ROWS, 1]
    assert pa.Table.from_batches(pieces)["v"].to_pylist() == list(range(2 * MANY_ROWS + 1))


def test_windows_over_made_rows(spark, tmp_path):
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("b", 2, 2), ("a", 3, 3)], [("a", 15, 4)], [("b", 5, 5), (None, 14, 6)])
    result = windowed(wp.map_in_arrow(feed.stream(spark), doubled, EVENTS))
    assert rows_line(result) == "  rows            made in Python, encoded where they are made"
    collected = run(result, "main", "late")
    assert collected.rows() == [("a", 0, 10, 2, 8), ("b", 0, 10, 1, 4)]
    assert [(k, t, v) for k, t, v, *_ in collected.rows("late")] == [("b", 5, 10)]


@pytest.mark.slow
def test_heartbeats_alone_move_the_watermark(spark, tmp_path):
    feed = Feed(tmp_path / "in", BEATING).add([("a", 1, 1, False)], [("a", 2, 9, None)], [(None, 13, None, True)])
    collected = run(windowed(wp.map_in_arrow(feed.stream(spark), as_they_are, BEATING), heartbeat="beat"))
    assert collected.rows() == [("a", 0, 10, 2, 10)]


@pytest.mark.slow
def test_a_restart_may_change_between_rows_from_spark_and_made_rows(spark, tmp_path):
    """A key has one bucket, whichever way its rows come: state is found where it was left."""
    feed, checkpoint = Feed(tmp_path / "in"), tmp_path / "checkpoint"
    keys = [f"key {number}" for number in range(20)]
    feed.add([(key, 1, 1) for key in keys])
    made = wp.map_in_arrow(feed.stream(spark), as_they_are, EVENTS)
    assert run(windowed(made.df), checkpoint=checkpoint).rows() == []
    feed.add([(key, 2, 2) for key in keys])
    assert run(windowed(made), checkpoint=checkpoint).rows() == []
    feed.add([(key, 3, 3) for key in keys], [("end", 30, 0)])
    collected = run(windowed(made.df), checkpoint=checkpoint)
    assert collected.rows() == sorted((key, 0, 10, 3, 6) for key in keys)


@pytest.mark.slow
def test_over_windows_over_made_rows(spark, tmp_path):
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("b", 2, 5)], [("a", 4, 3), ("a", 3, 2)], [("b", 30, 0)])
    made = wp.map_in_arrow(feed.stream(spark), doubled, EVENTS)
    over = wp.over(made, event_time="t", watermark="5 seconds", key=("k", "t")).partition_by("k").order_by("t")
    selection = over.select("k", "t", step=wp.col("v") - wp.lag("v"))
    assert rows_line(selection.emit_on_window_close()).endswith("encoded where they are made")
    assert run(selection.emit_on_window_close()).rows() == [("a", 1, None), ("a", 3, 2), ("a", 4, 2), ("b", 2, None)]
    changes = [(k, t, step, change) for k, t, step, change in run(selection.emit_on_update()).rows()]
    assert changes == [
        ("a", 1, None, "insert"),
        ("a", 3, 2, "insert"),
        ("a", 4, 2, "insert"),
        ("b", 2, None, "insert"),
        ("b", 30, -10, "insert"),
    ]


def test_what_only_spark_computes_goes_that_way(spark):
    made = wp.map_in_arrow(table(spark, [("a", 1, 1), ("a", 2, 5), ("a", 11, 7)]), doubled, EVENTS)
    stream = wp.stream(made, event_time="t").key_by("k").window(TENS)
    result = stream.aggregate(s=wp.sum(F.col("v") + 1))
    assert rows_line(result).startswith("  rows            made in Python, to Spark and back: Spark computes aggregate s=sum(")
    assert rows(result.df) == [("a", 0, 10, 14), ("a", 10, 20, 15)]


def test_keys_of_any_type_are_encoded_where_rows_are_made(spark):
    schema = "k double, t timestamp, v long"
    made = wp.map_in_arrow(table(spark, [(1.5, 1, 1), (1.5, 2, 5)], schema), as_they_are, schema)
    result = windowed(made)
    assert rows_line(result).endswith("encoded where they are made")
    assert rows(result.df) == [(1.5, 0, 10, 2, 6)]


def test_functions_follow_one_another(spark):
    made = wp.map_in_arrow(table(spark, [("a", 1, 1)]), doubled, EVENTS).map_in_arrow(doubled, EVENTS)
    assert rows(made.df) == [("a", 1, 4)]
    assert rows(windowed(wp.map_in_arrow(made, doubled, EVENTS)).df) == [("a", 0, 10, 1, 8)]


def test_a_batch_without_a_declared_column_is_refused_by_name(spark, tmp_path):
    feed = Feed(tmp_path / "in").add([("a", 1, 1)])
    said = failure(windowed(wp.map_in_arrow(feed.stream(spark), lambda batches: (b.select(["k", "t"]) for b in batches), EVENTS)))
    assert "its batch has the columns ['k', 't'], but ['k', 't', 'v'] were declared" in said


@pytest.mark.slow
def test_a_batch_of_other_types_is_refused_with_both(spark, tmp_path):
    feed = Feed(tmp_path / "in").add([("a", 1, 1)])
    said = failure(windowed(wp.map_in_arrow(feed.stream(spark), as_they_are, "k long, t timestamp, v long")))
    assert "['string', 'timestamp[us, tz=UTC]', 'int64'], not ['int64', 'timestamp[us, tz=UTC]', 'int64']" in said


TYPES = "i int, l long, d double, s string, b boolean, day date, amount decimal(10,2), at timestamp"
LINES = [
    "1,2,0.5,text,true,2024-02-29,1.25,2024-03-31 01:59:59.5",
    ',,,"",,,,',
    '-1,9223372036854775807,1e300,"a,b",false,1969-12-31,-0.01,2024-03-31 02:30:00',
    "0,0,-0.0,NULL,true,2000-01-01,0,2024-10-27 02:30:00",
    "0,0,0,x,true,2000-01-01,0,2024-10-27T02:30:00.123456Z",
    "0,0,0,x,true,2000-01-01,0,2024-10-27T02:30:00+05:30",
]


@pytest.fixture
def in_berlin(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("header", [False, True])
def test_csv_is_read_as_spark_reads_it(in_berlin, tmp_path, header):
    heading = ["i,l,d,s,b,day,amount,at"] if header else []
    tmp_path.joinpath("one.csv").write_text("\n".join([*heading, *LINES]) + "\n")
    tmp_path.joinpath("empty.csv").write_text("")
    made = wp.read_in_arrow(in_berlin, str(tmp_path), TYPES, "csv", header=header, streaming=False)
    assert rows(made.df) == rows(in_berlin.read.schema(TYPES).option("header", header).csv(str(tmp_path)))


def test_columns_of_csv_with_a_header_go_by_name(spark, tmp_path):
    tmp_path.joinpath("one.csv").write_text("v,more,k\n1,x,a\n2,y,b\n")
    made = wp.read_in_arrow(spark, str(tmp_path), "k string, v long, absent date", "csv", header=True, streaming=False)
    assert rows(made.df) == [("a", 1, None), ("b", 2, None)]


def test_json_is_read_as_spark_reads_it(in_berlin, tmp_path):
    lines = [
        '{"i": 1, "l": 2, "d": 0.5, "s": "text", "b": true, "at": "2024-03-31 02:30:00", "more": {"x": 1}}',
        '{"s": "", "at": "2024-10-27T02:30:00Z"}',
        '{"i": null, "b": false}',
    ]
    schema = "i int, l long, d double, s string, b boolean, at timestamp"
    tmp_path.joinpath("one.json").write_text("\n".join(lines))
    made = wp.read_in_arrow(in_berlin, str(tmp_path), schema, "json", streaming=False)
    assert rows(made.df) == rows(in_berlin.read.schema(schema).json(str(tmp_path)))


def test_parquet_is_read_as_spark_reads_it(in_berlin, tmp_path):
    given = table(in_berlin, [("a", 1, 1), (None, None, 2)])
    given.write.parquet(str(tmp_path / "now"))
    given.drop("v").write.parquet(str(tmp_path / "before"))
    for folder in ("now", "before"):
        made = wp.read_in_arrow(in_berlin, str(tmp_path / folder), EVENTS, streaming=False, pathGlobFilter="*.parquet")
        assert rows(made.df) == rows(in_berlin.read.schema(EVENTS).parquet(str(tmp_path / folder)))


@pytest.mark.slow
def test_a_stream_of_files_ends_in_windows(spark, tmp_path):
    Feed(tmp_path / "in").add([("a", 1, 1), ("b", 2, 2)], [("a", 3, 3)], [("a", 15, 4)])
    made = wp.read_in_arrow(spark, str(tmp_path / "in"), EVENTS, maxFilesPerTrigger=1)
    collected = run(windowed(made))
    assert collected.rows() == [("a", 0, 10, 2, 4), ("b", 0, 10, 1, 2)]
    assert len(collected.progress) == 4  # a file a batch, and one more for the last watermark


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_named_and_can_be_mended(spark, tmp_path):
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    Feed(folder).add([("a", 1, 1)], [("a", 2, 2)])
    bad = folder / "0001.parquet"
    whole = bad.read_bytes()
    rewrite(bad, whole[:-9])
    result = windowed(wp.read_in_arrow(spark, str(folder), EVENTS, maxFilesPerTrigger=1))
    said = failure(result, checkpoint=checkpoint)
    assert "UnreadableFileError" in said
    assert "/in/0001.parquet cannot be read as parquet" in said
    rewrite(bad, whole)
    Feed(folder, count=2).add([("b", 99, 0)])
    assert run(result, checkpoint=checkpoint).rows() == [("a", 0, 10, 2, 3)]


def test_values_that_do_not_fit_are_refused(spark, tmp_path):
    tmp_path.joinpath("one.csv").write_text("a,1\nb,many\n")
    made = wp.read_in_arrow(spark, str(tmp_path), "k string, v long", "csv", streaming=False)
    with pytest.raises(Exception, match=r"one\.csv, line 2, column 'v': 'many'"):
        made.df.collect()


def test_a_format_that_arrow_is_not_asked_to_read_is_refused(spark, tmp_path):
    with pytest.raises(wp.WindowpaneError, match="Arrow reads 'csv', 'json', 'parquet'; leave others"):
        wp.read_in_arrow(spark, str(tmp_path), "k string", "avro")  # type: ignore[arg-type]


def test_paths_are_folders_or_files(spark, tmp_path):
    path = Path(tmp_path / "one.csv")
    path.write_text("a,1\n")
    assert rows(wp.read_in_arrow(spark, str(path), "k string, v long", "csv", streaming=False).df) == [("a", 1)]
