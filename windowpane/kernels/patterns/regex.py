"""A row pattern as a regular expression over bytes, and the text that it is searched in.

A row is one byte, which has a bit for each condition that holds for it. The rows of a partition lie together, behind a byte that
no row is: ``OPENING`` where the first of them is the first row that the partition ever had, else ``GOING_ON``. ``UNKNOWN``
follows where further rows may come.

Invariant: Python's ``re`` backtracks in SQL's order of preference, and behind ``UNKNOWN`` everything matches the empty text. So
the match that ends there is the first way that asks for a row which nobody knows yet: exactly then an attempt is undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.windowing.patterns import tree
from windowpane.windowing.patterns.tree import Pattern, every_part, first_variables, written_out

OPENING, GOING_ON, UNKNOWN = 10, 13, 85
"""Bytes between partitions, and behind the known rows of one; rows are bytes from 128 on."""

MOST_CONDITIONS = 7
MOST_WRITTEN_OUT = 1_000
"""The orders of five variables have 600; an expression of those of six takes seconds to be compiled."""

ROW = 128
_END = rb"(?=[\n\r])|\Z"


class _Unknown(NamedTuple):
    """How an expression says that nobody knows the next row, and that it has asked for it."""

    next: bytes
    asked: bytes


_WAITS = _Unknown(b"U", b"(?<=U)")
_AT_END = _Unknown(rb"\Z", rb"\Z")


@dataclass(frozen=True)
class PatternText:
    """A pattern as a regular expression."""

    pattern: Pattern  # the pattern, of which ``refusal`` says nothing
    bits: Mapping[str, int]  # the variables with a condition, by number

    @cached_property
    def regex(self) -> re.Pattern[bytes]:
        return self._compiled(_WAITS)

    @cached_property
    def partial(self) -> re.Pattern[bytes]:
        """The expression for the first way that asks for a row behind the last one."""
        return self._compiled(_AT_END)

    def _compiled(self, unknown: _Unknown) -> re.Pattern[bytes]:
        return re.compile(b"".join(b"(" + self._written(part, unknown) + b")" for part, _ in self._parts), re.DOTALL)

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
    def last_part(self) -> int:
        """The number of the last part that takes rows, from 1 on; 0 if there is none."""
        looks = tree.Absence | tree.First | tree.Last
        return max((number for number, (part, _) in enumerate(self._parts, start=1) if not isinstance(part, looks)), default=0)

    @cached_property
    def openings(self) -> Mask:
        """The bytes that are rows which a match can begin with."""
        if may_pass_first(self.pattern):
            return np.arange(256) >= ROW
        return self.taken(first_variables(self.pattern)[0])

    @property
    def chain(self) -> tuple[Pattern, ...] | None:
        """The parts, if each is one row of a variable or passes rows over, but for an absence at the end; else nothing.

        There is one way at most to go on behind each of them.
        """
        parts = tuple(part for part, _ in self._parts)
        plain = parts[:-1] if isinstance(parts[-1], tree.Absence) else parts
        return parts if all(isinstance(part, tree.Variable | tree.Passing) for part in plain) else None

    def taken(self, names: Iterable[str]) -> Mask:
        """Return for each byte whether it is a row that one of some variables takes."""
        rows, found = np.arange(256), np.zeros(256, np.bool_)
        for name in names:
            found |= (rows >> self.bits[name] & 1 > 0) if name in self.bits else True
        return found & (rows >= ROW)

    def _class(self, *names: str, inside: bool = True) -> bytes:
        taken = self.taken(names)
        rows = [row for row in range(ROW, 256) if taken[row] == inside]
        return b"[" + b"".join(b"\\x%02x" % row for row in rows) + b"]" if rows else b"[^\\x00-\\xff]"

    def _written(self, part: Pattern, unknown: _Unknown) -> bytes:
        asked, following = unknown.asked, unknown.next
        match part:
            case tree.Variable(name):
                return b"(?:%b|%b|%b)" % (asked, self._class(name), following)
            case tree.Sequence(parts):
                return b"".join(self._written(each, unknown) for each in parts)
            case tree.Alternation(parts):
                return b"(?:" + b"|".join(self._written(each, unknown) for each in parts) + b")"
            case tree.Permutation():
                return self._written(part.orders, unknown)
            case tree.Exclusion(inner):
                return self._written(inner, unknown)
            case tree.Repetition(tree.Variable(name), least, most, is_greedy):
                return _loop(self._class(name), least, most, is_greedy, unknown)
            case tree.Repetition(inner, least, most, is_greedy):
                return b"(?:%b)%b%b" % (self._written(inner, unknown), _times(least, most), b"" if is_greedy else b"?")
            case tree.Passing(until):
                return b"(?:%b|%b*+)" % (asked, self._class(*until, inside=False))
            case tree.Absence(of):
                return b"(?:%b|%b*+(?:%b|%b))" % (asked, self._class(*of, inside=False), following, _END)
            case tree.Last():
                return b"(?:%b|%b|%b)" % (asked, following, _END)
        return rb"(?:%b|(?<=\n))" % asked

    def possible(self, text: Integers) -> Mask:
        """Return for each byte of a text whether a match, or a way that waits, may begin there: elsewhere every attempt fails.

        It is found from the end of the pattern on, a part at a time for all places. What ``^``, ``$`` and absences ask, bounds,
        and where rows of groups end is left open.
        """
        found: Mask = _Places(text).before(self, self.pattern, np.ones(len(text) + 1, np.bool_))[:-1]
        return found


class _Places:
    """Where parts of a pattern may begin in a text."""

    def __init__(self, text: Integers) -> None:
        self._text = text
        self._unknown = np.append(text == UNKNOWN, False)
        self._ends = first_from(np.append(text < ROW, True))

    def before(self, pattern: PatternText, part: Pattern, then: Mask) -> Mask:
        """Return where a part may begin that is followed by what may begin at the places ``then``."""
        match part:
            case tree.Sequence(parts):
                for each in reversed(parts):
                    then = self.before(pattern, each, then)
                return then
            case tree.Exclusion(inner):
                return self.before(pattern, inner, then)
            case tree.Variable(name):
                found = np.append(pattern.taken([name])[self._text] & then[1:], False)
            case tree.Alternation(parts):
                found = np.logical_or.reduce([self.before(pattern, each, then) for each in parts])
            case tree.Permutation(parts):
                found = np.logical_or.reduce([self.before(pattern, each, self._later(then)) for each in parts])
            case tree.Passing(until):
                found = then[first_from(np.append(pattern.taken(until)[self._text], True) | (self._ends == _numbers(then)))]
            case tree.Repetition(tree.Variable(name), least, most, _):
                found = self._loop(np.append(pattern.taken([name])[self._text], False), least, most, then)
            case tree.Repetition(inner, least, _, _):
                found = self.before(pattern, inner, self._later(then))
                found = found if least else found | then
            case _:
                found = np.ones_like(then)
        result: Mask = found | self._unknown
        return result

    def _loop(self, is_taken: Mask, least: int, most: int | None, then: Mask) -> Mask:
        places, ends, following = _numbers(then), first_from(~is_taken), first_from(then)
        behind = ends if most is None else np.minimum(ends, places + most)
        from_least = np.minimum(places + least, len(then) - 1)
        waits = self._unknown[ends] & (ends == behind)
        found: Mask = ((places + least <= ends) & (following[from_least] <= behind)) | waits
        return found

    def _later(self, then: Mask) -> Mask:
        """Return the places at or behind which, among the rows of one key, there is one of ``then``."""
        found: Mask = first_from(then) <= self._ends
        return found


def _numbers(places: Mask) -> Integers:
    return np.arange(len(places))


def first_from(places: Mask) -> Integers:
    """Return for each place the first one at or behind it that is chosen; behind the last one, the number of places."""
    chosen = np.where(places, np.arange(len(places)), len(places))
    found: Integers = np.minimum.accumulate(chosen[::-1])[::-1]
    return found


def _loop(rows: bytes, least: int, most: int | None, is_greedy: bool, unknown: _Unknown) -> bytes:
    """Return a loop over rows of one kind: where they reach the unknown before it is full, taking on is a way, too."""
    asks = b"%b{0,%b}+%b" % (rows, b"" if most is None else b"%d" % (most - 1), unknown.next)
    if is_greedy:
        return b"(?:%b|%b|%b%b)" % (unknown.asked, asks, rows, _times(least, most))
    early = b"%b{0,%d}+%b|" % (rows, least - 1, unknown.next) if least else b""
    return b"(?:%b|%b%b%b?|%b)" % (unknown.asked, early, rows, _times(least, most), asks)


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


def may_pass_first(pattern: Pattern) -> bool:
    """Whether the first row of a match can be one that is passed over, since what is before the arrow can do without a row."""
    if isinstance(pattern, tree.Sequence):
        for part in pattern.parts:
            if may_pass_first(part):
                return True
            if not first_variables(part)[1]:
                return False
        return False
    return isinstance(pattern, tree.Passing) or any(map(may_pass_first, pattern.parts))


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
