"""Keyed state equals a dict of values and lists, whatever is flushed or reopened in between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.state.entries import MemoryEntries
from windowpane.state.keyed import MAX_CHUNKS, KeyedState
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.sorted_pages import SortedPages
from windowpane.windowing.windows import GLOBAL_WINDOW, TimeWindow, Window

KEYS = ["a", ("a", 1), None]
WINDOWS = [None, GLOBAL_WINDOW, TimeWindow(-5, 5), TimeWindow(0, 10)]
NAMES = ["n", "n2"]

place = st.tuples(st.sampled_from(KEYS), st.sampled_from(WINDOWS), st.sampled_from(NAMES))
steps = st.one_of(
    st.tuples(st.just("put"), place, st.one_of(st.none(), st.integers(), st.text(max_size=3))),
    st.tuples(st.just("append"), place, st.integers()),
    st.tuples(st.just("put_list"), place, st.lists(st.integers(), max_size=3)),
    st.tuples(st.just("read_list"), place, st.none()),
    st.tuples(st.just("flush"), place, st.none()),
    st.tuples(st.just("reopen"), place, st.none()),
)


class Paged:
    """Keyed state over tiny pages, to be flushed and reopened."""

    def __init__(self) -> None:
        self.store = MemoryBlobStore()
        self.open()

    def open(self) -> None:
        self.pages = SortedPages(self.store, "s", page_rows=3)
        self.state = KeyedState(self.pages)

    def flush(self) -> None:
        self.state.flush()
        self.pages.flush()


@settings(deadline=None)
@given(st.lists(steps, max_size=60))
def test_values_and_lists_are_those_of_a_dict(program):
    paged = Paged()
    values: dict[Any, Any] = {}
    lists: dict[Any, list[int]] = {}
    for action, (key, window, name), argument in program:
        paged.state.set_current_key(key)
        if action == "put":
            paged.state.put(window, name, argument)
            values[key, window, name] = argument
        elif action == "append":
            paged.state.append(window, name, argument)
            lists.setdefault((key, window, name), []).append(argument)
        elif action == "put_list":
            paged.state.put_list(window, name, argument)
            lists[key, window, name] = list(argument)
        elif action == "read_list":
            assert paged.state.get_list(window, name) == lists.get((key, window, name), [])
        else:
            paged.flush()
            if action == "reopen":
                paged.open()
                paged.state.set_current_key(key)
        assert paged.state.get(window, name) == values.get((key, window, name))
        assert paged.state.has_list(window, name) == bool(lists.get((key, window, name)))
    filled = {slot for slot, value in values.items() if value is not None} | {slot for slot, value in lists.items() if value}
    assert set(paged.state.slots()) == filled
    assert paged.state.count() == len(filled)


def test_appending_reads_no_element_and_long_lists_become_one_chunk_again():
    entries = MemoryEntries()
    window = TimeWindow(0, 10)
    for number in range(MAX_CHUNKS.usual):
        state = KeyedState(entries)
        state.set_current_key("k")
        state.append(window, "elements", number)
        state.flush()
    assert len(entries) == MAX_CHUNKS.usual
    state = KeyedState(entries)
    state.set_current_key("k")
    assert state.get_list(window, "elements") == list(range(MAX_CHUNKS.usual))
    state.append(window, "elements", MAX_CHUNKS.usual)
    state.flush()
    assert len(entries) == 1
    state.set_current_key("k")
    assert state.get_list(window, "elements") == list(range(MAX_CHUNKS.usual + 1))


class Calendar(Window):
    """A window of a user's own."""

    def __init__(self, month: int) -> None:
        self.month = month

    @property
    def max_timestamp(self) -> int:
        return self.month

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calendar) and other.month == self.month

    def __hash__(self) -> int:
        return hash(self.month)


@pytest.mark.parametrize("window", [*WINDOWS, Calendar(7)])
def test_state_of_every_kind_of_window_comes_back_under_its_window(window):
    entries = MemoryEntries()
    state = KeyedState(entries)
    state.set_current_key(("x", 2))
    state.put(window, "n", 5)
    state.append(window, "l", 6)
    assert sorted(state.slots(), key=lambda slot: slot[2]) == [(("x", 2), window, "l"), (("x", 2), window, "n")]
