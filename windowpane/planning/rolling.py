"""Plans of rolling features: the arguments of the fluent API, as a frozen value that checks and explains itself.

A plan knows names, not types: ``rolling_programs`` resolves it against the types of its input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from windowpane.errors import DuplicateColumnError, InvalidSpecError, present
from windowpane.planning.settings import DEFAULTS, Settings, plan_text
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates.results import Results, split, texts
from windowpane.windowing.calls import VALUE_FUNCTIONS, Windowable, WindowCall
from windowpane.windowing.expressions import Expression, Name, replaced
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow, default_hop, is_exact_by_default
from windowpane.windowing.times import Duration, format_micros, to_micros

EDGES = ("exact", "hop")
_SHORT = {"microsecond": "us", "millisecond": "ms", "second": "s", "minute": "m", "hour": "h", "day": "d", "week": "w"}
_TERM = re.compile(r"\s*(\d+)\s*([a-z]+?)s?\s*")


@dataclass(frozen=True, eq=False)
class NamedCall:
    """A feature as the user wrote it: its column, the aggregate, with a filter perhaps, and the length of its window."""

    name: str
    call: WindowCall
    length: int


@dataclass(frozen=True, eq=False)
class RollingRequest:
    """The features as the user wrote them, before ``emit`` says which rows are emitted.

    ``None`` for ``edge`` and ``hop`` is the default of each window, for ``step`` the smallest hop.
    """

    keys: tuple[str, ...] = ()
    calls: tuple[NamedCall, ...] = ()
    edge: str | None = None
    hop: int | None = None
    step: int | None = None
    keeps_unbounded_state: bool = False
    settings: Settings = DEFAULTS
    results: Results = ()
    """What Spark computes of the features, and the features themselves, in their order; empty where nothing is computed."""

    def window(self, length: int) -> RollingWindow:
        hop = default_hop(length) if self.hop is None else self.hop
        return RollingWindow(length, hop, is_exact_by_default(length) if self.edge is None else self.edge == "exact")

    def spec(
        self, calls: Sequence[RollingCall], emit: RollingEmit, deletes_empty: bool = False, corrects: bool = False
    ) -> RollingSpec:
        """Return the spec of calls whose arguments have names."""
        if not calls:
            raise InvalidSpecError("rolling features need a window: .over('1 hour', n=wp.count()).")
        features = [name for name, _ in self.results] or [call.name for call in calls]
        names = [*self.keys, "as_of", *features, *(["revision"] if corrects else [])]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise DuplicateColumnError(twice, "Give the features names of their own: .over('1 hour', sum_1h=wp.sum('amount')).")
        step = self.step if self.step is not None else sorted(call.window.hop for call in calls)[0]
        return RollingSpec(tuple(calls), step, emit, self.keeps_unbounded_state, deletes_empty, corrects)


@dataclass(frozen=True, eq=False)
class RollingPlan:
    """Rolling features over one input."""

    request: RollingRequest
    spec: RollingSpec
    event_time: str
    labels: str | None = None
    """Which rows a label sees, as text; ``None`` where features are emitted by themselves."""

    @property
    def retracts(self) -> bool:
        return False

    @property
    def uses_processing_time(self) -> bool:
        return False

    def explain(self, engine: Mapping[str, str], buckets: str) -> str:
        """Return the plan as text, with the lines about what runs it, by what they are about."""
        spec = self.spec
        lines = {"keys": ", ".join(self.request.keys), "event time": self.event_time}
        for window in spec.windows:
            calls = [call for call in spec.calls if call.window == window]
            names = [f"{call.name} = {call.aggregate}{'' if call.condition is None else ' filtered'}" for call in calls]
            edge = "exact edge" if window.is_exact else f"hop edge: up to {format_micros(window.overhang)} too long"
            lines[f"over {window}"] = f"{', '.join(names)}; {edge}"
        if computed := texts(self.request.results):
            lines["computed"] = ", ".join(computed)
        if self.labels is None:
            lines |= {
                "emit": _EMIT_TEXT[spec.emit] + (_CORRECTIONS_TEXT if spec.corrects else ""),
                "step": format_micros(spec.step),
                "late rows": f"{format_micros(spec.reach)} behind the watermark: {self.request.settings.late_text}",
            }
        else:
            lines["labels"] = self.labels
        return plan_text("rolling features", lines | {**engine, "buckets": buckets})


_EMIT_TEXT = {
    RollingEmit.CHANGED: "changed: the keys of a batch, and at a tick those that rows have left",
    RollingEmit.BATCH: "batch: the keys of a batch. WARNING: a key without new rows keeps its last values for ever",
    RollingEmit.TICK: "tick: at each tick the keys that changed since the one before",
    RollingEmit.EACH: "each: one row for each row, when the watermark has passed it",
}


_CORRECTIONS_TEXT = "; ticks that a late row changes are emitted again, with a revision of 1, 2, ..."


def named_calls(lengths: Sequence[Duration], calls: Mapping[str, object]) -> tuple[list[NamedCall], Results]:
    """Return a call for each name and length, and the features over them; with several lengths, names end with the length."""
    if not lengths or not calls:
        raise InvalidSpecError("over takes lengths and aggregates by name: .over('1 hour', '7 days', n=wp.count()).")
    micros = [to_micros(length) for length in lengths]
    suffixes = [f"_{_short(length)}" for length in lengths] if len(lengths) > 1 else [""]
    aggregates, computed = split(calls, _aggregate_call, lambda call: call.identity)
    results = computed or [(name, Name(name)) for name in aggregates]
    windows = list(zip(micros, suffixes, strict=True))

    def ending(suffix: str) -> Callable[[Expression], Expression | None]:
        return lambda part: Name(part.name + suffix) if isinstance(part, Name) and part.name in aggregates else None

    named = [NamedCall(f"{name}{suffix}", call, length) for name, call in aggregates.items() for length, suffix in windows]
    return named, tuple((f"{name}{suffix}", replaced(made, ending(suffix))) for name, made in results for _, suffix in windows)


def _short(length: Duration) -> str:
    """Return a length as the end of a name: ``"24 hours"`` is ``24h``."""
    text = length if isinstance(length, str) else format_micros(to_micros(length))
    term = present(
        _TERM.fullmatch(text.lower()) or _TERM.fullmatch(format_micros(to_micros(length))), "format_micros writes one term"
    )
    return term[1] + _SHORT.get(term[2], term[2])


def _aggregate_call(name: str, given: object) -> WindowCall:
    if not isinstance(given, Windowable):
        raise InvalidSpecError(f"over {name}={given!r}: expected an aggregate such as wp.count() or wp.sum('amount').")
    call = given.as_call()
    is_plain = call.frame is None and call.exclusion is None and call.partition is None and call.order is None
    if not call.is_aggregate or call.function in VALUE_FUNCTIONS or call.is_distinct or call.skips_nulls or not is_plain:
        raise InvalidSpecError(
            f"over {name}={given!r}: a rolling feature is a built-in aggregate, with .filter(...) at most. Its window is the one "
            "of .over(...), and distinct values are counted by wp.count_distinct or wp.approx_count_distinct."
        )
    return call


def aggregate_of(call: WindowCall, arguments: Sequence[str]) -> Aggregate:
    return Aggregate(call.function, tuple(arguments), call.parameters)
