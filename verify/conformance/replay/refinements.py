"""Flink's refinements where an engine coalesces those of a batch: of each window the last one.

A refinement is a firing for an element that came behind the watermark. Flink gives one for each such element. Where ``refine`` is
``"last"``, a window that a batch refines several times fires once, as it fires last. A session that grows meanwhile is one, and
one that grows beyond the watermark fires when it ends. In which order such windows fire is not Flink's to say.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError
from windowpane.testing.records import OutputRecord
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.windows import TimeWindow

_OPEN = "open"
"""What has become of a session that has grown beyond the watermark."""


@dataclass(frozen=True)
class RefiningBatch:
    """A batch whose refinements were coalesced.

    Args:
        spec: the windowed computation.
        is_keyed: whether windows are kept by key.
        gives_rows: whether a firing gives several rows, so that firings cannot be distinguished.
        watermark: that under which the elements came: what ends by then is a refinement.
        elements: the elements.
        results: what the engine emitted.
    """

    spec: WindowSpec
    is_keyed: bool
    gives_rows: bool
    watermark: int
    elements: Sequence[Json]
    results: Sequence[OutputRecord]

    def last_of(self, expect: Json, field: str) -> Json:
        """Return an expectation with the last refinement of each window in place of all.

        Args:
            expect: the expectation.
            field: the field of it that lists results.

        Raises:
            NotUnderstoodError: Flink's refinements do not show what their last one is.
        """
        records, last = expect[field], dict[Hashable, int]()
        refined = [number for number, record in enumerate(records) if record["ts"] <= self.watermark]
        if not refined:
            return expect
        for number in refined:
            last[self._window_of(records[number])] = number
        last.pop(_OPEN, None)
        superseded = set(refined) - set(last.values())
        if superseded and self.spec.purges:
            raise NotUnderstoodError("engines: refinements that purge come out together, where Flink gives them piece by piece")
        if superseded and self.gives_rows:
            raise NotUnderstoodError("engines: refinements of several rows each do not tell which rows are of the last one")
        left = [record for number, record in enumerate(records) if number not in superseded]
        return {name: value for name, value in expect.items() if name != "timer_groups"} | {field: left, "order": "any"}

    def _window_of(self, record: Json) -> Hashable:
        """Return what the window of a record is by the end of the batch. Windows of a fixed size are known by their end."""
        key, time = record["key"] if self.is_keyed else None, record["ts"]
        if not self.spec.merges:
            return key, time
        for result in self.results:
            window = result.window
            if isinstance(window, TimeWindow) and window.start <= time < window.end and self._is_of(result.key, key):
                return key, window
        return _OPEN if any(self._extends(element, key, time + 1) for element in self.elements) else (key, time)

    def _extends(self, element: Json, key: Any, end: int) -> bool:
        """Whether an element makes a session of ``key`` end later than at ``end``."""
        if not self._is_of(element["key"], key) or element["ts"] is None:
            return False
        (window,) = self.spec.assigner.assign_windows(element, element["ts"], _NO_CONTEXT)
        return isinstance(window, TimeWindow) and window.start <= end < window.end

    def _is_of(self, key: Any, wanted: Any) -> bool:
        return not self.is_keyed or bool(key == wanted)


_NO_CONTEXT: Any = None
"""Event-time sessions need nothing of their context."""
