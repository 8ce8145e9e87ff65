"""Filters and renamed columns of Parquet streams that Arrow reads: the rows of Spark, and Spark's where Arrow might differ."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import run
from tests.spark.parquet_streams import how, stream, written
from windowpane.spark.internals.file_relation import LeftToSpark
from windowpane.spark.sources.parquet_files import ParquetStream, parquet_stream

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("by_arrow")]


@pytest.mark.slow
def test_columns_of_other_names_and_filters_are_read_by_arrow_with_the_rows_of_spark(spark, tmp_path, by_spark):
    for number in range(4):
        written(tmp_path / "in", number)
    late = wp.OutputTag("late")
    found = {}
    for reader in ("arrow", "spark"):
        if reader == "spark":
            by_spark()
        rows = stream(spark, tmp_path / "in", "key string, k string, v bigint, t timestamp").where("v > 2 and k is not null")
        rows = rows.select(F.col("k").alias("key"), "t", F.col("v").alias("amount")).where(~F.col("key").isin("key 1", "key 9"))
        keyed = wp.stream(rows.withWatermark("t", "1 second"), event_time="t").key_by("key")
        fives = keyed.window(wp.TumblingEventTimeWindows.of("5 seconds")).side_output_late_data(late)
        result = fives.aggregate(n=wp.count(), least=wp.min("amount"), keys=wp.count_distinct("key"))
        assert how(result) == ("files read and filtered by Arrow, where they are encoded" if reader == "arrow" else "")
        got = run(result, "main", "late", checkpoint=tmp_path / reader)
        assert sum(each["numInputRows"] for each in got.progress) == 4 * 40
        found[reader] = (got.rows(), got.rows("late"))
    assert found["arrow"] == found["spark"]
    assert {row[0] for row in found["arrow"][0]} == {"key 2", "key 3", "key 4"}


CONDITIONS = """
    v = 3 | v <> 3 | 3 < v | v >= small | small in (1, 5, null) | not small in (1, null) | v between 2 and 3 | not (v <=> null)
    v = 2147483648 | small = 3L | v is null | s is not null and not (s = 'b' or s = '') | s >= 'ž' | s <=> c | s in ('a', 'ab')
    yes | not yes | yes = false | yes <=> null | day < date'2026-01-01' | day = '2026-01-01' | price = 3 | price <= 1.25
    price in (1.25, -3.00) | price between -1 and 1.5 | day between '2000-01-01' and '2026-01-01' | v > 1.5 | v = null
    wide = 3 | wide > 3L | at >= timestamp_ntz'2024-03-31 02:00:00'
    absent is null | absent = 'a' or yes
""".replace("\n", "|").split("|")


@pytest.mark.parametrize("condition", [each.strip() for each in CONDITIONS if each.strip()])
def test_conditions_hold_for_the_rows_for_which_spark_finds_them_true(spark, tmp_path, condition):
    values = {
        "v": pa.array([1, 2, 3, 2**31, None] * 10),
        "small": pa.array([5, None, 3, 1, -1] * 10, pa.int8()),
        "s": pa.array(["a", "b", "", "ab", "žluťoučký", "\U0001f600", "\uffff", None, "A", "a "] * 5),
        "c": pa.array(["a", "b", None, "ab", "x"] * 10).dictionary_encode(),
        "yes": pa.array([True, False, None, None, True] * 10),
        "day": pa.array([dt.date(2026, 1, 1), dt.date(1999, 12, 31), None, dt.date(2030, 2, 3), dt.date(1901, 1, 1)] * 10),
        "price": pa.array([Decimal("1.25"), None, Decimal("3.00"), Decimal("-3.00"), Decimal("0.00")] * 10, pa.decimal128(18, 2)),
        "wide": pa.array([Decimal(3), Decimal(10) ** 37, None, Decimal(4), Decimal(-1)] * 10, pa.decimal128(38, 0)),
        "at": pa.array([0, 1_711_850_400_000_001, None, 1, 2] * 10).cast(pa.timestamp("us")),
    }
    path = tmp_path / "one.parquet"
    pq.write_table(pa.table(values), path, row_group_size=7)
    ddl = "v bigint, small tinyint, s string, c string, yes boolean, day date, price decimal(18,2), wide decimal(38,0)"
    ddl = f"{ddl}, at timestamp_ntz, absent string"
    taken = parquet_stream(spark.readStream.schema(ddl).parquet(str(tmp_path)).where(condition))
    assert isinstance(taken, ParquetStream)
    for coded in (frozenset[str](), frozenset({"s"})):
        reader = taken.reader.narrowed(["v", "s", "absent", "price"], coded)
        found = pa.concat_tables(reader(iter([pa.record_batch({"path": [f"file:{path}"], "row": [0]})])))
        expected = spark.read.schema(ddl).parquet(str(path)).where(condition).select(*found.column_names).toArrow()
        assert found.to_pylist() == expected.to_pylist()


LEFT_TO_SPARK = """
    x > 1 | x = x | v > x | t >= '2026-01-01' | s like 'a%' | upper(s) = 'A' | v + 1 = 2 | s = 1
    x is null and v = x | cast(v as double) = 1
    s collate utf8_lcase = 'a' | day > date'1500-01-01' | cast(v as int) = 1 | rand() < 0.5 | n.a = 1
""".replace("\n", "|").split("|")


@pytest.mark.parametrize("condition", [each.strip() for each in LEFT_TO_SPARK if each.strip()])
def test_conditions_whose_result_might_be_another_in_arrow_are_left_to_spark(spark, tmp_path, condition):
    ddl = "v bigint, s string, x double, t timestamp, day date, n struct<a: int>"
    written(tmp_path, 0, {"v": pa.array([1])})
    files = spark.readStream.schema(ddl).parquet(str(tmp_path)).where(condition)
    left = parquet_stream(files)
    assert isinstance(left, LeftToSpark)
    assert left.reason.startswith("Arrow may find other rows where ")


def test_a_row_group_without_a_row_for_which_the_filter_holds_is_read_no_further(spark, tmp_path):
    # The column that is not tested has pages that cannot be read in the first group.
    path = tmp_path / "one.parquet"
    table = pa.table({"v": [1, 2, 3, 4], "s": ["a" * 100, "b" * 100, "c", "d"]})
    pq.write_table(table, path, row_group_size=2, compression="none", use_dictionary=False)
    written_bytes = path.read_bytes()
    assert written_bytes.count(b"a" * 100) >= 1
    first = pq.ParquetFile(path).metadata.row_group(0).column(1)
    begins, size = first.data_page_offset, first.total_compressed_size
    path.write_bytes(written_bytes[:begins] + b"\xff" * size + written_bytes[begins + size :])
    for condition, rows in (("v > 2", [3, 4]), ("v > 4", [])):
        taken = parquet_stream(spark.readStream.schema("v bigint, s string").parquet(str(tmp_path)).where(condition))
        assert isinstance(taken, ParquetStream)
        found = pa.concat_tables(taken.reader(iter([pa.record_batch({"path": [f"file:{path}"], "row": [0]})])))
        assert found["v"].to_pylist() == rows
