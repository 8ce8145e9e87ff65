"""The fluent API on Spark: every terminal function, assigner, trigger and evictor; streaming semantics, counters, columns.

Expected values are worked out by hand from the rules of Flink's window operator, or come from Spark's own windows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import EVENTS, ORIGIN, WHY, Feed, rows, run, table
from windowpane import (
    AggregateFunction,
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    CumulateEventTimeWindows,
    DeltaEvictor,
    EndOfStreamTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    OutputTag,
    ProcessWindowFunction,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeEvictor,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from windowpane.errors import InvalidSpecError

pytestmark = pytest.mark.spark

TEN = TumblingEventTimeWindows.of("10 seconds")
ARRIVED = [("a", 1, 1), ("b", 2, 5), ("a", 12, 2), ("a", 3, 7)]
SECOND = 1_000_000
ORIGIN_MICROS = int(ORIGIN.timestamp()) * SECOND


def added(left: Any, right: Any) -> Any:
    """Reduce two rows to the first, with the sum of ``v``."""
    return {**left, "v": left["v"] + right["v"]}


class Mean(AggregateFunction):
    """The mean of ``v``."""

    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value["v"], accumulator[1] + 1

    def get_result(self, accumulator):
        return {"mean": accumulator[0] / accumulator[1]}

    def merge(self, left, right):
        return left[0] + right[0], left[1] + right[1]


@dataclass(frozen=True)
class Labelled(ProcessWindowFunction):
    """Emits one column of each element beside the key and the length of the window in seconds."""

    column: str

    def process(self, key, context, elements):
        seconds = (context.window.end - context.window.start) // SECOND
        for element in elements:
            yield {"label": f"{key}/{seconds}", "value": float(element[self.column])}


class Halves(WindowAssigner):
    """Two windows for all time: before ten seconds, and a long one after."""

    def assign_windows(self, element, timestamp, context):
        middle = ORIGIN_MICROS + 10 * SECOND
        return [TimeWindow(ORIGIN_MICROS, middle) if timestamp < middle else TimeWindow(middle, middle + 990 * SECOND)]

    def default_trigger(self):
        return EventTimeTrigger()


class FireOnSeven(Trigger):
    """Fires and purges at each element whose ``v`` is seven."""

    def on_element(self, element, timestamp, window, context):
        return TriggerResult.FIRE_AND_PURGE if element["v"] == 7 else TriggerResult.CONTINUE

    def clear(self, window, context):
        pass


def values_of(held: list[int], row: Any) -> list[int]:
    return [*held, row["v"]]


def total(windowed: Any) -> Any:
    return windowed.aggregate(n=wp.count(), s=wp.sum("v"))


def by_key(windowing: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a program that keys by ``k``, windows as told and counts and sums."""
    return lambda stream: total(windowing(stream.key_by("k")))


