"""A row pattern as a regular expression over bytes, and the text that it is searched in.

A row is one byte, which has a bit for each condition that holds for it. The rows of a partition lie together, behind a byte that
no row is: ``OPENING`` where the first of them is the first row that the partition ever had, else ``GOING_ON``. ``UNKNOWN``
follows where further rows may come.

Invariant: Python's ``re`` backtracks in SQL's order of preference, and behind ``UNKNOWN`` everything matches the empty text. So
the match that ends there is the first way that asks for a row which nobody knows yet: exactly then an attempt is undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from windowpane.windowing.patterns import tree
from windowpane.windowing.patterns.tree import Pattern, beginning, every_part, first_variables, longest, written_out

OPENING, GOING_ON, UNKNOWN = 10, 13, 85
"""Bytes between partitions, and behind the known rows of one; rows are bytes from 128 on."""

MOST_CONDITIONS = 7
MOST_WRITTEN_OUT = 1_000
"""The orders of five variables have 600; an expression of those of six takes seconds to be compiled."""

_ROW = 128
_AFTER = b"(?<=U)"
_END = rb"(?=[\n\r])|\Z"


@dataclass(frozen=True)
class PatternText:
    """A pattern as a regular expression."""

    pattern: Pattern  # the pattern, of which ``refusal`` says nothing
    bits: Mapping[str, int]  # the variables with a condition, by number

    @cached_property
    def regex(self) -> re.Pattern[bytes]:
        return re.compile(b"".join(b"(" + self._written(part) + b")" for part, _ in self._parts), re.DOTALL)

    @cached_property
    def _parts(self) -> list[tuple[Pattern, bool]]:
        """The parts that follow one another, each a group of the expression, and whether their rows are shown."""
        return list(_in_a_row(self.pattern, True))

    @cached_property
    def is_shown(self) -> tuple[bool, ...]:
        """Of each part, whether its rows are shown."""
        return tuple(is_shown for _, is_shown in self._parts)

    @cached_property
    def variables(self) -> tuple[str | None, ...] | None:
        """The variable that takes the rows of each part, ``None`` where they are passed over; or nothing, if one has several."""
        found: list[str | None] = []
        for part, _ in self._parts:
            if isinstance(part, tree.Repetition):
                part = part.part
            if isinstance(part, tree.Variable):
                found.append(part.name)
            elif isinstance(part, tree.Passing | tree.Absence | tree.First | tree.Last):
                found.append(None)
            else:
                return None
        return tuple(found)

    @cached_property
    def takes_no_row(self) -> tuple[bool, ...]:
        """Of each part, whether it only looks at rows."""
        return tuple(isinstance(part, tree.Absence | tree.First | tree.Last) for part, _ in self._parts)

    @cached_property
    def last_part(self) -> int:
        """The number of the last part that takes rows, from 1 on; 0 if there is none."""
        return max((part for part, is_look in enumerate(self.takes_no_row, start=1) if not is_look), default=0)

    @cached_property
    def openings(self) -> bytes:
        """The rows that a match can begin with."""
        if _may_pass_first(self.pattern):
            return bytes(range(_ROW, 256))
        names, _ = first_variables(self.pattern)
        return bytes(row for row in range(_ROW, 256) if any(self._takes(name, row) for name in names))

    @cached_property
    def seconds(self) -> bytes | None:
        """The bytes that can stand behind the first row of a match, or of one that waits; ``None`` where these are all bytes."""
        begins = beginning(self.pattern)
        names = [name for name in begins.seconds if name is not None]
        if begins.is_single or begins.is_empty or len(names) < len(begins.seconds):
            return None
        return bytes([UNKNOWN, *(row for row in range(_ROW, 256) if any(self._takes(name, row) for name in names))])

    @cached_property
    def absence(self) -> tuple[bytes, int] | None:
        """Where a pattern ends with an absence behind some rows at most: the rows that it is of, and how many rows they are."""
        *parts, last = self.pattern.parts if isinstance(self.pattern, tree.Sequence) else (self.pattern,)
        before = tree.Sequence(tuple(parts))
        most, looks = longest(before), any(isinstance(part, tree.Last | tree.Absence) for part in every_part(before))
        if not isinstance(last, tree.Absence) or most is None or looks:
            return None
        return bytes(row for row in range(_ROW, 256) if any(self._takes(name, row) for name in last.of)), most

    def _takes(self, name: str, row: int) -> bool:
        return name not in self.bits or bool(row >> self.bits[name] & 1)

    def _class(self, *names: str, inside: bool = True) -> bytes:
        rows = [row for row in range(_ROW, 256) if any(self._takes(name, row) for name in names) == inside]
        return b"[" + b"".join(b"\\x%02x" % row for row in rows) + b"]" if rows else b"[^\\x00-\\xff]"

    def _written(self, part: Pattern) -> bytes:
        match part:
            case tree.Variable(name):
                return b"(?:%b|%b|U)" % (_AFTER, self._class(name))
            case tree.Sequence(parts):
                return b"".join(map(self._written, parts))
            case tree.Alternation(parts):
                return b"(?:" + b"|".join(map(self._written, parts)) + b")"
            case tree.Permutation():
                return self._written(part.orders)
            case tree.Exclusion(inner):
                return self._written(inner)
            case tree.Repetition(tree.Variable(name), least, most, is_greedy):
                return self._loop(self._class(name), least, most, is_greedy)
            case tree.Repetition(inner, least, most, is_greedy):
                return b"(?:%b)%b%b" % (self._written(inner), _times(least, most), b"" if is_greedy else b"?")
            case tree.Passing(until):
                return b"(?:%b|%b*+)" % (_AFTER, self._class(*until, inside=False))
            case tree.Absence(of):
                return b"(?:%b|%b*+(?:U|%b))" % (_AFTER, self._class(*of, inside=False), _END)
            case tree.Last():
                return b"(?:%b|U|%b)" % (_AFTER, _END)
        return rb"(?:%b|(?<=\n))" % _AFTER

    @staticmethod
    def _loop(rows: bytes, least: int, most: int | None, is_greedy: bool) -> bytes:
        """Return a loop over rows of one kind: where they reach the unknown before it is full, taking on is a way, too."""
        asks = b"%b{0,%b}+U" % (rows, b"" if most is None else b"%d" % (most - 1))
        if is_greedy:
            return b"(?:%b|%b|%b%b)" % (_AFTER, asks, rows, _times(least, most))
        early = b"%b{0,%d}+U|" % (rows, least - 1) if least else b""
        return b"(?:%b|%b%b%b?|%b)" % (_AFTER, early, rows, _times(least, most), asks)


def refusal(pattern: Pattern, conditions: int) -> str | None:
    """Return why a pattern is no regular expression here, ``None`` if it is one."""
    if conditions > MOST_CONDITIONS:
        return f"it has more than {MOST_CONDITIONS} conditions"
    if first_variables(pattern)[1]:
        return "a match may have no row"
    for part in every_part(pattern):
        if isinstance(part, tree.Permutation) and written_out(part) > MOST_WRITTEN_OUT:
            return f"its orders have more than {MOST_WRITTEN_OUT:,} variables"
        if isinstance(part, tree.Repetition) and not _is_plain(part.part):
            return "a loop over a choice or a loop could be searched for ever"
    return None


def _may_pass_first(pattern: Pattern) -> bool:
    """Whether the first row of a match can be one that is passed over, since what is before the arrow can do without a row."""
    if isinstance(pattern, tree.Sequence):
        for part in pattern.parts:
            if _may_pass_first(part):
                return True
            if not first_variables(part)[1]:
                return False
        return False
    return isinstance(pattern, tree.Passing) or any(map(_may_pass_first, pattern.parts))


def _is_plain(part: Pattern) -> bool:
    return isinstance(part, tree.Variable) or (isinstance(part, tree.Sequence) and all(map(_is_plain, part.parts)))


def _in_a_row(pattern: Pattern, is_shown: bool) -> Iterator[tuple[Pattern, bool]]:
    if isinstance(pattern, tree.Exclusion):
        yield from _in_a_row(pattern.part, False)
    elif isinstance(pattern, tree.Sequence):
        for part in pattern.parts:
            yield from _in_a_row(part, is_shown)
    else:
        yield pattern, is_shown and not isinstance(pattern, tree.Passing)


def _times(least: int, most: int | None) -> bytes:
    return b"{%d,%b}" % (least, b"" if most is None else b"%d" % most)
