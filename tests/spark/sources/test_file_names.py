"""Files whose names Spark takes for patterns: where Arrow reads, each row is there once; where Spark reads, they are refused."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windowpane as wp
from windowpane.errors import PatternNameError
from windowpane.spark.sources.file_names import odd_name

SCHEMA = "id long, k string, at timestamp"
NAMES = ("plain", "a1", "a[1]", "a?b", "a*", "a{1}", "a\\b", "a%5B1%5D")


def write(folder: Path, *names: str) -> list[int]:
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        at = [dt.datetime(2024, 1, 1, second=second, tzinfo=dt.UTC) for second in range(5)]
        ids = pa.array(range(number * 10, number * 10 + 5), pa.int64())
        pq.write_table(
            pa.table({"id": ids, "k": ["a"] * 5, "at": pa.array(at, pa.timestamp("us", "UTC"))}), folder / f"{name}.parquet"
        )
    return [number * 10 + row for number in range(len(names)) for row in range(5)]


def counted(spark: Any, rows: Any, folder: Path) -> list[int]:
    keyed = wp.stream(rows, "at", "1 second").key_by("k").window(wp.TumblingEventTimeWindows.of("1 hour"))
    result = keyed.aggregate(ids=wp.collect_list("id"))
    run: dict[str, Any] = {"checkpoint": str(folder / "ck"), "trigger": {"availableNow": True}, "flush_at_end": True}
    result.start(main=str(folder / "out"), **run).awaitTermination()
    return sorted(each for row in spark.read.parquet(str(folder / "out")).collect() for each in row.ids)


@pytest.mark.spark
def test_arrow_reads_each_file_once_whatever_its_name(spark: Any, by_arrow: Any, tmp_path: Path) -> None:
    ids = write(tmp_path / "in", *NAMES)
    assert counted(spark, spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in")), tmp_path) == ids


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("by", ["parquet", "contents"])
def test_files_that_come_one_by_one_may_have_any_name(spark: Any, by_arrow: Any, tmp_path: Path, by: str) -> None:
    ids = write(tmp_path / "in", "plain", "a[1]", "a1")
    one: dict[str, Any] = {"maxFilesPerTrigger": 1}
    if by == "parquet":
        rows = spark.readStream.schema(SCHEMA).options(**one).parquet(str(tmp_path / "in"))
    else:
        rows = wp.read_in_arrow(spark, str(tmp_path / "in"), SCHEMA, **one)
    assert counted(spark, rows, tmp_path) == ids


@pytest.mark.slow
@pytest.mark.spark
def test_contents_are_read_once_whatever_the_name_of_their_file(spark: Any, tmp_path: Path) -> None:
    ids = write(tmp_path / "in", *NAMES)
    assert counted(spark, wp.read_in_arrow(spark, str(tmp_path / "in"), SCHEMA), tmp_path) == ids


@pytest.mark.spark
def test_where_spark_reads_such_a_name_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a[1].json").write_text('{"id": 1, "k": "a", "at": "2024-01-01T00:00:00Z"}\n')
    stream = spark.readStream.schema(SCHEMA)
    with pytest.raises(PatternNameError, match=r"a\[1\].json.*maxFilesPerTrigger=1"):
        _ = wp.stream(stream.json(str(tmp_path / "in")), "at", "1 second").key_by("k").count_window(1).aggregate(n=wp.count()).df
    one = stream.option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    assert wp.stream(one, "at", "1 second").key_by("k").count_window(1).aggregate(n=wp.count()).df.columns


@pytest.mark.slow
@pytest.mark.spark
def test_such_a_name_that_comes_later_ends_the_query_and_the_next_run_is_right(spark: Any, by_arrow: Any, tmp_path: Path) -> None:
    rows = lambda: spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))  # noqa: E731
    write(tmp_path / "in", "plain")
    made = rows()
    keyed = wp.stream(made, "at", "1 second").key_by("k").window(wp.TumblingEventTimeWindows.of("1 hour"))
    result = keyed.aggregate(ids=wp.collect_list("id"))
    _ = result.df
    ids = write(tmp_path / "in", "plain", "a[1]", "a1")
    with pytest.raises(Exception, match=r"PatternNameError.*a\[1\]"):
        result.start(
            main=str(tmp_path / "out"), checkpoint=str(tmp_path / "ck"), trigger={"availableNow": True}
        ).awaitTermination()
    assert counted(spark, rows(), tmp_path) == ids


@pytest.mark.parametrize("name", ["a[1]", "a?b", "a*", "a{1}", "a}", "a\\b"])
def test_a_name_with_a_character_of_patterns_is_found(tmp_path: Path, name: str) -> None:
    write(tmp_path / "in", "plain")
    assert odd_name(str(tmp_path / "in"), {}) is None
    write(tmp_path / "in", name)
    assert odd_name(str(tmp_path / "in"), {}) == str(tmp_path / "in" / f"{name}.parquet")
    assert odd_name(str(tmp_path / "in"), {"maxfilespertrigger": "1"}) is None
    write(tmp_path / "in[1]", "plain")
    escaped = str(tmp_path / "in[1]").replace("[", "\\[").replace("]", "\\]")
    assert odd_name(escaped, {}) == str(tmp_path / "in[1]" / "plain.parquet")
