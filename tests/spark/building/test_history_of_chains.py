"""Chains that begin with a history: each operator has for its own what the one before gives of its history.

What comes out is compared with one stream over the rows of both, whose first batch is the history.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp
from tests.spark.helpers import Feed, instant, run, table
from windowpane.errors import InvalidSpecError

pytestmark = pytest.mark.spark

CUT = 100
PAST: list[tuple[Any, ...]] = [
    ("a", 1, 5), ("a", 22, 1), ("b", 12, 7), ("c", 27, 3), ("c", 29, None), ("a", 55, 6), ("b", 71, 2), ("a", 93, 1),
    (None, 94, 2), ("b", 95, 9), ("a", 95, 8), ("c", 99, 4),
]  # fmt: skip
LIVE: list[list[tuple[Any, ...]]] = [
    [("a", 101, 2), ("b", 103, 4), (None, 104, 1), ("c", 136, 1), ("d", 152, 3), ("a", 118, 5), ("b", 119, None)],
    [("a", 190, 1), ("a", 191, 7), ("c", 195, 7), ("e", 600, 1)],
    [("e", 601, 1)],
]
EARLY: list[tuple[Any, ...]] = [("a", 99, 90), ("c", 3, 50)]
"""Rows of the stream before the cut, which are passed over."""


def _stream(df: Any) -> wp.KeyedStream:
    return wp.stream(df, event_time="t", watermark="0 seconds").key_by("k")


def _behind(df: Any, event_time: str) -> wp.KeyedStream:
    return wp.stream(df, event_time=event_time).key_by("k")


def _small(df: Any) -> Any:
    return _stream(df).window(wp.TumblingEventTimeWindows.of("20 seconds")).aggregate(n=wp.count(), total=wp.sum("v"))


def _sums(df: Any) -> Any:
    return _stream(df).window(wp.TumblingEventTimeWindows.of("20 seconds")).aggregate(v=wp.sum("v"))


def windows(df: Any) -> Any:
    small = _small(df)
    rows = small.df.filter("n > 0").withColumn("x", F.col("total"))
    return (
        _behind(rows, "window_end")
        .window(wp.TumblingEventTimeWindows.of("1 minute"))
        .aggregate(n=wp.sum("n"), total=wp.sum("x"), of=wp.count())
    )


def windows_by_key(df: Any) -> Any:
    small = _small(df)
    return small.key_by("k").window(wp.SlidingEventTimeWindows.of("1 minute", "20 seconds")).aggregate(total=wp.sum("total"))


def sessions_of_over(df: Any) -> Any:
    before = wp.over(df, event_time="t", watermark="0 seconds", key=("k", "t")).partition_by("k").order_by("t")
    rows = before.select("k", "t", "v", last=wp.lag("v")).emit_on_window_close()
    sessions = wp.EventTimeSessionWindows.with_gap("15 seconds")
    return _behind(rows.df, "t").window(sessions).aggregate(n=wp.count(), last=wp.sum("last"))


def two_over(df: Any) -> Any:
    over = wp.over(df, event_time="t", watermark="0 seconds", key=("k", "t"))
    return over.select(
        "k", "t", "v", own=wp.lag("v").over(partition_by="k", order_by="t"), every=wp.count().over(order_by="t")
    ).emit_on_window_close()


def over_windows(df: Any) -> Any:
    small = _small(df)
    over = wp.over(small.df, event_time="window_end", key=("k", "window_end")).partition_by("k").order_by("window_end")
    return over.select("*", before=wp.lag("total")).emit_on_window_close()


def settled(df: Any) -> Any:
    changes = wp.over(df, event_time="t", watermark="0 seconds", key=("k", "t")).partition_by("k").order_by("t")
    rows = changes.select("k", "t", "v", change=wp.lag("v")).emit_on_update()
    windows = wp.TumblingEventTimeWindows.of("30 seconds")
    return _behind(rows.df, "t").window(windows).aggregate(n=wp.count(), most=wp.max("change"))


def behind_first_rows(df: Any) -> Any:
    first = _stream(df).deduplicate(within="25 seconds")
    return _behind(first.df, "t").window(wp.TumblingEventTimeWindows.of("1 minute")).aggregate(n=wp.count())


def three(df: Any) -> Any:
    windows = wp.TumblingEventTimeWindows.of("2 minutes")
    return _behind(over_windows(df).df, "window_end").window(windows).aggregate(n=wp.sum("n"), before=wp.sum("before"))


def pattern(df: Any) -> Any:
    keyed = wp.stream(df, event_time="t", watermark="0 seconds").key_by("k")
    return keyed.match("a b", a=wp.col("v") > 3, b=wp.col("v") < 3).within("1 hour").all_rows("k", "t", "v")


def pattern_of_windows(df: Any) -> Any:
    small = _sums(df)
    match = _behind(small.df, "window_end").match("a b", a=wp.col("v") > 3, b=wp.col("v") < 7)
    return match.within("1 hour").all_rows("k", "window_end", "v")


def last_rows(df: Any) -> Any:
    return _stream(df).deduplicate(within="25 seconds", keep="last")


def count_windows(df: Any) -> Any:
    small = _sums(df)
    return _behind(small.df, "window_end").count_window(2).aggregate(v=wp.sum("v"))


def filled(df: Any) -> Any:
    small = _sums(df)
    return small.fill_gaps({"v": 0}, until="2 windows")


def _sides(df: Any) -> tuple[Any, Any]:
    return wp.stream(df, event_time="t", watermark="0 seconds"), wp.stream(df, event_time="t", watermark="0 seconds")


def as_of(df: Any) -> Any:
    return wp.as_of(*_sides(df)).on("k").match(allow_exact=False).select("k", at=wp.left("t"), v=wp.right("v"))


def joined_windows(df: Any) -> Any:
    sides = wp.join(*_sides(df)).on("k").window(wp.TumblingEventTimeWindows.of("20 seconds"))
    return sides.select("k", "window_end", v=wp.left("v"), w=wp.right("v"))


def windows_with_themselves(df: Any) -> Any:
    small = _small(df)
    one, other = wp.stream(small.df, event_time="window_end"), wp.stream(small.df, event_time="window_end")
    sides = wp.join(one, other).on("k")
    return sides.within("-20 seconds", "20 seconds").select("k", at=wp.left("window_end"), n=wp.left("n"), m=wp.right("n"))


TWO_SOURCES = ("as_of", "joined_windows")
CHAINS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each
    for each in (
        *(windows, windows_by_key, sessions_of_over, two_over, over_windows, settled, behind_first_rows, three, pattern),
        *(pattern_of_windows, last_rows, count_windows, filled, as_of, joined_windows, windows_with_themselves),
    )
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_goes_on_from_a_history(spark: Any, tmp_path: Path, name: str) -> None:
    chain = CHAINS[name]
    both = Feed(tmp_path / "both").add([*PAST, ("z", CUT, 0)], *LIVE).stream(spark)
    whole = run(chain(both), checkpoint=tmp_path / "one")
    live, past = Feed(tmp_path / "live").add([*EARLY, ("z", CUT, 0)], *LIVE).stream(spark), table(spark, PAST)
    history = (past, past) if name in TWO_SOURCES else past
    found = run(chain(live), checkpoint=tmp_path / "two", history=history, cut=instant(CUT), history_results="emit")
    assert found.rows() == whole.rows()
    assert sum(found.counted("before_cut")) == len(EARLY) * (2 if name in TWO_SOURCES else 1)


@pytest.mark.slow
def test_windows_of_windows_by_hand(spark: Any, tmp_path: Path) -> None:
    live = Feed(tmp_path / "live").add(*LIVE)
    first = run(windows(live.stream(spark)), checkpoint=tmp_path / "ck", history=table(spark, PAST), cut=instant(CUT))
    # of the minute from 60 on the history has b at 71, 95, a at 93, 95, NULL at 94 and c at 99; the stream a at 101 and 118, ...
    minute = [row for row in first.rows() if row[1] == 60]
    assert minute == [
        ("a", 60, 120, 4, 16, 2), ("b", 60, 120, 4, 15, 3), ("c", 60, 120, 1, 4, 1), (None, 60, 120, 2, 3, 2),
    ]  # fmt: skip
    live.add([("g", 1000, 1), ("a", 7, 1)], [("g", 1001, 1)])
    second = run(windows(live.stream(spark)), checkpoint=tmp_path / "ck")
    assert ("e", 600, 660, 2, 2, 1) in second.rows()
    assert sum(second.counted("before_cut")) == 1


def test_what_spark_keeps_between_operators_is_refused(spark: Any, tmp_path: Path) -> None:
    live, past = Feed(tmp_path / "in").add(LIVE[0]).stream(spark), table(spark, PAST)
    small = _stream(live).window(wp.TumblingEventTimeWindows.of("20 seconds")).aggregate(n=wp.count())
    tumbling = wp.TumblingEventTimeWindows.of("1 minute")

    def of(rows: Any, **given: Any) -> Any:
        return wp.stream(rows, event_time="window_end", **given).key_by("k").window(tumbling).aggregate(n=wp.count())

    refused: list[tuple[Any, str]] = [
        (of(small.df.dropDuplicatesWithinWatermark(["k"])), r"Spark keeps rows itself \(Deduplicate"),
        (of(live.withWatermark("t", "1 second").groupBy("k", F.window("t", "1 minute")).count().select(
            "k", F.window_time("window").alias("window_end"))), "operator of Spark's"),
    ]  # fmt: skip
    for result, message in refused:
        with pytest.raises(InvalidSpecError, match=message):
            result.start(main=print, history=past)
