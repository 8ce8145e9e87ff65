"""The frame finder against brute force: no row outside the affected range sees a change, no frame of one inside reaches out."""

from __future__ import annotations

import datetime as dt
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from verify.conformance.frame_finder import AffectedRange, Positions, find_affected
from verify.fuzz.over_parts.inputs import ORDER_TYPES
from verify.fuzz.over_parts.windows import random_frame
from windowpane.arrays.values import Row
from windowpane.operators.over.row_order import Position, RowOrder
from windowpane.operators.over.sorted_partition import SortedPartition
from windowpane.windowing.frames import CURRENT_ROW, RUNNING_ROWS, UNBOUNDED_FOLLOWING, Frame, following, preceding
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec

KINDS = list(ORDER_TYPES)


def order_of(kind: pa.DataType, descending: bool = False, nulls_first: bool = False) -> RowOrder:
    spec = OverSpec((), (OrderColumn("ts", descending, nulls_first=nulls_first),), ("id",), (OverCall("row_number"),))
    return RowOrder(spec, pa.schema([("ts", kind), ("id", pa.int64())]))


def seen(rows: dict[Position, Row], order: RowOrder, frame: Frame) -> dict[Position, list[Position]]:
    """The rows in each row's frame."""
    positions = sorted(rows)
    partition = SortedPartition([rows[position] for position in positions], order)
    return {positions[at]: [positions[each] for each in partition.frame(at, frame)] for at in range(len(positions))}


