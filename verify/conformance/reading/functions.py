"""A program's function as windowpane's. Elements are rows ``{"key", "value"}``; results are rows as the vectors list them.

Every result row carries a ``key``: that of the window, or, where the function knows none (a plain reduce or aggregate, windows
that are not keyed), the largest key of the elements. The comparison leaves out what a vector does not list.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known, write_window
from verify.conformance.reading.stateful_functions import Sides, States, Times
from windowpane.arrays.values import Row
from windowpane.windowing.functions import (
    AggregateFunction,
    ProcessContext,
    ProcessWindowFunction,
    RichFunction,
    WindowFunctionSpec,
)
from windowpane.windowing.outputs import OutputTag

Emit = Callable[[Any, ProcessContext, Sequence[Any]], Iterable[Row]]


def _largest(keys: Iterable[Any], default: Any = "") -> Any:
    return max((key for key in keys if key is not None), default=default)


# Incremental functions.


def sum_rows(left: Row, right: Row) -> Row:
    """Add the values of two rows."""
    return {"key": _largest((left["key"], right["key"]), None), "value": left["value"] + right["value"]}


@dataclass(frozen=True)
class Statistics(AggregateFunction[Any, Any]):
    """Sum, and with ``full`` count and maximum, of the values, and the largest key."""

    full: bool = True

    def create_accumulator(self) -> tuple[int, int, int | None, str]:
        """Return nothing seen."""
        return (0, 0, None, "")

    def add(self, value: Row, accumulator: tuple[int, int, int | None, str]) -> tuple[int, int, int | None, str]:
        """Add one row."""
        return self.merge(accumulator, (value["value"], 1, value["value"], value["key"]))

    def get_result(self, accumulator: tuple[int, int, int | None, str]) -> Row:
        """Return the row."""
        total, count, largest, key = accumulator
        extra = {"count": count, "max": largest} if self.full else {}
        return {"key": key, "value": total, **extra}

    def merge(self, left: Any, right: Any) -> tuple[int, int, int | None, str]:
        """Merge two accumulators."""
        maxima = [side[2] for side in (left, right) if side[2] is not None]
        key = _largest((left[3], right[3]))
        return (left[0] + right[0], left[1] + right[1], max(maxima, default=None), key)


class NullAtOddCounts(Statistics):
    """Has no result while the count is odd."""

    def get_result(self, accumulator: tuple[int, int, int | None, str]) -> Any:
        """Return the row, or nothing."""
        return None if accumulator[1] % 2 else super().get_result(accumulator)


def null_at_odd_sums(left: Row, right: Row) -> Row | None:
    """Add the values of two rows; an odd sum is nothing."""
    total = sum_rows(left, right)
    return None if total["value"] % 2 else total


class RichSum(RichFunction):
    """A reduce function with a life cycle."""

    def __call__(self, left: Row, right: Row) -> Row:
        """Add the values of two rows."""
        return sum_rows(left, right)


class RichStatistics(Statistics, RichFunction):
    """An aggregate function with a life cycle."""


# Full functions.


@dataclass(frozen=True)
class RowFunction(ProcessWindowFunction):
    """A process function made of ``emit(key, context, elements) -> rows``."""

    emit: Emit

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any]:
        """Emit the rows."""
        return self.emit(key, context, elements)


@dataclass(frozen=True)
class UnkeyedFunction(ProcessWindowFunction):
    """The function of windows that are not keyed: it is shown the largest key of the elements."""

    inner: ProcessWindowFunction

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any] | None:
        """Forward."""
        shown = _largest(element["key"] for element in elements if element is not None)
        return self.inner.process(shown, context, elements)

    def clear(self, context: ProcessContext) -> None:
        """Forward."""
        self.inner.clear(context)

    @property
    def time_domain(self) -> str | None:
        """That of the inner function."""
        return getattr(self.inner, "time_domain", None)


def _total(elements: Sequence[Row]) -> int:
    return sum(element["value"] for element in elements)


def _window(context: ProcessContext) -> Any:
    return write_window(context.window)


def pass_only_result(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit the result of the incremental function; a reduce over nothing has none."""
    return [{"key": None, "value": None} if elements[0] is None else elements[0]]


