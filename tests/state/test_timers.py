"""The timer queue equals a sorted set of timers, over memory and over pages that are reopened."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.state.codec import encode_key
from windowpane.state.entries import MemoryEntries
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import TimerQueue
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import GLOBAL_WINDOW, TimeWindow

times = st.one_of(st.integers(-20, 20), st.sampled_from([MIN, MAX]))
timer = st.tuples(times, st.sampled_from(["a", "b"]), st.sampled_from([TimeWindow(0, 5), TimeWindow(-5, 5), GLOBAL_WINDOW]))
steps = st.one_of(
    st.tuples(st.just("add"), timer),
    st.tuples(st.just("remove"), timer),
    st.tuples(st.just("poll"), timer),
    st.tuples(st.just("reopen"), timer),
)


@settings(deadline=None)
@given(st.lists(steps, max_size=60), st.booleans())
def test_timers_fire_once_in_order_of_time_and_can_be_taken_back(program, paged):
    store = MemoryBlobStore()
    entries = SortedPages(store, "t", page_rows=3) if paged else MemoryEntries()
    queue = TimerQueue(entries)
    pending: set = set()
    for action, (time, key, window) in program:
        if action == "add":
            queue.add(time, encode_key(key), window)
            pending.add((time, key, window))
        elif action == "remove":
            queue.remove(time, encode_key(key), window)
            pending.discard((time, key, window))
        elif action == "poll":
            fired = queue.poll(time)
            due = [timer for timer in pending if timer[0] <= time]
            if fired is None:
                assert not due
            else:
                assert fired.time == min(timer[0] for timer in due)
                pending.remove((fired.time, fired.key, fired.window))
        elif isinstance(entries, SortedPages):
            entries.flush()
            entries = SortedPages(store, "t", page_rows=3)
            queue = TimerQueue(entries)
        assert queue.next_time() == min((timer[0] for timer in pending), default=None)
    assert sorted((t.time, t.key, repr(t.window)) for t in queue) == sorted((t, k, repr(w)) for t, k, w in pending)


def test_a_timer_registered_while_others_fire_comes_in_its_turn():
    queue = TimerQueue(MemoryEntries())
    for time in (1, 5):
        queue.add(time, encode_key("k"), None)
    fired = []
    while (timer := queue.poll(10)) is not None:
        fired.append(timer.time)
        if timer.time == 1:
            queue.add(3, encode_key("k"), None)
            queue.add(11, encode_key("k"), None)
    assert fired == [1, 3, 5]
    assert queue.next_time() == 11