STATIC_PROGRAMS: dict[str, tuple[Callable[[Any], Any], list[str], list[tuple]]] = {
    "reduce": (
        lambda s: s.key_by("k").window(TEN).reduce(added),
        ["t", "v"],
        [("a", 0, 10, 1, 8), ("a", 10, 20, 12, 2), ("b", 0, 10, 2, 5)],
    ),
    "reduce with process": (
        lambda s: s.key_by("k").window(TEN).reduce(added, Labelled("v"), "label string, value double"),
        ["label", "value"],
        [("a", 0, 10, "a/10", 8.0), ("a", 10, 20, "a/10", 2.0), ("b", 0, 10, "b/10", 5.0)],
    ),
    "aggregate of one's own": (
        lambda s: s.key_by("k").window(TEN).aggregate(Mean(), schema="mean double"),
        ["mean"],
        [("a", 0, 10, 4.0), ("a", 10, 20, 2.0), ("b", 0, 10, 5.0)],
    ),
    "aggregate of one's own with process": (
        lambda s: s.key_by("k").window(TEN).aggregate(Mean(), Labelled("mean"), "label string, value double"),
        ["label", "value"],
        [("a", 0, 10, "a/10", 4.0), ("a", 10, 20, "a/10", 2.0), ("b", 0, 10, "b/10", 5.0)],
    ),
    "built-in aggregates with process": (
        lambda s: (
            s.key_by("k").window(TEN).aggregate(total=wp.sum("v"), process=Labelled("total"), schema="label string, value double")
        ),
        ["label", "value"],
        [("a", 0, 10, "a/10", 8.0), ("a", 10, 20, "a/10", 2.0), ("b", 0, 10, "b/10", 5.0)],
    ),
    "aggregates of expressions": (
        lambda s: (
            s.key_by(F.upper("k").alias("K"), (F.col("v") > 2).alias("large"))
            .window(TEN)
            .aggregate(twice=wp.sum(F.col("v") * 2), newest=wp.arg_max("v", F.col("t")), late=wp.max(F.unix_seconds("t") % 60))
        ),
        ["twice", "newest", "late"],
        [
            ("A", False, 0, 10, 2, 1, 1),
            ("A", False, 10, 20, 4, 2, 12),
            ("A", True, 0, 10, 14, 7, 3),
            ("B", True, 0, 10, 10, 5, 2),
        ],
    ),
    # The worked example: sessions with gap 3 at 12 and 16; then 14 joins them.
    "fold that merges": (
        lambda s: (
            s.key_by("k")
            .window(EventTimeSessionWindows.with_gap("9 seconds"))
            .fold(list, values_of, "values array<long>", merge=lambda left, right: left + right, process=AsRow())
        ),
        ["values"],
        [("a", 1, 21, [1, 2, 7]), ("b", 2, 11, [5])],
    ),
    "apply": (
        lambda s: (
            s.key_by("k")
            .window(TEN)
            .apply(lambda key, window, rows: [{"each": row["v"]} for row in rows if row["v"] > 1], schema="each long")
        ),
        ["each"],
        [("a", 0, 10, 7), ("a", 10, 20, 2), ("b", 0, 10, 5)],
    ),
    "tumbling with an offset": (
        by_key(lambda k: k.window(TumblingEventTimeWindows.of("10 seconds", "2 seconds"))),
        ["n", "s"],
        [("a", -8, 2, 1, 1), ("a", 12, 22, 1, 2), ("a", 2, 12, 1, 7), ("b", 2, 12, 1, 5)],
    ),
    "cumulate": (
        by_key(lambda k: k.window(CumulateEventTimeWindows.of("10 seconds", "5 seconds"))),
        ["n", "s"],
        [
            *[("a", 0, 10, 2, 8), ("a", 0, 5, 2, 8), ("a", 10, 15, 1, 2), ("a", 10, 20, 1, 2)],
            *[("b", 0, 10, 1, 5), ("b", 0, 5, 1, 5)],
        ],
    ),
    "sessions with a gap of their own": (
        by_key(lambda k: k.window(EventTimeSessionWindows.with_dynamic_gap(lambda row: f"{row['v']} seconds"))),
        ["n", "s"],
        [("a", 1, 2, 1, 1), ("a", 12, 14, 1, 2), ("a", 3, 10, 1, 7), ("b", 2, 7, 1, 5)],
    ),
    "sessions with a gap that Spark computes": (
        by_key(lambda k: k.window(EventTimeSessionWindows.with_dynamic_gap(F.expr("make_dt_interval(0, 0, 0, v)")))),
        ["n", "s"],
        [("a", 1, 2, 1, 1), ("a", 12, 14, 1, 2), ("a", 3, 10, 1, 7), ("b", 2, 7, 1, 5)],
    ),
    "global until the end of the stream": (
        by_key(lambda k: k.window(GlobalWindows.create()).trigger(EndOfStreamTrigger())),
        ["n", "s"],
        [("a", None, None, 3, 10), ("b", None, None, 1, 5)],
    ),
    "count windows": (by_key(lambda k: k.count_window(2)), ["n", "s"], [("a", None, None, 2, 3)]),
    "sliding count windows": (
        by_key(lambda k: k.count_window(2, 1)),
        ["n", "s"],
        [("a", None, None, 1, 1), ("a", None, None, 2, 3), ("a", None, None, 2, 9), ("b", None, None, 1, 5)],
    ),
    "all": (lambda s: total(s.window_all(TEN)), ["n", "s"], [(0, 10, 3, 13), (10, 20, 1, 2)]),
    "count windows over all": (lambda s: total(s.count_window_all(3)), ["n", "s"], [(None, None, 3, 8)]),
    "an assigner of one's own": (
        by_key(lambda k: k.window(Halves())),
        ["n", "s"],
        [("a", 0, 10, 2, 8), ("a", 10, 1000, 1, 2), ("b", 0, 10, 1, 5)],
    ),
    # Purged by the seven, the first window of a has nothing left to fire.
    "a trigger of one's own": (
        lambda s: s.key_by("k").window(TEN).trigger(FireOnSeven()).reduce(added),
        ["t", "v"],
        [("a", 0, 10, 1, 8)],
    ),
    "a purging count trigger": (
        by_key(lambda k: k.window(TEN).trigger(PurgingTrigger(CountTrigger(2)))),
        ["n", "s"],
        [("a", 0, 10, 2, 8)],
    ),
    "a count evictor": (
        by_key(lambda k: k.window(TEN).evictor(CountEvictor.of(1))),
        ["n", "s"],
        [("a", 0, 10, 1, 7), ("a", 10, 20, 1, 2), ("b", 0, 10, 1, 5)],
    ),
    "a time evictor": (
        lambda s: total(s.window_all(TEN).evictor(TimeEvictor.of("2 seconds"))),
        ["n", "s"],
        [(0, 10, 2, 12), (10, 20, 1, 2)],
    ),
    "a delta evictor": (
        lambda s: s.key_by("k").window(TEN).evictor(DeltaEvictor.of(5, lambda old, last: last["v"] - old["v"])).reduce(added),
        ["t", "v"],
        [("a", 0, 10, 3, 7), ("a", 10, 20, 12, 2), ("b", 0, 10, 2, 5)],
    ),
    "ordered rows": (
        lambda s: s.key_by("k", order_by=F.col("v").desc()).window(Halves()).aggregate(vs=wp.collect_list("v")),
        ["vs"],
        [("a", 0, 10, [7, 1]), ("a", 10, 1000, [2]), ("b", 0, 10, [5])],
    ),
}


