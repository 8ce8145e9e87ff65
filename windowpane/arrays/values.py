"""Values whose type only the data says: names for them, so that a signature tells what is meant; and copies of them.

Not here: what has a type of its own, such as an Arrow array or a Spark Column. What is only passed on is ``object``.
"""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""A cell as Python has it, or an element of a stream: which type it has, the column says, or the user. ``None`` is NULL."""
Row: TypeAlias = Mapping[str, Value]
"""Cells by the names of their columns."""
JsonValue: TypeAlias = Any
"""What is in a JSON document: texts, numbers, truth values, ``None``, and lists and dicts of those."""

_UNCHANGING = frozenset(
    {type(None), bool, int, float, str, bytes, Decimal, dt.date, dt.datetime, dt.time, dt.timedelta},
)


def copied(value: Value) -> Value:
    """Return the value as it is now: whatever is changed in place later, the copy is not.

    Example:
        >>> row = {"n": 1, "seen": [1]}
        >>> before = copied(row)
        >>> row["seen"].append(2)
        >>> before
        {'n': 1, 'seen': [1]}
    """
    kind = type(value)
    if kind in _UNCHANGING:
        return value
    if kind is dict:
        is_flat = _UNCHANGING.issuperset(map(type, value.values()))
        return value.copy() if is_flat else {name: copied(each) for name, each in value.items()}
    if kind is list or kind is tuple:
        return kind(map(copied, value))
    return copy.deepcopy(value)
