"""The OVER operator that emits on close: when rows are emitted, what is kept, what recovery finds."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from windowpane import aggregates as agg
from windowpane.errors import InvalidSpecError, MissingOrderError, NeverClosesError
from windowpane.operators.over.on_close import OverOnClose
from windowpane.state.entries import MemoryEntries
from windowpane.state.keyed import KeyedState
from windowpane.windowing.frames import (
    CURRENT_ROW,
    RUNNING_RANGE,
    RUNNING_ROWS,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    WHOLE_PARTITION,
    Frame,
    following,
    preceding,
)
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec, watermark_delay, why_unlimited
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.times import MAX

COLUMNS = pa.schema([("part", pa.string()), ("ord", pa.int64()), ("id", pa.int64()), ("x", pa.int64())])
ASC = OrderColumn("ord", nulls_first=False)


def spec_of(*calls: OverCall) -> OverSpec:
    return OverSpec(("part",), (ASC,), ("id",), calls)


def total(frame: Frame) -> OverCall:
    return OverCall.of(agg.sum("x"), frame)


class Window:
    """The operator on state in memory; rows are ``(part, ord)``, their id and x follow from the order of arrival."""

    def __init__(self, *calls: OverCall) -> None:
        self.spec = spec_of(*calls)
        self.entries = MemoryEntries()
        self._number = 0
        self._open()

    def _open(self) -> None:
        self.state = KeyedState(self.entries)
        outputs = output_schema(self.spec, COLUMNS, [f"c{number}" for number in range(len(self.spec.calls))])
        self.operator = OverOnClose(self.spec, COLUMNS, outputs, self.state)

    def recover(self) -> None:
        self.state.flush()
        self.entries = MemoryEntries(self.entries.copy())
        self._open()

    def rows(self, *rows: tuple[str, int], closed: int | None = None) -> list[tuple[Any, ...]]:
        taken = [self._row(part, order) for part, order in rows]
        emitted = self.operator.process(taken) if closed is None else self.operator.process(taken, closed)
        return [(out["part"], out["ord"], *(out[f"c{number}"] for number in range(len(self.spec.calls)))) for out in emitted]

    def _row(self, part: str, order: int) -> dict[str, Any]:
        self._number += 1
        return {"part": part, "ord": order, "id": self._number, "x": 10 ** (self._number - 1)}


def kept_rows(state: KeyedState) -> int:
    """Return how many rows are in the state, over all partitions."""
    count = 0
    for partition in [key for key, _, name in state.slots() if name == "tail"]:
        state.set_current_key(partition)
        count += len(state.get(None, "tail").rows)
    return count


def test_what_looks_back_only_is_emitted_at_once() -> None:
    window = Window(total(Frame.rows(preceding(1))), OverCall("row_number"), OverCall("lag", ("x",)))

    assert window.rows(("p", 1), ("p", 2), ("q", 2)) == [("p", 1, 1, 1, None), ("p", 2, 11, 2, 1), ("q", 2, 100, 1, None)]


def test_rows_following_wait_for_rows_whatever_the_watermark() -> None:
    window = Window(total(Frame.rows(CURRENT_ROW, following(1))))

    assert window.rows(("p", 1), closed=100) == []
    assert window.rows(closed=1000) == []
    assert window.rows(("p", 1001), closed=1001) == [("p", 1, 11)]


def test_all_calls_wait_for_the_slowest() -> None:
    window = Window(OverCall("lead", ("x",), offset=1), OverCall("lead", ("x",), offset=3))

    assert window.rows(("p", 1), ("p", 2), ("p", 3)) == []
    assert window.rows(("p", 4)) == [("p", 1, 10, 1000)]


def test_a_range_closes_by_a_later_row() -> None:
    """RisingWave's rule: peers may still come, until a greater value does."""
    window = Window(total(RUNNING_RANGE))

    assert window.rows(("p", 5), ("p", 5)) == []
    assert window.rows(("p", 6)) == [("p", 5, 11), ("p", 5, 11)]


def test_a_range_closes_by_the_watermark_so_a_quiet_partition_does_not_hang() -> None:
    window = Window(total(Frame.range_(preceding(2), following(3))))

    assert window.rows(("p", 5), ("p", 7), closed=7) == []
    assert window.rows(closed=8) == [("p", 5, 11)]
    assert window.rows(closed=9) == []
    assert window.rows(closed=10) == [("p", 7, 11)]


