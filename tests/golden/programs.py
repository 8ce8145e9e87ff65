"""Programs of the golden checkpoints: at least one for each engine, and for each form that its state takes.

They use public names only, so they outlive every move inside the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import functions as F

import windowpane as wp

SCHEMA = (
    "id long, k string, n int, t timestamp, v long, d double, m decimal(18, 2), s string, flag boolean, "
    "tags array<string>, place struct<x: int, y: string>, heartbeat boolean"
)
"""The columns of every input."""

CHANGES = f"{SCHEMA}, _change_type string"
"""Those of an input that is a changelog."""

LATE = wp.OutputTag("late")
GAVE_UP = wp.OutputTag("gave_up")
COUNTED = wp.OutputTag("counted", "firing long")
TEN = wp.TumblingEventTimeWindows.of("10 seconds")

NUMBERS = {
    "rows": wp.count(),
    "values": wp.count("v"),
    "total": wp.sum("v"),
    "doubles": wp.sum("d"),
    "decimals": wp.sum("m"),
    "mean": wp.avg("v"),
    "decimal_mean": wp.avg("m"),
    "least": wp.min("d"),
    "most": wp.max("m"),
    "least_text": wp.min("s"),
    "spread": wp.stddev_samp("d"),
    "variance": wp.var_pop("v"),
    "all_flags": wp.bool_and("flag"),
    "any_flag": wp.bool_or("flag"),
    "best": wp.arg_max("s", "d"),
    "worst": wp.arg_min("tags", "v"),
}
"""Aggregates whose state has one size."""

UNORDERED = ("rows", "values", "total", "doubles", "decimals", "mean", "decimal_mean", "least", "most", "least_text", "any_flag")
"""Names of numbers that do not depend on the order of rows."""

LISTS = {
    "earliest": wp.first("s"),
    "latest": wp.last("place"),
    "texts": wp.collect_list("s"),
    "different": wp.count_distinct("s"),
    "places": wp.collect_set("n"),
    "estimate": wp.approx_count_distinct("v"),
    "around": wp.approx_quantile("d", 0.5),
    "exact": wp.quantile("d", 0.25),
    "middle": wp.median("v"),
    "frequent": wp.mode("s"),
    "joined": wp.string_agg("s", "|"),
}
"""Aggregates whose state grows with the values."""


QUANTILES = {
    "low": wp.approx_quantile("v", 0.25),
    "around": wp.approx_quantile("d", 0.5),
    "small": wp.approx_quantile("n", 1.0),
    "beyond": wp.approx_quantile("large", 0.75),
    "unordered": wp.approx_quantile("holed", 0.5),
}
"""Sketches of doubles; of integers that are no doubles, and of NaN, also of Python values. They hold all values of a window."""


class Report(wp.ProcessWindowFunction):
    """Counts the firings of each window and of each key, and tells a side output of them."""

    def __init__(self, per_window: bool) -> None:
        self.per_window = per_window

    def process(self, key: Any, context: wp.ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        states = [context.global_state("firings")] + ([context.window_state("firings")] if self.per_window else [])
        for state in states:
            state.update((state.get() or 0) + 1)
        firing = states[-1].get()
        context.output(COUNTED, {"firing": firing})
        return [{"n": len(elements), "total": sum(row["v"] or 0 for row in elements), "firing": firing}]

    def clear(self, context: wp.ProcessContext) -> None:
        if self.per_window:
            context.window_state("firings").clear()


class EveryThird(wp.Trigger):
    """Fires at every third element of a window, and at its end."""

    def on_element(self, element: Any, timestamp: Any, window: Any, context: wp.TriggerContext) -> wp.TriggerResult:
        context.register_event_time_timer(window.max_timestamp)
        seen = context.value_state("seen")
        seen.update((seen.get() or 0) + 1)
        return wp.TriggerResult.FIRE if seen.get() % 3 == 0 else wp.TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, context: wp.TriggerContext) -> wp.TriggerResult:
        return wp.TriggerResult.FIRE if time == window.max_timestamp else wp.TriggerResult.CONTINUE

    def clear(self, window: Any, context: wp.TriggerContext) -> None:
        context.value_state("seen").clear()
        context.delete_event_time_timer(window.max_timestamp)


class Longest(wp.AggregateFunction):
    """The longest text, the first of equals, as an aggregate of a user."""

    def create_accumulator(self) -> Any:
        return ("", 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        text = value["s"] or ""
        return (text if len(text) > len(accumulator[0]) else accumulator[0], accumulator[1] + 1)

    def get_result(self, accumulator: Any) -> Any:
        return {"longest": accumulator[0], "of": accumulator[1]}

    def merge(self, a: Any, b: Any) -> Any:
        return (b[0] if len(b[0]) > len(a[0]) else a[0], a[1] + b[1])


def _keyed(df: Any, *keys: str) -> wp.KeyedStream:
    return wp.stream(df, event_time="t", watermark="2 seconds", heartbeat="heartbeat").key_by(*keys or ("k",))


def _later(row: Any, other: Any) -> Any:
    return other if other["id"] > row["id"] else row


def row_process(df: Any) -> wp.Result:
    windows = _keyed(df).window(TEN).allowed_lateness("15 seconds").trigger(EveryThird()).side_output_late_data(LATE)
    return windows.side_output(COUNTED).process(Report(True), "n long, total long, firing long")


def row_sessions(df: Any) -> wp.Result:
    windows = _keyed(df, "k", "place").window(wp.EventTimeSessionWindows.with_gap("4 seconds")).allowed_lateness("6 seconds")
    return windows.side_output(COUNTED).process(Report(False), "n long, total long, firing long")


def row_function(df: Any) -> wp.Result:
    return (
        _keyed(df)
        .window(wp.SlidingEventTimeWindows.of("20 seconds", "10 seconds"))
        .aggregate(Longest(), None, "longest string, of int")
    )


def row_reduce(df: Any) -> wp.Result:
    return _keyed(df).window(TEN).trigger(wp.DeltaTrigger.of(40.0, _difference)).reduce(_later)


def _difference(before: Any, now: Any) -> float:
    return abs(float(now["d"] or 0.0) - float(before["d"] or 0.0))


def row_reference(df: Any) -> wp.Result:
    """Built-in aggregates on the reference engine."""
    return _keyed(df).window(TEN).allowed_lateness("5 seconds").engine("reference").aggregate(**NUMBERS, **LISTS)


def slices_tumbling(df: Any) -> wp.Result:
    windows = _keyed(df).window(TEN).allowed_lateness("15 seconds").side_output_late_data(LATE)
    return windows.aggregate(**NUMBERS, **LISTS)


def slices_folded(df: Any) -> wp.Result:
    """Rows fold before the shuffle."""
    return _keyed(df, "k", "n").window(TEN).aggregate(**NUMBERS)


def slices_sliding(df: Any) -> wp.Result:
    return _keyed(df, "s", "flag").window(wp.SlidingEventTimeWindows.of("30 seconds", "10 seconds")).aggregate(**NUMBERS)


def slices_cumulate(df: Any) -> wp.Result:
    return _keyed(df, "place").window(wp.CumulateEventTimeWindows.of("40 seconds", "10 seconds")).aggregate(**LISTS)


def slices_quantiles(df: Any) -> wp.Result:
    wider = df.withColumns({"large": F.expr("v * 1000000"), "holed": F.expr("if(flag, d, double('NaN'))")})
    windows = _keyed(wider, "k", "n").window(wp.SlidingEventTimeWindows.of("30 seconds", "10 seconds"))
    return windows.allowed_lateness("15 seconds").aggregate(**QUANTILES)


def slices_in_arrow(df: Any) -> wp.Result:
    return _keyed(df).window(TEN).apply_in_arrow(_sizes, "n long")


def _sizes(table: Any) -> Any:
    return table.group_by(["k", "window_start", "window_end"]).aggregate([([], "count_all")]).rename_columns({"count_all": "n"})


def sessions(df: Any) -> wp.Result:
    windows = _keyed(df).window(wp.EventTimeSessionWindows.with_gap("4 seconds")).allowed_lateness("6 seconds")
    return windows.side_output_late_data(LATE).aggregate(**NUMBERS, **LISTS)


def sessions_evicted(df: Any) -> wp.Result:
    windows = _keyed(df, "k", "n").window(wp.EventTimeSessionWindows.with_gap("4 seconds"))
    return windows.evictor(wp.CountEvictor.of(2)).aggregate(total=wp.sum("v"), texts=wp.collect_list("s"))


def panes_early(df: Any) -> wp.Result:
    windows = _keyed(df).window(wp.SlidingEventTimeWindows.of("20 seconds", "10 seconds")).allowed_lateness("5 seconds")
    return windows.trigger(wp.ContinuousEventTimeTrigger.of("4 seconds")).aggregate(**NUMBERS, **LISTS)


def panes_evicted(df: Any) -> wp.Result:
    return _keyed(df).window(TEN).evictor(wp.TimeEvictor.of("3 seconds")).aggregate(**NUMBERS)


def counts(df: Any) -> wp.Result:
    return _keyed(df).count_window(4).aggregate(**NUMBERS, **LISTS)


def counts_sliding(df: Any) -> wp.Result:
    return _keyed(df, "k", "flag").count_window(5, 2).aggregate(total=wp.sum("v"), texts=wp.collect_list("s"))


def counts_trigger(df: Any) -> wp.Result:
    windows = _keyed(df).window(TEN).trigger(wp.PurgingTrigger.of(wp.CountTrigger.of(3)))
    return windows.aggregate(**NUMBERS)


def windows_of_windows(df: Any) -> wp.Result:
    first = _keyed(df, "k", "n").window(TEN).aggregate(total=wp.sum("v"), estimate=wp.approx_count_distinct("s"))
    second = first.key_by("k").window(wp.TumblingEventTimeWindows.of("20 seconds"))
    return second.aggregate(total=wp.sum("total"), highest=wp.max("estimate"), results=wp.count())


CALLS = {
    "before": wp.lag("s", 2),
    "after": wp.lead("v"),
    "standing": wp.rank(),
    "number": wp.row_number(),
    "so_far": wp.sum("m").rows(),
    "near": wp.avg("d").rows(-2, 1),
    "texts": wp.collect_list("s").range("-5 seconds", 0),
    "peers": wp.count().groups(-1, 0).exclude("ties"),
    "first_text": wp.first_value("s").rows(-3, 0).ignore_nulls(),
    "lowest": wp.min("v").rows(-4, -1),
}
"""Calls over one window, each a way in which state is kept."""


def _ordered(df: Any, changes: bool = False) -> wp.OverStream:
    df = df.where("NOT heartbeat").drop("heartbeat", "tags")
    stream = wp.over(df, key="id") if changes else wp.over(df, "t", "2 seconds", key="id")
    return stream.partition_by("k").order_by("t")


def over_update(df: Any) -> wp.OverResult:
    return _ordered(df).select("*", **CALLS).side_output_late_data(LATE).emit_on_update()


def over_changelog(df: Any) -> wp.OverResult:
    """Two operators over a changelog: the second has a window of its own."""
    overall = wp.rank().over(partition_by=(), order_by=F.col("v").desc())
    return _ordered(df, changes=True).select("*", **CALLS, overall=overall).emit_on_update()


def over_close(df: Any) -> wp.OverResult:
    return _ordered(df).select("*", **CALLS).side_output_late_data(LATE).emit_on_window_close()


def over_session(df: Any) -> wp.OverResult:
    total = wp.sum("v").session("4 seconds")
    return _ordered(df).select("id", "k", "t", total=total, number=wp.row_number()).emit_on_window_close()


def over_reference(df: Any) -> wp.OverResult:
    return _ordered(df).select("id", "k", "t", **CALLS).engine("over reference").emit_on_update()


def rolling_changed(df: Any) -> wp.RollingResult:
    features = wp.rolling(df, event_time="t", watermark="2 seconds", heartbeat="heartbeat").by("k", "place")
    features = features.over("10 seconds", **NUMBERS, **LISTS).over("20 seconds", flagged=wp.count().filter("flag"))
    return features.hop("5 seconds").side_output_late_data(LATE).emit("changed", on_empty="delete")


def rolling_pieces(df: Any) -> wp.RollingResult:
    features = wp.rolling(df, event_time="t", watermark="2 seconds", heartbeat="heartbeat").by("k")
    features = features.over("10 seconds", **{name: NUMBERS[name] for name in UNORDERED})
    features = features.over("20 seconds", "40 seconds", flagged=wp.count().filter("flag"))
    return features.hop("5 seconds").side_output_late_data(LATE).engine("rolling").emit("changed")


def rolling_tick(df: Any) -> wp.RollingResult:
    features = wp.rolling(df, event_time="t", watermark="2 seconds", heartbeat="heartbeat").by("k")
    return features.over("10 seconds", "20 seconds", rows=wp.count(), best=wp.arg_max("s", "d")).hop("5 seconds").emit("tick")


def _sides(df: Any) -> tuple[Any, Any]:
    """Two streams of the same rows: all of them, and under other names those that are flagged."""
    right = df.filter("flag OR heartbeat").selectExpr("id AS other", "k", "t", "s AS word", "heartbeat")
    left = df.select("id", "k", "t", "v", "heartbeat")
    one, other = (wp.stream(side, "t", watermark="2 seconds", heartbeat="heartbeat") for side in (left, right))
    return one, other


def join_window(df: Any) -> wp.WindowJoin:
    left, right = _sides(df)
    return wp.join(left, right).on("k").window(TEN).how("full").select("id", "v", other=wp.right("other"), word=wp.right("word"))


def join_interval(df: Any) -> wp.IntervalJoin:
    left, right = _sides(df)
    joined = wp.join(left, right).on("k").within("-3 seconds", "5 seconds").how("left")
    return joined.select("id", "v", other=wp.right("other"), word=wp.right("word"))


def join_as_of(df: Any) -> wp.AsOfJoin:
    left, right = _sides(df)
    return wp.as_of(left, right).on("k").match("backward", tolerance="8 seconds").select("id", "v", other=wp.right("other"))


def join_by_arrival(df: Any) -> wp.AsOfJoin:
    left, right = _sides(df)
    return wp.as_of(left, right).on("k").by_arrival().select("id", "v", other=wp.right("other"))


def first_rows(df: Any) -> wp.Deduplicated:
    rows = wp.stream(df, "t", watermark="2 seconds", heartbeat="heartbeat").key_by("k", "flag")
    return rows.deduplicate(within="4 seconds").side_output_late_data(LATE)


def last_rows(df: Any) -> wp.Deduplicated:
    rows = wp.stream(df, "t", watermark="2 seconds", heartbeat="heartbeat").key_by("k", "flag")
    return rows.deduplicate(within="4 seconds", keep="last")


def match_text(df: Any) -> wp.MatchResult:
    rows = wp.stream(df, "t", watermark="2 seconds", heartbeat="heartbeat").key_by("k")
    rising = rows.match("low rise+ fall", rise=wp.col("v") > wp.lag("v"), fall=wp.col("v") < wp.lag("v"))
    asked = rising.order_by("id").within("20 seconds").timeouts(GAVE_UP).side_output_late_data(LATE)
    return asked.select(low=wp.first("low.id"), top=wp.last("rise.v"), rows=wp.count(), part=wp.classifier())


def match_reference(df: Any) -> wp.MatchResult:
    rows = wp.stream(df, "t", watermark="2 seconds", heartbeat="heartbeat").key_by("k", "flag")
    above = rows.match("^? low high*", high=wp.col("v") >= wp.first("low.v")).order_by("id").within("10 seconds")
    return above.after_match("to next row").all_rows("id", "v", number=wp.match_number(), total=wp.sum("v"))


def windows_filled(df: Any) -> wp.Filled:
    windows = _keyed(df).window(TEN).allowed_lateness("15 seconds").side_output_late_data(LATE)
    sums = windows.aggregate(rows=wp.count(), total=wp.sum("v"), name=wp.max("s"))
    return sums.fill_gaps({"rows": 0}, others="previous", until="3 windows")


def windows_settled(df: Any) -> wp.Result:
    rows = wp.stream(last_rows(df).df, event_time="t").key_by("k").window(TEN)
    return rows.aggregate(rows=wp.count(), total=wp.sum("v"), texts=wp.count("s"))


def over_of_each_key(df: Any) -> wp.OverResult:
    own = wp.Watermarks.bounded("2 seconds").per_key()
    rows = wp.over(df.filter("t IS NOT NULL AND NOT heartbeat"), "t", own, key="id").partition_by("k").order_by("t")
    return rows.select("id", "k", before=wp.lag("v"), rows=wp.row_number()).side_output_late_data(LATE).emit_on_window_close()


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    program.__name__: program
    for program in (
        row_process,
        row_sessions,
        row_function,
        row_reduce,
        row_reference,
        slices_tumbling,
        slices_folded,
        slices_sliding,
        slices_cumulate,
        slices_quantiles,
        slices_in_arrow,
        sessions,
        sessions_evicted,
        panes_early,
        panes_evicted,
        counts,
        counts_sliding,
        counts_trigger,
        windows_of_windows,
        windows_filled,
        windows_settled,
        over_of_each_key,
        over_update,
        over_changelog,
        over_close,
        over_session,
        over_reference,
        rolling_changed,
        rolling_pieces,
        rolling_tick,
        join_window,
        join_interval,
        join_as_of,
        join_by_arrival,
        first_rows,
        last_rows,
        match_text,
        match_reference,
    )
}
"""Every program by its name, which is that of its checkpoint."""

OUTPUTS = {
    "row_process": ("main", "late", "counted"),
    "row_sessions": ("main", "counted"),
    "slices_tumbling": ("main", "late"),
    "sessions": ("main", "late"),
    "over_update": ("main", "late"),
    "over_close": ("main", "late"),
    "rolling_changed": ("main", "late"),
    "rolling_pieces": ("main", "late"),
    "windows_filled": ("main", "late"),
    "windows_settled": ("main", "late_changes"),
    "over_of_each_key": ("main", "late"),
    "first_rows": ("main", "late"),
    "match_text": ("main", "gave_up", "late"),
}
"""The outputs of those programs that have more than one."""
