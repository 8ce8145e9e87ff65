"""Whether rows are those expected, as sqllogictest-rs compares them.

A row is a line: its values joined by blanks, runs of blanks as one; NULL is ``NULL``, an empty text ``(empty)``. SQL gives no
order to rows that tie in the ORDER BY of their query, or to any without one: these may be in any order. RisingWave writes a
numeric with the zeros of its scale and a time with three or six digits of a second: in columns of these types zeros at the end
of a fraction are ignored. In all others, of text above all, they are compared.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from verify.row_order import same_but_for_ties
from verify.slt.records import ExpectedRows, SortMode
from windowpane.sql.expressions.types import SqlType

_IGNORED = "<slt:ignore>"
_ZEROS = re.compile(r"^(-?\d+|-?(?:\d\d:){2}\d\d)(?:(\.\d*[1-9])|\.)0*(?=$|[+-]\d\d:\d\d$)")
"""A number, or a time of day, perhaps with its zone, and the zeros at the end of its fraction."""


_EXACT = re.compile(r"(-?\d+|-?(?:\d\d:){2}\d\d)(\.\d+)?([+-]\d\d:\d\d)?")
"""The same without such zeros."""
_WITH_ZEROS = frozenset(("numeric", "time", "timestamp", "timestamptz", "interval"))
"""Names of the types whose values may have zeros at the end of a fraction."""


@dataclass
class Settings:
    """What ``control`` and ``hash-threshold`` have set; a threshold of 0 hashes nothing."""

    sort: SortMode = SortMode.NO_SORT
    value_wise: bool = False
    threshold: int = 0


def shown(cell: str | None) -> str:
    """Return a value as it is written in a file."""
    return "NULL" if cell is None else cell or "(empty)"


@dataclass(frozen=True, order=True)
class Cell:
    """A value as it is written in a file, and whether zeros at the end of its fraction are ignored."""

    text: str
    has_zeros: bool = False

    def spellings(self) -> str:
        """Return a pattern of all ways to write it."""
        if not self.has_zeros:
            return re.escape(_normal(self.text))
        return " ".join(map(_spellings, _without_zeros(self.text).split()))


@dataclass(frozen=True)
class Line:
    """The values of a row."""

    cells: tuple[Cell, ...]

    @property
    def text(self) -> str:
        """The line as it is written in a file."""
        return _normal(" ".join(cell.text for cell in self.cells))

    def is_meant(self, text: str) -> bool:
        """Return whether a line of a file is this one, but for zeros that are ignored."""
        return re.fullmatch(" ".join(filter(None, (cell.spellings() for cell in self.cells))), text) is not None


def lines_of(
    rows: Sequence[Sequence[str | None]], types: Sequence[SqlType], expected: ExpectedRows, settings: Settings
) -> list[Line]:
    """Return the lines for rows with columns of these types, in their order; a sort mode sorts them."""
    zeros = [kind.name in _WITH_ZEROS for kind in types]
    cells = [[Cell(shown(cell), has_zeros) for cell, has_zeros in zip(row, zeros, strict=True)] for row in rows]
    sort = expected.sort or settings.sort
    if sort == SortMode.VALUE_SORT:
        cells = [[cell] for row in cells for cell in row]
    if sort != SortMode.NO_SORT:
        cells.sort()
    if 0 < settings.threshold < sum(map(len, cells)):
        return [Line((Cell(_hashed(cells)),))]
    if settings.value_wise:
        cells = [[cell] for row in cells for cell in row]
    return [Line(tuple(row)) for row in cells]


def same_rows(got: Sequence[Line], expected: ExpectedRows, order_keys: Sequence[tuple[Any, ...]], settings: Settings) -> bool:
    """Return whether lines are those expected; ``order_keys`` says for each row what it was ordered by."""
    texts = [line.text for line in got]
    if _same(texts, expected, order_keys, settings):
        return True
    return _same(texts, replace(expected, lines=tuple(_as_written_here(expected.lines, got))), order_keys, settings)


def _as_written_here(expected: Sequence[str], got: Sequence[Line]) -> Iterator[str]:
    """Yield each line of a file as that of the lines which it means, where there is one."""
    by_digits = dict[str, list[Line]]()
    for line in got:
        by_digits.setdefault(_without_zeros(line.text), []).append(line)
    for text in map(_normal, expected):
        yield next((line.text for line in by_digits.get(_without_zeros(text), ()) if line.is_meant(text)), text)


def _same(got: Sequence[str], expected: ExpectedRows, order_keys: Sequence[tuple[Any, ...]], settings: Settings) -> bool:
    if any(_IGNORED in line for line in expected.lines):
        return _fits("\n".join(got), "\n".join(expected.lines).split(_IGNORED))
    wanted = [_normal(line) for line in expected.lines]
    if list(got) == wanted:
        return True
    if (expected.sort or settings.sort) != SortMode.NO_SORT or len(order_keys) != len(got):
        return sorted(got) == sorted(wanted)
    return same_but_for_ties(list(got), wanted, list(order_keys))


def _hashed(cells: list[list[Cell]]) -> str:
    values = [cell.text for row in cells for cell in row]
    digest = hashlib.md5("".join(f"{value}\n" for value in values).encode()).hexdigest()
    return f"{len(values)} values hashing to {digest}"


def _normal(line: str) -> str:
    return " ".join(line.split())


def _without_zeros(line: str) -> str:
    return " ".join(_ZEROS.sub(r"\1\2", part) for part in line.split(" "))


def _spellings(word: str) -> str:
    found = _EXACT.fullmatch(word)
    if found is None:
        return re.escape(word)
    whole, fraction, offset = (re.escape(part or "") for part in found.groups())
    return whole + (f"{fraction}0*" if fraction else r"(?:\.0*)?") + offset


def _fits(text: str, parts: list[str]) -> bool:
    """Whether a text has the parts one after the other."""
    position = 0
    for part in parts:
        found = text.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return True