@pytest.mark.parametrize("block", range(4))
def test_never_too_narrow(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        check_width(seed)


def check_width(seed: int) -> None:
    rng = Random(seed)
    kind, descending, nulls_first = rng.choice(KINDS), rng.random() < 0.4, rng.random() < 0.5
    order = order_of(kind, descending, nulls_first)
    frame = random_frame(rng, (OrderColumn("ts", descending, nulls_first=nulls_first),), kind, closes=False)
    steps = [None if rng.random() < 0.1 else ORDER_TYPES[kind](rng.randint(0, 12)) for _ in range(20)]
    rows: list[Row] = [{"ts": step, "id": number} for number, step in enumerate(steps)]
    placed = {order.position(row): row for row in rows}
    deleted = set(rng.sample(sorted(placed), rng.randint(0, 3)))
    inserted = set(rng.sample(sorted(placed), rng.randint(0 if deleted else 1, 3)))
    before = {position: row for position, row in placed.items() if position not in inserted}
    after = {position: row for position, row in placed.items() if position not in deleted}
    positions = sorted(after)
    if not positions:
        return

    found = find_affected(Positions(positions), min(deleted | inserted), max(deleted | inserted), [frame], order)

    old, new = seen(before, order, frame), seen(after, order, frame)
    for index, position in enumerate(positions):
        if not found.first_curr_row <= index <= found.last_curr_row:
            assert old[position] == new[position], f"seed {seed}: {frame}"
        else:
            reached = [positions.index(each) for each in new[position]]
            assert all(found.first_frame_start <= each <= found.last_frame_end for each in reached), f"seed {seed}: {frame}"


@pytest.mark.parametrize("block", range(2))
def test_a_part_of_the_partition_gives_the_answer_of_the_whole_or_asks_for_more(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        check_part(seed)


def check_part(seed: int) -> None:
    rng = Random(seed)
    kind = rng.choice(KINDS)
    order = order_of(kind)
    frame = random_frame(rng, (OrderColumn("ts", nulls_first=False),), kind, closes=False)
    rows = [{"ts": ORDER_TYPES[kind](rng.randint(0, 12)), "id": number} for number in range(30)]
    whole = sorted(order.position(row) for row in rows)
    first, last = sorted(rng.sample(range(30), 2))
    low, high = rng.randint(0, first), rng.randint(last + 1, 30)
    part = Positions(whole[low:high], low > 0, high < 30)

    expected = find_affected(Positions(whole), whole[first], whole[last], [frame], order)
    got = find_affected(part, whole[first], whole[last], [frame], order)

    names = ("first_frame_start", "first_curr_row", "last_curr_row", "last_frame_end")
    ends = {name: getattr(got, name) for name in names}
    if all(0 <= end < len(part.rows) for end in ends.values()):
        whole_ends = {name: getattr(expected, name) for name in names}
        assert {name: end + low for name, end in ends.items()} == whole_ends, f"seed {seed}: {frame}"
    else:
        assert part.more_left or part.more_right, f"seed {seed}: {frame}"


def numbers(count: int) -> Positions:
    return Positions([Position((), (number,)) for number in range(count)])


def at(number: float) -> Position:
    return Position((), (number,))


@pytest.mark.parametrize(
    ("frames", "delta", "expected"),
    [
        ([Frame.rows(preceding(2))], (3, 4), AffectedRange(1, 3, 6, 6)),
        ([Frame.rows(CURRENT_ROW, following(2))], (3, 4), AffectedRange(1, 1, 4, 6)),
        ([RUNNING_ROWS], (3, 4), AffectedRange(0, 3, 9, 9)),
        ([Frame.rows(CURRENT_ROW, UNBOUNDED_FOLLOWING)], (3, 4), AffectedRange(0, 0, 4, 9)),
        ([Frame.rows(preceding(5), preceding(2))], (3, 3), AffectedRange(0, 3, 8, 8)),
        ([Frame.rows(preceding(1)), Frame.rows(following(1), following(3))], (5, 5), AffectedRange(1, 2, 6, 9)),
    ],
)
def test_rows(frames: list[Frame], delta: tuple[int, int], expected: AffectedRange) -> None:
    assert find_affected(numbers(10), at(delta[0]), at(delta[1]), frames) == expected


def test_a_deleted_place_between_rows_affects_its_neighbours_only_as_far_as_frames_reach() -> None:
    assert find_affected(numbers(10), at(4.5), at(4.5), [Frame.rows(CURRENT_ROW, CURRENT_ROW)]).is_empty
    assert find_affected(numbers(10), at(4.5), at(4.5), [Frame.rows(preceding(1))]) == AffectedRange(4, 5, 5, 5)


def test_an_empty_partition_has_no_affected_row() -> None:
    assert find_affected(Positions([]), at(1), at(2), [RUNNING_ROWS]).is_empty


def test_calendar_months_are_widened() -> None:
    """Jan 30 and 31 plus a month and a day are Mar 1, 2023; going back from there by the same steps gives Jan 31 alone."""
    order = order_of(pa.timestamp("us"))
    days = [dt.datetime(2023, 1, 30), dt.datetime(2023, 1, 31), dt.datetime(2023, 3, 1)]
    positions = [order.position({"ts": day, "id": number}) for number, day in enumerate(days)]
    frame = Frame.range_(CURRENT_ROW, following(Interval(months=1, days=1)))

    found = find_affected(Positions(positions), positions[2], positions[2], [frame], order)

    assert found.first_curr_row == 0


def in_groups(values: list[Any]) -> tuple[RowOrder, Positions]:
    order = order_of(pa.int64())
    return order, Positions([order.position({"ts": value, "id": number}) for number, value in enumerate(values)])


def test_groups_count_groups() -> None:
    order, positions = in_groups([1, 1, 2, 2, 3, 3, 4])
    changed = positions.rows[4]

    assert find_affected(positions, changed, changed, [Frame.groups(preceding(1))], order) == AffectedRange(2, 4, 6, 6)
    assert find_affected(positions, changed, changed, [Frame.groups(CURRENT_ROW, following(1))], order).first_curr_row == 2


def test_sessions_on_both_sides_are_affected() -> None:
    order, positions = in_groups([1, 2, 9, 10, 20, 21])
    between = order.position({"ts": 5, "id": 99})

    found = find_affected(positions, between, between, [Frame.session(3)], order)

    assert found == AffectedRange(0, 0, 3, 3)
