"""Runs the records of sqllogictest files: a fresh in-memory session for each file.

A record is *refused* where windowpane says that it does not run such a statement, or fails on a relation that a refused statement
should have made or filled; *wrong* where a result, a count or the outcome differs, or a statement fails while it runs; *crashed*
where an exception is none of windowpane's, or one that says that it is a mistake of windowpane's.

``sleep`` and ``retry`` are made for a server that works by itself; a session works when it gets FLUSH, so both FLUSH.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from verify.slt.comparison import Settings, lines_of, same_rows
from verify.slt.parser import read_file
from verify.slt.records import (
    Control,
    ExpectedCount,
    ExpectedError,
    ExpectedRows,
    Let,
    Malformed,
    Place,
    Record,
    Sleep,
    SortMode,
    Sql,
    System,
)
from verify.slt.taint import Taint
from windowpane.errors import SqlError, SqlNameError, SqlRunError, UnexpectedError, UnsupportedValueError, WindowpaneError
from windowpane.sql import Result, Session

_LABELS = frozenset({"windowpane", "postgres", "postgresql", "serial"})
_LONGEST_SLEEP = 2.0
_NOT_COMPARED = re.compile(
    r"\s*(?:explain|describe|desc|show\s+(?:create|columns|tables|views|materialized|sinks|sources|indexes|all))\b", re.IGNORECASE
)
_ALTERED = re.compile(r"\s*alter\s+materialized\s+view\s+\S+\s+as\b", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::([^}]*))?\}|(\w+))")
_NOT_OURS = re.compile(
    r"not (?:yet )?(?:supported|implemented|allowed)|unsupported|unimplemented|not permitted"
    r"|defining watermarks on table requires the table to be append only",
    re.IGNORECASE,
)


class Kind(Enum):
    """What a record came to."""

    PASSED = "passed"
    REFUSED = "refused"
    WRONG = "wrong"
    CRASHED = "crashed"


@dataclass(frozen=True)
class Outcome:
    """What a record came to; ``reason`` for a refused one, ``expected`` and ``got`` for a wrong one or a crash."""

    kind: Kind
    place: Place
    text: str = ""
    reason: str = ""
    expected: str = ""
    got: str = ""


def run_file(path: Path, open_session: Callable[[], Session], *, match_errors: bool = False) -> Iterator[Outcome]:
    """Yield the outcome of each record of a file.

    Args:
        path: the file.
        open_session: opens an empty session.
        match_errors: whether the message of an error must be the one expected; without, any refusal will do, since other
            engines have other words.
    """
    with open_session() as session:
        replay = _Replay(session, match_errors)
        for record in read_file(path):
            yield from replay.run(record)


class _RefusedError(Exception):
    """A record that cannot be run, for a reason of its own."""


class _Replay:
    """A session, and what the records so far have set."""

    def __init__(self, session: Session, match_errors: bool) -> None:
        self._session, self._match_errors = session, match_errors
        self._settings, self._taint = Settings(), Taint()
        self._variables: dict[str, str] = {}
        self._substitutes = False

    def run(self, record: Record) -> Iterator[Outcome]:
        """Run a record, and yield its outcome if it is one that is counted."""
        if not set(record.onlyif) <= _LABELS or set(record.skipif) & _LABELS:
            return
        match record:
            case Sql():
                yield self._sql(record)
            case Let():
                yield from self._let(record)
            case System():
                self._taint.everything("commands of the shell are not run")
                yield Outcome(Kind.REFUSED, record.place, record.command, "commands of the shell are not run")
            case Sleep():
                self._flush()
                time.sleep(min(record.seconds, _LONGEST_SLEEP))
            case Control():
                self._control(record)
            case Malformed():
                yield Outcome(Kind.WRONG, record.place, "", "", "a record", record.problem)

    def _control(self, record: Control) -> None:
        if record.name == "sortmode":
            self._settings.sort = SortMode(record.value)
        elif record.name == "resultmode":
            self._settings.value_wise = record.value == "valuewise"
        elif record.name == "substitution":
            self._substitutes = record.value == "on"
        elif record.name == "hash-threshold":
            self._settings.threshold = int(record.value)

    def _flush(self) -> None:
        try:
            self._session.run("FLUSH")
        except WindowpaneError:
            return  # the next FLUSH of the file says so

    def _sql(self, record: Sql) -> Outcome:
        outcome = self._attempt(record)
        if record.attempts > 1 and outcome.kind != Kind.PASSED:
            self._flush()
            outcome = self._attempt(record)
        if outcome.kind in (Kind.WRONG, Kind.CRASHED) and (reason := self._taint.reason(record.text)):
            outcome = Outcome(Kind.REFUSED, record.place, record.text, f"hangs on: {reason}")
        if outcome.kind == Kind.REFUSED:
            self._taint.refused(record.text, outcome.reason.removeprefix("hangs on: "))
        elif outcome.kind == Kind.PASSED and not isinstance(record.expected, ExpectedError):
            self._taint.made(record.text)
            if _ALTERED.match(record.text):
                self._taint.refused(record.text, "RisingWave leaves the rows of an altered view as they were")
        return outcome

    def _attempt(self, record: Sql) -> Outcome:
        place, expected = record.place, record.expected
        try:
            return self._compared(record, self._session.run(self._substituted(record.text)))
        except _RefusedError as error:
            return Outcome(Kind.REFUSED, place, record.text, str(error))
        except WindowpaneError as error:
            return self._failed(record, error)
        except Exception as error:
            return Outcome(Kind.CRASHED, place, record.text, "", _expected_text(expected), f"{type(error).__name__}: {error}")

    def _failed(self, record: Sql, error: WindowpaneError) -> Outcome:
        expected = record.expected
        if isinstance(error, UnexpectedError):
            return Outcome(Kind.CRASHED, record.place, record.text, "", _expected_text(expected), str(error))
        reason = self._taint.reason(record.text) if isinstance(error, SqlNameError) else None
        if reason is not None:
            return Outcome(Kind.REFUSED, record.place, record.text, f"hangs on: {reason}")
        if isinstance(expected, ExpectedError):
            if self._match_errors and not _matches(expected, str(error)):
                return Outcome(Kind.WRONG, record.place, record.text, "", _expected_text(expected), str(error))
            return Outcome(Kind.PASSED, record.place)
        if isinstance(error, UnsupportedValueError) or (isinstance(error, SqlError) and not isinstance(error, SqlRunError)):
            return Outcome(Kind.REFUSED, record.place, record.text, _reason(error))
        return Outcome(Kind.WRONG, record.place, record.text, "", _expected_text(expected), f"{type(error).__name__}: {error}")

    def _compared(self, record: Sql, results: list[Result]) -> Outcome:
        place, text, expected = record.place, record.text, record.expected
        result = next((each for each in results if each.has_rows), results[-1] if results else Result(""))
        if isinstance(expected, ExpectedError):
            if expected.pattern is not None and _NOT_OURS.search(expected.pattern) and not self._match_errors:
                return Outcome(Kind.REFUSED, place, text, f"runs here, and is refused elsewhere: {expected.pattern}")
            return Outcome(
                Kind.WRONG, place, text, "", _expected_text(expected), "\n".join(_shown(result, self._settings)) or result.tag
            )
        if isinstance(expected, ExpectedCount):
            found = _count(result)
            right = expected.count is None or expected.count == found
            return Outcome(Kind.PASSED if right else Kind.WRONG, place, text, "", _expected_text(expected), f"{found} rows")
        if _NOT_COMPARED.match(text):
            return Outcome(Kind.REFUSED, place, text, "plans and lists of the catalog are not compared")
        got = lines_of(result.text_rows(), result.types, expected, self._settings)
        keys = result.order_keys() if result.ordering else []
        kind = Kind.PASSED if same_rows(got, expected, keys, self._settings) else Kind.WRONG
        return Outcome(kind, place, text, "", "\n".join(expected.lines), "\n".join(line.text for line in got))

    def _let(self, record: Let) -> Iterator[Outcome]:
        try:
            rows = self._session.query(self._substituted(record.text)).text_rows()
        except (WindowpaneError, _RefusedError) as error:
            yield Outcome(Kind.REFUSED, record.place, record.text, _reason(error))
            return
        if len(rows) != 1 or len(rows[0]) != len(record.names):
            yield Outcome(Kind.WRONG, record.place, record.text, "", f"one row of {', '.join(record.names)}", str(rows))
            return
        self._variables |= {name: cell or "" for name, cell in zip(record.names, rows[0], strict=True)}

    def _substituted(self, text: str) -> str:
        """Put in the values of variables: those of ``let``, and those of the environment where ``control substitution`` is on."""
        known = {**self._variables, "__TEST_DIR__": tempfile.gettempdir(), "__NOW__": str(time.time_ns())}
        if not self._substitutes:
            return re.sub(r"\$(\w+)", lambda found: known.get(found.group(1), found.group(0)), text)
        known = {**os.environ, **known}

        def value(found: re.Match[str]) -> str:
            name = found.group(1) or found.group(3)
            if name in known or found.group(2) is not None:
                return known.get(name, found.group(2) or "")
            raise _RefusedError("a variable of the environment is not set")

        return _VARIABLE.sub(value, text)


def _matches(expected: ExpectedError, message: str) -> bool:
    if expected.text is not None:
        return expected.text.strip() == message.strip()
    return expected.pattern is None or re.search(expected.pattern, message) is not None


def _count(result: Result) -> int:
    last = result.tag.split(" ")[-1]
    return len(result) if result.has_rows else int(last) if last.isdigit() else 0


def _shown(result: Result, settings: Settings) -> list[str]:
    return [line.text for line in lines_of(result.text_rows(), result.types, ExpectedRows(()), settings)]


def _expected_text(expected: ExpectedCount | ExpectedError | ExpectedRows) -> str:
    match expected:
        case ExpectedCount(None):
            return "ok"
        case ExpectedCount(count):
            return f"{count} rows"
        case ExpectedError(pattern, text):
            return f"an error {pattern or text or ''}".rstrip()
        case _:
            return "\n".join(expected.lines)


def _reason(error: Exception) -> str:
    """Return what a message says first, without its place."""
    message = re.sub(r"^line \d+, column \d+: ", "", str(error))
    return re.split(r"(?<=[\w'\")])[.:] |\n", message, maxsplit=1)[0][:120].rstrip(".")
