"""Values whose type only the data says: names for them, so that a signature tells what is meant.

Not here: what has a type of its own, such as an Arrow array or a Spark Column. What is only passed on is ``object``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""A cell as Python has it, or an element of a stream: which type it has, the column says, or the user. ``None`` is NULL."""
Row: TypeAlias = Mapping[str, Value]
"""Cells by the names of their columns."""
JsonValue: TypeAlias = Any
"""What is in a JSON document: texts, numbers, truth values, ``None``, and lists and dicts of those."""
