"""Python objects in state, as bytes: every pickle that a checkpoint holds is written and read here.

What programs of built-in parts keep is plain values and classes of windowpane. Functions of the user's may keep anything, and to
read the pickle of a class may run code: who can write to a checkpoint can run code in the job. ``values_only`` turns that off for
the process: only values, and classes of windowpane's that hold values, are written and read from then on; whatever else a pickle
names is refused before it is imported (``UnsafeStateError``).

Source: the restricted unpickler of Python's documentation (``pickle``, "Restricting Globals").
"""

from __future__ import annotations

import io
import os
import pickle
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType
from zoneinfo import ZoneInfo

from windowpane.arrays.values import Value
from windowpane.errors import UnsafeStateError

SETTING = "windowpane.safe_state"
"""The setting of a Spark session that turns it on for its queries."""
_VARIABLE = "WINDOWPANE_SAFE_STATE"
"""The environment variable that turns it on for a process from its start, where it is 1: ``inspect`` has no session."""

_ROOMS = tuple(f"windowpane.{room}." for room in ("aggregates", "engines", "operators", "state", "windowing"))
"""Where classes that state is made of stand: to make an object of them does nothing else."""
_VALUES = {
    *(("builtins", name) for name in ("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list")),
    *(("builtins", name) for name in ("object", "range", "set", "slice", "str", "tuple")),
    *(("collections", name) for name in ("Counter", "OrderedDict", "defaultdict", "deque")),
    *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
    *((module, name) for module in ("numpy", "numpy.dtypes") for name in ("dtype", "ndarray")),
    *((f"numpy.{core}.multiarray", name) for core in ("_core", "core") for name in ("_reconstruct", "scalar")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("_core", "core")),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("uuid", "UUID"),
    ("uuid", "SafeUUID"),
    ("windowpane.aggregates.sketches.distinct", "DistinctSketch.from_bytes"),
    ("windowpane.aggregates.sketches.quantiles", "QuantileSketch.from_bytes"),
    ("windowpane.windowing.times", "zone_of"),
    ("zoneinfo", "ZoneInfo"),
}

_is_always_on = os.environ.get(_VARIABLE) == "1"
_is_for_values_only = _is_always_on


def values_only(is_on: bool) -> None:
    """Say whether this process writes and reads nothing but values from now on."""
    global _is_for_values_only
    _is_for_values_only = is_on or _is_always_on


def dumps(value: object) -> bytes:
    """Return an object as bytes.

    Raises:
        UnsafeStateError: only values are written, and it holds an object of another class.
    """
    if not _is_for_values_only:
        return pickle.dumps(value, protocol=5)
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(value)
    return file.getvalue()


def loads(data: bytes) -> Value:
    """Return the object of some bytes.

    Raises:
        UnsafeStateError: only values are read, and the bytes name something else.
    """
    return _Unpickler(io.BytesIO(data)).load() if _is_for_values_only else pickle.loads(data)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: object) -> Value:
        # An object is written by the class or the function that makes it, which comes here, too.
        if isinstance(value, type | FunctionType | BuiltinFunctionType) and value.__module__ is not None:
            _find(value.__module__, value.__qualname__)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        return _find(module, name)


def _find(module: str, name: str) -> object:
    if (module, name) == ("builtins", "getattr"):
        return _method_of_zones
    in_a_room = f"{module}.".startswith(_ROOMS) and "." not in name
    if in_a_room or (module, name) in _VALUES:
        with suppress(AttributeError, ImportError):
            found = attrgetter(name)(import_module(module))
            kind = found if isinstance(found, type) else type(found)
            if not in_a_room or f"{kind.__module__}.".startswith(_ROOMS):
                return found
    raise UnsafeStateError(f"{module}.{name}")


def _method_of_zones(owner: object, name: str) -> object:
    """As ``getattr``, for the one method that Python's own values need it for."""
    if (owner, name) != (ZoneInfo, "_unpickle"):
        raise UnsafeStateError(f"{owner!r}.{name}")
    return getattr(owner, name)
