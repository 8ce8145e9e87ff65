"""The text of a pattern, as a tree: SQL's PATTERN grammar, and ``->`` for "followed by".

::

    alternation   chain | chain | ...
    chain         sequence -> sequence -> !x -> sequence ...     !x: and no x in between, or behind
    sequence      factor factor ...
    factor        primary, then * + ? {n} {n,} {n,m} {,m}, then ? for as seldom as possible
    primary       name  ( alternation )  ()  ^  $  {- alternation -}  PERMUTE(alternation, ...)

Source: SQL:2016, ``<row pattern>``; the arrow is windowpane's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from windowpane.errors import PatternError
from windowpane.windowing.patterns.tree import (
    Absence,
    Alternation,
    Exclusion,
    First,
    Last,
    Passing,
    Pattern,
    Permutation,
    Repetition,
    Sequence,
    Variable,
    first_variables,
    written_out,
)

_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[^\W\d]\w*|"(?:[^"]|"")+")|(?P<number>\d+)|(?P<mark>->|\{-|-\}|[()|*+?{},^$!])|(?P<other>\S))""",
    re.UNICODE,
)
MOST_VARIABLES = 100_000
"""Of a pattern with its permutations and counted loops written out; each is a step of the search."""

_BOUNDS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(frozen=True)
class _Token:
    text: str
    kind: str
    column: int


def parse_pattern(text: str, *, folds: bool = False) -> Pattern:
    """Return the tree of a pattern; where it ``folds``, names without quotes are in lower case, as those of SQL.

    Raises:
        PatternError: the text is no pattern; says where.

    Example:
        >>> str(parse_pattern("bad{3,} good"))
        'bad{3,} good'
    """
    parser = _Parser(text, folds)
    found = parser.alternation()
    parser.expect_end()
    parser.expect_bounded(found, 1)
    return found


class _Parser:
    def __init__(self, text: str, folds: bool) -> None:
        self._text, self._folds = text, folds
        self._tokens = [
            _Token(match[match.lastgroup], match.lastgroup, match.start(match.lastgroup) + 1)
            for match in _TOKEN.finditer(text)
            if match.lastgroup
        ]
        self._tokens.append(_Token("", "end", len(text) + 1))
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _takes(self, mark: str) -> bool:
        taken = self._next.kind == "mark" and self._next.text == mark
        self._at += taken
        return taken

    def _expect(self, mark: str) -> None:
        if not self._takes(mark):
            raise self._refusal(f"{mark!r} is missing before {self._next.text!r}" if self._next.text else f"{mark!r} is missing")

    def _refusal(self, reason: str, column: int | None = None) -> PatternError:
        return PatternError(self._text, self._next.column if column is None else column, reason)

    def expect_end(self) -> None:
        if self._next.kind != "end":
            raise self._refusal(f"{self._next.text!r} has no place here")

    def expect_bounded(self, part: Pattern, column: int) -> None:
        count = written_out(part)
        if count > MOST_VARIABLES:
            shown = f"{str(part)[:40]!r} has {count:,} variables with its orders and counted loops written out"
            raise self._refusal(f"{shown}, and {MOST_VARIABLES:,} are the most", column)

    def alternation(self) -> Pattern:
        parts = [self._chain()]
        while self._takes("|"):
            parts.append(self._chain())
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts))

    def _chain(self) -> Pattern:
        parts, absent, is_after_arrow = [self._sequence(is_first=True)], [], False
        while True:
            column = self._next.column
            if not self._takes("->"):
                break
            if self._takes("!"):
                absent.append(self._name())
                is_after_arrow = True
                continue
            following = self._sequence()
            names, is_empty = first_variables(following)
            if is_empty:
                raise self._refusal(f"what follows '->' has to take a row, and '{following}' can do without one", column)
            parts += [Passing((*absent, *sorted(names)), tuple(absent)), following]
            absent, is_after_arrow = [], False
        if is_after_arrow:
            parts.append(Absence(tuple(absent)))
        return parts[0] if len(parts) == 1 else Sequence(tuple(_flat(parts)))

    def _sequence(self, is_first: bool = False) -> Pattern:
        factors = []
        while (factor := self._factor()) is not None:
            factors.append(factor)
        if not factors and not is_first:
            raise self._refusal("a part of the pattern is missing here")
        return factors[0] if len(factors) == 1 else Sequence(tuple(factors))

    def _factor(self) -> Pattern | None:
        column = self._next.column
        part = self._primary()
        while part is not None and (bounds := self._bounds()) is not None:
            part = Repetition(part, *bounds, is_greedy=not self._takes("?"))
            self.expect_bounded(part, column)
        return part

    def _bounds(self) -> tuple[int, int | None] | None:
        column = self._next.column
        for mark, bounds in _BOUNDS.items():
            if self._takes(mark):
                return bounds
        if not self._takes("{"):
            return None
        least = self._number()
        most = self._number() if self._takes(",") else least
        if least is None and most is None:
            raise self._refusal("a number is missing")
        self._expect("}")
        if most == 0 or (most is not None and most < (least or 0)):
            raise self._refusal(f"{least or 0} to {most} times is never", column)
        return least or 0, most

    def _number(self) -> int | None:
        if self._next.kind != "number":
            return None
        self._at += 1
        return int(self._tokens[self._at - 1].text)

    def _name(self) -> str:
        token = self._next
        if token.kind != "name":
            raise self._refusal("the name of a variable is missing")
        self._at += 1
        if token.text.startswith('"'):
            return token.text[1:-1].replace('""', '"')
        return token.text.lower() if self._folds else token.text

    def _primary(self) -> Pattern | None:
        if self._next.kind == "name":
            if self._next.text.upper() == "PERMUTE" and self._tokens[self._at + 1].text == "(":
                self._at += 1
                return self._permutation()
            return Variable(self._name())
        if self._takes("^"):
            return First()
        if self._takes("$"):
            return Last()
        if self._takes("("):
            inside = self.alternation()
            self._expect(")")
            return inside
        if self._takes("{-"):
            inside = self.alternation()
            self._expect("-}")
            return Exclusion(inside)
        if self._next.text == "!":
            raise self._refusal("'!' comes after '->', as in 'placed -> !paid'")
        return None

    def _permutation(self) -> Pattern:
        column = self._next.column
        self._expect("(")
        parts = [self.alternation()]
        while self._takes(","):
            parts.append(self.alternation())
        self._expect(")")
        found = Permutation(tuple(parts))
        self.expect_bounded(found, column)
        return found


def _flat(parts: list[Pattern]) -> list[Pattern]:
    return [each for part in parts for each in (part.parts if isinstance(part, Sequence) else (part,))]
