"""Window functions: they turn a firing window's contents into results.

Incremental functions (reduce, aggregate, fold) keep one accumulator a window; full functions (apply, process) see every
element. The two combine: the accumulator's result is handed to the full function, together with the window. Source of the
contracts: Flink's ReduceFunction, AggregateFunction, WindowFunction and ProcessWindowFunction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from windowpane.arrays.values import Value, copied
from windowpane.errors import InvalidSpecError
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.triggers.base import Reduce, ValueState
from windowpane.windowing.windows import Window

Accumulator = TypeVar("Accumulator")
Result = TypeVar("Result")


class AggregateFunction(ABC, Generic[Accumulator, Result]):
    """Folds elements into an accumulator, incrementally; accumulators merge where sessions do.

    Its type parameters are the accumulator, which must pickle, and the result. On Spark an element is a row as a dict, and the
    result is one, too.

    Example:
        >>> class Mean(AggregateFunction[tuple[float, int], dict[str, float]]):
        ...     def create_accumulator(self): return (0, 0)
        ...     def add(self, value, accumulator): return accumulator[0] + value["x"], accumulator[1] + 1
        ...     def get_result(self, accumulator): return {"mean": accumulator[0] / accumulator[1]}
        ...     def merge(self, left, right): return left[0] + right[0], left[1] + right[1]
    """

    @abstractmethod
    def create_accumulator(self) -> Accumulator:
        """Return the accumulator of no elements."""

    @abstractmethod
    def add(self, value: Value, accumulator: Accumulator) -> Accumulator:
        """Return the accumulator with ``value`` added; changing it in place is allowed. ``None`` leaves the window empty."""

    @abstractmethod
    def get_result(self, accumulator: Accumulator) -> Result:
        """Return the result; the accumulator must stay usable, since a window can fire again.

        A window whose result is ``None`` does not fire. With an evictor it does: the function behind this one is given ``None``.
        """

    @abstractmethod
    def merge(self, left: Accumulator, right: Accumulator) -> Accumulator:
        """Return the accumulator of both; ``left`` is that of the earlier window."""


AnyAggregateFunction: TypeAlias = AggregateFunction[Any, Any]
"""One whose accumulator and result only it knows."""


class RichFunction:
    """A function with a life cycle. Reduce and aggregate functions must not be rich, as in Flink: they run outside a context."""

    def open(self) -> None:
        """Prepare, once for each instance of the operator."""

    def close(self) -> None:
        """Release what ``open`` took."""


class ProcessContext(Protocol):
    """What a process function may read while a window fires."""

    @property
    def window(self) -> Window:
        """The firing window."""

    @property
    def current_watermark(self) -> int:
        """The watermark in microseconds, ``MIN`` before the first."""

    @property
    def current_processing_time(self) -> int:
        """The processing time in microseconds."""

    def window_state(self, name: str) -> ValueState:
        """Return the state of that name of this key and window; refused on merging windows. Drop it in ``clear``."""

    def global_state(self, name: str) -> ValueState:
        """Return the state of that name of this key, shared by all its windows and never cleaned up by itself."""

    def output(self, tag: OutputTag, value: Value) -> None:
        """Emit ``value`` to a side output."""


class ProcessWindowFunction(ABC):
    """Sees all elements of a firing window (or the one result of an incremental function) and emits any number of rows.

    Example:
        >>> class Spread(ProcessWindowFunction):
        ...     def process(self, key, context, elements):
        ...         values = [row["x"] for row in elements]
        ...         yield {"spread": max(values) - min(values)}
    """

    @abstractmethod
    def process(self, key: Value, context: ProcessContext, elements: Sequence[Value]) -> Iterable[Value] | None:
        """Return the rows to emit for this firing."""

    def clear(self, context: ProcessContext) -> None:
        """Drop per-window state: called once, when the window is cleaned up."""


@dataclass(frozen=True)
class ApplyFunction(ProcessWindowFunction):
    """A plain function ``(key, window, elements) -> rows`` as a process function."""

    function: Callable[[Value, Window, Sequence[Value]], Iterable[Value] | None]

    def process(self, key: Value, context: ProcessContext, elements: Sequence[Value]) -> Iterable[Value] | None:
        return self.function(key, context.window, elements)

    def __repr__(self) -> str:
        return f"apply({getattr(self.function, '__name__', self.function)})"


@dataclass(frozen=True)
class PassThrough(ProcessWindowFunction):
    """Emits what it is given: the function behind a plain reduce, aggregate or fold."""

    def process(self, key: Value, context: ProcessContext, elements: Sequence[Value]) -> Iterable[Value]:
        return elements


@dataclass(frozen=True)
class ReduceAggregate(AggregateFunction[tuple[Value] | None, Value]):
    """A reduce function as an aggregate function: the accumulator is the reduced element, in a tuple, or ``None``.

    The function may change both of its arguments and return either: an element may be in other windows, too, so it is copied.
    """

    reduce: Reduce

    def create_accumulator(self) -> tuple[Value] | None:
        return None

    def add(self, value: Value, accumulator: tuple[Value] | None) -> tuple[Value] | None:
        """Reduce, or take the first element as it is; a reduce that returns ``None`` begins anew with the next one."""
        own = copied(value)
        return _boxed(own if accumulator is None else self.reduce(accumulator[0], own))

    def get_result(self, accumulator: tuple[Value] | None) -> Value:
        """Return the reduced element; ``None`` for no elements (an evictor took them all)."""
        return None if accumulator is None else accumulator[0]

    def merge(self, left: tuple[Value] | None, right: tuple[Value] | None) -> tuple[Value] | None:
        if left is None or right is None:
            return left or right
        return _boxed(self.reduce(left[0], right[0]))


def _boxed(reduced: Value) -> tuple[Value] | None:
    return None if reduced is None else (reduced,)


@dataclass(frozen=True)
class FoldAggregate(AggregateFunction[Value, Value]):
    """A fold as an aggregate function. Folds cannot merge without ``merge``; on sessions they are refused without it."""

    initial: Callable[[], Value]
    fold: Reduce
    merge_folds: Reduce | None = None

    def create_accumulator(self) -> Value:
        return self.initial()

    def add(self, value: Value, accumulator: Value) -> Value:
        return self.fold(accumulator, value)

    def get_result(self, accumulator: Value) -> Value:
        return accumulator

    def merge(self, left: Value, right: Value) -> Value:
        if self.merge_folds is None:
            raise InvalidSpecError("fold without merge= met windows that merge; give fold(..., merge=function) or use aggregate.")
        return self.merge_folds(left, right)


@dataclass(frozen=True)
class WindowFunctionSpec:
    """What happens to a window's contents: an optional incremental function, then a full one.

    Args:
        accumulate: folds elements as they arrive; ``None`` keeps them all.
        process: gets ``[result]`` of the accumulator, or all elements.
        kind: the method that the user called (``"reduce"``, ``"process"``, ...), for plans and messages.
    """

    kind: str
    process: ProcessWindowFunction
    accumulate: AnyAggregateFunction | None = None

    def __post_init__(self) -> None:
        inner = self.accumulate.reduce if isinstance(self.accumulate, ReduceAggregate) else self.accumulate
        if isinstance(inner, RichFunction):
            raise InvalidSpecError(
                f"the function of {self.kind} can not be a RichFunction, but {inner!r} is one. Use a plain function, "
                f"and put what needs a life cycle into the process function beside it."
            )

    @classmethod
    def reduce(cls, function: Reduce, process: ProcessWindowFunction | None = None) -> WindowFunctionSpec:
        """Return the spec of a reduce, with an optional full function behind it."""
        return cls("reduce", process or PassThrough(), ReduceAggregate(function))

    @classmethod
    def aggregate(cls, function: AnyAggregateFunction, process: ProcessWindowFunction | None = None) -> WindowFunctionSpec:
        """Return the spec of an aggregate, with an optional full function behind it."""
        return cls("aggregate", process or PassThrough(), function)

    @classmethod
    def fold(
        cls,
        initial: Callable[[], Value],
        function: Reduce,
        merge: Reduce | None = None,
        process: ProcessWindowFunction | None = None,
    ) -> WindowFunctionSpec:
        """Return the spec of a fold, with an optional full function behind it."""
        return cls("fold", process or PassThrough(), FoldAggregate(initial, function, merge))

    @classmethod
    def apply(cls, function: Callable[[Value, Window, Sequence[Value]], Iterable[Value] | None]) -> WindowFunctionSpec:
        """Return the spec of a plain function over all elements."""
        return cls("apply", ApplyFunction(function))

    @classmethod
    def full(cls, function: ProcessWindowFunction) -> WindowFunctionSpec:
        """Return the spec of a process function over all elements."""
        return cls("process", function)


__all__ = [
    "AggregateFunction",
    "ApplyFunction",
    "FoldAggregate",
    "PassThrough",
    "ProcessContext",
    "ProcessWindowFunction",
    "ReduceAggregate",
    "RichFunction",
    "WindowFunctionSpec",
]
