"""The records of a sqllogictest file, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class SortMode(Enum):
    """How rows are sorted before they are compared."""

    NO_SORT = "nosort"
    ROW_SORT = "rowsort"
    VALUE_SORT = "valuesort"


@dataclass(frozen=True)
class Place:
    """Where a record begins; lines count from 1."""

    file: Path
    line: int

    def __str__(self) -> str:
        """Return ``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class ExpectedError:
    """The statement is refused; with a regular expression, or the exact text of several lines, that the message fits.

    Without either any message fits.
    """

    pattern: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class ExpectedCount:
    """The statement succeeds; with a number, it changes or returns that many rows."""

    count: int | None = None


@dataclass(frozen=True)
class ExpectedRows:
    """The query gives these rows, a line each."""

    lines: tuple[str, ...]
    sort: SortMode | None = None


@dataclass(frozen=True)
class Record:
    """One record; ``onlyif`` and ``skipif`` are the labels before it."""

    place: Place
    onlyif: tuple[str, ...] = ()
    skipif: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sql(Record):
    """``statement`` and ``query``: a text, and what is expected of it."""

    text: str = ""
    expected: ExpectedCount | ExpectedError | ExpectedRows = ExpectedCount()
    attempts: int = 1


@dataclass(frozen=True)
class Let(Record):
    """``let a, b``: variables that the one row of a query gives values to."""

    names: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class System(Record):
    """``system ok``: a command of the shell."""

    command: str = ""


@dataclass(frozen=True)
class Sleep(Record):
    """``sleep 1s``."""

    seconds: float = 0.0


@dataclass(frozen=True)
class Control(Record):
    """``control name value`` and ``hash-threshold N``."""

    name: str = ""
    value: str = ""


@dataclass(frozen=True)
class Malformed(Record):
    """Lines that are no record."""

    problem: str = ""
