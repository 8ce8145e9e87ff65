"""What a harness records of an operator, in the order in which it was emitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.arrays.values import Value
from windowpane.errors import UndeclaredSideOutputError
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.panes import Pane
from windowpane.windowing.windows import Window


@dataclass(frozen=True)
class OutputRecord:
    """A result of a window; ``timestamp`` is the window's max timestamp in microseconds.

    ``pane`` is its firing, where the program has panes; ``change`` is what it changes, where panes take rows back.
    """

    key: Value
    window: Window
    value: Value
    timestamp: int
    pane: Pane | None = None
    change: str | None = None


@dataclass(frozen=True)
class SideRecord:
    """What a process function wrote to the side output ``tag``."""

    tag: OutputTag
    key: Value
    window: Window
    value: Value
    timestamp: int


@dataclass(frozen=True)
class LateRecord:
    """An element that missed windows.

    ``dropped`` says that no window accepted it (Flink's late output has exactly these); otherwise it missed only some.
    """

    key: Value
    value: Value
    timestamp: int
    windows_missed: tuple[Window, ...]
    dropped: bool


@dataclass(frozen=True)
class FinishedRecord:
    """An element for windows whose trigger is finished; it was dropped there."""

    key: Value
    value: Value
    timestamp: int
    windows: tuple[Window, ...]


@dataclass(frozen=True)
class WatermarkRecord:
    """A watermark passed on, after the results it caused."""

    watermark: int


@dataclass(frozen=True)
class ElementRecord:
    """An element that was given to the operator; ``MIN`` for one without a timestamp."""

    key: Value
    value: Value
    timestamp: int


@dataclass(frozen=True)
class ClockRecord:
    """The processing time that was set."""

    time: int


Given = ElementRecord | WatermarkRecord | ClockRecord
Emitted = OutputRecord | SideRecord | LateRecord | FinishedRecord | WatermarkRecord


class RecordingCollector:
    """Keeps what an operator emits in one log. Side outputs outside ``declared`` are refused; ``None`` accepts all.

    ``log`` is what was not taken yet; ``history`` everything, each part behind the element or clock that caused it.
    """

    def __init__(self, declared: Sequence[str] | None = None) -> None:
        self.log: list[Emitted] = []
        self.history: list[Given | Emitted] = []
        self._declared = declared

    def record(self, emitted: Emitted) -> None:
        """Record what was emitted."""
        self.log.append(emitted)
        self.history.append(emitted)

    def emit(self, key: Value, window: Window, value: Value, pane: Pane | None = None, change: str | None = None) -> None:
        """Record a result."""
        self.record(OutputRecord(key, window, value, window.max_timestamp, pane, change))

    def side_output(self, tag: OutputTag, key: Value, window: Window, value: Value) -> None:
        """Record a side output."""
        require_declared(tag.name, self._declared)
        self.record(SideRecord(tag, key, window, value, window.max_timestamp))

    def late(self, key: Value, value: Value, timestamp: int, missed: Sequence[Window], dropped: bool) -> None:
        """Record an element that missed windows."""
        self.record(LateRecord(key, value, timestamp, tuple(missed), dropped))

    def finished(self, key: Value, value: Value, timestamp: int, windows: Sequence[Window]) -> None:
        """Record an element for windows whose trigger is finished."""
        self.record(FinishedRecord(key, value, timestamp, tuple(windows)))


def require_declared(name: str, declared: Sequence[str] | None) -> None:
    """Refuse a side output that is not among the declared ones."""
    if declared is not None and name not in declared:
        raise UndeclaredSideOutputError(name, list(declared))
