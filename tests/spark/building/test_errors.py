"""Bad input: each kind has an error class of its own or a documented outcome, says what to do, and spares the checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import Feed, failure, rows, run, table
from windowpane import (
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    OutputTag,
    ProcessWindowFunction,
    PurgingTrigger,
    Trigger,
    TumblingEventTimeWindows,
    errors,
)
from windowpane.errors import (
    AggregateTypeError,
    ChangedPlanError,
    InvalidDurationError,
    InvalidSpecError,
    NonMergingTriggerError,
    UndeclaredSideOutputError,
    UnknownColumnError,
    UnsupportedTypeError,
    WindowpaneError,
)
from windowpane.planning.engines import make_engine
from windowpane.spark.stages.bounded import bounded_processor
from windowpane.spark.stages.wire import Wire
from windowpane.windowing.assigners import MergingWindowAssigner, WindowAssigner
from windowpane.windowing.windows import TimeWindow

pytestmark = pytest.mark.spark

TEN = TumblingEventTimeWindows.of("10 seconds")
SESSIONS = EventTimeSessionWindows.with_gap("5 seconds")
ARRIVED = [("a", 1, 1), ("b", 2, 5), ("a", 3, 13)]


@pytest.fixture(scope="module")
def events(spark: Any) -> Any:
    return table(spark, ARRIVED).cache()


def ten(df: Any) -> Any:
    return wp.stream(df, "t").key_by("k").window(TEN)


def added(left: Any, right: Any) -> Any:
    return {**left, "v": left["v"] + right["v"]}


# Refused when the program is built.

REFUSED: dict[str, tuple[Callable[[Any], Any], type[WindowpaneError], str]] = {
    "event time": (
        lambda df: wp.stream(df, "when").key_by("k").window(TEN).reduce(added),
        UnknownColumnError,
        "event_time.*'when'.*'t'",
    ),
    "changelog": (
        lambda df: wp.stream(df.withColumn("_change_type", F.lit("delete")), "t").key_by("k").count_window(2).reduce(added),
        InvalidSpecError,
        "the input is a changelog.*by count.*drop that column",
    ),
    "heartbeat": (
        lambda df: wp.stream(df, "t", heartbeat="hb").window_all(TEN).reduce(added),
        UnknownColumnError,
        "heartbeat.*'hb'",
    ),
    "key": (lambda df: wp.stream(df, "t").key_by("kk").window(TEN).reduce(added), UnknownColumnError, "key_by.*'kk'"),
    "order": (
        lambda df: wp.stream(df, "t").key_by("k", order_by="seq").window(TEN).reduce(added),
        UnknownColumnError,
        "order_by.*'seq'",
    ),
    "order type": (
        lambda df: wp.stream(df, "t").key_by("k", order_by=F.array("v")).window(TEN).reduce(added),
        UnsupportedTypeError,
        r"order_by.*array<bigint>",
    ),
    "argument": (lambda df: ten(df).aggregate(s=wp.sum("w")), UnknownColumnError, "aggregate s=.*'w'"),
    "argument type": (lambda df: ten(df).aggregate(s=wp.sum("k")), AggregateTypeError, r"sum\('k'\).*string"),
    "gap type": (
        lambda df: wp.stream(df, "t").key_by("k").window(EventTimeSessionWindows.with_dynamic_gap("v")).reduce(added),
        InvalidSpecError,
        r"with_dynamic_gap\('v'\) is bigint.*make_dt_interval",
    ),
    "gap beside whole rows": (
        lambda df: (
            wp.stream(df, "t").key_by("k").window(EventTimeSessionWindows.with_dynamic_gap(F.lit("1 second"))).reduce(added)
        ),
        InvalidSpecError,
        r"one of their columns: df.withColumn\('gap', ...\)",
    ),
    "gap column of a join": (
        lambda df: (
            wp.join(wp.stream(df, "t"), wp.stream(df, "t"))
            .on("k")
            .window(EventTimeSessionWindows.with_dynamic_gap("gap"))
            .select("k")
        ),
        InvalidSpecError,
        "the gap of a session of both sides is a function",
    ),
    "no aggregate": (lambda df: ten(df).aggregate(s="v"), InvalidSpecError, "wp.count"),
    "equal aggregates": (
        lambda df: ten(df).aggregate(s=wp.sum("v") == wp.max("v")),
        InvalidSpecError,
        r"compare as Python objects: write wp.sum\('a'\) - wp.sum\('b'\) == 0",
    ),
    "event time type": (lambda df: wp.stream(df, "v").key_by("k").window(TEN).reduce(added), InvalidSpecError, "'v' is bigint"),
    "no event time": (lambda df: wp.stream(df).key_by("k").window(TEN).reduce(added), InvalidSpecError, "event_time="),
    "no keys": (lambda df: wp.stream(df, "t").key_by(), InvalidSpecError, "window_all"),
    "same key twice": (
        lambda df: wp.stream(df, "t").key_by("k", F.upper("k").alias("k")).window(TEN).reduce(added),
        InvalidSpecError,
        "alias",
    ),
    "unparsable schema": (lambda df: ten(df).apply(list, "x lnog !"), InvalidSpecError, "x lnog !"),
    "missing schema": (lambda df: ten(df).aggregate(Never(), schema=None), InvalidSpecError, "schema="),
    "schema with bounds": (lambda df: ten(df).apply(list, "window_start timestamp"), InvalidSpecError, "leave them out"),
    "undeclared sink": (
        lambda df: ten(df).reduce(added).get_side_output("late"),
        UndeclaredSideOutputError,
        "'late'.*declared are",
    ),
    "side output without schema": (lambda df: ten(df).side_output(OutputTag("x")).reduce(added), InvalidSpecError, "schema"),
    "two side outputs of one name": (
        lambda df: ten(df).side_output_late_data(OutputTag("x")).side_output(OutputTag("x", "v long")).reduce(added),
        InvalidSpecError,
        "'x', 'x'",
    ),
    "trigger that cannot merge": (
        lambda df: (
            wp.stream(df, "t").key_by("k").window(SESSIONS).trigger(PurgingTrigger(DeltaTrigger.of(1.0, min))).reduce(added)
        ),
        NonMergingTriggerError,
        "can_merge",
    ),
    "fold that cannot merge": (
        lambda df: wp.stream(df, "t").key_by("k").window(SESSIONS).fold(0, max, "v long"),
        InvalidSpecError,
        "merge=",
    ),
    "negative lateness": (lambda df: ten(df).allowed_lateness("-1 second").reduce(added), InvalidSpecError, "-1 second"),
    "lateness without unit": (lambda df: ten(df).allowed_lateness("10 parsecs"), InvalidDurationError, "parsecs"),
    "refine": (lambda df: ten(df).refine("most").reduce(added), InvalidSpecError, "'most'"),
    "size": (lambda df: TumblingEventTimeWindows.of(0), InvalidSpecError, "0"),
    "start of a static DataFrame": (lambda df: ten(df).reduce(added).start(main=print), InvalidSpecError, "static"),
}


class Never(wp.AggregateFunction):
    """An aggregate function that is not reached."""

    def fail(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError

    create_accumulator = add = get_result = merge = fail


@pytest.mark.parametrize("name", REFUSED)
def test_refused_when_built(events, name):
    build, kind, message = REFUSED[name]
    with pytest.raises(kind, match=f"(?s){message}"):
        build(events)


def test_streams_are_refused_without_a_watermark_a_sink_or_a_declared_output(spark, tmp_path):
    stream = Feed(tmp_path / "in").add(ARRIVED).stream(spark)
    with pytest.raises(InvalidSpecError, match="watermark="):
        ten(stream).reduce(added)
    result = wp.stream(stream, "t", watermark=0).key_by("k").window(TEN).reduce(added)
    with pytest.raises(InvalidSpecError, match="at least one output"):
        result.start()
    with pytest.raises(UndeclaredSideOutputError, match="'late'"):
        result.start(main=print, late=print)
    with pytest.raises(InvalidSpecError, match="a sink is"):
        result.start(main=7)  # type: ignore[arg-type]
    for trigger in ("10 seconds", {"every": "10 seconds"}):
        with pytest.raises(InvalidSpecError, match=r"'10 seconds'.*\{'processingTime': '10 seconds'\}.*availableNow"):
            result.start(main=str(tmp_path / "out"), trigger=trigger)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpecError, match="event_time="):
        wp.stream(stream, watermark=0).key_by("k").count_window(2).reduce(added)


# Raised while rows are processed: the stages run here, on the rows that Spark projects, so that no job has to fail for it.


class Failing(Trigger, Evictor, ProcessWindowFunction, WindowAssigner):
    """Raises wherever it is asked: as a trigger, an evictor, a function or an assigner."""

    def fail(self, *arguments: Any, **named: Any) -> Any:
        raise ZeroDivisionError("thirteen")

    on_element = evict_before = process = assign_windows = clear = fail

    def default_trigger(self):
        return EventTimeTrigger()

    def __repr__(self):
        return "Failing()"


def failing_reduce(left: Any, right: Any) -> Any:
    raise ZeroDivisionError("thirteen")


def failing_gap(row: Any) -> int:
    raise ZeroDivisionError("thirteen")


class Yielding(ProcessWindowFunction):
    """Emits one row, whatever it is."""

    def __init__(self, row: Any, tag: OutputTag | None = None) -> None:
        self.row = row
        self.tag = tag

    def process(self, key, context, elements):
        if self.tag is not None:
            context.output(self.tag, self.row)
        yield self.row


class AsksForWindowState(ProcessWindowFunction):
    def process(self, key, context, elements):
        context.window_state("x").update(1)


RAISED_IN = ("UserFunctionError", "ZeroDivisionError: thirteen", "key 'a'", "same checkpoint")
WINDOW = r"[2024-01-01T00:00:00Z, 2024-01-01T00:00:10Z)"

RAISED: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "null event time": (
        lambda df: ten(df.withColumn("t", F.expr("IF(v = 13, NULL, t)"))).reduce(added),
        ("MissingTimestampError", "'v': 13", "key 'a'", "Filter out"),
    ),
    "timestamp beyond int64": (
        lambda df: ten(df.withColumn("t", F.expr("IF(v = 13, timestamp_micros(9223372036854775807), t)"))).aggregate(
            n=wp.count()
        ),
        ("TimestampOverflowError", "9223372036854775807 µs", "filter such rows"),
    ),
    "value beyond Python": (
        lambda df: ten(df.withColumn("u", F.expr("IF(v = 13, timestamp_micros(9223372036854775807), t)"))).reduce(added),
        ("UnrepresentableValueError", "column 'u'", "9223372036854775807", "cast the column"),
    ),
    "reduce": (lambda df: ten(df).reduce(failing_reduce), (*RAISED_IN, "failing_reduce", WINDOW)),
    "process": (lambda df: ten(df).process(Failing(), "x int"), (*RAISED_IN, "Failing() raised", WINDOW)),
    "trigger": (lambda df: ten(df).trigger(Failing()).reduce(added), (*RAISED_IN, "Failing() raised", WINDOW)),
    "evictor": (lambda df: ten(df).evictor(Failing()).reduce(added), (*RAISED_IN, "Failing() raised", WINDOW)),
    "assigner": (lambda df: wp.stream(df, "t").key_by("k").window(Failing()).reduce(added), (*RAISED_IN, "Failing() raised")),
    "gap": (
        lambda df: wp.stream(df, "t").key_by("k").window(EventTimeSessionWindows.with_dynamic_gap(failing_gap)).reduce(added),
        (*RAISED_IN, "failing_gap"),
    ),
    "gap of nothing": (
        lambda df: (
            wp.stream(df, "t")
            .key_by("k")
            .window(EventTimeSessionWindows.with_dynamic_gap(lambda row: row["v"] - 13))
            .reduce(added)
        ),
        ("InvalidSessionGapError", "'v': 1", "-12", "with_dynamic_gap"),
    ),
    "gap of nothing in a column": (
        lambda df: (
            wp.stream(df, "t")
            .key_by("k")
            .window(EventTimeSessionWindows.with_dynamic_gap(F.expr("make_dt_interval(0, 0, 0, v - 13)")))
            .aggregate(n=wp.count())
        ),
        ("InvalidSessionGapError", "is -12000000, but", "with_dynamic_gap"),
    ),
    "gap in words": (
        lambda df: (
            wp.stream(df.withColumn("wait", F.lit("a while")), "t")
            .key_by("k")
            .window(EventTimeSessionWindows.with_dynamic_gap("WAIT"))
            .reduce(added)
        ),
        ("InvalidDurationError", "'a while'"),
    ),
    "window state of sessions": (
        lambda df: wp.stream(df, "t").key_by("k").window(SESSIONS).process(AsksForWindowState(), "x int"),
        ("PerWindowStateError", "key 'a'", "[2024-01-01T00:00:01Z, 2024-01-01T00:00:08Z)", "global_state"),
    ),
    "event-time trigger of a global window": (
        lambda df: wp.stream(df, "t").key_by("k").window(wp.GlobalWindows.create()).trigger(EventTimeTrigger()).reduce(added),
        ("WindowTypeError", "EventTimeTrigger", "end-of-stream"),
    ),
    "unknown output column": (
        lambda df: ten(df).process(Yielding({"x": 1, "y": 2}), "x int"),
        ("OutputSchemaError", "output 'main'", "['y']", "['x']", "key 'a'", WINDOW, "declared schema"),
    ),
    "wrong output type": (
        lambda df: ten(df).process(Yielding({"x": "one"}), "x int"),
        ("OutputSchemaError", "'x' is int32", "'one'", "key 'a'", WINDOW),
    ),
    "a fraction for a whole number": (
        lambda df: ten(df).process(Yielding({"x": 1.5}), "x int"),
        ("OutputSchemaError", "'x' is int32", "1.5 has a fraction", "key 'a'", WINDOW),
    ),
    "a row where rows are expected": (
        lambda df: ten(df).apply(lambda k, w, rows: {"x": 1}, "x int"),
        ("UserFunctionError", "apply(<lambda>) raised TypeError: it returned the row {'x': 1}", "return [row]", WINDOW),
    ),
    "output that is no row": (
        lambda df: ten(df).apply(lambda k, w, rows: [7], "x int"),
        ("OutputSchemaError", "a dict", "got a int"),
    ),
    "undeclared tag": (
        lambda df: ten(df).side_output(OutputTag("known", "x int")).process(Yielding({"x": 1}, OutputTag("other")), "x int"),
        ("UndeclaredSideOutputError", "'other'", "'known'", "side_output"),
    ),
    "sum too large": (
        lambda df: ten(df).aggregate(s=wp.sum(F.lit(2**62) + F.col("v"))),
        ("AggregateOverflowError", "int64", "wider type"),
    ),
}


def run_here(result: Any) -> None:
    """Run the stages of a static result in this process; all its rows must be of one bucket."""
    (operator,) = result._built.operators
    encoded = pa.Table.from_batches(operator.reads.encoder(operator.reads.dataframe.toArrow().to_batches()))
    bounded_processor(partial(make_engine, operator.program), Wire())(encoded)


@pytest.mark.parametrize("name", RAISED)
def test_raised_while_running(events, name):
    build, (kind, *parts) = RAISED[name]
    with pytest.raises(getattr(errors, kind)) as caught:
        run_here(build(events.filter("k = 'a'")))
    for part in parts:
        assert part in str(caught.value)


def test_the_text_of_an_exception_of_spark_has_the_error(events):
    with pytest.raises(PySparkException) as caught:
        rows(ten(events).reduce(failing_reduce).df)
    text = [line for line in str(caught.value).splitlines() if line.startswith("windowpane.errors.UserFunctionError: ")][-1]
    assert all(part in text for part in ("ZeroDivisionError: thirteen", "key 'a'", WINDOW, "same checkpoint"))


# The checkpoint stays usable after the cause is gone.


@dataclass(frozen=True)
class Mishap:
    """A program that fails on a batch, the one that goes on from its checkpoint, and what that writes."""

    broken: Callable[[Any], Any]
    mended: Callable[[Any], Any]
    error: str
    bad_row: tuple[Any, ...]
    expected: list[tuple[Any, ...]]


def watermarked(df: Any) -> Any:
    return wp.stream(df, "t", watermark=0).key_by("k")


class Adding:
    """A reduce function that, until it is mended in place, raises at a thirteen."""

    def __init__(self, broken: bool) -> None:
        self._broken = broken

    def __call__(self, left: Any, right: Any) -> Any:
        if self._broken and 13 in (left["v"], right["v"]):
            raise ZeroDivisionError("thirteen")
        return added(left, right)


class Shrinking(MergingWindowAssigner):
    """Sessions with a gap of five seconds; broken, merging gives a window that is long over."""

    def __init__(self, broken: bool) -> None:
        self._broken = broken

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(timestamp, timestamp + 5_000_000)]

    def default_trigger(self):
        return EventTimeTrigger()

    def merge_windows(self, windows):
        merged = super().merge_windows(windows)
        return [(TimeWindow(0, 1), members) for _, members in merged if len(members) > 1] if self._broken else merged


TOTAL = Yielding({"total": 1, "extra": 2})

MISHAPS = {
    "a function that raises": Mishap(
        lambda df: watermarked(df).window(TEN).reduce(Adding(broken=True)),
        lambda df: watermarked(df).window(TEN).reduce(Adding(broken=False)),
        "UserFunctionError",
        ("a", 16, 13),
        [("a", 0, 10, 1, 1), ("a", 10, 20, 14, 19)],
    ),
    "null event time": Mishap(
        lambda df: watermarked(df).window(TEN).reduce(added),
        lambda df: watermarked(df.filter("t IS NOT NULL")).window(TEN).reduce(added),
        "MissingTimestampError",
        ("a", None, 13),
        [("a", 0, 10, 1, 1), ("a", 10, 20, 14, 6)],
    ),
    "wrong output schema": Mishap(
        lambda df: watermarked(df).window(TEN).process(TOTAL, "total long"),
        lambda df: watermarked(df).window(TEN).process(TOTAL, "total long, extra int"),
        "OutputSchemaError",
        ("a", 16, 13),
        [("a", 0, 10, 1, 2), ("a", 10, 20, 1, 2)],
    ),
    "a merge behind the watermark": Mishap(
        lambda df: watermarked(df).window(Shrinking(broken=True)).reduce(added),
        lambda df: watermarked(df).window(Shrinking(broken=False)).reduce(added),
        "MergeBehindWatermarkError",
        ("a", 16, 13),
        [("a", 1, 6, 1, 1), ("a", 14, 21, 14, 19)],
    ),
}


@pytest.mark.slow_but("null")
@pytest.mark.parametrize("name", MISHAPS)
def test_the_checkpoint_goes_on_after_the_cause_is_gone(spark, tmp_path, name):
    mishap = MISHAPS[name]
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("a", 14, 2)], [("a", 15, 4), mishap.bad_row], [("z", 60, 0)])
    text = failure(mishap.broken(feed.stream(spark)), checkpoint=tmp_path / "checkpoint")
    first = text.split("\n")[0]
    assert re.search(f": windowpane.errors.{mishap.error}: .*'?a'?", first), "the good line comes first"
    assert "operators/window" not in text
    assert "windowpane.errors.FailedBatchError: batch 1 failed by the error above" in text
    assert run(mishap.mended(feed.stream(spark)), checkpoint=tmp_path / "checkpoint").rows() == mishap.expected


@dataclass
class Total:
    value: int = 0


class Totals(wp.AggregateFunction):
    """Keeps objects of its own, or values."""

    def __init__(self, keeps: type) -> None:
        self._keeps = keeps

    def create_accumulator(self):
        return self._keeps()

    def add(self, element, accumulator):
        return self._keeps(self._value(accumulator) + element["v"])

    def get_result(self, accumulator):
        return {"total": self._value(accumulator)}

    def merge(self, left, right):
        return self._keeps(self._value(left) + self._value(right))

    def _value(self, accumulator):
        return getattr(accumulator, "value", accumulator)


@pytest.mark.slow
def test_where_state_is_safe_an_object_of_the_users_is_refused_and_values_go_on(spark, tmp_path):
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("a", 14, 2)], [("z", 60, 0)])

    def totals(keeps: type) -> Any:
        return watermarked(feed.stream(spark)).window(TEN).aggregate(Totals(keeps), schema="total long")

    spark.conf.set("windowpane.safe_state", "true")
    try:
        text = failure(totals(Total), checkpoint=tmp_path / "checkpoint")
        assert "windowpane.errors.UnsafeStateError: state holds an object of" in text
        assert "Total, and windowpane.safe_state is set" in text
        found = run(totals(int), checkpoint=tmp_path / "checkpoint").rows()
    finally:
        spark.conf.unset("windowpane.safe_state")
    assert found == [("a", 0, 10, 1), ("a", 10, 20, 2)]


@pytest.mark.slow
def test_a_changed_program_is_refused_by_name_and_the_old_one_goes_on(spark, tmp_path):
    feed = Feed(tmp_path / "in").add([("a", 1, 1), ("a", 14, 2)])

    def original(df: Any) -> Any:
        return watermarked(df).window(TEN).aggregate(s=wp.sum("v"))

    checkpoint = tmp_path / "checkpoint"
    assert run(original(feed.stream(spark)), checkpoint=checkpoint).rows() == [("a", 0, 10, 1)]
    feed.add([("a", 15, 4), ("z", 60, 0)])
    changed = wp.stream(feed.stream(spark), "t", watermark=0).key_by(F.encode("k", "utf-8").alias("k"))
    windowed = changed.window(TumblingEventTimeWindows.of("20 seconds")).trigger(CountTrigger(2)).allowed_lateness("1 second")
    with pytest.raises(ChangedPlanError, match="the checkpoint was written by a different program") as refused:
        run(windowed.aggregate(s=wp.sum(F.col("v").cast("double"))), checkpoint=checkpoint)
    text = str(refused.value)
    for difference in (
        "keys: was k string, is k binary",
        "assigner: was TumblingEventTimeWindows(size=10000000",
        "trigger: was EventTimeTrigger(), is CountTrigger(max_count=2)",
        "allowed lateness: was 0 microseconds, is 1 second",
        "call s: was s = sum(v) of int64, is s = sum(",
        "Restore these parts",
    ):
        assert difference in text
    assert run(original(feed.stream(spark)), checkpoint=checkpoint).rows() == [("a", 10, 20, 6)]
