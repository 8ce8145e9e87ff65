"""A program's function as built-in aggregates, where they mean the same.

The vectors' functions return rows; a built-in aggregate returns columns. ``BuiltIn`` says which aggregates hold what a function
would return, and how its rows read from them. A function with state, a context or side outputs has no such form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType

from verify.conformance.reading.fields import Json, NotUnderstoodError
from verify.conformance.reading.programs import parse_program
from verify.conformance.reading.vectors import Case
from windowpane import aggregates as constructors
from windowpane.errors import WindowpaneError
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.triggers import Trigger

Show = Callable[[Json], list[Json]]

_SUM = {"value": constructors.sum("value")}
_STATISTICS = {**_SUM, "count": constructors.count(), "max": constructors.max("value")}
_CONTENTS = {"contents": constructors.collect_list("value")}
_ELEMENTS = {"keys": constructors.collect_list("key"), **_CONTENTS}
KEY = "largest_key"
"""What a function of windows without keys shows as its key."""


@dataclass(frozen=True)
class BuiltIn:
    """Aggregates by output name, and the rows that the function makes of their result (a dict with ``key`` and ``window``).

    ``gives_rows`` says that it may make several.
    """

    aggregates: dict[str, Aggregate]
    show: Show
    gives_rows: bool = False

    def named(self, keyed: bool) -> tuple[tuple[str, Aggregate], ...]:
        """Return the aggregates, with the one for the key where windows have none."""
        extra = {} if keyed else {KEY: constructors.max("key")}
        return tuple({**self.aggregates, **extra}.items())


def _as_they_are(result: Json) -> list[Json]:
    return [result]


def _nothing_is_zero(result: Json) -> list[Json]:
    """Add up nothing to 0, as Java does: SQL's sum of nothing is NULL."""
    return [{**result, "value": result["value"] or 0}]


def _accumulated(result: Json) -> list[Json]:
    """Return what an accumulator says, which learns its key from elements: without any it has none."""
    return [{**result, "value": result["value"] or 0, "key": result["key"] if result["value"] is not None else ""}]


def _reduced(result: Json) -> list[Json]:
    return [result if result["value"] is not None else {**result, "key": None}]


def _sorted(result: Json) -> list[Json]:
    return [{**result, "contents": sorted(result["contents"])}]


def _each(result: Json) -> list[Json]:
    values = result["contents"]
    keys = result["keys"] or [None] * len(values)  # collect_list leaves NULLs out
    if len(keys) != len(values):
        raise NotUnderstoodError("engine columnar: a list of keys, some of them NULL, does not tell which element has which")
    return [{"key": key, "value": value} for key, value in zip(keys, values, strict=True)]


_FUNCTIONS = MappingProxyType(
    {
        "reduce_sum": BuiltIn(_SUM, _reduced),
        "aggregate_sum": BuiltIn(_SUM, _accumulated),
        "aggregate_stats": BuiltIn(_STATISTICS, _accumulated),
        "reduce_process": BuiltIn(_SUM, _as_they_are),
        "reduce_apply": BuiltIn(_SUM, _as_they_are),
        "reduce_session": BuiltIn(_SUM, _as_they_are),
        "aggregate_process": BuiltIn(_STATISTICS, _nothing_is_zero),
        "aggregate_apply": BuiltIn(_STATISTICS, _nothing_is_zero),
        "apply_sum": BuiltIn(_SUM, _nothing_is_zero),
        "window_sum": BuiltIn(_SUM, _nothing_is_zero),
        "collect_session": BuiltIn(_SUM, _nothing_is_zero),
        "pass_through": BuiltIn(_ELEMENTS, _each, gives_rows=True),
        "collect_sorted": BuiltIn(_CONTENTS, _sorted),
        "record_calls": BuiltIn(_CONTENTS, _as_they_are),
    }
)


def built_in(function: str) -> BuiltIn:
    """Return the built-in aggregates that mean the same as a function of the vectors.

    Raises:
        NotUnderstoodError: there are none.
    """
    if function not in _FUNCTIONS:
        raise NotUnderstoodError(f"engine columnar: function {function} is no built-in aggregate")
    return _FUNCTIONS[function]


def has_built_in_parts(case: Case) -> bool:
    """Whether assigner, triggers and evictor are windowpane's own, and the function can be replaced by built-in aggregates."""
    if case.kind == "trigger_transcript":
        return True
    if case.kind != "window_operator":
        return False
    try:
        spec = parse_program(case.get("program")).spec
        built_in(case.get("program")["function"]["type"])
    except (NotUnderstoodError, WindowpaneError):
        return False
    parts = [spec.assigner, *_triggers(spec.trigger), spec.evictor]
    return all(type(part).__module__.startswith("windowpane.windowing.") for part in parts if part is not None)


def _triggers(trigger: Trigger | None) -> Iterator[Trigger]:
    """Yield a trigger and those that it wraps."""
    while trigger is not None:
        yield trigger
        trigger = getattr(trigger, "inner", None)
