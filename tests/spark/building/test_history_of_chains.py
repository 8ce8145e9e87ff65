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


def windows(df: Any) -> Any:
    small = _stream(df).window(wp.TumblingEventTimeWindows.of("20 seconds")).aggregate(n=wp.count(), total=wp.sum("v"))
    rows = small.df.filter("n > 0").withColumn("x", F.col("total"))
    return (
        _behind(rows, "window_end")
        .window(wp.TumblingEventTimeWindows.of("1 minute"))
        .aggregate(n=wp.sum("n"), total=wp.sum("x"), of=wp.count())
    )


def windows_by_key(df: Any) -> Any:
    small = _stream(df).window(wp.TumblingEventTimeWindows.of("20 seconds")).aggregate(n=wp.count(), total=wp.sum("v"))
    return small.key_by("k").window(wp.SlidingEventTimeWindows.of("1 minute", "20 seconds")).aggregate(total=wp.sum("total"))


def sessions_of_over(df: Any) -> Any:
    before = wp.over(df, event_time="t", watermark="0 seconds", key=("k", "t")).partition_by("k").order_by("t")
    rows = before.select("k", "t", "v", last=wp.lag("v")).emit_on_window_close()
    sessions = wp.EventTimeSessionWindows.with_gap("15 seconds")
    return _behind(rows.df, "t").window(sessions).aggregate(n=wp.count(), last=wp.sum("last"))


def over_windows(df: Any) -> Any:
    small = _stream(df).window(wp.TumblingEventTimeWindows.of("20 seconds")).aggregate(n=wp.count(), total=wp.sum("v"))
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
    small = _stream(df).window(wp.TumblingEventTimeWindows.of("20 seconds")).aggregate(n=wp.count(), total=wp.sum("v"))
    over = wp.over(small.df, event_time="window_end", key=("k", "window_end")).partition_by("k").order_by("window_end")
    rows = over.select("*", before=wp.lag("total")).emit_on_window_close()
    windows = wp.TumblingEventTimeWindows.of("2 minutes")
    return _behind(rows.df, "window_end").window(windows).aggregate(n=wp.sum("n"), before=wp.sum("before"))


CHAINS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each for each in (windows, windows_by_key, sessions_of_over, over_windows, settled, behind_first_rows, three)
}


@pytest.mark.slow_ids(*(name for name in CHAINS if name != "windows"))
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_goes_on_from_a_history(spark: Any, tmp_path: Path, name: str) -> None:
    chain = CHAINS[name]
    both = Feed(tmp_path / "both").add([*PAST, ("z", CUT, 0)], *LIVE).stream(spark)
    whole = run(chain(both), checkpoint=tmp_path / "one")
    live, past = Feed(tmp_path / "live").add([*EARLY, ("z", CUT, 0)], *LIVE).stream(spark), table(spark, PAST)
    found = run(chain(live), checkpoint=tmp_path / "two", history=past, cut=instant(CUT), history_results="emit")
    assert found.rows() == whole.rows()
    assert sum(found.counted("before_cut")) == len(EARLY)
