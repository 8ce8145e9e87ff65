"""What is known of an aggregate, as data: its row form, its properties, and the forms that engines may have of it.

A family in ``windowpane.aggregates``, or a module of a user's, makes a ``Definition`` and hands it to ``define``. Nothing else
knows aggregates by name: engines and kernels ask the definition. The row form runs everywhere. A form that is missing costs
speed, or is refused by the name of the aggregate.

What follows from these is not said again: the type of the result and the value of no rows are those of the row form, every
aggregate merges, and rows fold before they are sent wherever there is a columnar form.

The row form, a bound aggregate, has the shape of Flink's ``AggregateFunction``. Its rules:

- An accumulator is a plain Python object that pickles.
- ``add`` and ``merge`` give up the accumulator on their left: they may change it and return it. ``merge``
  neither changes nor keeps a mutable part of its right side, so a slice shared by several windows is safe on
  the right.
- ``merge``'s left side holds the earlier elements; for aggregates that depend on arrival this order counts.
- ``get_result`` changes nothing and hands out nothing that a later ``add`` could change.
- A bound aggregate has no state of its own and pickles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.errors import AggregateTypeError, InvalidSpecError

Accumulator: TypeAlias = Any
"""What an aggregate keeps of the elements so far; only its row form knows the type."""


class BoundAggregate(Protocol):
    """One aggregate, bound to the types of its arguments."""

    @property
    def result_type(self) -> pa.DataType:
        """The Arrow type of the result."""

    def create_accumulator(self) -> Accumulator:
        """Return the accumulator of no elements."""

    def add(self, accumulator: Accumulator, /, *arguments: Value, **unused: Value) -> Accumulator:
        """Return the accumulator with one more row, given as the values of the arguments in order."""

    def merge(self, left: Accumulator, right: Accumulator, /) -> Accumulator:
        """Return the accumulator of the elements of ``left``, the earlier ones, then those of ``right``."""

    def get_result(self, accumulator: Accumulator, /) -> Value:
        """Return the result as a Python value that fits ``result_type``; None is NULL.

        Raises:
            AggregateOverflowError: the result does not fit.
        """


@dataclass(frozen=True)
class Call:
    """An aggregate about to be bound: how it prints, the types of its arguments, its constant parameters."""

    label: str
    types: tuple[pa.DataType, ...]
    parameters: Mapping[str, Value]

    @property
    def type(self) -> pa.DataType:
        return self.types[0]

    def refusal(self, wanted: str) -> AggregateTypeError:
        """Return the error that says which types the aggregate takes."""
        got = ", ".join(str(argument_type) for argument_type in self.types) or "no arguments"
        return AggregateTypeError(self.label, got, wanted)


class Returns(Enum):
    """Where the values of a result are from: those of an argument keep its type in Spark, which Arrow may not know."""

    VALUE = "a value of the first argument"
    LIST = "a list of values of the first argument"
    OWN = "a value of its own"


@dataclass(frozen=True)
class ColumnarCall(Call):
    """A call that is given a columnar form: what its partial columns begin with, where its arguments are, its row form."""

    prefix: str
    slots: tuple[str, ...]
    bound: BoundAggregate


@dataclass(frozen=True, eq=False, kw_only=True)
class Definition:
    """One aggregate. The properties have no defaults: whoever writes an aggregate says each of them.

    Args:
        name: its name.
        bind: a call -> the row form for the types of its arguments, or ``call.refusal(...)`` for types it does not take.
        holistic: whether its state grows with the number of rows, since it keeps values.
        ordered: whether the result depends on the order in which rows arrive.
        exact: whether rows give the same result to the last bit, however they are folded and merged; for some types only, if
            it is a function of these.
        idempotent: whether values that are repeated change nothing, so that DISTINCT means nothing.
        invertible: whether a value can be taken away again by arithmetic, exactly, so that a deleted row changes a group of SQL
            without a look at its other rows; for some types only, if it is a function of these.
        returns: where the values of the result are from.
        compared_from: the number of the first argument whose values are compared with each other, ``None`` if none are.
        columnar: its partial columns and how they fold (``kernels.aggregates.protocol``); ``None`` for a type without. An
            aggregate that has none runs on the engines that take rows one by one.
        frame: its value over the frames of sorted rows, a class of ``kernels.over.protocol``.
        by_frame: its value over rows that are written out frame by frame, if it is not exact; row form -> arrays -> array.
        running: its value over frames that begin where partitions do, a class of ``kernels.over.protocol``.
        sql: its name in SQL, for an aggregate that is none of SQL's own; without one SQL refuses it.
        duckdb: DuckDB's aggregate that SQL computes it with. SQL asks its properties here.
        merged_by: what makes one of two results of DuckDB's: ``+``, or its function of two values; ``None``: nothing does, and
            SQL looks at all rows of a group again.
    """

    name: str
    bind: Callable[[Call], BoundAggregate]
    holistic: bool
    ordered: bool
    exact: bool | Callable[[Call], bool]
    idempotent: bool
    invertible: bool | Callable[[Call], bool]
    returns: Returns
    compared_from: int | None
    columnar: Callable[[ColumnarCall], object] | None = None
    frame: Callable[[Call], object] | None = None
    by_frame: Callable[[Call, BoundAggregate], Callable[..., pa.Array] | None] | None = None
    running: Callable[[Call], object] | None = None
    sql: str | None = None
    duckdb: str | None = None
    merged_by: str | None = None

    def is_exact(self, call: Call) -> bool:
        return self.exact if isinstance(self.exact, bool) else self.exact(call)

    def is_invertible(self, call: Call) -> bool:
        return self.invertible if isinstance(self.invertible, bool) else self.invertible(call)

    def wrong_form(self, form: object, wanted: str) -> InvalidSpecError:
        return InvalidSpecError(f"a form of the aggregate {self.name} is {form!r}, where a subclass of {wanted} was expected.")

    @property
    def is_by_place(self) -> bool:
        """Whether it takes values by the places of their rows, without a look at the values."""
        return self.ordered and self.compared_from is None

    @property
    def module(self) -> str:
        """The module that defines it."""
        return str(getattr(self.bind, "__module__", ""))

    @property
    def is_built_in(self) -> bool:
        return self.module.startswith("windowpane.aggregates.")

    def __reduce__(self) -> tuple[Callable[..., Definition], tuple[Value, ...]]:
        """Those of the package pickle as their names; others travel with what uses them, and are defined where they arrive."""
        state = None if self.is_built_in else {field.name: getattr(self, field.name) for field in fields(self)}
        return _arrived, (self.name, state)


_DEFINITIONS: dict[str, Definition] = {}


def define(definition: Definition) -> Definition:
    """Make an aggregate known by its name, and return it. A later definition of the same name takes the place of the earlier.

    Raises:
        InvalidSpecError: a built-in aggregate has this name.
    """
    known = _DEFINITIONS.get(definition.name)
    if known is not None and known.is_built_in and not definition.is_built_in:
        raise InvalidSpecError(f"{definition.name} is a built-in aggregate. Give yours another name.")
    _DEFINITIONS[definition.name] = definition
    return definition


def _arrived(name: str, state: Mapping[str, Value] | None) -> Definition:
    known = _DEFINITIONS.get(name)
    return define(Definition(**state)) if known is None and state is not None else definition_of(name)


def is_defined(name: str) -> bool:
    return name in _DEFINITIONS


def definition_of(name: str) -> Definition:
    """Return what is known of an aggregate.

    Raises:
        InvalidSpecError: there is none of this name.
    """
    if name not in _DEFINITIONS:
        raise InvalidSpecError(f"there is no aggregate {name!r}; there are {', '.join(sorted(_DEFINITIONS))}.")
    return _DEFINITIONS[name]


def definition_in_duckdb(name: str) -> Definition | None:
    """Return what is known of the aggregate that SQL computes with one of DuckDB's, ``None`` if it is none of the package."""
    return next((each for each in _DEFINITIONS.values() if each.duckdb == name), None)


def definitions() -> tuple[Definition, ...]:
    return tuple(_DEFINITIONS.values())
