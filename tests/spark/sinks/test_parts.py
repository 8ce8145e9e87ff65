"""Files that the tasks of an operator write: what Spark itself would have written, once a batch, whatever a crash has left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.helpers import Feed, rows
from windowpane.errors import InvalidSpecError
from windowpane.spark.building.outputs import Output
from windowpane.spark.queries import running
from windowpane.spark.sinks.parts import Parts, PartsWriter, ToParts
from windowpane.spark.stages.types import spark_schema

TEN = wp.TumblingEventTimeWindows.of("10 seconds")
SPARKS = {"compression": "snappy"}  # Files with options are written by Spark
BATCHES: list[list[tuple[Any, ...]]] = [[("a", 1, 1), ("b", 2, 2)], [("a", 12, 4)], [("c", 25, 8), ("a", 21, 16)]]
VALUES = {
    "flag": "v > 2",
    "byte": "tinyint(v)",
    "money": "CAST(v AS decimal(12,2))",
    "wide": "CAST(v AS decimal(38,6))",
    "real": "float(v)",
    "bytes": "binary(k)",
    "day": "date(t)",
    "local": "CAST(t AS timestamp_ntz)",
    "listed": "array(v, NULL)",
    "record": "IF(v > 0, struct(k, IF(v > 0, struct(t AS at), NULL) AS inner), NULL)",
    "nothing": "CAST(NULL AS string)",
}


def names_below(folder: Path) -> set[str]:
    """Return the names of what is below a folder, but for the numbers of batches and check sums."""
    found = {each.name for each in folder.rglob("*") if not each.name.endswith(".crc")}
    return {name for name in found if not name.startswith(("_windowpane-0", "_windowpane-1"))}


def written(result: Any, folder: Path, **sinks: Any) -> Any:
    query = result.start(**sinks, checkpoint=f"{folder}/checkpoint", trigger={"availableNow": True})
    assert query.awaitTermination(120)
    return query


@pytest.mark.spark
def test_rows_of_every_type_are_those_that_spark_writes(spark: Any, tmp_path: Path) -> None:
    df = Feed(tmp_path / "in").add(*BATCHES).stream(spark)
    values = df.selectExpr("k", "t", *[f"{made} AS {name}" for name, made in VALUES.items()])
    keyed = wp.stream(values, event_time="t", watermark="0 seconds").key_by("k").window(TEN)
    result = keyed.aggregate(**{name: wp.first(name) for name in VALUES})
    found = {}
    for name, sink in {
        "ours": wp.Files(f"{tmp_path}/ours/out"),
        "sparks": wp.Files(f"{tmp_path}/sparks/out", options=SPARKS),
    }.items():
        written(result, tmp_path / name, main=sink)
        read = spark.read.parquet(sink.path).drop("query")
        found[name] = (read.schema, sorted(map(repr, read.collect())))
    assert found["ours"] == found["sparks"]
    assert len(found["ours"][1]) == 3
    writer = "parquet-cpp-arrow", "parquet-mr"
    files = [max((tmp_path / name).rglob("part-*.parquet")).read_bytes() for name in found]
    assert [which.encode() in file for which, file in zip(writer, files, strict=True)] == [True, True]


@pytest.mark.spark
def test_columns_by_other_names_are_written_by_tasks_and_those_that_spark_computes_by_spark(spark: Any, tmp_path: Path) -> None:
    df = Feed(tmp_path / "in").add(*BATCHES).stream(spark)
    result = wp.stream(df, event_time="t", watermark="0 seconds").key_by("k").window(TEN).aggregate(n=wp.sum("v"))
    chosen = result.select("n", key=wp.col("k")).select("key", total=wp.col("n"))
    computed = result.select(key=wp.col("k"), total=wp.col("n") + 0)
    several = result.where(wp.col("n") > 1).select(key=wp.col("k"), total=wp.col("n"))
    assert [each._built.outputs["main"].is_as_emitted for each in (result, chosen, computed, several)] == [
        True,
        True,
        False,
        False,
    ]
    for name, each in {"chosen": chosen, "computed": computed, "several": several}.items():
        written(each, tmp_path / name, main=f"{tmp_path}/{name}/out")
    read = {name: rows(spark.read.parquet(f"{tmp_path}/{name}/out").select("key", "total")) for name in ("chosen", "computed")}
    assert read["chosen"] == read["computed"] == [("a", 1), ("a", 4), ("b", 2)]
    assert rows(spark.read.parquet(f"{tmp_path}/several/out").select("key", "total")) == [("a", 4), ("b", 2)]


@pytest.mark.spark
def test_a_first_batch_without_rows_has_the_columns_and_late_rows_go_beside(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add([("a", 1, 1)])
    keyed = wp.stream(feed.stream(spark), event_time="t", watermark="0 seconds").key_by("k").window(TEN)
    result = keyed.side_output_late_data("late").aggregate(n=wp.count())
    sinks = {"main": f"{tmp_path}/main", "late": f"{tmp_path}/late"}
    written(result, tmp_path, **sinks)
    first = spark.read.parquet(sinks["main"])
    assert (first.columns[:2], first.count()) == (["k", "window_start"], 0)
    feed.add([("b", 25, 1)], [("a", 2, 1)], [("c", 50, 1)])
    written(result, tmp_path, **sinks)
    main, late = (spark.read.parquet(sinks[name]) for name in ("main", "late"))
    assert rows(main.select("k", "n")) == [("a", 1), ("b", 1)]
    assert rows(late.select("k", "v")) == [("a", 1)]
    assert not [name for name in names_below(tmp_path / "main") if name.startswith(("_batch", "_windowpane"))]


@pytest.mark.spark
def test_what_a_failed_batch_has_left_is_written_over(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(tmp_path / "in").add(*BATCHES)
    keyed = wp.stream(feed.stream(spark), event_time="t", watermark="0 seconds").key_by("k").window(TEN)
    result, main = keyed.aggregate(n=wp.sum("v")), tmp_path / "main"

    keep = PartsWriter.keep

    def crash(writer: PartsWriter, dataframe: Any, number: int) -> None:
        if number == 2:
            raise ConnectionError("the machine is gone")
        keep(writer, dataframe, number)

    with monkeypatch.context() as patch:
        patch.setattr(PartsWriter, "keep", crash)
        with pytest.raises(Exception, match="the machine is gone"):
            written(result, tmp_path, main=str(main))
    (folder,) = main.glob("query=*/batch=2")
    (folder.with_name("_batch-2")).mkdir()
    (folder.with_name("_batch-2") / "part-00007.parquet").write_bytes(b"half a file")
    (folder / "part-00008.parquet").symlink_to(next(folder.glob("part-*")))  # would count twice
    written(result, tmp_path, main=str(main))
    assert rows(spark.read.parquet(str(main)).select("k", "n")) == [("a", 1), ("a", 4), ("b", 2)]
    assert not [name for name in names_below(main) if name.startswith("_")]


def test_a_file_that_the_driver_does_not_see_is_named(tmp_path: Path) -> None:
    class Given:
        def collect(self) -> list[Any]:
            return [(bytearray(b"/nowhere/9f"),)]

    class Id:
        def read(self, _: Any) -> str:
            return "q"

    arrow = pa.schema([("k", pa.string())])
    parts = Parts(Output("main", 0, arrow, spark_schema(arrow)), ToParts(f"{tmp_path}/_windowpane-1", "snappy"), arrow)
    writer = PartsWriter(wp.Files(str(tmp_path)), Id(), ("query", "batch"), parts)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match=r"a task wrote '/nowhere/9f', which the driver does not see"):
        writer.write(Given(), 3)  # type: ignore[arg-type]
    assert not (tmp_path / "query=q" / "batch=3").exists()


@pytest.mark.spark
def test_settings_that_only_sparks_writer_follows_have_it_write(spark: Any, tmp_path: Path) -> None:
    df = Feed(tmp_path / "in").add(*BATCHES).stream(spark)
    output = wp.stream(df, "t", "0 seconds").key_by("k").window(TEN).aggregate(n=wp.sum("v"))._built.outputs["main"]

    def is_ours(sink: wp.Files) -> bool:
        return running._parts(output, sink, spark, "checkpoint") is not None

    files = wp.Files(f"{tmp_path}/out")
    assert is_ours(files)
    assert not is_ours(wp.Files(files.path, "json"))
    assert not is_ours(wp.Files(files.path, options=SPARKS))
    assert not is_ours(wp.Files("s3://bucket/out"))
    for setting, value in (("spark.sql.parquet.compression.codec", "brotli"), ("spark.sql.files.maxRecordsPerFile", "10")):
        before = spark.conf.get(setting)
        spark.conf.set(setting, value)
        try:
            assert not is_ours(files), setting
        finally:
            spark.conf.set(setting, before)
