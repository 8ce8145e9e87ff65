"""Plans: a windowed program as the user wrote it, as a frozen value that prints, compares and explains itself.

A plan knows names, not types: the planner resolves it against the types of its input, and chooses the engine.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass

from windowpane.engines.program import Upstream
from windowpane.hidden_columns import PREFIX
from windowpane.planning.settings import DEFAULTS, Settings, plan_text
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates.results import Results, texts
from windowpane.windowing.arrow_functions import ArrowAggregateFunction, ArrowWindowFunction
from windowpane.windowing.assigners import MergingWindowAssigner, WindowAssigner
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.functions import PassThrough, ProcessWindowFunction, WindowFunctionSpec
from windowpane.windowing.outputs import Schema
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.spec import DEFAULT_PANES, PaneSettings, Refine, WindowSpec
from windowpane.windowing.times import format_micros
from windowpane.windowing.triggers import NeverTrigger, Trigger
from windowpane.windowing.triggers.base import reads_elements
from windowpane.windowing.triggers.composable import ComposableTrigger


@dataclass(frozen=True)
class FunctionPlan:
    """The function of a plan: built-in aggregates by output name, perhaps with a full function behind, or one of the user's."""

    kind: str
    """The user's word."""
    spec: WindowFunctionSpec | None = None
    aggregates: tuple[tuple[str, Aggregate], ...] = ()
    results: Results = ()
    """What Spark computes of the aggregates; empty where these are the results."""
    process: ProcessWindowFunction | None = None
    arrow: ArrowAggregateFunction | ArrowWindowFunction | None = None
    schema: Schema | None = None
    """As the user declared it; ``None`` where the columns follow from the input."""
    text: str = ""
    """What ``explain`` says of the function, where the word is too little."""


@dataclass(frozen=True)
class WindowPlan:
    """A windowed program."""

    keys: tuple[str, ...]
    """Empty for ``window_all``."""
    assigner: WindowAssigner
    function: FunctionPlan
    trigger: Trigger | ComposableTrigger | None = None
    evictor: Evictor | None = None
    settings: Settings = DEFAULTS
    event_time: str | None = None
    order_by: tuple[OrderColumn, ...] = ()
    """Orders the rows of a batch before arrival does."""
    refine: Refine = "last"
    panes: PaneSettings = DEFAULT_PANES
    upstream: Upstream = Upstream.SOURCE
    key_delay: int | None = None
    """Where each key has a watermark of its own, by how much it stays behind the key's latest event time."""
    foresees_watermark: bool = True
    """Whether tasks know how far the watermark that finds their rows late may be."""

    def __post_init__(self) -> None:
        """Refuse what cannot work before any DataFrame is looked at."""
        self.spec_with(self.function.spec or WindowFunctionSpec("aggregate", PassThrough()))

    @property
    def effective_trigger(self) -> Trigger:
        trigger = self.trigger or self.assigner.default_trigger()
        return self.panes.trigger(trigger, self.assigner, self.evictor, self.settings.allowed_lateness)

    @property
    def may_drop_finished(self) -> bool:
        """Whether rows may come to a window whose trigger is finished."""
        trigger = self.trigger
        return isinstance(trigger, ComposableTrigger) and trigger.may_finish(self.settings.allowed_lateness)

    @property
    def retracts(self) -> bool:
        return self.panes.options.retracts

    @property
    def merges(self) -> bool:
        return isinstance(self.assigner, MergingWindowAssigner)

    @property
    def uses_processing_time(self) -> bool:
        return self.assigner.ends_by_clock or self.effective_trigger.uses_processing_time

    @property
    def unfired_text(self) -> str:
        """What becomes of rows that no firing shows, where their window is cleaned up with them; empty where there are none."""
        return unfired_text(self.effective_trigger, self.assigner)

    @property
    def reads_rows(self) -> bool:
        """Whether a part of the program sees whole rows, and not only the arguments of built-in aggregates."""
        return not self.function.aggregates or reads_elements(self.assigner, self.effective_trigger, self.evictor)

    def spec_with(self, function: WindowFunctionSpec) -> WindowSpec:
        return WindowSpec(
            self.assigner,
            function,
            self.effective_trigger,
            self.evictor,
            self.settings.allowed_lateness,
            self.refine,
            self.panes.options,
        )

    def explain(self, engine: Mapping[str, str], buckets: str) -> str:
        """Return the plan as text, with the lines about what runs it, by what they are about."""
        lines = {
            "keys": ", ".join(self.keys) or "none: one window space, one bucket",
            "event time": self.event_time or "none",
            "trigger": describe(self.trigger or self.effective_trigger) + ("" if self.trigger else " (default)"),
            "panes": "" if self.panes == DEFAULT_PANES else self.panes.text,
            "evictor": describe(self.evictor) if self.evictor else "none",
            "unfired rows": self.unfired_text,
            "lateness": f"{format_micros(self.settings.allowed_lateness)}, refinements: {self.refine}",
            "late rows": self.settings.late_text,
            "function": self._function_text(),
            **engine,
            "buckets": buckets if self.keys else "1 bucket",
            "time mode": "processing time" if self.uses_processing_time else "event time",
        }
        return plan_text(f"windowed by {describe(self.assigner)}", lines)

    def _function_text(self) -> str:
        if not self.function.aggregates:
            return self.function.text or self.function.kind
        shown = [f"{name} = {aggregate}" for name, aggregate in self.function.aggregates if not name.startswith(PREFIX)]
        named = ", ".join([*shown, *texts(self.function.results, dict(self.function.aggregates))])
        return named if self.function.process is None else f"{named}; process {describe(self.function.process)}"


def warn_of_unfired_rows(trigger: Trigger | ComposableTrigger | None, text: str) -> None:
    """Warn where rows are lost by a trigger; one that never fires is there for that."""
    if text and not isinstance(trigger, NeverTrigger):
        logging.getLogger(__name__).warning("%s: rows since its last firing are %s.", trigger, text)


def unfired_text(trigger: Trigger | None, assigner: WindowAssigner) -> str:
    """Return what becomes of rows that no firing of a trigger shows; empty where the end of a window makes it fire."""
    is_event_time = assigner.is_event_time
    if trigger is None or not assigner.has_ends or trigger.fires_at_end(is_event_time):
        return ""
    instead = "AfterWatermark(early=...)" if is_event_time else "ContinuousProcessingTimeTrigger"
    return f"dropped at the end of their window: the trigger does not fire there, as in Flink; {instead} does"


def describe(part: object) -> str:
    """Return a spec as text that is the same in every process: functions by their qualified name, not their address."""
    if isinstance(part, type):
        return part.__qualname__
    if is_dataclass(part):
        values = [f"{column.name}={describe(getattr(part, column.name))}" for column in fields(part)]
        return f"{type(part).__qualname__}({', '.join(values)})"
    if callable(part) and hasattr(part, "__qualname__"):
        return f"{getattr(part, '__module__', '')}.{part.__qualname__}"
    is_plain = isinstance(part, str | int | float | bool | type(None)) or type(part).__module__ == "enum"
    return repr(part) if is_plain or type(part).__repr__ is not _NO_REPR else type(part).__qualname__


_NO_REPR: object = object.__repr__
