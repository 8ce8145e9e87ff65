"""A vector's function as one that an engine with declared columns runs: its rows leave as JSON, whatever their fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from windowpane.windowing.functions import ProcessContext, ProcessWindowFunction
from windowpane.windowing.tags import OutputTag
from windowpane.windowing.windows import TimeWindow

CLEARS = OutputTag("clears", "json string")
_INPUT_ONLY = frozenset({"ts", "moved", "window_start", "window_end"})


@dataclass(frozen=True)
class JsonFunction(ProcessWindowFunction):
    """The function of the last window: its rows as JSON, whatever their fields, and the windows it was cleared for."""

    inner: ProcessWindowFunction
    clears: bool

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        """Emit each row as JSON."""
        for row in self.inner.process(key, context, elements) or ():
            yield {"json": json.dumps({name: value for name, value in row.items() if name not in _INPUT_ONLY})}

    def clear(self, context: ProcessContext) -> None:
        """Clear, and say so."""
        self.inner.clear(context)
        if self.clears:
            window = context.window
            bounds = [window.start, window.end] if isinstance(window, TimeWindow) else "GLOBAL"
            context.output(CLEARS, {"json": json.dumps(bounds)})
