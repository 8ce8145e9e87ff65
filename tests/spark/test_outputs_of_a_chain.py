"""Outputs of a chain in one query: late rows and side outputs of each operator; and of a chain through files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.spark.helpers import EVENTS, Feed, rows, run
from windowpane.errors import UnknownOutputError

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
    assert both.get_side_output("late").columns == ["k", "window_start", "window_end", "v", "windows_missed", "dropped"]
    assert both.get_side_output("tens.late").columns == ["k", "t", "v", "windows_missed", "dropped"]
    one = chained(stream, second="too_late")
    assert one.get_side_output("late").columns == ["k", "t", "v", "windows_missed", "dropped"]


def test_explain_shows_each_operator_of_a_chain(spark: Any, tmp_path: Path) -> None:
    text = chained(fed(tmp_path, spark)).explain()
    assert text.startswith("windowed by TumblingEventTimeWindows(size=10000000")
    assert "\nthen, as tens_next: windowed by TumblingEventTimeWindows(size=20000000" in text
    assert text.count("  late rows ") == text.count("  engine ") == 2


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
