"""Row patterns as trees: variables in a row, one or the other, again and again, and what takes no row.

Source: SQL:2016, ``MATCH_RECOGNIZE``; ``Passing`` is "followed by", as in Flink CEP, ``Absence`` is windowpane's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import factorial


class Pattern:
    """A part of a pattern."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Variable(Pattern):
    """One row, for which the condition of the variable holds."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Sequence(Pattern):
    """Its parts, one after the other; without parts it takes no row."""

    parts: tuple[Pattern, ...]

    def __str__(self) -> str:
        return " ".join(map(_within, self.parts)) if self.parts else "()"


@dataclass(frozen=True, slots=True)
class Alternation(Pattern):
    """One of its parts, those further left first."""

    parts: tuple[Pattern, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Repetition(Pattern):
    """A part, ``least`` to ``most`` times (``None``: without bound): as often as possible first, or if reluctant as seldom."""

    part: Pattern
    least: int
    most: int | None
    is_greedy: bool = True

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return (self.part,)

    def __str__(self) -> str:
        usual = {(0, None): "*", (1, None): "+", (0, 1): "?"}
        least, most = self.least, "" if self.most is None else self.most
        counted = f"{{{least}}}" if least == most else f"{{{least},{most}}}"
        part = _grouped(self.part) if isinstance(self.part, Repetition) else _within(self.part)
        return f"{part}{usual.get((self.least, self.most), counted)}{'' if self.is_greedy else '?'}"


@dataclass(frozen=True, slots=True)
class Permutation(Pattern):
    """Its parts in any order: that in which they are written first, the reverse one last."""

    parts: tuple[Pattern, ...]

    @property
    def orders(self) -> Alternation:
        return Alternation(tuple(map(Sequence, permutations(self.parts))))

    def __str__(self) -> str:
        return f"PERMUTE({', '.join(map(str, self.parts))})"


@dataclass(frozen=True, slots=True)
class Exclusion(Pattern):
    """A part whose rows belong to the match and are not shown."""

    part: Pattern

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return (self.part,)

    def __str__(self) -> str:
        return f"{{- {self.part} -}}"


@dataclass(frozen=True, slots=True)
class First(Pattern):
    """No row: the next one is the first of its partition."""

    def __str__(self) -> str:
        return "^"


@dataclass(frozen=True, slots=True)
class Last(Pattern):
    """No row: there is none after, in the partition or within the bound."""

    def __str__(self) -> str:
        return "$"


@dataclass(frozen=True, slots=True)
class Passing(Pattern):
    """Rows that are passed over: up to the first one that one of the variables would take, or further where the rest fails there.

    They are no rows of the match. ``-> !x -> q`` passes up to an x or a q; only ``q`` goes on.
    """

    until: tuple[str, ...]
    without: tuple[str, ...] = ()
    """Those of them that the next part does not begin with."""

    def __str__(self) -> str:
        return "".join(f"-> !{name} " for name in self.without) + "->"


@dataclass(frozen=True, slots=True)
class Absence(Pattern):
    """No row, once no further one within the bound is one of the variables."""

    of: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(f"-> !{name}" for name in self.of)


def every_part(pattern: Pattern) -> Iterator[Pattern]:
    """Yield a pattern and all of its parts, from left to right."""
    yield pattern
    for part in pattern.parts:
        yield from every_part(part)


def variables(pattern: Pattern) -> tuple[str, ...]:
    """Return the variables that can take rows, in the order of the pattern, each once."""
    return tuple(dict.fromkeys(part.name for part in every_part(pattern) if isinstance(part, Variable)))


def looked_for(pattern: Pattern) -> tuple[str, ...]:
    """Return the variables whose conditions are asked where they take no row."""
    names = (
        part.until if isinstance(part, Passing) else part.of
        for part in every_part(pattern)
        if isinstance(part, Passing | Absence)
    )
    return tuple(dict.fromkeys(name for several in names for name in several))


def first_variables(pattern: Pattern) -> tuple[frozenset[str], bool]:
    """Return the variables that can take the first row of a pattern, and whether it can do without a row."""
    match pattern:
        case Variable(name):
            return frozenset({name}), False
        case Alternation(parts):
            found = [first_variables(part) for part in parts]
            return frozenset().union(*(names for names, _ in found)), any(is_empty for _, is_empty in found)
        case Permutation(parts):
            found = [first_variables(part) for part in parts]
            return frozenset().union(*(names for names, _ in found)), all(is_empty for _, is_empty in found)
        case Sequence(parts):
            names: frozenset[str] = frozenset()
            for part in parts:
                more, is_empty = first_variables(part)
                names |= more
                if not is_empty:
                    return names, False
            return names, True
        case Repetition(part, least, _, _):
            names, is_empty = first_variables(part)
            return names, is_empty or least == 0
        case Exclusion(part):
            return first_variables(part)
    return frozenset(), True


def written_out(pattern: Pattern) -> int:
    """Return how many variables a pattern has with its permutations and counted loops written out."""
    if isinstance(pattern, Variable):
        return 1
    inside = sum(map(written_out, pattern.parts))
    match pattern:
        case Permutation(parts):
            return factorial(len(parts)) * sum(map(written_out, parts))
        case Repetition(_, least, most, _):
            return inside * (least + 1 if most is None else most)
    return inside


def longest(pattern: Pattern) -> int | None:
    """Return the most rows that a match can have or pass over, ``None`` if there is no such number."""
    match pattern:
        case Variable():
            return 1
        case Alternation(parts):
            lengths = [longest(part) for part in parts]
            return None if None in lengths else max((length for length in lengths if length is not None), default=0)
        case Repetition(part, _, most, _):
            length = longest(part)
            if length == 0:
                return 0
            return None if most is None or length is None else most * length
        case Passing() | Absence():
            return None
    lengths = [longest(part) for part in pattern.parts]
    return None if None in lengths else sum(length for length in lengths if length is not None)


def passes_over_others(pattern: Pattern) -> bool:
    """Whether each row of a match is looked for by itself: rows that no variable takes are passed over, wherever they are."""
    parts = pattern.parts if isinstance(pattern, Sequence) else (pattern,)
    if len(parts) > 1 and isinstance(parts[-1], Absence):
        parts = parts[:-1]
    arrows = all(isinstance(part, Passing) for part in parts[1::2])
    return len(parts) % 2 == 1 and arrows and all(map(_is_one_row, parts[::2]))


def _is_one_row(part: Pattern) -> bool:
    looks = any(isinstance(each, First | Last) for each in every_part(part))
    return longest(part) == 1 and not first_variables(part)[1] and not looks


def _within(pattern: Pattern) -> str:
    return (
        _grouped(pattern)
        if isinstance(pattern, Alternation) or (isinstance(pattern, Sequence) and pattern.parts)
        else str(pattern)
    )


def _grouped(pattern: Pattern) -> str:
    return f"({pattern})"
