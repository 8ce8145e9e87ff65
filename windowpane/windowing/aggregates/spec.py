"""The spec of an aggregate: name, arguments and constant parameters, not bound to types yet; and several over the same rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import pyarrow as pa

from windowpane.arrays.values import Row, Value
from windowpane.errors import AggregateTypeError, InvalidSpecError
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, Definition, definition_of
from windowpane.windowing.calls import Windowable, WindowCall, argument
from windowpane.windowing.expressions import Argument
from windowpane.windowing.functions import AggregateFunction


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Aggregate(Windowable):
    """One aggregate as written: what ``wp.sum("x")`` returns. Prints as it is written, compares and hashes.

    It is also an OVER call, ``wp.sum("x").rows(-3, 0)``, and may be part of an expression, ``wp.max("x") - wp.min("x")``.

    Two specs are equal if their names, arguments and parameters are. Column names compare by text, Spark
    Columns by identity: ``==`` on those builds an expression.

    Args:
        name: The name of the aggregate, ``"sum"``.
        arguments: Column names, or Spark Columns that Spark computes before the operator.
        parameters: Constants by name in the order of the signature, ``(("q", 0.9),)``.

    Example:
        >>> from windowpane import aggregates as agg
        >>> agg.quantile("delay", 0.9)
        quantile('delay', q=0.9)
    """

    name: str
    arguments: tuple[Value, ...] = ()
    parameters: tuple[tuple[str, Hashable], ...] = ()

    def __post_init__(self) -> None:
        definition_of(self.name)

    @classmethod
    def of(cls, name: str, *arguments: Argument, **parameters: Hashable) -> Aggregate:
        """Return an aggregate as users write it; its arguments are checked, and its parameters are in the order given.

        Raises:
            InvalidSpecError: there is no such aggregate, or an argument is neither a column name nor a Spark Column.
        """
        for each in arguments:
            # A Column is recognised by its methods: pyspark is not imported here, and Connect has its own.
            if not isinstance(each, str) and not hasattr(each, "cast"):
                raise InvalidSpecError(
                    f"{name} was given {each!r}, which is neither a column name nor a Spark Column. For a constant, use lit(...)."
                )
        return cls(name, arguments, tuple(parameters.items()))

    @property
    def definition(self) -> Definition:
        """What is known of the aggregate."""
        return definition_of(self.name)

    def call(self, argument_types: Sequence[pa.DataType]) -> Call:
        """Return the call of the aggregate for arguments of these Arrow types, in order."""
        return Call(repr(self), tuple(argument_types), dict(self.parameters))

    def bind(self, argument_types: Sequence[pa.DataType]) -> BoundAggregate:
        """Return the aggregate for arguments of these Arrow types, in order.

        Raises:
            AggregateTypeError: the aggregate has no meaning for these types; names both.
        """
        if dict(self.parameters).get("offset"):
            raise InvalidSpecError(
                f"{self!r}: an offset counts rows of a match, in wp.stream(...).match(...); here use nth_value."
            )
        types = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in argument_types]
        if len(types) != len(self.arguments):
            got = f"{len(types)} argument types"
            raise AggregateTypeError(self, got, f"one for each of its {len(self.arguments)} arguments")
        return self.definition.bind(self.call(types))

    def as_call(self) -> WindowCall:
        arguments = tuple(argument(self.name, each) for each in self.arguments)
        return WindowCall(self.name, arguments, parameters=self.parameters)

    def __reduce__(self) -> tuple[Callable[..., Aggregate], tuple[Value, ...]]:
        return _arrived, (self.definition, self.arguments, self.parameters)

    def _identity(self) -> tuple[Hashable, ...]:
        arguments = tuple(each if isinstance(each, str) else id(each) for each in self.arguments)
        return self.name, arguments, self.parameters

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, Aggregate) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return self._identity() != other._identity() if isinstance(other, Aggregate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        arguments = [repr(argument) for argument in self.arguments]
        parameters = [f"{name}={value!r}" for name, value in self.parameters]
        return f"{self.name}({', '.join(arguments + parameters)})"


def _arrived(definition: Definition, arguments: tuple[Argument, ...], parameters: tuple[tuple[str, Hashable], ...]) -> Aggregate:
    return Aggregate(definition.name, arguments, parameters)


Column = tuple[str, BoundAggregate, tuple[str, ...]]
Slots = Mapping[str, Sequence[str]]


class CombinedAggregate(AggregateFunction[list[Value], Row]):
    """An aggregate function from rows (dicts) to a row: one output column per aggregate.

    Args:
        columns: for each output column its name, its bound aggregate, and the names under which a row holds the arguments
            of that.

    Example:
        >>> from windowpane import aggregates as agg
        >>> both = CombinedAggregate.of(
        ...     {"flights": agg.count(), "delay": agg.avg("dep_delay")},
        ...     slots={"flights": [], "delay": ["dep_delay"]},
        ...     types={"dep_delay": pa.int64()},
        ... )
        >>> accumulator = both.add({"dep_delay": 5}, both.create_accumulator())
        >>> both.get_result(both.add({"dep_delay": None}, accumulator))
        {'flights': 2, 'delay': 5.0}
    """

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self._aggregates = tuple(bound for _, bound, _ in columns)
        # One loop for each number of arguments: looking slots up one by one is what a row would cost most.
        self._nullary = tuple((i, bound.add) for i, (_, bound, slots) in enumerate(columns) if not slots)
        self._unary = tuple((i, bound.add, slots[0]) for i, (_, bound, slots) in enumerate(columns) if len(slots) == 1)
        self._wide = tuple((i, bound.add, itemgetter(*slots)) for i, (_, bound, slots) in enumerate(columns) if len(slots) > 1)

    @classmethod
    def of(cls, aggregates: Mapping[str, Aggregate], slots: Slots, types: Mapping[str, pa.DataType]) -> CombinedAggregate:
        """Bind aggregates by output name, given the slots of each and the type of each slot.

        Raises:
            AggregateTypeError: an aggregate has no meaning for the types of its slots.
        """
        return cls(
            tuple(
                (name, aggregate.bind([types[slot] for slot in slots[name]]), tuple(slots[name]))
                for name, aggregate in aggregates.items()
            )
        )

    def __reduce__(self) -> tuple[Callable[..., CombinedAggregate], tuple[tuple[Column, ...]]]:
        return CombinedAggregate, (self.columns,)

    @property
    def result_schema(self) -> pa.Schema:
        """The output columns with their Arrow types."""
        return pa.schema([(name, bound.result_type) for name, bound, _ in self.columns])

    def create_accumulator(self) -> list[Value]:
        return [bound.create_accumulator() for bound in self._aggregates]

    def add(self, value: Row, accumulator: list[Value]) -> list[Value]:
        for index, add in self._nullary:
            accumulator[index] = add(accumulator[index])
        for index, add, slot in self._unary:
            accumulator[index] = add(accumulator[index], value[slot])
        for index, add, arguments in self._wide:
            accumulator[index] = add(accumulator[index], *arguments(value))
        return accumulator

    def get_result(self, accumulator: list[Value]) -> Row:
        """Return the output row.

        Raises:
            AggregateOverflowError: a result does not fit its type.
        """
        columns = zip(self.columns, accumulator, strict=True)
        return {name: bound.get_result(part) for (name, bound, _), part in columns}

    def merge(self, left: list[Value], right: list[Value]) -> list[Value]:
        parts = zip(self._aggregates, left, right, strict=True)
        return [bound.merge(left, right) for bound, left, right in parts]
