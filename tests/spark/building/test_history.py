"""Programs of every kind that begin with a history: after the cut they give what one stream over both gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.spark.helpers import Feed, instant, run, table
from windowpane.errors import HistoryAfterStartError, InvalidSpecError, MissingHistoryError

pytestmark = pytest.mark.spark

CUT = 30
PAST: list[tuple[Any, ...]] = [("a", 1, 5), ("a", 22, 1), ("b", 12, 7), ("c", 27, 3), ("c", 29, None), ("d", 29, 4)]
LIVE: list[list[tuple[Any, ...]]] = [[("a", 31, 2), ("a", 29, 90), ("b", 33, 4)], [("c", 36, 1), ("d", 52, 3)], [("e", 90, 1)]]
"""Seconds; one row of the stream is before the cut."""


def windows(stream: wp.KeyedStream) -> Any:
    return stream.window(wp.TumblingEventTimeWindows.of("20 seconds")).aggregate(n=wp.count(), total=wp.sum("v"))


def sessions(stream: wp.KeyedStream) -> Any:
    return stream.window(wp.EventTimeSessionWindows.with_gap("8 seconds")).aggregate(n=wp.count(), total=wp.sum("v"))


def _keyed(df: Any) -> wp.KeyedStream:
    return wp.stream(df, event_time="t", watermark="0 seconds").key_by("k")


EXPECTED: dict[Callable[[Any], Any], list[tuple[Any, ...]]] = {
    windows: [("a", 20, 40, 2, 3), ("b", 20, 40, 1, 4), ("c", 20, 40, 3, 4), ("d", 20, 40, 1, 4), ("d", 40, 60, 1, 3)],
    sessions: [("a", 31, 39, 1, 2), ("b", 33, 41, 1, 4), ("c", 27, 44, 3, 4), ("d", 29, 37, 1, 4), ("d", 52, 60, 1, 3)],
}
"""By hand: windows that end behind the cut; those of ``e`` stay open."""
BEFORE: dict[Callable[[Any], Any], list[tuple[Any, ...]]] = {
    windows: [("a", 0, 20, 1, 5), ("b", 0, 20, 1, 7)],
    sessions: [("a", 1, 9, 1, 5), ("a", 22, 30, 1, 1), ("b", 12, 20, 1, 7)],
}


@pytest.mark.slow_ids("sessions-skip", "windows-emit")
@pytest.mark.parametrize("results", ["skip", "emit"])
@pytest.mark.parametrize("program", [windows, sessions], ids=["windows", "sessions"])
def test_windows_go_on_from_a_history(spark: Any, tmp_path: Path, program: Callable[[Any], Any], results: Any) -> None:
    live = Feed(tmp_path / "in").add(*LIVE).stream(spark)
    options = {"history": table(spark, PAST), "cut": instant(CUT), "history_results": results}
    found = run(program(_keyed(live)), checkpoint=tmp_path / "checkpoint", **options)
    assert found.rows() == sorted(EXPECTED[program] + (BEFORE[program] if results == "emit" else []), key=repr)
    assert sum(found.counted("before_cut")) == 1


def test_a_history_is_for_the_first_start(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in").add(LIVE[0])
    result = windows(_keyed(feed.stream(spark)))
    first = run(result, checkpoint=tmp_path / "checkpoint", history=table(spark, PAST), cut=instant(CUT))
    feed.add([("a", 28, 70), *LIVE[1]], LIVE[2])
    second = run(windows(_keyed(feed.stream(spark))), checkpoint=tmp_path / "checkpoint")
    assert sorted([*first.rows(), *second.rows()], key=repr) == EXPECTED[windows]
    assert sum(second.counted("before_cut")) == 1
    with pytest.raises(HistoryAfterStartError, match="has begun already"):
        result.start(main=print, checkpoint=str(tmp_path / "checkpoint"), history=table(spark, PAST))
    (tmp_path / "other" / "windowpane").mkdir(parents=True)
    (tmp_path / "other" / "windowpane" / "history").write_text("skip")
    with pytest.raises(MissingHistoryError, match="has not committed a batch yet"):
        result.start(main=print, checkpoint=str(tmp_path / "other"))


def test_what_does_not_begin_with_a_history_is_refused(spark: Any, tmp_path: Path) -> None:
    live, past = Feed(tmp_path / "in").add(LIVE[0]).stream(spark), table(spark, PAST)
    by_clock = _keyed(live).window(wp.TumblingProcessingTimeWindows.of("1 hour")).aggregate(n=wp.count())
    changes = wp.over(live, event_time="t", watermark="0 seconds", key="v").partition_by("k").order_by("t")
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (by_clock, {}, "goes by the clock"),
        (windows(_keyed(live)), {"history_results": "all"}, "'emit' or 'skip'"),
        (windows(_keyed(past)), {}, "static"),
        (changes.select("*", n=wp.row_number()).emit_on_update(), {}, "Say 'emit'"),
    ]
    for result, options, message in refused:
        with pytest.raises(InvalidSpecError, match=message):
            result.start(main=print, history=past, **options)


def test_a_join_goes_on_from_the_histories_of_both_sides(spark: Any, tmp_path: Path) -> None:
    left, right = "k string, t timestamp, v long", "k string, t timestamp, w long"
    lefts = Feed(tmp_path / "left", left).add([("a", 31, 4), ("a", 29, 90)], [("z", 200, 0)], [("z", 300, 0)])
    rights = Feed(tmp_path / "right", right).add([("b", 30, 20), ("b", 24, 99)], [("a", 33, 40)], [("z", 300, 0)])
    past = table(spark, [("a", 1, 1), ("b", 20, 2), ("c", 27, 3)], left), table(spark, [("a", 3, 10)], right)

    def joined() -> Any:
        one, other = (wp.stream(each.stream(spark), event_time="t", watermark="0 seconds") for each in (lefts, rights))
        return wp.join(one, other).on("k").within("-10 seconds", "10 seconds").how("left")

    found = run(joined(), checkpoint=tmp_path / "checkpoint", history=past, cut=instant(CUT))
    # b is in the history, and meets a row of the stream; a has met its own before the cut; of before it are 90 and 99
    expected = [("a", 31, 4, 33, 40), ("b", 20, 2, 30, 20), ("c", 27, 3, None, None)]
    assert [row for row in found.rows() if row[0] != "z"] == expected
    assert sum(found.counted("before_cut")) == 2
    with pytest.raises(InvalidSpecError, match=r"for each source, 2 here"):
        joined().start(main=print, history=past[0])
