"""The reference engine of filling: one key, one seen window, one filled window at a time.

State, by name in the bucket's blob store: ``header``; pages ``s`` with the seen windows of each key, results by start. Who may
mutate: this engine, once a batch. Recovery: read them back; the watermark is in the header.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.engines.batch.driver import Left
from windowpane.engines.filling.batch import FillingBatch
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.engines.rows import python_keys, python_rows
from windowpane.engines.spec import BucketEngine
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.state.blob_store import BlobStore
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.windowing.lateness import Lateness
from windowpane.windowing.times import MAX

Seen = dict[int, dict[str, Value]]
"""The results of the seen windows of a key, by start."""


class _Batch(FillingBatch):
    def __init__(self, engine: BucketEngine[FillingProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        self._pages = SortedPages(store, "s")
        self._state = KeyedState(self._pages)

    def take(self, results: pa.Table) -> None:
        program, new = self.program, dict[Value, tuple[Value, Seen]]()
        keys, rows = python_keys(results, program.keys), python_rows(results.select(program.columns.names))
        for key, start, row in zip(keys, results[WINDOW_START].cast(pa.int64()).to_pylist(), rows, strict=True):
            self._state.set_current_key(key)
            new.setdefault(self._state.current_key_bytes, (key, {}))[1][start] = row
        filled = []
        for key, results_of_key in new.values():
            self._state.set_current_key(key)
            before: Seen = self._state.get(None, "seen") or {}
            seen = before | results_of_key
            for start in results_of_key:
                for window in self._behind(seen, start):
                    if program.previous or not self._was_filled(before, window):
                        filled.append(self._result(seen[start], window, self.watermark))
            self._keep(seen)
        self._emit(filled)

    def on_watermark(self, before: int) -> None:
        filled = []
        for key, _, _ in list(self._state.slots()):
            self._state.set_current_key(key)
            seen = self._state.get(None, "seen")
            for start, row in seen.items():
                windows = (each for each in self._behind(seen, start) if each + self.program.size - 1 > before)
                filled += [self._result(row, window, before) for window in windows]
            self._keep(seen)
        self._emit(filled)

    def _behind(self, seen: Seen, start: int) -> Iterator[int]:
        """Yield the starts of the closed windows that are filled from a seen one."""
        program, last = self.program, self._last_behind(seen, start)
        window = start + program.step
        while window + program.size - 1 <= self.watermark and (window <= last if last is not None else self.watermark < MAX):
            yield window
            window += program.step

    def _last_behind(self, seen: Seen, start: int) -> int | None:
        """Return the start of the last window that is filled from a seen one, ``None`` if there is no last one."""
        limit, step = self.program.limit, self.program.step
        ends = [each - step for each in seen if each > start]
        ends += [] if limit is None else [start + limit * step]
        return min(ends, default=None)

    def _was_filled(self, before: Seen, window: int) -> bool:
        earlier = [start for start in before if start <= window]
        limit = self.program.limit
        return bool(earlier) and (limit is None or window - max(earlier) <= limit * self.program.step)

    def _keep(self, seen: Seen) -> None:
        """Keep the seen windows from which one is filled that is not over."""
        lateness, size = Lateness(self.program.allowed_lateness, is_event_time=True), self.program.size
        last = {start: self._last_behind(seen, start) for start in seen}
        kept = {
            s: row for s, row in seen.items() if (end := last[s]) is None or not lateness.is_over(end + size - 1, self.watermark)
        }
        self._state.put(None, "seen", kept or None)

    def _result(self, row: dict[str, Value], start: int, fired_under: int) -> dict[str, Value]:
        program, end = self.program, start + self.program.size
        held = {name: row.get(name) for name in (*program.keys, *program.previous)}
        bounds = {WINDOW_START: start, WINDOW_END: end, TIME: end - 1, FIRING_WATERMARK: fired_under}
        return {**dict(program.constants), **held, **bounds}

    def _emit(self, rows: list[dict[str, Value]]) -> None:
        schema, bounds = self.program.main_schema, (WINDOW_START, WINDOW_END)
        plain = pa.schema([field.with_type(pa.int64()) if field.name in bounds else field for field in schema])
        self.emit(pa.Table.from_pylist(rows, schema=plain).cast(schema))

    def close(self) -> Left:
        self._state.flush()
        seen = sum(len(self._seen(key)) for key, _, _ in list(self._state.slots()))
        self._pages.flush()
        return Left(seen, self._pages.byte_size, is_idle=False)

    def _seen(self, key: object) -> Seen:
        self._state.set_current_key(key)
        return self._state.get(None, "seen") or {}


class FillingReferenceEngine(BucketEngine[FillingProgram]):
    name = "filling reference"
    reason = "the reference fills one window after the other"
    state = "sorted pages: windows with rows that others are still filled from, by key"
    holds: ClassVar = {"s": "windows with rows, by key"}
    batch = _Batch
