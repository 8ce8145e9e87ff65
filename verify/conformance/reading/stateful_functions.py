"""Functions of the vectors that use more of their context than the window: state, side outputs, clocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from verify.conformance.reading.fields import write_window
from windowpane.windowing.functions import ProcessContext, ProcessWindowFunction
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.triggers.base import ValueState

EVEN, SUM, GONE = (OutputTag(name) for name in ("even", "sum", "gone"))


def _values(elements: Sequence[Any]) -> list[int]:
    """Return the values; an evictor may have left no result of an incremental function."""
    return [element["value"] for element in elements if element is not None]


def _row(key: Any, context: ProcessContext, values: list[int]) -> dict[str, Any]:
    return {"key": key, "value": sum(values), "count": len(values), "window": write_window(context.window)}


def _add(state: ValueState, amount: int = 1) -> int:
    total = int(state.get() or 0) + amount
    state.update(total)
    return total


@dataclass(frozen=True)
class Times(ProcessWindowFunction):
    """Shows watermark and clock."""

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        """Emit one row."""
        clocks = {"watermark": context.current_watermark, "clock": context.current_processing_time}
        return [_row(key, context, _values(elements)) | clocks]


@dataclass(frozen=True)
class States(ProcessWindowFunction):
    """Counts firings and adds values up in state of the window, and counts firings and clears in that of the key.

    Args:
        window_state: whether it keeps the former.
        global_state: whether it keeps the latter.
        reset_at: forgets the firings of the key when there were so many.
        reset_in_clear: forgets them when a window is cleared.
    """

    window_state: bool = False
    global_state: bool = False
    reset_at: int | None = None
    reset_in_clear: bool = False

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        """Emit one row."""
        values = _values(elements)
        row = _row(key, context, values)
        if self.window_state:
            row["firing"] = _add(context.window_state("fired"))
            row["total"] = _add(context.window_state("total"), sum(values))
        if self.global_state:
            fired = context.global_state("fired")
            row["global"] = _add(fired)
            row["cleared"] = context.global_state("cleared").get()
            if self.reset_at is not None and row["global"] >= self.reset_at:
                fired.clear()
        return [row]

    def clear(self, context: ProcessContext) -> None:
        """Count the clear, and drop what is the window's."""
        if self.global_state:
            _add(context.global_state("cleared"))
            if self.reset_in_clear:
                context.global_state("fired").clear()
        if self.window_state:
            for name in ("fired", "total"):
                context.window_state(name).clear()


@dataclass(frozen=True)
class Sides(ProcessWindowFunction):
    """Emits odd values, and to side outputs even ones and the sum; ``in_clear`` also how often the key had fired by then."""

    in_clear: bool
    global_state: bool

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        """Emit a row for each odd value."""
        values = _values(elements)
        for value in values:
            if value % 2 == 0:
                context.output(EVEN, value)
        context.output(SUM, sum(values))
        if self.global_state:
            _add(context.global_state("fired"))
        return [{"key": key, "value": value, "window": write_window(context.window)} for value in values if value % 2]

    def clear(self, context: ProcessContext) -> None:
        """Say how often the key had fired."""
        if self.global_state:
            _add(context.global_state("cleared"))
        if self.in_clear:
            context.output(GONE, (context.global_state("fired").get() or 0) if self.global_state else 0)