def test_a_range_behind_the_row_is_complete_at_once() -> None:
    assert Window(total(Frame.range_(preceding(3), preceding(1)))).rows(("p", 5)) == [("p", 5, None)]


def test_a_session_closes_by_a_later_session_or_the_watermark() -> None:
    window = Window(OverCall.of(agg.count(), Frame.session(3)))

    assert window.rows(("p", 1), ("p", 3), ("p", 6), closed=6) == [("p", 1, 2), ("p", 3, 2)]
    assert window.rows(closed=7) == []
    assert window.rows(closed=8) == [("p", 6, 1)]  # 8 closed: the next row is at 9 or later, and 6 + 3 splits


def test_groups_close_by_their_last_peer() -> None:
    window = Window(total(Frame.groups(CURRENT_ROW, following(1))))

    assert window.rows(("p", 1), ("p", 2), closed=1) == []
    assert window.rows(closed=2) == [("p", 1, 11)]
    assert window.rows(("p", 3), closed=2) == []
    assert window.rows(("p", 4), closed=4) == [("p", 2, 110), ("p", 3, 1100)]


def test_lead_past_nulls_waits_for_a_value() -> None:
    window = Window(OverCall("lead", ("x",), ignore_nulls=True))
    window.operator.process([{"part": "p", "ord": 1, "id": 1, "x": 1}, {"part": "p", "ord": 2, "id": 2, "x": None}])

    assert len(window.operator.waiting()) == 1
    emitted = window.operator.process([{"part": "p", "ord": 3, "id": 3, "x": 7}])
    assert [row["c0"] for row in emitted] == [7, 7]


def test_at_the_end_everything_is_emitted() -> None:
    window = Window(OverCall("lead", ("x",), offset=2), total(Frame.range_(CURRENT_ROW, following(9))))
    window.rows(("p", 1), ("p", 2), ("q", 2), closed=2)

    assert window.rows(closed=MAX) == [("p", 1, None, 11), ("p", 2, None, 10), ("q", 2, None, 100)]


@pytest.mark.parametrize(
    ("call", "kept"),
    [
        (OverCall("row_number"), 0),
        (OverCall("dense_rank"), 0),
        (OverCall("lag", ("x",)), 1),
        (OverCall("lag", ("x",), offset=3), 3),
        (OverCall("lag", ("x",), ignore_nulls=True), 1),
        (OverCall("lead", ("x",), offset=2), 2),
        (total(Frame.rows(preceding(4), preceding(2))), 4),
        (total(Frame.rows(preceding(2), following(2))), 4),
        (total(Frame.range_(preceding(15))), 1),
        (total(Frame.range_(preceding(25))), 2),
        (total(Frame.range_(preceding(5))), 0),
        (total(Frame.groups(preceding(2))), 2),
        (total(Frame.session(5)), 0),
        (total(Frame.session(11)), 10),
        (total(RUNNING_ROWS), 10),
    ],
)
def test_state_is_evicted_to_what_frames_need(call: OverCall, kept: int) -> None:
    """Ten rows at 10, 20, ..., 100, closed up to 105."""
    window = Window(call)

    window.rows(*(("p", 10 * number) for number in range(1, 11)), closed=105)

    assert kept_rows(window.state) == kept


def test_a_complete_partition_without_numbering_leaves_no_trace() -> None:
    window = Window(total(Frame.range_(preceding(5))))

    window.rows(("p", 10), closed=100)
    window.state.flush()

    assert len(window.entries) == 0


def test_numbers_go_on_from_counters_after_recovery() -> None:
    window = Window(OverCall("row_number"), OverCall("rank"), OverCall("dense_rank"))
    window.rows(("p", 1), ("p", 2))
    window.recover()
    window.rows(("p", 2))
    window.recover()

    assert window.rows(("p", 2), ("p", 3)) == [("p", 2, 4, 2, 2), ("p", 3, 5, 5, 3)]


def test_recovery_in_the_middle_of_a_session() -> None:
    window = Window(OverCall.of(agg.count(), Frame.session(3)), OverCall("first_value", ("ord",), Frame.session(3)))
    window.rows(("p", 1), ("p", 3), closed=3)
    window.recover()
    window.rows(("p", 5), closed=5)
    window.recover()

    assert window.rows(closed=7) == [("p", 1, 3, 1), ("p", 3, 3, 1), ("p", 5, 3, 1)]


