"""Values of a match before the types of their columns are known, and with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from windowpane.errors import InvalidSpecError
from windowpane.kernels.conditions import COMPARISONS, Column, kind_of
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.expressions import Constant, Expression, Operation
from windowpane.windowing.patterns.spec import PatternSpec
from windowpane.windowing.patterns.values import Aggregated, Began, Classifier, MatchTime, Moved, Picked


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Unbound(Expression):
    """An aggregate whose columns have no types yet."""

    variable: str | None
    columns: tuple[str, ...]
    aggregate: Aggregate

    def __repr__(self) -> str:
        return f"{self.aggregate!r} of {self.variable}"


def bound(expression: Expression, columns: pa.Schema) -> Expression:
    """Return an expression whose aggregates know the types of their columns, and whose numbers are as exact as theirs.

    Raises:
        AggregateTypeError: an aggregate has no meaning for them.
    """
    if isinstance(expression, Unbound):
        aggregate = expression.aggregate
        types = [columns.field(name).type for name in expression.columns]
        return Aggregated(expression.variable, expression.columns, aggregate.bind(types), aggregate.name, repr(aggregate))
    if isinstance(expression, Operation):
        found = Operation(expression.operator, tuple(bound(part, columns) for part in expression.parts))
        return Operation("real", (found,)) if found.operator in _ROUNDED and _is_real(found, columns) else found
    return expression


_ROUNDED = ("+", "-", "*")


def _is_real(expression: Expression, columns: pa.Schema) -> bool:
    """Whether a number is of 32 bits: where rows are handled one by one, it has 64 until it is rounded."""
    kind = kind_of(expression, lambda leaf: pa.nulls(1, _type(leaf, columns, pa.timestamp("us"))))
    return kind is not None and kind == pa.float32()


def bound_spec(spec: PatternSpec, columns: pa.Schema) -> PatternSpec:
    """Return a spec whose aggregates know the types of their columns."""
    return replace(
        spec,
        conditions={name: bound(condition, columns) for name, condition in spec.conditions.items()},
        measures=tuple(replace(measure, value=bound(measure.value, columns)) for measure in spec.measures),
    )


def refuse_no_conditions(spec: PatternSpec, columns: pa.Schema, event_time: pa.DataType) -> None:
    """Refuse conditions of another type than boolean, as far as that is known before they are computed, and unlike operands.

    Raises:
        InvalidSpecError: with the name of the variable.
    """
    for name, condition in spec.conditions.items():
        if isinstance(condition, Operation | Constant):
            is_number = isinstance(condition, Operation) and condition.operator in _ARITHMETIC
            is_other = isinstance(condition, Constant) and not isinstance(condition.value, bool | None)
            found = "a number or a time" if is_number else repr(condition) if is_other else None
        else:
            kind = _type(condition, columns, event_time)
            found = None if pa.types.is_boolean(kind) else str(kind)
        if found is not None:
            raise InvalidSpecError(f"{name}={condition!r}: a condition is true or false of a row, and this is {found}.")
        for kinds, what in _unlike(condition, lambda leaf: pa.nulls(1, _type(leaf, columns, event_time))):
            raise InvalidSpecError(
                f"{name}={condition!r}: {' and '.join(map(str, kinds))} are not {what}: cast one of them, as a column before."
            )


def _unlike(condition: Expression, column: Column) -> Iterator[tuple[list[pa.DataType], str]]:
    """Yield types of operands that an operator has no meaning for, and what they are not."""
    if isinstance(condition, Operation) and condition.operator in _WORDS:
        kinds, what = [kind_of(part, column) for part in condition.parts], _WORDS[condition.operator]
        is_row_by_row = len(set(kinds)) == 1 if what == "compared" else any(map(pa.types.is_duration, filter(None, kinds)))
        if None not in kinds and not is_row_by_row and kind_of(condition, column) is None:
            yield kinds, what
    for part in condition.operands:
        yield from _unlike(part, column)


_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "div", "mean", "neg", "real"})
_WORDS = {
    **dict.fromkeys(COMPARISONS, "compared"),
    **dict.fromkeys(_ARITHMETIC, "computed with"),
    **dict.fromkeys(("&", "|", "~"), "true or false"),
}


def measure_types(spec: PatternSpec, columns: pa.Schema, event_time: pa.DataType) -> pa.Schema:
    """Return names and types of the measures of a bound spec."""
    return pa.schema([(measure.name, _type(measure.value, columns, event_time)) for measure in spec.measures])


def _type(value: Expression, columns: pa.Schema, event_time: pa.DataType) -> pa.DataType:
    match value:
        case Picked() | Began():
            return columns.field(value.column).type
        case Moved(of, _):
            return columns.field(of.column).type
        case Aggregated():
            return value.aggregate.result_type
        case MatchTime():
            return event_time
        case Classifier():
            return pa.string()
    return pa.int64()
