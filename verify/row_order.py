"""Rows that tie in the ORDER BY of a query may be in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def same_but_for_ties(got: Sequence[Any], expected: Sequence[Any], keys: Sequence[Any]) -> bool:
    """Return whether rows are the same, those of ``got`` with equal keys beside each other in any order."""
    if len(got) != len(expected):
        return False
    start = 0
    for index in range(1, len(got) + 1):
        if index == len(got) or keys[index] != keys[start]:
            if sorted(got[start:index], key=row_key) != sorted(expected[start:index], key=row_key):
                return False
            start = index
    return True


def row_key(row: Any) -> list[tuple[bool, str]]:
    """Return what a row, or a line, is sorted by to be compared; NULL is the largest."""
    return [(cell is None, str(cell)) for cell in row]