class AsRow(ProcessWindowFunction):
    """Emits a folded list as the column ``values``."""

    def process(self, key, context, elements):
        return [{"values": values} for values in elements]


@pytest.fixture(scope="module")
def events(spark: Any) -> Any:
    return table(spark, ARRIVED).cache()


@pytest.mark.parametrize("name", STATIC_PROGRAMS)
def test_bounded_program(events, name):
    build, columns, expected = STATIC_PROGRAMS[name]
    result = build(wp.stream(events, event_time="t")).df
    keys = len(result.columns) - len(columns) - 2
    assert result.columns[keys:] == ["window_start", "window_end", *columns]
    assert rows(result) == sorted(expected, key=repr)


def test_time_windows_equal_those_of_spark(spark):
    many = table(spark, [("abc"[i % 3], (i * 37) % 101, i) for i in range(60)])
    native = {
        TumblingEventTimeWindows.of("7 seconds"): F.window("t", "7 seconds"),
        SlidingEventTimeWindows.of("10 seconds", "4 seconds"): F.window("t", "10 seconds", "4 seconds"),
        EventTimeSessionWindows.with_gap("4 seconds"): F.session_window("t", "4 seconds"),
    }
    for assigner, window in native.items():
        grouped = many.groupBy("k", window.alias("w")).agg(F.count("*").alias("n"), F.sum("v").alias("s"))
        # Spark keeps sessions apart that only touch, as Flink's do not: no pair here touches.
        assert rows(total(wp.stream(many, "t").key_by("k").window(assigner)).df) == rows(grouped.select("k", "w.*", "n", "s"))