def result_and_window(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit the result of the incremental function beside the window."""
    return [{**(elements[0] or {"value": None}), "key": key, "window": _window(context)}]


def key_and_sum(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit the sum."""
    return [{"key": key, "value": _total(elements)}]


def window_and_sum(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit the sum beside the window."""
    return [{"key": key, "value": _total(elements), "window": _window(context)}]


def every_element(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit every element."""
    return [{"key": element["key"], "value": element["value"]} for element in elements]


def contents(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit the values as they were handed over."""
    values = [element["value"] for element in elements]
    return [{"key": key, "contents": values, "window": _window(context)}]


def sorted_contents(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit the values, sorted."""
    values = sorted(element["value"] for element in elements)
    return [{"key": key, "contents": values, "window": _window(context)}]


def reduced_contents(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit the reduced value as it was handed over."""
    return [{"key": key, "contents": elements[0]["value"], "window": _window(context)}]


def count_and_watermark(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit how many elements there are and which watermark the context shows."""
    seen = {"count": len(elements), "watermark": context.current_watermark}
    return [{"key": key, **seen, "window": _window(context)}]


def two_texts(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit two texts."""
    return [{"text": "Hallo"}, {"text": "Ciao"}]


def nothing(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit nothing."""
    return []


def to_side_outputs(key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
    """Emit the first value to two side outputs."""
    for tag in ("int-out", "long-out"):
        context.output(OutputTag(tag), elements[0]["value"])
    return []


@dataclass(frozen=True)
class PerWindowFiring(ProcessWindowFunction):
    """Emits the sum and the number of the firing, which it counts in per-window state."""

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
        """Count the firing."""
        state = context.window_state("firings")
        firing = (state.get() or 0) + 1
        state.update(firing)
        return [{"key": key, "value": _total(elements), "firing": firing, "window": _window(context)}]

    def clear(self, context: ProcessContext) -> None:
        """Forget the count."""
        context.window_state("firings").clear()


@dataclass(frozen=True)
class PerWindowState(ProcessWindowFunction):
    """Sets one value of per-window state and emits nothing."""

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
        """Set the value."""
        context.window_state("value").update("hello")
        return []

    def clear(self, context: ProcessContext) -> None:
        """Remove the value."""
        context.window_state("value").clear()


@dataclass(frozen=True)
class ContextTime(ProcessWindowFunction):
    """Emits nothing; the recorder writes down which time of ``time_domain`` the context shows."""

    time_domain: str

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Row]:
        """Emit nothing."""
        return []


def _full(emit: Emit) -> WindowFunctionSpec:
    return WindowFunctionSpec.full(RowFunction(emit))


def _reduced(emit: Emit, reduce: Callable[[Row, Row], Row | None] = sum_rows) -> WindowFunctionSpec:
    return WindowFunctionSpec.reduce(reduce, RowFunction(emit))


def _aggregated(emit: Emit, full: bool = True) -> WindowFunctionSpec:
    return WindowFunctionSpec.aggregate(Statistics(full), RowFunction(emit))


def _null_at_odd_counts(emit: Emit) -> WindowFunctionSpec:
    return WindowFunctionSpec.aggregate(NullAtOddCounts(), RowFunction(emit))


def _states(fields: Json) -> States:
    return States(**{name: fields[name] for name in _STATES if name in fields})


_FUNCTIONS: dict[str, Callable[[Json], WindowFunctionSpec]] = {
    "reduce_sum": lambda fields: _reduced(pass_only_result),
    "aggregate_sum": lambda fields: _aggregated(pass_only_result, full=False),
    "aggregate_stats": lambda fields: _aggregated(pass_only_result),
    "reduce_process": lambda fields: _reduced(result_and_window),
    "reduce_apply": lambda fields: _reduced(result_and_window),
    "reduce_session": lambda fields: _reduced(result_and_window),
    "aggregate_process": lambda fields: _aggregated(result_and_window),
    "aggregate_apply": lambda fields: _aggregated(result_and_window),
    "apply_sum": lambda fields: _full(key_and_sum),
    "window_sum": lambda fields: _full(window_and_sum),
    "collect_session": lambda fields: _full(window_and_sum),
    "pass_through": lambda fields: _full(every_element),
    "collect_sorted": lambda fields: _full(sorted_contents),
    "record_calls": lambda fields: _full(contents),
    "record_calls_reduced": lambda fields: _reduced(reduced_contents),
    "process_context": lambda fields: _full(count_and_watermark),
    "two_texts": lambda fields: _full(two_texts),
    "empty": lambda fields: _full(nothing),
    "side_outputs": lambda fields: _full(to_side_outputs),
    "per_window_firing": lambda fields: WindowFunctionSpec.full(PerWindowFiring()),
    "per_window_state": lambda fields: WindowFunctionSpec.full(PerWindowState()),
    "context_time": lambda fields: WindowFunctionSpec.full(ContextTime(fields["time_domain"])),
    "agg_null": lambda fields: _null_at_odd_counts(result_and_window),
    "agg_null_plain": lambda fields: _null_at_odd_counts(pass_only_result),
    "sum_null": lambda fields: _reduced(result_and_window, null_at_odd_sums),
    "sum_null_plain": lambda fields: _reduced(pass_only_result, null_at_odd_sums),
    "states": lambda fields: WindowFunctionSpec.full(_states(fields)),
    "reduce_states": lambda fields: WindowFunctionSpec.reduce(sum_rows, _states(fields)),
    "aggregate_states": lambda fields: WindowFunctionSpec.aggregate(Statistics(False), _states(fields)),
    "sides": lambda fields: WindowFunctionSpec.full(Sides(fields["in_clear"], fields["global_state"])),
    "times": lambda fields: WindowFunctionSpec.full(Times()),
    "rich_reduce": lambda fields: WindowFunctionSpec.reduce(RichSum()),
    "rich_aggregate": lambda fields: WindowFunctionSpec.aggregate(RichStatistics()),
}


_STATES, _SIDES = ([each.name for each in dataclasses.fields(kind)] for kind in (States, Sides))
_OWN = {"states": _STATES, "reduce_states": _STATES, "aggregate_states": _STATES, "sides": _SIDES}
"""Fields that only functions of a type have: those of their class."""


def parse_function(fields: Json) -> WindowFunctionSpec:
    """Return the function.

    Raises:
        NotUnderstoodError: an unknown type or field.
        WindowpaneError: a function that windowpane refuses.
    """
    require_known(fields, {"type", "api", "time_domain", *_OWN.get(fields["type"], ())}, "function")
    parser = _FUNCTIONS.get(fields["type"])
    if parser is None:
        raise NotUnderstoodError(f"function type {fields['type']!r} is not understood")
    return parser(fields)
