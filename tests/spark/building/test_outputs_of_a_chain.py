"""Outputs of a chain in one query: late rows and side outputs of each operator; and of a chain through files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import EVENTS, WHY, Feed, rows, run
from windowpane.errors import ChangedPlanError, UnknownOutputError
from windowpane.spark.internals import earlier_operators
from windowpane.spark.queries import running

pytestmark = pytest.mark.spark

TEN = wp.TumblingEventTimeWindows.of("10 seconds")
TWENTY = wp.TumblingEventTimeWindows.of("20 seconds")
LARGE = wp.OutputTag("large", "v long")


def noted(key: Any, context: wp.ProcessContext, sums: Sequence[Any]) -> Any:
    """Return the sum of sums, large ones to a side output, too."""
    total = sum(row["v"] for row in sums)
    if total > 8:
        context.output(LARGE, {"v": total})
    yield {"v": total}


def chained(stream: Any, first: str = "late", second: str = "late") -> wp.Result:
    """Two programs: the first one refines a window long after its end, and the result is late in the second one."""
    keyed = wp.stream(stream, "t", "0 seconds", name="tens").key_by("k").window(TEN)
    tens = keyed.allowed_lateness("60 seconds").side_output_late_data(first).aggregate(v=wp.sum("v"))
    twenties = tens.window_all(TWENTY).side_output_late_data(second).side_output(LARGE)
    return twenties.process(noted, "v long")


def fed(folder: Path, spark: Any) -> Any:
    batches = [[("a", 1, 1), ("b", 2, 8)], [("a", 50, 16)], [("a", 51, 0)], [("a", 3, 2)], [("a", 100, 32)], [("b", 4, 64)]]
    return Feed(folder / "in", EVENTS).add(*batches, [("a", 200, 128)]).stream(spark)


@pytest.mark.slow
def test_one_query_writes_the_late_rows_of_each_operator_of_a_chain(spark: Any, tmp_path: Path) -> None:
    third = chained(fed(tmp_path, spark)).window_all(wp.TumblingEventTimeWindows.of("40 seconds")).aggregate(v=wp.sum("v"))
    written = run(third, "main", "tens.late", "tens_next.late", "large")
    assert written.rows() == [(0, 40, 9), (40, 80, 16), (80, 120, 32)]
    assert written.rows("tens.late") == [("b", 4, 64, [(0, 10)], True)]
    assert written.rows("tens_next.late") == [("a", 0, 10, 3, [(0, 20)], True)]
    assert written.rows("large") == [(16,), (32,), (9,)]
    assert sum(written.counted("late_dropped", "tens")) == 1


def test_an_output_is_named_by_its_operator_where_two_have_its_name(spark: Any, tmp_path: Path) -> None:
    stream = fed(tmp_path, spark)
    both = chained(stream)
    with pytest.raises(UnknownOutputError, match=r"outputs are 'main', 'tens.late', 'tens_next.late', 'large'"):
        both.start(late="out/late")
    assert both.get_side_output("late").columns == ["k", "window_start", "window_end", "v", "windows_missed", "dropped", *WHY]
    assert both.get_side_output("tens.late").columns == ["k", "t", "v", "windows_missed", "dropped", *WHY]
    one = chained(stream, second="too_late")
    assert one.get_side_output("late").columns == ["k", "t", "v", "windows_missed", "dropped", *WHY]


def test_explain_shows_each_operator_of_a_chain(spark: Any, tmp_path: Path) -> None:
    text = chained(fed(tmp_path, spark)).explain()
    assert text.startswith("windowed by TumblingEventTimeWindows(size=10000000")
    assert "\nthen, as tens_next: windowed by TumblingEventTimeWindows(size=20000000" in text
    assert text.count("  late rows ") == text.count("  engine ") == 2


def by_steps(stream: Any) -> wp.Result:
    """Three programs, the last two of them over what Spark has made of the results before."""
    keyed = wp.stream(stream, "t", "0 seconds", name="tens").key_by("k").window(TEN)
    tens = keyed.allowed_lateness("60 seconds").side_output_late_data("late").aggregate(v=wp.sum("v"))
    steps = tens.df.where("v > 0").select("window_end", (F.col("v") * 10).alias("v"))
    twenties = wp.stream(steps, "window_end", name="twenties").window_all(TWENTY)
    noted_ones = twenties.side_output_late_data("late").side_output(LARGE).process(noted, "v long")
    again = noted_ones.df.withColumn("w", F.col("v")).drop("v")
    return (
        wp.stream(again, "window_end", name="all")
        .window_all(wp.TumblingEventTimeWindows.of("40 seconds"))
        .aggregate(w=wp.sum("w"))
    )


@pytest.mark.slow
def test_one_query_writes_the_outputs_of_operators_behind_steps_of_sparks(spark: Any, tmp_path: Path) -> None:
    last = by_steps(fed(tmp_path, spark))
    written = run(last, "main", "tens.late", "twenties.late", "large", checkpoint=tmp_path / "ck")
    with pytest.raises(ChangedPlanError, match="sinks of earlier operators"):
        run(last, "main", "large", checkpoint=tmp_path / "ck")
    assert written.rows() == [(0, 40, 90), (40, 80, 160), (80, 120, 320)]
    assert written.rows("tens.late") == [("b", 4, 64, [(0, 10)], True)]
    assert written.rows("twenties.late") == [(10, 30, [(0, 20)], True)]
    assert written.rows("large") == [(160,), (320,), (90,)]
    with pytest.raises(UnknownOutputError, match=r"outputs are 'main', 'tens.late', 'twenties.late', 'large'"):
        last.start(late="out/late")
    assert last.get_side_output("tens.late").columns == ["k", "t", "v", "windows_missed", "dropped", *WHY]
    text = last.explain()
    assert text.count("  engine ") == 3
    assert text.index("size=10000000") < text.index("\nthen, as twenties: ") < text.index("\nthen, as all: ")


def test_results_of_a_window_that_no_plan_names_are_warned_of(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier_operators, "_RESULTS", {})
    tens = wp.stream(fed(tmp_path, spark), "t", "0 seconds").key_by("k").window(TEN).aggregate(v=wp.sum("v"))
    rows_of_it = tens.df
    earlier_operators._RESULTS.clear()
    twenties = wp.stream(rows_of_it, "window_end", name="twenties").window_all(TWENTY).aggregate(v=wp.sum("v"))
    running._warn_of_unseen_programs(twenties._built)
    assert "the rows of twenties are results of another window, which the plan of their DataFrame" in caplog.text


@pytest.mark.slow
def test_batches_that_a_query_wrote_start_a_second_one(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keyed = wp.stream(fed(tmp_path, spark), "t", "0 seconds").key_by("k").window(TEN)
    first = keyed.side_output_late_data("late").aggregate(v=wp.sum("v"))
    options: dict[str, Any] = {"trigger": {"availableNow": True}}
    first.start(late=f"{tmp_path}/late", checkpoint=f"{tmp_path}/ck1", **options).awaitTermination()
    found = spark.read.parquet(f"{tmp_path}/late")
    again = spark.readStream.schema(found.schema).parquet(f"{tmp_path}/late")
    second = wp.stream(again, "t", "0 seconds").key_by("k").deduplicate("1 second")
    assert "in pieces" not in caplog.text
    second.start(main=f"{tmp_path}/second", checkpoint=f"{tmp_path}/ck2", **options).awaitTermination()
    copied = spark.read.parquet(f"{tmp_path}/second")
    assert copied.columns == [*found.columns, "query_2", "batch_2"]
    assert rows(copied.drop("query_2", "batch_2")) == rows(found)
    assert rows(wp.sinks.read_latest(spark, f"{tmp_path}/second", key=["k", "t"])) == rows(found)
    wp.stream(spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/late"), "t", "0 seconds")
    assert "a batch is read in pieces" in caplog.text
