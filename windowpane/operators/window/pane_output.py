"""What a window has emitted, pane by pane: their numbers, and where panes take rows back, the rows of the last one.

State, by window (the window itself, not its state window): how many panes there were, and with retractions the last rows, with
those of windows that were merged away. Only this object mutates it, under the current key. Source of the rules: Apache Beam.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from windowpane.arrays.values import Value
from windowpane.state.keyed import KeyedState
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.panes import Firing, Pane, PaneTiming
from windowpane.windowing.windows import Window

_NUMBERS = "pane/numbers"
_ROWS = "pane/rows"
_MERGED_AWAY = "pane/merged-away"


class PaneRow(NamedTuple):
    """A row that a pane emits: a result, or one that it takes back."""

    window: Window  # the window it belongs to, of a deleted row one that was merged away
    value: Value  # what the function returned
    pane: Pane  # the pane that it is from
    change: str | None  # the word of the changelog, ``None`` where panes take nothing back


class PaneOutput:
    """Numbers the panes of the windows of the current key, and turns their rows into changes."""

    def __init__(self, state: KeyedState, retracts: bool) -> None:
        self._state = state
        self._retracts = retracts

    def rows(self, window: Window, values: Sequence[Value], firing: Firing, is_end_reached: bool) -> Iterator[PaneRow]:
        pane = self._next(window, firing, is_end_reached)
        if not self._retracts:
            yield from (PaneRow(window, value, pane, None) for value in values)
            return
        before: list[tuple[Value, Pane]] = self._state.get(window, _ROWS) or []
        for merged, rows in self._state.get(window, _MERGED_AWAY) or []:
            if merged == window:
                before = rows
            else:
                yield from (PaneRow(merged, value, was, DELETE) for value, was in rows)
        self._state.remove(window, _MERGED_AWAY)
        replaced = UPDATE_PREIMAGE if values else DELETE
        yield from (PaneRow(window, value, was, replaced) for value, was in before)
        added = UPDATE_POSTIMAGE if before else INSERT
        yield from (PaneRow(window, value, pane, added) for value in values)
        self._state.put(window, _ROWS, [(value, pane) for value in values])

    def merge(self, target: Window, sources: Sequence[Window]) -> None:
        """Note that windows became one: its panes begin anew, unless it is one of them, and their rows are to be taken back."""
        merged_away: list[tuple[Window, list[tuple[Value, Pane]]]] = []
        for source in sources:
            merged_away += self._state.get(source, _MERGED_AWAY) or []
            rows = self._state.get(source, _ROWS)
            if rows:
                merged_away.append((source, rows))
            kept = self._state.get(source, _NUMBERS) if source == target else None
            self.clear(source)
            if kept is not None:
                self._state.put(target, _NUMBERS, kept)
        if merged_away:
            self._state.put(target, _MERGED_AWAY, merged_away)

    def clear(self, window: Window) -> None:
        for name in (_NUMBERS, _ROWS, _MERGED_AWAY):
            self._state.remove(window, name)

    def _next(self, window: Window, firing: Firing, is_end_reached: bool) -> Pane:
        index, others = self._state.get(window, _NUMBERS) or (0, 0)
        if not is_end_reached:
            timing = PaneTiming.EARLY
        else:
            timing = PaneTiming.ON_TIME if firing.is_on_time and not others else PaneTiming.LATE
        is_early = timing is PaneTiming.EARLY
        self._state.put(window, _NUMBERS, (index + 1, others + (not is_early)))
        return Pane(index, -1 if is_early else others, timing, index == 0, firing.is_last)
