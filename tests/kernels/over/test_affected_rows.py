"""Which rows changes may affect: never fewer than those whose value differs when all is computed anew."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from tests.examples import seeds
from windowpane.kernels.over.affected_rows import Merged, affected_by_frames, affected_by_running
from windowpane.kernels.over.window import OverWindow
from windowpane.windowing.frames import CURRENT_ROW, UNBOUNDED_FOLLOWING, Frame, Units, following, preceding
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec

COLUMNS = pa.schema([("p", pa.int64()), ("o", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])


def spec_of(frame: Frame) -> OverSpec:
    """A call that differs on every two frames, as no two rows have one value."""
    return OverSpec(("p",), (OrderColumn("o", nulls_first=False),), ("k",), (OverCall("collect_list", ("v",), frame),))


def merged_of(window: OverWindow, table: pa.Table, deleted: list[int], inserted: list[int]) -> Merged:
    starts = np.append(True, np.diff(table["p"].to_numpy()) != 0)[: table.num_rows]
    rows = window.rows(table, starts, np.zeros(int(starts.sum()), np.bool_))
    masks = [np.isin(np.arange(table.num_rows), numbers) for numbers in (deleted, inserted)]
    return Merged(rows, *masks)


def one_partition(orders: list[int]) -> pa.Table:
    count = range(len(orders))
    return pa.table([[0] * len(orders), orders, list(count), list(count)], schema=COLUMNS)


@pytest.mark.parametrize(
    ("frame", "deleted", "inserted", "expected"),
    [
        (Frame.rows(preceding(1)), [], [2], [2, 3]),
        (Frame.rows(preceding(1)), [2], [], [3]),
        (Frame.rows(preceding(1), following(1)), [], [2], [1, 2, 3]),
        (Frame.range_(preceding(10)), [], [2], [2, 3]),
        (Frame.range_(CURRENT_ROW, following(10)), [], [2], [1, 2]),
        (Frame.groups(CURRENT_ROW, UNBOUNDED_FOLLOWING), [], [2], [0, 1, 2]),
    ],
    ids=str,
)
def test_a_change_by_hand(frame: Frame, deleted: list[int], inserted: list[int], expected: list[int]) -> None:
    window = OverWindow(spec_of(frame), COLUMNS)
    merged = merged_of(window, one_partition([0, 10, 20, 30, 40]), deleted, inserted)
    found = affected_by_frames(merged, window.calls) & ~merged.deleted
    assert np.flatnonzero(found).tolist() == expected


def test_a_running_call_is_affected_from_the_peers_of_the_first_change_on() -> None:
    table = pa.table([[0, 0, 0, 0, 1], [1, 2, 2, 3, 1], range(5), range(5)], schema=COLUMNS)
    window = OverWindow(spec_of(Frame.rows(preceding(1))), COLUMNS)
    assert affected_by_running(merged_of(window, table, [], [2])).tolist() == [False, True, True, True, False]


def values_of(window: OverWindow, table: pa.Table) -> dict[int, list[int]]:
    merged = merged_of(window, table, [], [])
    [output] = window.values(merged.rows).outputs
    return dict(zip(table["k"].to_pylist(), output.to_pylist(), strict=True))


def without(table: pa.Table, rows: list[int]) -> pa.Table:
    return table.filter(pa.array(~np.isin(np.arange(table.num_rows), rows)))


@pytest.mark.parametrize("seed", seeds(200))
def test_no_row_whose_value_changes_is_left_out(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randint(1, 14)
    places = sorted((draw.randint(0, 1), draw.randint(0, 8)) for _ in range(count))
    table = pa.table([[p for p, _ in places], [o for _, o in places], range(count), range(count)], schema=COLUMNS)
    start, end = sorted([draw.randint(-3, 3), draw.randint(-3, 3)])
    first, last = (preceding(-at) if at < 0 else following(at) if at else CURRENT_ROW for at in (start, end))
    window = OverWindow(spec_of(Frame(draw.choice([Units.ROWS, Units.RANGE, Units.GROUPS]), first, last)), COLUMNS)
    changes = [draw.choice(["", "", "", "deleted", "inserted"]) for _ in range(count)]
    deleted, inserted = ([at for at, change in enumerate(changes) if change == kind] for kind in ("deleted", "inserted"))
    merged = merged_of(window, table, deleted, inserted)
    before = values_of(window, without(table, inserted))
    after = values_of(window, without(table, deleted))
    changed = {key for key, value in after.items() if before.get(key) != value}
    assert changed <= set(np.flatnonzero(affected_by_frames(merged, window.calls)).tolist()), window.spec
