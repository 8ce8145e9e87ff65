"""A vector's program in the fluent API, on a DataFrame of its elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from verify.conformance.reading.json_results import CLEARS, JsonFunction
from verify.conformance.reading.programs import Program
from windowpane.stream import Result, WindowedStream, stream
from windowpane.windowing.functions import ProcessContext, ProcessWindowFunction, ReduceAggregate
from windowpane.windowing.outputs import OutputTag

LATE = OutputTag("late")


@dataclass(frozen=True)
class ElementFunction(ProcessWindowFunction):
    """The function of an earlier window: its rows as the elements of the next one."""

    inner: ProcessWindowFunction
    keyed: bool

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        """Emit key and value; the key of keyed windows is in the result anyway."""
        for row in self.inner.process(key, context, elements) or ():
            yield {"value": row["value"]} if self.keyed else {"key": row["key"], "value": row["value"]}


@dataclass(frozen=True)
class Pipeline:
    """One window program, or several in a row, on a DataFrame of steps.

    Args:
        programs: the windows, first to last.
        clears: whether to show for which windows the last function was cleared.
    """

    programs: tuple[Program, ...]
    clears: bool

    @property
    def late_is_output(self) -> bool:
        """Whether the last window has a late output in Flink, too; else its late elements are only counted."""
        return self.programs[-1].late_side_output

    def on(self, rows: Any) -> Result:
        """Return the result of the last window."""
        source: Any = stream(rows, event_time="ts", heartbeat="heartbeat")
        for program in self.programs[:-1]:
            source = _end(
                _begin(source, program),
                program,
                ElementFunction(program.spec.function.process, program.keyed),
                _element_schema(program),
            )
        last = self.programs[-1]
        windowed = _begin(source, last)
        windowed = windowed.side_output_late_data(LATE) if self.late_is_output else windowed
        windowed = windowed.side_output(CLEARS) if self.clears else windowed
        return _end(windowed, last, JsonFunction(last.spec.function.process, self.clears), "json string")


def _element_schema(program: Program) -> str:
    return "value bigint" if program.keyed else "key string, value bigint"


def _begin(source: Any, program: Program) -> WindowedStream:
    spec = program.spec
    windowed: WindowedStream
    windowed = source.key_by("key").window(spec.assigner) if program.keyed else source.window_all(spec.assigner)
    windowed = windowed.trigger(spec.trigger).allowed_lateness(spec.allowed_lateness).refine("each")
    return windowed if spec.evictor is None else windowed.evictor(spec.evictor)


def _end(windowed: WindowedStream, program: Program, process: ProcessWindowFunction, schema: str) -> Result:
    accumulate = program.spec.function.accumulate
    if accumulate is None:
        return windowed.process(process, schema)
    if isinstance(accumulate, ReduceAggregate):
        return windowed.reduce(accumulate.reduce, process, schema)
    return windowed.aggregate(accumulate, process, schema)
