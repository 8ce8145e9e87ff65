"""What keyed state holds of windows, listed for people, as ``engines.common.held_panes`` says; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import pyarrow as pa

from windowpane.arrays.columns import side_by_side
from windowpane.arrays.values import Value
from windowpane.engines.common.held_panes import (
    ELEMENTS,
    KNOWN,
    NEXT,
    OF_PANES,
    PARTIALS,
    ROWS,
    SIZE,
    WORDS,
    Wanted,
    trigger_words,
)
from windowpane.engines.program import WINDOW_END, WINDOW_START, Program
from windowpane.engines.rows import key_values, output_table, python_keys
from windowpane.errors import UserFunctionError
from windowpane.hidden_columns import END, START
from windowpane.operators.window.contents import CONTENTS, FoldedContents
from windowpane.operators.window.operator import WindowOperator
from windowpane.operators.window.timer_service import TimerService
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.windowing.windows import TimeWindow, Window

_KEYS_A_TABLE = 1000


class HeldWindows:
    """Lists the windows of an operator by key."""

    def __init__(
        self, program: Program, state: KeyedState, operator: WindowOperator, timers: TimerService, wanted: Wanted
    ) -> None:
        self._program, self._state, self._operator, self._timers = program, state, operator, timers
        self._wanted = wanted
        self._due: dict[tuple[bytes, Window | None], int] = {}
        for queue in (timers.event_time, timers.processing_time_queue):
            for timer in queue:
                at = timer.key_bytes, timer.window
                self._due[at] = min(timer.time, self._due.get(at, timer.time))

    def tables(self) -> Iterator[pa.Table]:
        asked = self._wanted.key
        only = b"" if asked is None else encode_key(python_keys(asked, asked.column_names)[0])
        rows: list[dict[str, Value]] = []
        for (key, key_bytes), slots in groupby(self._state.sizes(only), key=lambda slot: (slot[0], slot[1])):
            rows += self._of_key(key, key_bytes, [slot[2:] for slot in slots])
            if len(rows) >= _KEYS_A_TABLE:
                yield self._table(rows)
                rows = []
        if rows:
            yield self._table(rows)

    def _of_key(self, key: Value, key_bytes: bytes, slots: list[tuple[Window | None, str, int]]) -> Iterator[dict[str, Value]]:
        sizes: dict[Window, int] = {}
        holds, known = set[Window](), dict[Window, dict[str, Value]]()
        live = self._operator.live_windows(key, key_bytes)
        for window, name, size in slots:
            if window is None:
                continue
            sizes[window] = sizes.get(window, 0) + size
            if name == CONTENTS:
                holds.add(window)
            elif not name.startswith("operator/"):
                self._state.set_current_key(key, key_bytes)
                value = self._state.get(window, name)
                known.setdefault(window, {})[name] = value if isinstance(value, int | float | str) else None
        pairs = {window: window for window in holds} if live is None else dict(live)
        for window, state_window in pairs.items():
            bounds = (window.start, window.end) if isinstance(window, TimeWindow) else (None, None)
            if state_window in holds and (bounds[0] is None or self._wanted.takes_window(*bounds)):
                yield self._pane(key, key_bytes, window, state_window) | {
                    START: bounds[0],
                    END: bounds[1],
                    SIZE: sizes[state_window],
                    KNOWN: trigger_words(self._program.spec.firing_trigger, known.get(window, {})),
                }

    def _pane(self, key: Value, key_bytes: bytes, window: Window, state_window: Window) -> dict[str, Value]:
        self._state.set_current_key(key, key_bytes)
        pane: dict[str, Value] = {"key": key, "window": window, NEXT: self._due.get((key_bytes, window))}
        if isinstance(contents := self._operator.contents, FoldedContents):
            pane |= {PARTIALS: 1, WORDS: f"accumulator {contents.held(state_window)!r}"[:200]}
        else:
            entries = self._state.get_list(state_window, CONTENTS)
            count = sum(len(getattr(entry, "values", (entry,))) for entry in entries)
            pane |= {ELEMENTS: count, WORDS: f"{count} elements"}
            if self._wanted.rows:
                runs = (entry.values if hasattr(entry, "values") else (entry.value,) for entry in entries)
                pane[ROWS] = [value for run in runs for value in run]
        if self._wanted.results:
            try:
                pane["rows"] = self._operator.look(key, key_bytes, window)
            except UserFunctionError as error:
                pane |= {"rows": [], WORDS: f"{pane[WORDS]}; a firing now would fail: {error}"}
        return pane

    def _table(self, panes: list[dict[str, Value]]) -> pa.Table:
        program, nothing = self._program, dict.fromkeys(self._program.main.names)
        fired = [(pane, nothing if row is None else row) for pane in panes for row in pane.get("rows") or [None]]
        keys = [key_values(pane["key"], len(program.keys)) for pane, _ in fired]
        columns = [pa.array([key[at] for key in keys], field.type) for at, field in enumerate(program.keys)]
        columns += [pa.array([pane.get(each.name) for pane, _ in fired], each.type) for each in OF_PANES]
        table = pa.table(columns, names=[*program.keys.names, *OF_PANES.names])
        if self._wanted.rows:
            kind = pa.list_(pa.struct(list(program.value_types)))
            table = table.append_column(ROWS, pa.array([pane.get(ROWS) for pane, _ in fired], kind))
        if self._wanted.results:
            given = {*program.keys.names, WINDOW_START, WINDOW_END}
            results = output_table("main", program.main, [(row, pane["key"], pane["window"]) for pane, row in fired], given)
            table = side_by_side(table, results)
            table = table.append_column(WORDS, pa.array([pane[WORDS] for pane, _ in fired], pa.string()))
        return table
