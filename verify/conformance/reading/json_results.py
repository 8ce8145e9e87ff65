"""A vector's function as one that an engine with declared columns runs: its rows leave as JSON, whatever their fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from windowpane.windowing.functions import ProcessContext, ProcessWindowFunction
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.windows import TimeWindow

CLEARS, SIDES = (OutputTag(name, "json string") for name in ("clears", "sides"))
_INPUT_ONLY = frozenset({"ts", "moved", "window_start", "window_end"})


@dataclass(frozen=True)
class JsonFunction(ProcessWindowFunction):
    """The function of the last window: its rows as JSON, whatever their fields.

    Args:
        inner: the function.
        clears: whether to emit the windows it was cleared for.
        sides: whether its side outputs leave as one, of triples (tag, value, last instant of the window).
    """

    inner: ProcessWindowFunction
    clears: bool
    sides: bool = False

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        """Emit each row as JSON."""
        for row in self.inner.process(key, self._shown(context), elements) or ():
            yield {"json": json.dumps({name: value for name, value in row.items() if name not in _INPUT_ONLY})}

    def clear(self, context: ProcessContext) -> None:
        """Clear, and say so."""
        self.inner.clear(self._shown(context))
        if self.clears:
            window = context.window
            bounds = [window.start, window.end] if isinstance(window, TimeWindow) else "GLOBAL"
            context.output(CLEARS, {"json": json.dumps(bounds)})

    def _shown(self, context: ProcessContext) -> Any:
        return _OneSide(context) if self.sides else context


class _OneSide:
    """A context whose side outputs are one."""

    def __init__(self, context: ProcessContext) -> None:
        self._context = context

    def output(self, tag: OutputTag, value: Any) -> None:
        self._context.output(SIDES, {"json": json.dumps([tag.name, value, self._context.window.max_timestamp])})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)
