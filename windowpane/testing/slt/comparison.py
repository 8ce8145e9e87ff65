"""Whether rows are those expected, as sqllogictest-rs compares them.

A row is a line: its values joined by blanks, runs of blanks as one; NULL is ``NULL``, an empty text ``(empty)``. SQL gives no
order to rows that tie in the ORDER BY of their query, or to any without one: these may stand in any order. RisingWave writes a
numeric with the zeros of its scale and a time with three or six digits of a second: zeros at the end of a fraction say nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from windowpane.testing.row_order import same_but_for_ties
from windowpane.testing.slt.records import ExpectedRows, SortMode

_IGNORED = "<slt:ignore>"
_ZEROS = re.compile(r"^(-?\d+|-?(?:\d\d:){2}\d\d)(?:(\.\d*[1-9])|\.)0*(?=$|[+-]\d\d:\d\d$)")
"""A number, or a time of day, perhaps with its zone, and the zeros at the end of its fraction."""


@dataclass
class Settings:
    """What ``control`` and ``hash-threshold`` have set; a threshold of 0 hashes nothing."""

    sort: SortMode = SortMode.NO_SORT
    value_wise: bool = False
    threshold: int = 0


def shown(cell: str | None) -> str:
    """Return a value as it stands in a file."""
    return "NULL" if cell is None else cell or "(empty)"


def lines_of(rows: Sequence[Sequence[str | None]], expected: ExpectedRows, settings: Settings) -> list[str]:
    """Return the lines that stand for rows, in their order; a sort mode sorts them."""
    cells = [[shown(cell) for cell in row] for row in rows]
    sort = expected.sort or settings.sort
    if sort == SortMode.VALUE_SORT:
        cells = [[cell] for row in cells for cell in row]
    if sort != SortMode.NO_SORT:
        cells.sort()
    if 0 < settings.threshold < sum(map(len, cells)):
        return [_hashed(cells)]
    if settings.value_wise:
        cells = [[cell] for row in cells for cell in row]
    return [_normal(" ".join(row)) for row in cells]


def same_rows(got: Sequence[str], expected: ExpectedRows, order_keys: Sequence[tuple[Any, ...]], settings: Settings) -> bool:
    """Return whether lines are those expected; ``order_keys`` says for each row what it was ordered by."""
    if _same(got, expected, order_keys, settings):
        return True
    shortened = replace(expected, lines=tuple(_without_zeros(_normal(line)) for line in expected.lines))
    return _same([_without_zeros(line) for line in got], shortened, order_keys, settings)


def _same(got: Sequence[str], expected: ExpectedRows, order_keys: Sequence[tuple[Any, ...]], settings: Settings) -> bool:
    if any(_IGNORED in line for line in expected.lines):
        return _fits("\n".join(got), "\n".join(expected.lines).split(_IGNORED))
    wanted = [_normal(line) for line in expected.lines]
    if list(got) == wanted:
        return True
    if (expected.sort or settings.sort) != SortMode.NO_SORT or len(order_keys) != len(got):
        return sorted(got) == sorted(wanted)
    return same_but_for_ties(list(got), wanted, list(order_keys))


def _hashed(cells: list[list[str]]) -> str:
    values = [cell for row in cells for cell in row]
    digest = hashlib.md5("".join(f"{value}\n" for value in values).encode()).hexdigest()
    return f"{len(values)} values hashing to {digest}"


def _normal(line: str) -> str:
    return " ".join(line.split())


def _without_zeros(line: str) -> str:
    return " ".join(_ZEROS.sub(r"\1\2", part) for part in line.split(" "))


def _fits(text: str, parts: list[str]) -> bool:
    """Whether the parts stand in a text one after the other."""
    position = 0
    for part in parts:
        found = text.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return True
