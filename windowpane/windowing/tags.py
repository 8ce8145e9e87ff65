"""Output tags: names of side outputs. Source of the idea: Flink's OutputTag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class OutputTag:
    """Names a side output.

    Args:
        name: the name, unique within a program.
        schema: for a side output that a process function writes to, its columns as a DDL string or StructType; late data
            needs none, it has the columns of the input.

    Example:
        >>> OutputTag("late")
        OutputTag(name='late', schema=None)
    """

    name: str
    schema: Any = None
