"""Parquet streams that Arrow reads: the rows that Spark reads, and Spark's to read where Arrow might differ."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import windowpane as wp
from tests.spark.helpers import failure, run
from tests.spark.parquet_streams import BY_ARROW, SCHEMA, how, results, stream, windowed, written
from windowpane.spark.internals.file_relation import FileRelation, file_relation
from windowpane.spark.sources.parquet_reader import SWITCH, ParquetColumns, local_path
from windowpane.spark.sources.source import Source
from windowpane.spark.stages.types import arrow_schema
from windowpane.windowing.expressions import names_in

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("by_arrow")]


def test_windows_over_files_that_arrow_reads_are_those_of_spark(spark, tmp_path, by_spark):
    for number in range(4):
        written(tmp_path / "in", number)
    result = windowed(stream(spark, tmp_path / "in"))
    assert how(result) == BY_ARROW
    found = results(result, tmp_path / "a")
    by_spark()
    result = windowed(stream(spark, tmp_path / "in"))
    assert how(result) == ""
    assert found == results(result, tmp_path / "b")
    assert sum(row[3] for row in found) > 100


def test_a_restart_may_go_from_spark_to_arrow_also_where_both_sides_of_a_join_are_one_stream(spark, tmp_path, by_arrow, by_spark):
    def joined(only_spark_knows: str) -> Any:
        rows = stream(spark, tmp_path / "in")
        left, right = (
            wp.stream(rows.where(which), event_time="t", watermark="6 seconds")
            for which in (f"v < 20 AND {only_spark_knows}", "v >= 20")
        )
        pairs = wp.join(left, right).on("k").within("0 seconds", "1 second").how("inner")
        return pairs.select("k", left=wp.left("v"), right=wp.right("v"))

    for number, (reads, condition) in enumerate([(by_spark, "v >= 0"), (by_arrow, "abs(v) >= 0")]):
        written(tmp_path / "in", number)
        reads()
        found = results(joined(condition), tmp_path)
        assert [each.name for each in (tmp_path / "checkpoint" / "sources").iterdir()] == ["0"]
    near = [(v, w) for v in range(20) for w in range(20, 40) if v % 5 == w % 5 != 0 and 0 <= w % 7 - v % 7 <= 1]
    assert Counter((row[1], row[2]) for row in found) == dict.fromkeys(near, 2)


VALUES = {
    "bool": (pa.array([True, None, False]), "boolean"),
    "byte": (pa.array([1, None, -128], pa.int8()), "tinyint"),
    "wider": (pa.array([1, None, -(2**31)], pa.int32()), "bigint"),
    "long": (pa.array([1, None, -(2**63)]), "bigint"),
    "float": (pa.array([0.1, None, float("nan")], pa.float32()), "float"),
    "widened": (pa.array([0.1, None, -0.0], pa.float32()), "double"),
    "double": (pa.array([0.1, None, float("-inf")]), "double"),
    "text": (pa.array(["a", None, "žluťoučký"]), "string"),
    "category": (pa.array(["a", None, "a"]).dictionary_encode(), "string"),
    "bytes": (pa.array([b"a", None, b"\0"]), "binary"),
    "day": (pa.array([dt.date(2024, 2, 29), None, dt.date(1900, 1, 1)]), "date"),
    "amount": (pa.array([Decimal("1.25"), None, Decimal("-0.01")], pa.decimal128(18, 2)), "decimal(18,2)"),
    "wide": (pa.array([Decimal(10) ** 37, None, Decimal(-1)], pa.decimal128(38, 0)), "decimal(38,0)"),
    "instant": (pa.array([0, None, 1_711_850_400_000_001]).cast(pa.timestamp("us", "UTC")), "timestamp"),
    "millis": (pa.array([0, None, 1_711_850_400_001]).cast(pa.timestamp("ms", "UTC")), "timestamp"),
    "wall_as_instant": (pa.array([0, None, 1_711_850_400_000_001]).cast(pa.timestamp("us")), "timestamp"),
    "wall": (pa.array([0, None, 1_711_850_400_000_001]).cast(pa.timestamp("us")), "timestamp_ntz"),
    "UPPER": (pa.array([1, 2, 3]), "bigint"),
}


@pytest.mark.parametrize("int96", [False, True], ids=["micros", "int96"])
def test_columns_have_the_values_that_spark_reads(spark, tmp_path, int96):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        path = tmp_path / "all.parquet"
        columns = {name: array for name, (array, _) in VALUES.items() if not int96 or name != "wall"}
        pq.write_table(pa.table(columns), path, use_deprecated_int96_timestamps=int96)
        ddl = ", ".join(f"{name.lower()} {kind}" for name, (_, kind) in VALUES.items() if name in columns) + ", absent string"
        expected = spark.read.schema(ddl).parquet(str(path)).toArrow()
        types = T.StructType.fromDDL(ddl)
        assert isinstance(types, T.StructType)
        reader = ParquetColumns(arrow_schema(types, "test"))
        assert reader.refusal(str(path), reader.schema.names) is None
        found = pa.concat_tables(reader(iter([pa.record_batch({"path": [f"file:{path}"], "row": [0]})])))
        assert found.schema.names == expected.schema.names
        for name in found.schema.names:
            assert found[name].cast(expected[name].type).to_pylist().__repr__() == expected[name].to_pylist().__repr__(), name
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


PLACE = "struct<city: string, at: struct<floor: int, x: double, price: decimal(9,2), day: date, on: timestamp>, open: boolean>"


def places(first: int) -> list[dict[str, Any] | None]:
    """Return forty structs, some null, some with nulls at each depth."""
    days, found = [dt.date(2024, 1, 1 + each) for each in range(3)], []
    for each in range(first, first + 40):
        at = {
            "floor": None if each % 3 == 0 else each % 4,
            "x": [float("nan"), -0.0, 0.0, 1.5][each % 4],
            "price": Decimal(each % 5) / 4,
            "day": days[each % 3],
            "on": dt.datetime(2024, 1, days[each % 3].day, tzinfo=dt.UTC),
        }
        place = {
            "city": None if each % 11 == 0 else f"city {each % 3}",
            "at": None if each % 13 == 0 else at,
            "open": each % 2 == 0,
        }
        found.append(None if each % 7 == 0 else place)
    return found


@pytest.mark.slow
def test_structs_of_plain_values_are_read_by_arrow_with_the_rows_of_spark(spark, tmp_path, by_spark):
    kind = pa.struct(
        [
            ("city", pa.string()),
            (
                "at",
                pa.struct(
                    [
                        ("floor", pa.int32()),
                        ("x", pa.float64()),
                        ("price", pa.decimal128(9, 2)),
                        ("day", pa.date32()),
                        ("on", pa.timestamp("us", "UTC")),
                    ]
                ),
            ),
            ("open", pa.bool_()),
        ]
    )
    for number in range(3):
        times = pa.array((np.arange(40) % 7 + 10 * number) * 1_000_000).cast(pa.timestamp("us", "UTC"))
        spots = [None if each % 7 == 0 else {"city": f"city {each % 3}", "floor": each % 2} for each in range(40)]
        spot = pa.array(spots, pa.struct([("city", pa.string()), ("floor", pa.int32())]))
        rows = {"spot": spot, "place": pa.array(places(40 * number), kind), "v": pa.array(np.arange(40)), "t": times}
        written(tmp_path / "in", number, rows)
    found = []
    for reader in ("arrow", "spark"):
        if reader == "spark":
            by_spark()
        ddl = f"spot struct<city: string, floor: int>, place {PLACE}, v bigint, t timestamp"
        rows = stream(spark, tmp_path / "in", ddl).where("v <> 5 and place is not null")
        keyed = wp.stream(rows, event_time="t", watermark="1 second").key_by("spot")
        result = keyed.window(wp.TumblingEventTimeWindows.of("5 seconds")).aggregate(
            n=wp.count(), s=wp.sum("v"), places=wp.collect_list("place")
        )
        assert how(result) == ("files read and filtered by Arrow, where they are encoded" if reader == "arrow" else "")
        found.append([repr(row) for row in results(result, tmp_path / reader)])
    assert found[0] == found[1]
    # Six spots and NULL: its rows of the first file have no place, and the second windows have five spots; the last one waits.
    assert len(found[0]) == 6 + 5 + 7 + 5 + 7


@pytest.mark.parametrize(
    ("kind", "ddl"),
    [
        (pa.struct([("a", pa.list_(pa.int64()))]), "struct<a: array<bigint>>"),
        (pa.struct([("A", pa.int64())]), "struct<a: bigint>"),
        (pa.struct([("a", pa.int32())]), "struct<a: bigint>"),
        (pa.struct([("b", pa.int64()), ("a", pa.int64())]), "struct<a: bigint, b: bigint>"),
        (pa.struct([("a", pa.int64()), ("b", pa.int64())]), "struct<a: bigint>"),
        (pa.struct([("a", pa.timestamp("us"))]), "struct<a: timestamp_ntz>"),
        (pa.struct([("value", pa.binary()), ("metadata", pa.binary())]), "variant"),
    ],
    ids=str,
)
def test_other_structs_are_left_to_spark(tmp_path, kind, ddl):
    path = tmp_path / "one.parquet"
    pq.write_table(pa.table({"s": pa.nulls(3, kind)}), path)
    types = T.StructType.fromDDL(f"s {ddl}")
    assert isinstance(types, T.StructType)
    refusal = ParquetColumns(arrow_schema(types, "test")).refusal(str(path), ["s"])
    assert refusal is not None
    assert "column 's' is struct<" in refusal


def read(path: Path, schema: pa.Schema, *coded: str) -> list[pa.Table]:
    reader = ParquetColumns(schema).narrowed(schema.names, frozenset(coded))
    return list(reader(iter([pa.record_batch({"path": [f"file:{path}"], "row": [0]})])))


def test_texts_are_read_as_codes_where_a_file_holds_each_once(tmp_path):
    path = tmp_path / "texts.parquet"
    many = pa.array([f"{number:032}" for number in range(40_000)])
    texts = {
        "nested": pa.array([{"a": 1, "b": 2}] * 40_000),
        "few": pa.array([f"key {number % 7}" if number % 3 else None for number in range(40_000)]),
        "many": many,
        "category": pa.array(["x", "y"] * 20_000).dictionary_encode(),
    }
    pq.write_table(pa.table(texts), path, row_group_size=15_000)
    schema = pa.schema([(name, pa.string()) for name in ("many", "few", "absent", "category")])
    tables = read(path, schema, *schema.names)
    assert len(tables) == 3
    for table in tables:
        assert [str(field.type)[:10] for field in table.schema] == ["string", "dictionary", "string", "dictionary"]
    for name in ("few", "many", "category"):
        assert pa.chunked_array([each.cast(pa.string()) for table in tables for each in table[name].chunks]).equals(
            pa.chunked_array([texts[name].cast(pa.string())])
        )
    assert {str(table.schema.field("few").type) for table in read(path, schema, "category")} == {"string"}


@pytest.mark.slow
def test_files_of_coded_texts_and_of_others_are_one_stream(spark, tmp_path, by_spark):
    # The texts of the second file all differ, as far as its rows are concerned; those of the others repeat.
    for number in range(3):
        seconds = np.arange(9_000) % 7 + 10 * number
        keys = [f"{each % 5:032}" if number % 2 == 0 else f"{each:032}" for each in range(9_000)]
        columns = {
            "k": pa.array([None if each % 11 == 0 else key for each, key in enumerate(keys)]),
            "w": pa.array([None if each % 13 == 0 else f"word {each % 700}" for each in range(9_000)]),
            "t": pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC")),
        }
        path = tmp_path / "in" / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), path, row_group_size=4_000)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    calls = {"n": wp.count(), "w": wp.count("w"), "lo": wp.min("w"), "hi": wp.max("w"), "u": wp.approx_count_distinct("w")}
    windows = (
        wp.TumblingEventTimeWindows.of("10 seconds"),
        wp.EventTimeSessionWindows.with_gap("2 seconds"),
    )
    for each, window in enumerate(windows):
        found = []
        for reader in ("arrow", "spark"):
            if reader == "spark":
                by_spark()
            else:
                spark.conf.unset(SWITCH)
            rows = wp.stream(
                stream(spark, tmp_path / "in", "k string, w string, t timestamp"), event_time="t", watermark="1 second"
            )
            result = rows.key_by("k").window(window).aggregate(**calls)
            assert how(result) == (BY_ARROW if reader == "arrow" else "")
            found.append(run(result, checkpoint=tmp_path / f"{reader} {each}").rows())
        assert found[0] == found[1]
        assert len({row[0] for row in found[0]}) > 8_000


def parted(path: Path, sizes: list[int]) -> None:
    """Write a file of numbers with row groups of these sizes."""
    first = np.cumsum([0, *sizes])
    with pq.ParquetWriter(path, pa.schema([("v", pa.int64()), ("t", pa.timestamp("us", "UTC"))])) as writer:
        for begins, ends in itertools.pairwise(first):
            numbers = np.arange(begins, ends)
            writer.write_table(pa.table({"v": numbers, "t": pa.array(numbers * 100).cast(pa.timestamp("us", "UTC"))}))


@pytest.mark.parametrize(
    ("sizes", "read"),
    [
        ([10, 20], {0: [0, 1]}),
        ([100_000, 100_000], {0: [0], 131_072: [1]}),
        ([65_536, 65_536, 1], {0: [0], 65_536: [1], 131_072: [2]}),
        ([60_000, 5_000, 5_000, 70_000, 10, 300_000], {0: [0, 1], 65_536: [2], 131_072: [3, 4], 196_608: [5]}),
    ],
)
def test_a_row_group_is_read_where_its_first_place_is(spark, tmp_path, sizes, read):
    # Places are the rows 0, 65,536, 131,072 and so on; a group without one goes with the place before it.
    parted(tmp_path / "one.parquet", sizes)
    reader = ParquetColumns(pa.schema([("v", pa.int64())]))
    told = list(range(0, sum(sizes), 65_536))
    found = {}
    for place in told:
        batch = pa.record_batch({"path": [f"file:{tmp_path}/one.parquet"], "row": [place]})
        found[place] = [table["v"][0].as_py() for table in reader(iter([batch]))]
    begins = np.cumsum([0, *sizes])
    assert found == {place: [int(begins[group]) for group in read.get(place, [])] for place in told}


def test_tasks_share_the_row_groups_of_a_file_and_progress_counts_its_rows(spark, tmp_path, by_spark):
    (tmp_path / "in").mkdir()
    sizes = [70_000, 3, 100_000, 20_000, 66_000]
    parted(tmp_path / "in" / "one.parquet", sizes)
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "200k")
    try:
        split = spark.read.schema("v bigint").parquet(str(tmp_path / "in"))
        assert split.rdd.getNumPartitions() > 3
        found = []
        for reader in ("arrow", "spark"):
            if reader == "spark":
                by_spark()
            rows = wp.stream(stream(spark, tmp_path / "in", "v bigint, t timestamp"), event_time="t", watermark="0 seconds")
            result = rows.window_all(wp.TumblingEventTimeWindows.of("1 second")).aggregate(n=wp.count(), s=wp.sum("v"))
            assert how(result) == (BY_ARROW if reader == "arrow" else "")
            got = run(result, checkpoint=tmp_path / reader)
            assert sum(each["numInputRows"] for each in got.progress) == sum(sizes)
            found.append(got.rows())
        # Ten thousand numbers a second; the last one may still grow.
        whole = [(10_000, sum(range(10_000 * second, 10_000 * (second + 1)))) for second in range(25)]
        assert [row[-2:] for row in sorted(found[0])] == whole
        assert found[0] == found[1]
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)


def test_names_of_files_are_those_that_the_file_system_has(spark, tmp_path):
    names = ["a b.parquet", "50%25 é#?.parquet", "x=y.parquet"]
    for number, name in enumerate(names):
        written(tmp_path / "in dir", number, name=name)
    result = windowed(stream(spark, tmp_path / "in dir"))
    assert how(result) == BY_ARROW
    assert sum(row[3] for row in results(result, tmp_path)) == 2 * 40 + 5 * 6  # the last five seconds but two, six rows each


@pytest.mark.slow
def test_late_rows_are_data_as_they_are_of_rows_from_spark(spark, tmp_path, by_spark):
    for number, place in enumerate((3, 4, 0, 6)):
        written(tmp_path / "in", number, place=place)
    found = {}
    for reader in ("arrow", "spark"):
        if reader == "spark":
            by_spark()
        keyed = wp.stream(stream(spark, tmp_path / "in"), event_time="t", watermark="1 second").key_by("k")
        fives = keyed.window(wp.TumblingEventTimeWindows.of("5 seconds")).side_output_late_data(wp.OutputTag("late"))
        result = fives.aggregate(n=wp.count(), s=wp.sum("v"))
        assert how(result) == (BY_ARROW if reader == "arrow" else "")
        got = run(result, "main", "late", checkpoint=tmp_path / reader)
        found[reader] = (got.rows(), got.rows("late"))
    assert found["arrow"] == found["spark"]
    assert len(found["arrow"][1]) == 40


@pytest.mark.slow
def test_over_windows_over_files_that_arrow_reads_are_those_of_spark(spark, tmp_path, by_spark):
    for number in range(3):
        written(tmp_path / "in", number)
    found = []
    for reader in ("arrow", "spark"):
        if reader == "spark":
            by_spark()
        rows = wp.over(stream(spark, tmp_path / "in"), event_time="t", watermark="1 second", key=("v", "t"))
        calls = {"total": wp.sum("v").range("-2 seconds", 0), "n": wp.count().range("-2 seconds", 0)}
        result = rows.partition_by("k").order_by("t").select("k", "v", "t", **calls).emit_on_window_close()
        assert how(result) == (BY_ARROW if reader == "arrow" else "")
        found.append(run(result, checkpoint=tmp_path / reader).rows())
    assert found[0] == found[1]
    assert len(found[0]) > 90


def test_local_paths_are_read_as_hadoop_writes_them():
    assert [local_path(path) for path in ("file:/a/b", "file:///a/b", "/a b/c%20")] == ["/a/b", "/a/b", "/a b/c%20"]


def test_selected_columns_are_files_still(spark, tmp_path):
    written(tmp_path / "in", 0)
    rows = stream(spark, tmp_path / "in").select("t", "k", "v").alias("q")
    assert how(windowed(rows)) == BY_ARROW
    relation = file_relation(rows)
    assert isinstance(relation, FileRelation)
    assert (relation.format, relation.options, relation.is_local) == ("parquet", {"maxfilespertrigger": "1"}, True)
    assert (relation.columns, relation.condition) == ({"t": "t", "k": "k", "v": "v"}, None)


def test_what_spark_may_read_otherwise_is_left_to_it(spark, tmp_path):
    files = tmp_path / "in"
    written(files, 0)
    left = {
        "Arrow may find other rows where (SQRT(CAST(v AS DOUBLE)) > CAST(1.5BD AS DOUBLE))": stream(spark, files).where(
            "sqrt(v) > 1.5"
        ),
        "column 'v' is computed": stream(spark, files).withColumn("v", F.col("v") + 1),
        "the option mergeschema may say how": stream(spark, files, mergeSchema="true"),
    }
    assert [how(windowed(rows)) for rows in left.values()] == [f"files read by Spark: {reason}" for reason in left]
    assert how(windowed(spark.read.schema(SCHEMA).parquet(str(files)))) == ""
    written(tmp_path / "parts" / "day=1", 0)
    (tmp_path / "empty").mkdir()
    for rows in (stream(spark, tmp_path / "parts", f"{SCHEMA}, day int"), stream(spark, tmp_path / "empty")):
        assert how(windowed(rows)) == "files read by Spark: the folder has no file yet, or folders of values of a column"
    parted_by_day = stream(spark, tmp_path / "parts" / "day=1")
    assert how(windowed(parted_by_day)).endswith("day=1 holds values of a column")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert how(windowed(stream(spark, files))) == "files read by Spark: spark.sql.files.ignoreCorruptFiles is set"
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    other = windowed(stream(spark, files, "k string, v decimal(20,0), t timestamp"))
    assert how(other).startswith("files read by Spark: in ")
    assert "column 'v' is int64 there, decimal128(20, 0) in the schema" in how(other)


@pytest.mark.slow
def test_a_later_file_that_spark_reads_otherwise_is_refused_and_the_query_goes_on_with_spark(spark, tmp_path, by_spark):
    files = tmp_path / "in"
    first = written(files, 0)
    odd = {name: pq.read_table(first)[name] for name in ("k", "t")} | {"v": pa.array(np.arange(40)).cast(pa.decimal128(20, 0))}
    path = written(files, 1, odd)
    result = windowed(stream(spark, files))
    said = failure(result, tmp_path / "c")
    assert str(path) in said
    assert "column 'v' is decimal128(20, 0) there, int64 in the schema" in said
    assert f"{SWITCH}=false" in said
    os.remove(path)
    written(files, 1)
    by_spark()
    query = windowed(stream(spark, files)).df.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    query = query.trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.exception() is None


@pytest.mark.slow
def test_a_watermark_that_the_dataframe_has_already_is_as_one_given_here(spark, tmp_path, by_spark):
    for number, place in enumerate((0, 3, 1, 6)):
        written(tmp_path / "in", number, place=place)
    found = {}
    for reader in ("arrow", "spark"):
        if reader == "spark":
            by_spark()
        files = stream(spark, tmp_path / "in")
        given = {
            "DataFrame": wp.stream(files.withWatermark("t", "12 seconds"), event_time="t"),
            "stream": wp.stream(files, event_time="t", watermark="12 seconds"),
        }
        for said, rows in given.items():
            result = rows.key_by("k").window(wp.TumblingEventTimeWindows.of("5 seconds")).aggregate(n=wp.count(), s=wp.sum("v"))
            assert how(result) == (BY_ARROW if reader == "arrow" else "")
            assert "watermark       the latest t less 12 seconds; made by Spark" in result.explain()
            got = run(result, checkpoint=tmp_path / f"{reader} {said}")
            found[reader, said] = (got.rows(), got.counted("late_dropped"))
    assert len(found) == 4
    made, late = found["arrow", "stream"]
    assert (len(made), sum(late)) == (2 * 2 * 5, 40)  # of five keys; the third file is behind the watermark of the second
    assert all(each == found["arrow", "stream"] for each in found.values())


@pytest.mark.slow
def test_columns_and_filters_behind_a_watermark_are_those_of_spark_itself(spark, tmp_path, by_spark):
    # The rows that the filter leaves out are the latest of their file: Spark's watermark is of the others.
    for number, place in enumerate((0, 1, 2, 6)):
        values = {
            "k": pa.array([f"key {each % 4}" for each in range(40)]),
            "v": pa.array(np.arange(40)),
            "t": pa.array([(10 * place + each // 4) * 1_000_000 for each in range(40)]).cast(pa.timestamp("us", "UTC")),
        }
        written(tmp_path / "in", number, values)

    def rows():
        files = stream(spark, tmp_path / "in").withWatermark("t", "2 seconds").where("v < 28 and k is not null")
        return files.select(F.col("t").alias("time"), F.col("k").alias("key"), "v").where("key <> 'key 3'")

    calls = {"n": F.count("*"), "s": F.sum("v")}
    native = rows().groupBy(F.window("time", "5 seconds"), "key").agg(*[call.alias(name) for name, call in calls.items()])
    sink = native.writeStream.format("memory").queryName("native").outputMode("append")
    sink.option("checkpointLocation", str(tmp_path / "native")).trigger(availableNow=True).start().awaitTermination()
    expected = sorted((row.key, row.window.start, row.n, row.s) for row in spark.table("native").collect())
    for reader in ("arrow", "spark"):
        if reader == "spark":
            by_spark()
        fives = wp.stream(rows(), event_time="time").key_by("key").window(wp.TumblingEventTimeWindows.of("5 seconds"))
        result = fives.aggregate(n=wp.count(), s=wp.sum("v"))
        assert how(result) == ("files read and filtered by Arrow, where they are encoded" if reader == "arrow" else "")
        assert "watermark       the latest time less 2 seconds; made by Spark" in result.explain()
        found = results(result, tmp_path / reader)
        assert sorted((key, start, n, s) for key, start, _, n, s in found) == expected
    # Two windows of three keys in each of three files; the fourth leaves the watermark at 64 seconds, with all its rows at 67.
    assert len(expected) == 3 * 2 * 3


def test_a_plan_with_a_filter_behind_its_watermark_is_read_once(spark, tmp_path, monkeypatch):
    written(tmp_path / "in", 0)
    files = stream(spark, tmp_path / "in").where("k is not null").withWatermark("t", "2 seconds")
    rows, plans = files.select("t", F.col("k").alias("key"), "v").where("v < 28"), []
    loads = json.loads

    def counted(text):
        plans.extend([text] if "logical.Filter" in text else [])
        return loads(text)

    monkeypatch.setattr(json, "loads", counted)
    made = Source.of(rows, "t", None, None, "windows").made
    assert len(plans) == 1
    assert made is not None
    assert isinstance(made.function, ParquetColumns)
    assert made.function.filter is not None
    assert (made.schema.names, made.function.sources) == (["t", "key", "v"], {"t": "t", "key": "k", "v": "v"})
    assert sorted(names_in(made.function.filter.condition)) == ["k", "v"]


def test_a_watermark_that_other_steps_change_stays_where_it_is(spark, tmp_path):
    written(tmp_path / "in", 0)
    files = stream(spark, tmp_path / "in", f"{SCHEMA}, u timestamp")
    watermarked = files.withWatermark("t", "1 second")
    left = {
        "a filter by the event time": watermarked.where("t > '2020-01-01'"),
        "a filter by what is computed of it": watermarked.withColumn("day", F.to_date("t")).where("day > '2020-01-01'"),
        "a filter by chance": watermarked.where(F.rand() < 0.5),
        "another column's": files.withWatermark("u", "1 second"),
        "a watermark before": files.withWatermark("t", "3 seconds").where("v > 3").withWatermark("t", "1 second").where("v > 4"),
    }
    for name, rows in left.items():
        fives = wp.stream(rows, event_time="t").key_by("k").window(wp.TumblingEventTimeWindows.of("5 seconds"))
        assert "watermark       that of the DataFrame; made by Spark" in fives.aggregate(n=wp.count()).explain(), name
