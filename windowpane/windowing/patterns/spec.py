"""The spec of a row pattern: everything of ``MATCH_RECOGNIZE`` but the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from windowpane.errors import InvalidSpecError
from windowpane.windowing.expressions import Expression
from windowpane.windowing.patterns.tree import Last, Pattern, every_part, longest, looked_for, passes_over_others, variables
from windowpane.windowing.patterns.values import columns_of, is_moved, is_of_rows, lookback
from windowpane.windowing.times import MAX

RowsShown = Literal["one", "all", "all omit empty", "all unmatched"]
"""What comes out of a match: one row; each of its rows; so, but for empty matches; and rows that are in no match, too."""

SkipTo = Literal["past last row", "to next row", "to first", "to last"]
OnError = Literal["raise", "next row"]

MAX_ROWS = 100_000
MAX_STEPS = 10_000_000


@dataclass(frozen=True)
class AfterMatch:
    """Where the search goes on after a match: behind its last row, at its second one, or at a row of a variable."""

    to: SkipTo = "past last row"
    variable: str | None = None

    def __post_init__(self) -> None:
        """Check it.

        Raises:
            InvalidSpecError: another word, or a variable where there is none to be, or none where there is one.
        """
        if self.to not in get_args(SkipTo) or (self.variable is not None) != (self.to in ("to first", "to last")):
            raise InvalidSpecError(
                f"after_match({self.to!r}{'' if self.variable is None else f', {self.variable!r}'}): it is 'past last row', "
                "'to next row', ('to first', 'a') or ('to last', 'a')."
            )

    def __str__(self) -> str:
        return self.to if self.variable is None else f"{self.to} {self.variable}"


PAST_LAST_ROW = AfterMatch()
"""What SQL does where nothing is said."""


@dataclass(frozen=True)
class Measure:
    """A value of each result: its name, what it is, and whether rows of ``all`` show it as of the whole match."""

    name: str
    value: Expression
    is_final: bool = False


@dataclass(frozen=True)
class PatternSpec:
    """A row pattern."""

    pattern: Pattern  # the pattern
    conditions: Mapping[str, Expression] = field(default_factory=dict)  # by variable; one without a condition takes every row
    subsets: Mapping[str, frozenset[str]] = field(default_factory=dict)  # names that stand for several variables
    measures: tuple[Measure, ...] = ()  # the values of a result
    rows: RowsShown = "one"  # what comes out of a match
    after_match: AfterMatch = PAST_LAST_ROW  # where the search goes on
    on_error: OnError = "raise"  # what happens where there is no such row: an error, or on at the next row
    # microseconds that a match may last, the first to the last row less than that; ``None`` for any time
    within: int | None = None
    has_timeouts: bool = False  # whether attempts that fail for want of a row within the bound come out
    most_rows: int = MAX_ROWS  # a waiting attempt of more rows is given up
    most_steps: int = MAX_STEPS  # the search for one match takes no more

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables, those that only say what must not come last."""
        return tuple(dict.fromkeys((*variables(self.pattern), *looked_for(self.pattern))))

    @property
    def _values(self) -> list[Expression]:
        return [*self.conditions.values(), *(measure.value for measure in self.measures)]

    @property
    def lookback(self) -> int:
        """How many rows before the first one of a match are looked at."""
        return max(map(lookback, self._values), default=0)

    @property
    def asks(self) -> set[str]:
        """The columns that conditions and measures ask of rows."""
        return set().union(*map(columns_of, self._values))

    @property
    def leaves_rows_out(self) -> bool:
        """Whether a row that no variable takes changes no result."""
        if self.rows == "all unmatched" or any(map(is_moved, self._values)) or not passes_over_others(self.pattern):
            return False
        defined = self.conditions
        return all(name in defined and is_of_rows(defined[name], self.stands_for, name) for name in self.variables)

    @property
    def passed_on(self) -> int | None:
        """Microseconds by which results may stay behind the watermark; ``None`` where nothing bounds it."""
        if self.within is not None:
            return self.within
        ends = any(isinstance(part, Last) for part in every_part(self.pattern))
        return 0 if longest(self.pattern) == 1 and not ends else None

    def bound(self, time: int) -> int | None:
        """Return the last microsecond of an attempt that begins at a time, ``None`` where there is none."""
        return None if self.within is None else min(time + self.within - 1, MAX)

    def stands_for(self, name: str) -> frozenset[str]:
        """Return the variables that a name stands for."""
        return self.subsets.get(name, frozenset({name}))
