"""The matcher: it tries every way through a pattern, one row at a time, in the order of preference of SQL:2016.

A pattern is written out as steps, and the search is one loop over them with a stack of the ways that are left to try, the last
one first::

    take A      the next row, if the condition of A holds for it      either x y   go on at x; if that fails, at y
    pass A B    the next row, if it is neither an A nor a B           mark, moved  between both a row has to be taken
    absent A    no further row is an A                             first, last  the next row is the first, or there is none

So a match of a million rows needs no deep stack. An attempt that asks for a row that nobody knows yet ends with
``UnknownRowError``: it waits, and is made again from its first row. The engines are compared with this.

Source: SQL:2016, part 5 (ISO/IEC TR 19075-5) for the order of preference, Trino for what it leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from windowpane.arrays.values import Value
from windowpane.errors import PatternLimitError
from windowpane.operators.patterns.values import Label, Path, Values
from windowpane.windowing.expressions import Expression
from windowpane.windowing.patterns import tree
from windowpane.windowing.patterns.spec import MAX_STEPS


class UnknownRowError(Exception):
    """The next way in the order of preference asks for a row that is not known yet."""


@dataclass(frozen=True)
class Step:
    """One step of a pattern: what it does, of which variables, and the steps that it goes on at, the preferred one first."""

    kind: str
    names: tuple[str, ...] = ()
    then: tuple[int, ...] = ()
    is_shown: bool = True


def compile_pattern(pattern: tree.Pattern) -> tuple[Step, ...]:
    """Return the steps of a pattern; the last one is its end."""
    steps: list[Step] = []
    _write(pattern, steps, is_shown=True)
    return (*steps, Step("end"))


def _write(pattern: tree.Pattern, steps: list[Step], is_shown: bool) -> None:
    match pattern:
        case tree.Variable(name):
            steps.append(Step("take", (name,), is_shown=is_shown))
        case tree.Sequence(parts):
            for part in parts:
                _write(part, steps, is_shown)
        case tree.Permutation():
            _write(pattern.orders, steps, is_shown)
        case tree.Exclusion(part):
            _write(part, steps, is_shown=False)
        case tree.Alternation(parts):
            _either(parts, steps, is_shown)
        case tree.Repetition(part, least, most, is_greedy):
            for _ in range(least):
                _write(part, steps, is_shown)
            if most is None:
                _loop(part, steps, is_greedy, is_shown)
            else:
                _optional(part, most - least, steps, is_greedy, is_shown)
        case tree.First():
            steps.append(Step("first"))
        case tree.Last():
            steps.append(Step("last"))
        case tree.Passing(until):
            here = len(steps)
            steps += [Step("either", then=(here + 3, here + 1)), Step("pass", until), Step("either", then=(here,))]
        case tree.Absence(of):
            steps.append(Step("absent", of))


def _either(parts: Sequence[tree.Pattern], steps: list[Step], is_shown: bool) -> None:
    ends = []
    for part in parts[:-1]:
        choice = len(steps)
        steps.append(Step("either"))
        _write(part, steps, is_shown)
        ends.append(len(steps))
        steps.append(Step("either"))
        steps[choice] = Step("either", then=(choice + 1, len(steps)))
    _write(parts[-1], steps, is_shown)
    for end in ends:
        steps[end] = Step("either", then=(len(steps),))


def _loop(part: tree.Pattern, steps: list[Step], is_greedy: bool, is_shown: bool) -> None:
    choice = len(steps)
    steps += [Step("either"), Step("mark")]
    _write(part, steps, is_shown)
    steps += [Step("moved"), Step("either", then=(choice,))]
    ways = (choice + 1, len(steps))
    steps[choice] = Step("either", then=ways if is_greedy else ways[::-1])


def _optional(part: tree.Pattern, times: int, steps: list[Step], is_greedy: bool, is_shown: bool) -> None:
    """Write ``(p (p (p)?)?)?``."""
    choices = []
    for _ in range(times):
        choices.append(len(steps))
        steps += [Step("either"), Step("mark")]
        _write(part, steps, is_shown)
        steps.append(Step("moved"))
    for choice in choices:
        ways = (choice + 1, len(steps))
        steps[choice] = Step("either", then=ways if is_greedy else ways[::-1])


@dataclass
class Attempt:
    """One attempt to match, from a row on."""

    steps: Sequence[Step]  # those of the pattern
    conditions: Mapping[str, Expression]  # by variable; one without a condition takes every row
    subsets: Mapping[str, frozenset[str]]  # the variables that a name stands for, where it stands for several
    columns: Mapping[str, Sequence[Value]]  # the values of the rows of the partition, by column
    start: int  # the row that the attempt begins at
    known: int  # how many rows are known, those of the partition before them included
    is_ended: bool  # whether no further row can belong to it
    is_first: bool = True  # whether no row of the partition was before the first one of ``columns``
    number: int = 1  # that of the match to be
    key: Value = None  # the partition, for messages
    most_steps: int = MAX_STEPS  # after so many steps the search is given up
    partial: tuple[Label, ...] | None = field(default=None, init=False)
    """The first path with a row that ended for want of another: of an attempt that failed, or that waits for one."""

    def __post_init__(self) -> None:
        self._values = Values(self, self.start, self.number)

    def has(self, row: int) -> bool:
        """Return whether there is such a row.

        Raises:
            UnknownRowError: nobody knows yet.
        """
        if row < self.known:
            return True
        if not self.is_ended:
            raise UnknownRowError
        return False

    def run(self) -> tuple[Label, ...] | None:
        """Return the rows of the preferred match, ``None`` if there is no match.

        Raises:
            UnknownRowError: the search asks for a row that is not known yet.
            PatternLimitError: it takes too many steps.
        """
        path = Path(self.subsets)
        left: list[tuple[int, int, tuple[Value, ...]]] = [(0, 0, ())]
        taken = 0
        while left:
            step, rows, marks = left.pop()
            path.cut(rows)
            while True:
                taken += 1
                if taken > self.most_steps:
                    raise PatternLimitError(self.key, self.most_steps)
                what = self.steps[step]
                step += 1
                if what.kind == "end":
                    return tuple(path.labels)
                if what.kind == "either":
                    step, *others = what.then
                    left += [(other, len(path), marks) for other in others]
                elif what.kind == "mark":
                    marks = (len(path), marks)
                elif what.kind == "moved":
                    if marks[0] == len(path):
                        break
                    marks = marks[1]
                elif not self._goes_on(what, path):
                    break
        return None

    def _goes_on(self, what: Step, path: Path) -> bool:
        row = self.start + len(path)
        match what.kind:
            case "first":
                return row == 0 and self.is_first
            case "last":
                return not self.has(row)
            case "absent":
                while self.has(row):
                    if self._is_one_of(what.names, row, path):
                        return False
                    row += 1
                return True
        if row >= self.known and self.partial is None and any(label.variable is not None for label in path.labels):
            self.partial = tuple(path.labels)
        if not self.has(row):
            return False
        if what.kind == "take":
            path.append(Label(row, what.names[0], what.is_shown))
            return self._holds(what.names[0], path)
        if self._is_one_of(what.names, row, path):
            return False
        path.append(Label(row, None, False))
        return True

    def _is_one_of(self, names: Sequence[str], row: int, path: Path) -> bool:
        for name in names:
            path.append(Label(row, name, False))
            holds = self._holds(name, path)
            path.cut(len(path) - 1)
            if holds:
                return True
        return False

    def _holds(self, name: str, path: Path) -> bool:
        condition = self.conditions.get(name)
        return condition is None or self._values.of(condition, path) is True