def test_names_of_columns_may_hold_dots_spaces_and_backticks(spark):
    rows = [("a", 1, dt.datetime(2024, 1, 1)), ("a", 2, dt.datetime(2024, 1, 1)), (None, 4, dt.datetime(2024, 1, 1))]
    named = spark.createDataFrame(rows, "`the.key` string, `a ``value` bigint, `at.time` timestamp")
    by_key = wp.stream(named, event_time="at.time").key_by("the.key").window(wp.TumblingEventTimeWindows.of("1 hour"))
    sums = by_key.aggregate(total=wp.sum("a `value"))
    assert {(row["the.key"], row.total) for row in sums.df.collect()} == {("a", 3), (None, 4)}
    days = sums.key_by("the.key").window(wp.TumblingEventTimeWindows.of("1 day")).aggregate(total=wp.max("total"))
    assert {(row["the.key"], row.total) for row in days.df.collect()} == {("a", 3), (None, 4)}


def test_a_key_that_is_called_as_the_bounds_of_windows_is_refused(spark):
    named = spark.createDataFrame([("a", dt.datetime(2024, 1, 1))], "window_start string, at timestamp")
    with pytest.raises(InvalidSpecError, match="rename the column"):
        wp.stream(named, event_time="at").key_by("window_start").count_window(1).aggregate(n=wp.count())


def test_explain_says_what_runs_and_why(events):
    text = by_key(lambda k: k.window(TEN).allowed_lateness("1 hour"))(wp.stream(events, "t")).explain()
    for part in (
        "TumblingEventTimeWindows",
        "keys            k",
        "EventTimeTrigger() (default)",
        "1 hour",
        "sum('v')",
        "2 buckets, 2 cores",
    ):
        assert part in text
    assert "engine          row: " in wp.stream(events, "t").key_by("k").window(TEN).reduce(added).explain()


# Streams.


def test_late_rows_heartbeats_counters_and_columns(spark, tmp_path):
    late = OutputTag("late")
    # Rows of a batch are late under the watermark that the batches before made: 12, then 14 by a heartbeat.
    feed = Feed(tmp_path / "in", f"{EVENTS}, beat boolean").add(
        [("a", 1, 1, False), ("a", 12, 2, None)],
        [("-", 14, 0, True)],
        [("a", 8, 5, False)],  # misses [0, 10), is in time for [5, 15)
        [("a", 3, 9, False)],  # misses both its windows
        [("-", 60, 0, True)],
    )
    windowed = wp.stream(feed.stream(spark), "t", watermark="0 seconds", heartbeat="beat", name="mine").key_by("k")
    sliding = windowed.window(SlidingEventTimeWindows.of("10 seconds", "5 seconds")).side_output_late_data(late)
    result = total(sliding)
    collected = run(result, "main", "late")

    assert collected.columns == {
        "main": ["k", "window_start", "window_end", "n", "s"],
        "late": ["k", "t", "v", "windows_missed", "dropped", *WHY],
    }
    assert collected.rows() == [("a", -5, 5, 1, 1), ("a", 0, 10, 1, 1), ("a", 10, 20, 1, 2), ("a", 5, 15, 2, 7)]
    assert collected.rows("late") == [("a", 3, 9, [(0, 10), (-5, 5)], True), ("a", 8, 5, [(0, 10)], False)]
    assert result.get_side_output(late).schema["windows_missed"].dataType.simpleString() == (
        "array<struct<start:timestamp,end:timestamp>>"
    )
    assert sum(collected.counted("late_elements", "mine")) == 2
    assert sum(collected.counted("late_dropped", "mine")) == 1
    assert sum(collected.counted("firings", "mine")) == 4
    assert collected.counted("open_windows", "mine")[0] == 4
    assert collected.counted("open_windows", "mine")[-1] == 0
    assert collected.counted("state_bytes", "mine")[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("refine", "refined"), [("last", [(1, 111)]), ("each", [(1, 11), (1, 111)])])
