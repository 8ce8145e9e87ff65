"""The sort buffer: rows at or below the watermark leave in order (RisingWave's ``sort`` vectors have more)."""

from __future__ import annotations

import pytest

from windowpane.arrays.values import Row
from windowpane.errors import InconsistentChangeError
from windowpane.operators.over.on_close import SortBuffer
from windowpane.state.entries import MemoryEntries
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.times import MAX, MIN


def raise_it(error: InconsistentChangeError) -> None:
    raise error


def buffer(entries: MemoryEntries) -> SortBuffer:
    return SortBuffer(entries, lambda row: (row["id"],), lambda row: row["id"], raise_it)


def released(waiting: SortBuffer, watermark: int) -> list[tuple[int, int]]:
    return [(time, row["id"]) for time, row in waiting.release(watermark)]


def row(identity: int) -> Row:
    return {"id": identity}


def test_rows_leave_by_time_and_then_by_order() -> None:
    waiting = buffer(MemoryEntries())
    for time, identity in [(5, 3), (-7, 9), (5, 1), (6, 2)]:
        waiting.change(INSERT, time, row(identity))

    assert released(waiting, 5) == [(-7, 9), (5, 1), (5, 3)]
    assert released(waiting, 5) == []
    assert released(waiting, MAX) == [(6, 2)]


def test_the_ends_of_time() -> None:
    waiting = buffer(MemoryEntries())
    waiting.change(INSERT, MAX, row(1))
    waiting.change(INSERT, MIN, row(2))

    assert released(waiting, MAX - 1) == [(MIN, 2)]
    assert released(waiting, MAX) == [(MAX, 1)]


def test_rows_that_wait_can_be_changed() -> None:
    waiting = buffer(MemoryEntries())
    waiting.change(INSERT, 1, row(1))
    waiting.change(INSERT, 2, row(2))
    waiting.change(DELETE, 1, row(1))
    waiting.change(UPDATE_PREIMAGE, 2, row(2))
    waiting.change(UPDATE_POSTIMAGE, 4, row(2))

    assert released(waiting, 3) == []
    assert released(waiting, 4) == [(4, 2)]


def test_the_entries_are_all_there_is() -> None:
    entries = MemoryEntries()
    buffer(entries).change(INSERT, 1, row(1))

    assert released(buffer(MemoryEntries(entries.copy())), 1) == [(1, 1)]


@pytest.mark.parametrize(("word", "time"), [(INSERT, 1), (DELETE, 2), (UPDATE_PREIMAGE, 2)])
def test_unsound_changes_are_reported(word: str, time: int) -> None:
    waiting = buffer(MemoryEntries())
    waiting.change(INSERT, 1, row(1))

    with pytest.raises(InconsistentChangeError, match="wait"):
        waiting.change(word, time, row(1))
