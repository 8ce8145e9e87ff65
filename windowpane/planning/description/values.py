"""Values of a program as JSON, and back: specs, types of Arrow, functions by name.

A class of ours is known by its bare name wherever its module lies, one of a user's by module and name: ``jobs.alerts:OnSpike``. A
frozen spec is its class and its fields. What cannot be imported by name, a lambda for one, is written but does not read back.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from enum import Enum
from functools import cache
from importlib import import_module

import pyarrow as pa

from windowpane import aggregates, windowing
from windowpane.arrays.values import JsonValue, Value
from windowpane.errors import UnreadableDescriptionError

_OWN = "windowpane"
_NO_REPR: object = object.__repr__
_OPAQUE = "shown as"
"""The mark of a value that is known by its class and its text alone."""


def written(value: object) -> JsonValue:
    """Return a value as JSON; equal values give equal JSON in every process."""
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    for kind, (name, write, _) in _CONSTANTS.items():
        if type(value) is kind:
            return {name: write(value)}
    if isinstance(value, Enum):
        return {"is": _name(type(value)), "value": value.name}
    if isinstance(value, pa.DataType):
        return {"type": written_type(value)}
    if isinstance(value, list | tuple):
        return [written(each) for each in value]
    if isinstance(value, Mapping):
        return {"map": [[written(key), written(of)] for key, of in value.items()]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: written(getattr(value, each.name)) for each in dataclasses.fields(value) if each.init}
        return {"is": _name(type(value)), **parts}
    if callable(value) and hasattr(value, "__qualname__"):
        return {"function": _name(value)}
    return {"is": _name(type(value)), _OPAQUE: None if type(value).__repr__ is _NO_REPR else repr(value)}


def read(json: JsonValue) -> Value:
    """Return the value that was written; lists as tuples.

    Raises:
        UnreadableDescriptionError: a part of the user's own that is not found, or does not say how it was made.
    """
    if isinstance(json, list):
        return tuple(map(read, json))
    if not isinstance(json, dict):
        return json
    if "is" not in json:
        ((name, of),) = json.items()
        return _PLAIN[name](of)
    kind = _found(json["is"])
    if issubclass(kind, Enum):
        return kind[json["value"]]
    if _OPAQUE in json:
        raise UnreadableDescriptionError(json["is"])
    made = object.__new__(kind)  # composable triggers have constructors of their own, which take something else
    for name, part in json.items():
        if name != "is":
            object.__setattr__(made, name, read(part))
    if hasattr(made, "__post_init__"):
        made.__post_init__()
    return made


_CONSTANTS: dict[type, tuple[str, Callable[[Value], JsonValue], Callable[[JsonValue], Value]]] = {
    float: ("float", repr, float),
    Decimal: ("decimal", str, Decimal),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    dt.datetime: ("datetime", dt.datetime.isoformat, dt.datetime.fromisoformat),
    dt.date: ("date", dt.date.isoformat, dt.date.fromisoformat),
    dt.timedelta: ("microseconds", lambda value: value // dt.timedelta(microseconds=1), lambda n: dt.timedelta(microseconds=n)),
    frozenset: ("set", lambda value: sorted(map(written, value), key=repr), lambda items: frozenset(map(read, items))),
}
"""Constants that JSON has not: what they are called there, and how they are written and read."""


def _name(part: Value) -> str:
    room, _, below = (getattr(part, "__module__", None) or "").partition(".")
    if room != _OWN:
        return f"{part.__module__}:{part.__qualname__}"
    return f"aggregates.{part.__qualname__}" if below.startswith("aggregates") else str(part.__qualname__)


def _found(name: str) -> Value:
    module, _, qualified = name.rpartition(":")
    if not module and name in _vocabulary():
        return _vocabulary()[name]
    try:
        found: Value = import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        raise UnreadableDescriptionError(name) from None
    return found


@cache
def _vocabulary() -> Mapping[str, Value]:
    """Return classes and functions of ours by their names."""
    rooms = [pkgutil.walk_packages(room.__path__, f"{room.__name__}.") for room in (windowing, aggregates)]
    modules = [import_module(each.name) for room in rooms for each in room]
    parts = [part for module in modules for part in vars(module).values() if callable(part) and hasattr(part, "__qualname__")]
    return {_name(part): part for part in parts if part.__module__.split(".")[0] == _OWN}


# Types of Arrow.

_LISTS: dict[str, Callable[[pa.Field], pa.DataType]] = {"list": pa.list_, "large_list": pa.large_list}
_DECIMALS = {"decimal128": pa.decimal128, "decimal256": pa.decimal256}


def written_type(kind: pa.DataType) -> JsonValue:
    """Return a type: a word, or its kind with what it is of."""
    if pa.types.is_struct(kind):
        return {"struct": written_columns(kind)}
    if pa.types.is_map(kind):
        return {"map": written_columns([kind.key_field, kind.item_field])}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"large_list" if pa.types.is_large_list(kind) else "list": written_columns([kind.value_field])[0]}
    if pa.types.is_dictionary(kind):
        return {"dictionary": [written_type(kind.index_type), written_type(kind.value_type)]}
    if pa.types.is_decimal(kind):
        return {f"decimal{kind.bit_width}": [kind.precision, kind.scale]}
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return {"timestamp": [kind.unit, kind.tz]}
    if pa.types.is_fixed_size_binary(kind):
        return {"fixed_size_binary": kind.byte_width}
    return str(kind)


def read_type(json: JsonValue) -> pa.DataType:
    """Return the type that was written."""
    if isinstance(json, str):
        return pa.type_for_alias({"float": "float32", "double": "float64", "halffloat": "float16"}.get(json, json))
    ((name, of),) = json.items()
    if name == "struct":
        return pa.struct(read_columns(of))
    if name == "map":
        return pa.map_(*read_columns(of))
    if name in _LISTS:
        return _LISTS[name](read_columns([of]).field(0))
    if name == "dictionary":
        return pa.dictionary(*map(read_type, of))
    if name == "timestamp":
        return pa.timestamp(*of)
    return pa.binary(of) if name == "fixed_size_binary" else _DECIMALS[name](*of)


def written_columns(columns: Iterable[pa.Field]) -> list[JsonValue]:
    """Return the fields of a schema or a struct; those that may be NULL do not say so."""
    fields = [{"name": each.name, "type": written_type(each.type)} for each in columns]
    return [field if each.nullable else {**field, "nullable": False} for field, each in zip(fields, columns, strict=True)]


def read_columns(json: list[JsonValue]) -> pa.Schema:
    """Return the schema that was written."""
    return pa.schema([pa.field(each["name"], read_type(each["type"]), each.get("nullable", True)) for each in json])


_PLAIN: dict[str, Callable[[JsonValue], Value]] = {
    **{name: make for name, _, make in _CONSTANTS.values()},
    "type": read_type,
    "function": _found,
    "map": lambda pairs: {read(key): read(of) for key, of in pairs},
}
"""What reads JSON of one key, by this."""
