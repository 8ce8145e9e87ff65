"""The columnar form of an aggregate, for the types of its arguments."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windowpane.errors import InvalidSpecError
from windowpane.kernels.aggregates.protocol import ColumnarAggregate
from windowpane.windowing.aggregates import Aggregate, ColumnarCall
from windowpane.windowing.aggregates.canonical import is_array
from windowpane.windowing.aggregates.durations import is_duration

_SCALARS = (
    pa.types.is_signed_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_boolean,
    pa.types.is_date32,
    pa.types.is_timestamp,
    pa.types.is_decimal128,
    is_duration,
)


def is_scalar(kind: pa.DataType) -> bool:
    """Whether values of a type hold no other values, and Arrow's kernels know them."""
    return any(test(kind) for test in _SCALARS)


def _is_known(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _is_known(kind.key_type) and _is_known(kind.item_type)
    if is_array(kind):
        return _is_known(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_known(field.type) for field in kind)
    return is_scalar(kind)


def columnar_form(
    aggregate: Aggregate, prefix: str, slots: tuple[str, ...], types: Sequence[pa.DataType]
) -> ColumnarAggregate | None:
    """Return the columnar form of an aggregate, ``None`` if it has none for arguments of these types."""
    definition = aggregate.definition
    if definition.columnar is None or not all(map(_is_known, types)):
        return None
    bound = aggregate.bind(types)
    form = definition.columnar(ColumnarCall(repr(aggregate), tuple(types), dict(aggregate.parameters), prefix, slots, bound))
    if form is not None and (not isinstance(form, ColumnarAggregate) or form.is_ordered != definition.ordered):
        raise InvalidSpecError(
            f"the columnar form of {aggregate.name} is {form!r}: it is a ColumnarAggregate with is_ordered={definition.ordered}, "
            "as the definition says."
        )
    return form
