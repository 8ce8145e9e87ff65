"""Values in a form that Python compares and hashes as Spark SQL does.

Spark SQL: NaN equals NaN and is larger than every number, -0.0 equals 0.0; arrays compare element by element,
structs field by field, and a NULL inside them is first; maps are equal whatever the order of their
entries.

Invariant: for a, b of one type, ``freeze(a) == freeze(b)`` exactly when Spark finds them equal, frozen values
hash, and ``<`` orders them as Spark does. ``thaw`` turns back to an equal value. Values arrive as pyarrow's
``to_pylist`` makes them: arrays as lists, structs as dicts, maps as lists of pairs.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from math import copysign
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from windowpane.arrays.values import Value

Frozen: TypeAlias = Any
"""The canonical form of a value: it hashes, and ``<`` orders those of one type."""


class _Largest:
    """The place of NaN: equal to itself only, greater than everything else."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __reduce__(self) -> str:
        return "NAN"

    def __repr__(self) -> str:
        return "NaN"


class _Smallest:
    """The place of a NULL inside an array or struct: equal to itself only, less than everything else."""

    def __lt__(self, other: object) -> bool:
        return other is not self

    def __gt__(self, other: object) -> bool:
        return False

    def __reduce__(self) -> str:
        return "NULL"

    def __repr__(self) -> str:
        return "NULL"


NAN = _Largest()
NULL = _Smallest()


class Form(Protocol):
    """The canonical form of the values of one type."""

    def freeze(self, value: Value) -> Frozen:
        """Return the comparable, hashable form of a value that is not None."""

    def thaw(self, frozen: Frozen) -> Value:
        """Return the value again."""


@dataclass(frozen=True, slots=True)
class PlainForm:
    """Types whose Python values already compare as Spark's do: numbers, text, binary, times, booleans."""

    def freeze(self, value: Hashable) -> Hashable:
        return value

    def thaw(self, frozen: Hashable) -> Hashable:
        return frozen


@dataclass(frozen=True, slots=True)
class FloatForm:
    def freeze(self, value: float) -> float | _Largest:
        # Adding 0.0 turns -0.0 into 0.0 and leaves every other number as it is.
        return value + 0.0 if value == value else NAN

    def thaw(self, frozen: float | _Largest) -> float:
        return float("nan") if isinstance(frozen, _Largest) else frozen


@dataclass(frozen=True, slots=True)
class ZonedForm:
    """Instants of a named zone, as those of UTC: Python compares two of one zone by the wall clock.

    In the hour that an autumn repeats, ``01:30-04:00`` is before ``01:00-05:00``.
    """

    zone: str

    def freeze(self, value: datetime) -> datetime:
        return value.astimezone(UTC)

    def thaw(self, frozen: datetime) -> datetime:
        return frozen.astimezone(pa.lib.string_to_tzinfo(self.zone))


@dataclass(frozen=True, slots=True)
class WrittenFloatForm:
    """Floating point as it is written: one NaN, and two zeros."""

    def freeze(self, value: float) -> tuple[float | _Largest, bool]:
        return (value, copysign(1.0, value) < 0) if value == value else (NAN, False)

    def thaw(self, frozen: tuple[float | _Largest, bool]) -> float:
        return float("nan") if isinstance(frozen[0], _Largest) else frozen[0]


@dataclass(frozen=True, slots=True)
class _NullableForm:
    """An element of an array, a field of a struct, a value of a map: may be NULL."""

    form: Form

    def freeze(self, value: Value) -> Frozen:
        return NULL if value is None else self.form.freeze(value)

    def thaw(self, frozen: Frozen) -> Value:
        return None if frozen is NULL else self.form.thaw(frozen)


@dataclass(frozen=True, slots=True)
class ArrayForm:
    item: Form

    def freeze(self, value: list[Value]) -> tuple[Frozen, ...]:
        return tuple(map(self.item.freeze, value))

    def thaw(self, frozen: tuple[Frozen, ...]) -> list[Value]:
        return list(map(self.item.thaw, frozen))


@dataclass(frozen=True, slots=True)
class StructForm:
    fields: tuple[tuple[str, Form], ...]

    def freeze(self, value: dict[str, Value]) -> tuple[Frozen, ...]:
        return tuple(form.freeze(value[name]) for name, form in self.fields)

    def thaw(self, frozen: tuple[Frozen, ...]) -> dict[str, Value]:
        return {name: form.thaw(part) for (name, form), part in zip(self.fields, frozen, strict=True)}


@dataclass(frozen=True, slots=True)
class MapForm:
    key: Form
    item: Form

    def freeze(self, value: list[tuple[Value, Value]]) -> tuple[tuple[Frozen, Frozen], ...]:
        entries = ((self.key.freeze(key), self.item.freeze(item)) for key, item in value)
        return tuple(sorted(entries, key=itemgetter(0)))

    def thaw(self, frozen: tuple[tuple[Frozen, Frozen], ...]) -> list[tuple[Value, Value]]:
        return [(self.key.thaw(key), self.item.thaw(item)) for key, item in frozen]


def form_of(value_type: pa.DataType) -> Form:
    return _form_of(value_type, FloatForm())


def written_form_of(value_type: pa.DataType) -> Form:
    """Return a form in which values of an Arrow type differ if they are written differently: 0.0 and -0.0 do."""
    return _form_of(value_type, WrittenFloatForm())


def _form_of(value_type: pa.DataType, floats: Form) -> Form:
    if pa.types.is_floating(value_type):
        return floats
    if pa.types.is_timestamp(value_type) and value_type.tz not in (None, "UTC"):
        return ZonedForm(value_type.tz)
    if pa.types.is_map(value_type):
        return MapForm(_form_of(value_type.key_type, floats), _NullableForm(_form_of(value_type.item_type, floats)))
    if is_array(value_type):
        return ArrayForm(_NullableForm(_form_of(value_type.value_type, floats)))
    if pa.types.is_struct(value_type):
        return StructForm(tuple((field.name, _NullableForm(_form_of(field.type, floats))) for field in value_type))
    return PlainForm()


def is_array(value_type: pa.DataType) -> bool:
    """Whether an Arrow type is a list of any layout (maps, which are lists of entries to Arrow, are not)."""
    return bool(
        pa.types.is_list(value_type)
        or pa.types.is_large_list(value_type)
        or pa.types.is_fixed_size_list(value_type)
        or pa.types.is_list_view(value_type)
        or pa.types.is_large_list_view(value_type)
    )


def is_orderable(value_type: pa.DataType) -> bool:
    """Whether Spark SQL orders values of this type: all but maps and what contains them."""
    if pa.types.is_map(value_type):
        return False
    if is_array(value_type):
        return is_orderable(value_type.value_type)
    if pa.types.is_struct(value_type):
        return all(is_orderable(field.type) for field in value_type)
    return True