def test_late_rows_within_the_allowed_lateness_refine(spark, tmp_path, refine, refined):
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("a", 12, 0)], [("a", 2, 10), ("a", 3, 100)])
    windowed = wp.stream(feed.stream(spark), "t", watermark=0).key_by("k").window(TEN).allowed_lateness("1 minute")
    collected = run(windowed.refine(refine).aggregate(s=wp.sum("v")))
    assert [(batch, row[-1]) for batch, row in collected.batches["main"]] == [(1, 1), *refined]


WRITTEN = OutputTag("written", "what string, at timestamp")


class Counting(ProcessWindowFunction):
    """Numbers the firings of each window, adds all rows of a key up, and tells a side output."""

    def process(self, key, context, elements):
        firing, everything = context.window_state("firing"), context.global_state("everything")
        firing.update((firing.get() or 0) + 1)
        everything.update((everything.get() or 0) + elements[-1]["v"])
        context.output(WRITTEN, {"what": f"{key} {firing.get()}", "at": elements[-1]["t"]})
        yield {"firing": firing.get(), "everything": everything.get()}

    def clear(self, context):
        context.window_state("firing").clear()


@pytest.mark.slow
def test_state_and_side_outputs_of_a_process_function_live_over_batches(spark, tmp_path):
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("b", 2, 50)], [("a", 3, 2), ("a", 11, 4)], [("a", 40, 8)])
    windowed = wp.stream(feed.stream(spark), "t", watermark=0).key_by("k").window(TEN)
    result = windowed.trigger(CountTrigger(1)).side_output(WRITTEN).process(Counting(), "firing int, everything long")
    collected = run(result, "main", "written", checkpoint=tmp_path / "checkpoint")
    assert collected.rows() == [
        ("a", 0, 10, 1, 1),
        ("a", 0, 10, 2, 3),
        ("a", 10, 20, 1, 7),
        ("a", 40, 50, 1, 15),
        ("b", 0, 10, 1, 50),
    ]
    assert collected.rows("written") == [("a 1", 1), ("a 1", 11), ("a 1", 40), ("a 2", 3), ("b 1", 2)]


def test_sessions_merge_and_continuous_triggers_fire_over_batches(spark, tmp_path):
    # Gap 3 at 1 and 5, then 3 joins both into [1, 8); fires each 2 seconds of event time, and at the end.
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("a", 5, 10)], [("a", 3, 100)], [("-", 60, 0)])
    watermarked = wp.stream(feed.stream(spark), "t", watermark="5 seconds")
    windowed = watermarked.key_by("k").window(EventTimeSessionWindows.with_gap("3 seconds"))
    result = total(windowed.trigger(ContinuousEventTimeTrigger.of("2 seconds")))
    collected = run(result)
    assert collected.rows() == [("a", 1, 8, 3, 111)] * 4
    assert sum(collected.counted("merges")) == 1


def test_a_reduce_of_rows_with_a_column_named_as_a_bound(spark: Any) -> None:
    """The output has that of the window: rows leave out what every output has."""
    named = table(spark, [("a", 1, 1), ("a", 2, 2)], "k string, t timestamp, v long").withColumn("window_start", F.lit(7))
    reduced = wp.stream(named, event_time="t").key_by("k").window(TEN).reduce(lambda left, right: left)
    kinds = {field.name: field.dataType.simpleString() for field in reduced.df.schema}
    assert kinds["window_start"] == "timestamp"
    assert all(isinstance(row.window_start, dt.datetime) for row in reduced.df.collect())
