"""The spec of an aggregate: its name, its arguments and its constant parameters, not yet bound to types."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windowpane.errors import AggregateTypeError, InvalidSpecError
from windowpane.windowing.aggregates.definition import Definition, definition_of
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call
from windowpane.windowing.calls import Windowable, WindowCall, argument


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
    arguments: tuple[Any, ...] = ()
    parameters: tuple[tuple[str, Hashable], ...] = ()

    def __post_init__(self) -> None:
        definition_of(self.name)

    @classmethod
    def of(cls, name: str, *arguments: Any, **parameters: Hashable) -> Aggregate:
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
        types = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in argument_types]
        if len(types) != len(self.arguments):
            got = f"{len(types)} argument types"
            raise AggregateTypeError(self, got, f"one for each of its {len(self.arguments)} arguments")
        return self.definition.bind(self.call(types))

    def as_call(self) -> WindowCall:
        arguments = tuple(argument(self.name, each) for each in self.arguments)
        return WindowCall(self.name, arguments, parameters=self.parameters)

    def __reduce__(self) -> tuple[Callable[..., Aggregate], tuple[Any, ...]]:
        return _arrived, (self.definition, self.arguments, self.parameters)

    def _identity(self) -> tuple[Hashable, ...]:
        arguments = tuple(each if isinstance(each, str) else id(each) for each in self.arguments)
        return self.name, arguments, self.parameters

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, Aggregate) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return self._identity() != other._identity() if isinstance(other, Aggregate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        arguments = [repr(argument) for argument in self.arguments]
        parameters = [f"{name}={value!r}" for name, value in self.parameters]
        return f"{self.name}({', '.join(arguments + parameters)})"


def _arrived(definition: Definition, arguments: tuple[Any, ...], parameters: tuple[tuple[str, Hashable], ...]) -> Aggregate:
    return Aggregate(definition.name, arguments, parameters)
