"""Plans: a windowed program as the user wrote it, as a frozen value that prints, compares and explains itself.

A plan knows names, not types: the planner resolves it against the types of its input, and chooses the engine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from windowpane.engines.program import Upstream
from windowpane.errors import InvalidSpecError
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.arrow_functions import ArrowAggregateFunction, ArrowWindowFunction
from windowpane.windowing.assigners import GlobalWindows, WindowAssigner
from windowpane.windowing.element_readers import reads_elements
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.functions import PassThrough, ProcessWindowFunction, WindowFunctionSpec
from windowpane.windowing.over_spec import OrderColumn
from windowpane.windowing.spec import Refine, WindowSpec
from windowpane.windowing.tags import OutputTag
from windowpane.windowing.times import format_micros
from windowpane.windowing.triggers import Trigger

_STATE = {
    "row": "sorted pages: keyed state, event-time timers, processing-time timers",
    "slices": "a segment log: partial aggregates by slice and key",
    "sessions": "hash pages: open sessions with their partial aggregates, with an evictor their elements, by a hash of the key",
    "panes": "segment logs by window: partial aggregates, or with an evictor the elements left; fire times by key",
    "never": "nothing",
    "counts": "a segment log by window or shard of keys: partial aggregates and counts, with an evictor the elements left",
}


class EngineChoice(NamedTuple):
    """The engine that runs a program, and why it is this one."""

    name: str
    reason: str


_NO_REPR: Any = object.__repr__


@dataclass(frozen=True)
class FunctionPlan:
    """The function of a plan: built-in aggregates by output name, or a function spec of the user's.

    Args:
        kind: the word the user said.
        spec: the user's function; ``None`` with ``aggregates``.
        aggregates: (output name, aggregate) for built-in aggregates.
        process: a full function behind built-in aggregates.
        arrow: a function on Arrow tables in place of ``spec``.
        schema: columns of what the function returns, as the user declared them; ``None`` where they follow from the input.
    """

    kind: str
    spec: WindowFunctionSpec | None = None
    aggregates: tuple[tuple[str, Aggregate], ...] = ()
    process: ProcessWindowFunction | None = None
    arrow: ArrowAggregateFunction | ArrowWindowFunction | None = None
    schema: Any = None


@dataclass(frozen=True)
class WindowPlan:
    """A windowed program.

    Args:
        keys: names of the key columns; empty for ``window_all``.
        assigner: the window assigner.
        function: what a firing window's contents are turned into.
        trigger: ``None`` for the assigner's default.
        evictor: ``None`` for none.
        allowed_lateness: microseconds.
        late_tag: where late rows go, ``None`` to drop (and count) them.
        side_tags: side outputs that a process function writes to.
        event_time: name of the event-time column, ``None`` if there is none.
        order_by: columns that order the rows of a batch before arrival order.
        refine: ``"last"`` or ``"each"``, see ``WindowSpec``.
        upstream: where rows come from.
        engine: the engine asked for, ``None`` for the planner's choice.
    """

    keys: tuple[str, ...]
    assigner: WindowAssigner
    function: FunctionPlan
    trigger: Trigger | None = None
    evictor: Evictor | None = None
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None
    side_tags: tuple[OutputTag, ...] = ()
    event_time: str | None = None
    order_by: tuple[OrderColumn, ...] = ()
    refine: Refine = "last"
    upstream: Upstream = Upstream.SOURCE
    engine: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work before any DataFrame is looked at."""
        self.spec_with(self.function.spec or WindowFunctionSpec("aggregate", PassThrough()))
        names = [tag.name for tag in self.tags]
        if len(set(names)) != len(names) or "main" in names:
            raise InvalidSpecError(f"side outputs need names that differ from each other and from 'main', but are {names}.")
        for tag in self.side_tags:
            if tag.schema is None:
                raise InvalidSpecError(f"{tag!r} is written to by a function, so it needs a schema: OutputTag(name, schema).")

    @property
    def tags(self) -> tuple[OutputTag, ...]:
        """Late data first, then the side outputs."""
        return (*((self.late_tag,) if self.late_tag else ()), *self.side_tags)

    @property
    def effective_trigger(self) -> Trigger:
        """The trigger set, or the assigner's default."""
        return self.trigger or self.assigner.default_trigger()

    @property
    def uses_processing_time(self) -> bool:
        """Whether the program waits for the clock of the machine."""
        by_clock = not self.assigner.is_event_time and not isinstance(self.assigner, GlobalWindows)
        return by_clock or self.effective_trigger.uses_processing_time

    @property
    def reads_rows(self) -> bool:
        """Whether a part of the program sees whole rows, and not only the arguments of built-in aggregates."""
        return not self.function.aggregates or reads_elements(self.assigner, self.effective_trigger, self.evictor)

    def spec_with(self, function: WindowFunctionSpec) -> WindowSpec:
        """Return the window spec around a function."""
        return WindowSpec(self.assigner, function, self.effective_trigger, self.evictor, self.allowed_lateness, self.refine)

    def explain(self, choice: EngineChoice, whole: str | None) -> str:
        """Return the plan as text, with the engine that runs it and why it is this one.

        Args:
            choice: the engine.
            whole: why rows do not fold before the shuffle, ``None`` if they do.
        """
        engine, reason = choice
        lines = [
            f"windowed by {describe(self.assigner)}",
            f"  keys            {', '.join(self.keys) or 'none: one window space, one bucket'}",
            f"  event time      {self.event_time or 'none'}",
            f"  trigger         {describe(self.effective_trigger)}{'' if self.trigger else ' (default)'}",
            f"  evictor         {describe(self.evictor) if self.evictor else 'none'}",
            f"  lateness        {format_micros(self.allowed_lateness)}, refinements: {self.refine}",
            f"  late rows       {f'side output {self.late_tag.name}' if self.late_tag else 'counted and dropped'}",
            f"  function        {self._function_text()}",
            f"  engine          {engine}: {reason}",
            f"  state           {_STATE[engine]}; RocksDB behind it",
            f"  combiner        {f'off: {whole}' if whole else 'on: rows fold before the shuffle'}",
            f"  buckets         {'one a shuffle partition' if self.keys else '1'}",
            f"  time mode       {'processing time' if self.uses_processing_time else 'event time'}",
        ]
        return "\n".join(lines)

    def _function_text(self) -> str:
        if not self.function.aggregates:
            return self.function.kind
        return ", ".join(f"{name} = {aggregate}" for name, aggregate in self.function.aggregates)


def describe(part: Any) -> str:
    """Return a spec as text that is the same in every process: functions by their qualified name, not their address."""
    if isinstance(part, type):
        return part.__qualname__
    if dataclasses.is_dataclass(part):
        values = [f"{column.name}={describe(getattr(part, column.name))}" for column in dataclasses.fields(part)]
        return f"{type(part).__qualname__}({', '.join(values)})"
    if callable(part) and hasattr(part, "__qualname__"):
        return _callable_name(part)
    if isinstance(part, str | int | float | bool | type(None)) or type(part).__module__ == "enum":
        return repr(part)
    return repr(part) if type(part).__repr__ is not _NO_REPR else type(part).__qualname__


def _callable_name(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '')}.{function.__qualname__}"