def test_a_row_without_order_is_refused() -> None:
    with pytest.raises(MissingOrderError, match="ord"):
        Window(OverCall("row_number")).operator.process([{"part": "p", "ord": None, "id": 1, "x": 1}])


@pytest.mark.parametrize(
    "call",
    [
        OverCall("ntile", offset=2),
        OverCall("percent_rank"),
        OverCall("cume_dist"),
        total(WHOLE_PARTITION),
        total(Frame.range_(CURRENT_ROW, UNBOUNDED_FOLLOWING)),
        total(Frame.groups(UNBOUNDED_PRECEDING, UNBOUNDED_FOLLOWING)),
    ],
)
def test_what_never_closes_is_refused(call: OverCall) -> None:
    with pytest.raises(NeverClosesError, match="emit on update"):
        Window(call)


@pytest.mark.parametrize(
    "order", [(), (OrderColumn("ord", True, nulls_first=False),), (ASC, OrderColumn("x", nulls_first=False))]
)
def test_only_time_ascending_closes(order: tuple[OrderColumn, ...]) -> None:
    spec = OverSpec(("part",), order, ("id",), (OverCall("lag", ("x",)),))

    with pytest.raises(InvalidSpecError, match="one column, ascending"):
        OverOnClose(spec, COLUMNS, pa.schema([("c0", pa.int64())]), KeyedState(MemoryEntries()))


@pytest.mark.parametrize(
    ("calls", "delay"),
    [
        ([OverCall("row_number"), OverCall("lag", ("x",))], 0),
        ([total(Frame.rows(preceding(3))), total(Frame.groups(preceding(3)))], 0),
        ([total(Frame.range_(preceding(3), following(7))), OverCall("rank")], 7),
        ([total(Frame.range_(CURRENT_ROW, following(Interval.of("1 hour"))))], 3_600_000_000),
        ([OverCall("lead", ("x",))], None),
        ([total(Frame.session(1)), OverCall("rank")], None),
        ([total(Frame.groups(CURRENT_ROW, following(1)))], None),
    ],
)
def test_how_far_rows_trail_the_watermark(calls: list[OverCall], delay: int | None) -> None:
    assert watermark_delay(spec_of(*calls)) == delay
    assert (delay is None) == any(why_unlimited(call) for call in calls)


def test_months_are_kept_long_enough() -> None:
    """A row of Jan 31 is in the frame of Feb 29 and Mar 2 by a month and two days; it may be evicted once that is certain."""
    columns = COLUMNS.set(1, pa.field("ord", pa.timestamp("us")))
    spec = spec_of(total(Frame.range_(preceding(Interval(months=1, days=2)))))
    state = KeyedState(MemoryEntries())
    operator = OverOnClose(spec, columns, output_schema(spec, columns, ["c0"]), state)

    def day(month: int, number: int, identity: int) -> list[dict[str, Any]]:
        return [{"part": "p", "ord": dt.datetime(2024, month, number), "id": identity, "x": 10**identity}]

    def at(month: int, number: int) -> int:
        return (dt.datetime(2024, month, number) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)

    operator.process(day(1, 31, 0), at(2, 1))
    assert [row["c0"] for row in operator.process(day(3, 2, 1), at(3, 2))] == [11]
    operator.process([], at(3, 20))
    assert operator.process(day(3, 21, 2), at(3, 21))[0]["c0"] == 110
    assert kept_rows(state) == 2


def test_a_frame_that_ends_before_the_calendar_begins_is_complete() -> None:
    """A time of the year 1, which stands for none in many systems, has nothing an hour before it."""
    columns = COLUMNS.set(1, pa.field("ord", pa.timestamp("us")))
    frame = Frame.range_(preceding(Interval.of("2 hours")), preceding(Interval.of("1 hour")))
    spec = spec_of(OverCall.of(agg.count("x"), frame))
    operator = OverOnClose(spec, columns, output_schema(spec, columns, ["c0"]), KeyedState(MemoryEntries()))
    rows = [{"part": "p", "ord": dt.datetime(1, 1, 1, hour), "id": hour, "x": 0} for hour in (0, 2)]

    assert [row["c0"] for row in operator.process(rows, 0)] == [0, 1]
