"""Reads sqllogictest files, by the rules of sqllogictest-rs.

A record ends at an empty line. ``include`` puts the records of the files that its pattern names in its place; ``halt`` ends the
file; ``subtest`` and ``connection`` mean nothing here: one session serves every connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any

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
from windowpane.errors import InvalidDurationError
from windowpane.windowing.times import to_micros

_DELIMITER = "----"
_IGNORED = ("subtest", "connection")
_SORT_MODES = {mode.value: mode for mode in SortMode}


class MalformedRecordError(Exception):
    """A line that begins no record, or a record that is incomplete."""


class _Lines:
    """The lines of a file, read one by one."""

    def __init__(self, text: str) -> None:
        self._lines, self.number = text.splitlines(), 0

    def next(self) -> str | None:
        """Return the next line, ``None`` at the end."""
        if self.number == len(self._lines):
            return None
        self.number += 1
        return self._lines[self.number - 1]

    def block(self, until: str | None = None) -> tuple[str, bool]:
        """Return the lines up to an empty one, or to one that is ``until``, and whether it was that; the first may be any."""
        first = self.next()
        if first is None:
            raise MalformedRecordError("the record has no text")
        found = [first]
        while (line := self.next()) not in (None, "", until):
            found.append(str(line))
        return "\n".join(found), line is not None and line == until

    def rows(self) -> tuple[str, ...]:
        """Return the lines up to an empty one."""
        return tuple(iter(lambda: self.next() or "", ""))

    def message(self) -> str:
        """Return the lines up to two empty ones."""
        found: list[str] = []
        while (line := self.next()) is not None and (line or (found[-1:] != [""])):
            found.append(line)
        return "\n".join(found).strip()


def read_file(path: Path) -> Iterator[Record]:
    """Yield the records of a file, those of included files among them.

    A record that cannot be read is a ``Malformed`` one.
    """
    yield from _read(path)


def find_files(paths: Iterable[Path], only: str = "") -> list[Path]:
    """Return the files to run: those given, and of folders all but those that others below them include.

    Args:
        paths: files, or folders of ``*.slt`` and ``*.slt.part``.
        only: a part that the path of a file must contain.

    Raises:
        FileNotFoundError: there is no such path.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path} is neither a file nor a folder")
        below = [] if path.is_file() else sorted([*path.rglob("*.slt"), *path.rglob("*.slt.part")])
        included = {part.resolve() for each in below for part in _includes(each)}
        found += [path] if path.is_file() else [each for each in below if each.resolve() not in included]
    return [path for path in found if only in str(path)]


def _includes(path: Path) -> Iterator[Path]:
    for pattern in re.findall(r"^include\s+(\S+)\s*$", path.read_text(encoding="utf-8"), re.MULTILINE):
        yield from _named(path, pattern)


def _named(path: Path, pattern: str) -> list[Path]:
    """Return the files that a pattern names, seen from the folder of a file."""
    return sorted(Path(each) for each in glob(str(path.parent / pattern), recursive=True))


def _read(path: Path) -> Iterator[Record]:
    lines = _Lines(path.read_text(encoding="utf-8"))
    labels: dict[str, list[str]] = {"onlyif": [], "skipif": []}
    while (line := lines.next()) is not None:
        words = line.split()
        if not words or line.startswith("#"):
            continue
        place = Place(path, lines.number)
        if words[0] in labels and len(words) > 1:
            labels[words[0]].append(words[1])
        elif words == ["halt"]:
            return
        elif words[0] == "include" and len(words) == 2:
            yield from _included(path, words[1], place)
        elif words[0] not in _IGNORED:
            yield _record(words, lines, place, {name: tuple(found) for name, found in labels.items()})
            labels = {"onlyif": [], "skipif": []}


def _included(path: Path, pattern: str, place: Place) -> Iterator[Record]:
    found = _named(path, pattern)
    if not found:
        yield Malformed(place, problem=f"no file is named {pattern}")
    for each in found:
        yield from _read(each)


def _record(words: Sequence[str], lines: _Lines, place: Place, labels: Any) -> Record:
    read = _READERS.get(words[0])
    try:
        if read is None:
            raise MalformedRecordError(f"a record cannot begin with {words[0]!r}")
        return read(list(words[1:]), lines, place, labels)
    except (MalformedRecordError, InvalidDurationError) as error:
        return Malformed(place, problem=str(error), **labels)


def _statement(words: list[str], lines: _Lines, place: Place, labels: Any) -> Record:
    match words:
        case ["ok", *rest]:
            return _sql(ExpectedCount(), rest, lines, place, labels)
        case ["count", number, *rest] if number.isdigit():
            return _sql(ExpectedCount(int(number)), rest, lines, place, labels)
        case ["error", *rest]:
            return _error(rest, lines, place, labels)
        case _:
            raise MalformedRecordError(f"a statement is ok, count N or error, not {' '.join(words)!r}")


def _query(words: list[str], lines: _Lines, place: Place, labels: Any) -> Record:
    if words[:1] == ["error"]:
        return _error(words[1:], lines, place, labels)
    rest = words[1:]
    sort = _SORT_MODES.get(rest[0]) if rest else None
    rest = rest[1:] if sort else rest
    rest = rest[1:] if rest and rest[0] != "retry" else rest  # a label
    return _sql(ExpectedRows((), sort), rest, lines, place, labels)


def _error(words: list[str], lines: _Lines, place: Place, labels: Any) -> Record:
    retries = len(words) == 4 and words[0] == "retry"
    pattern = None if retries or not words else " ".join(words)
    return _sql(ExpectedError(pattern), words if retries else [], lines, place, labels)


def _sql(
    expected: ExpectedCount | ExpectedError | ExpectedRows, retry: list[str], lines: _Lines, place: Place, labels: Any
) -> Record:
    text, has_result = lines.block(_DELIMITER)
    if has_result and isinstance(expected, ExpectedRows):
        expected = ExpectedRows(lines.rows(), expected.sort)
    elif has_result and isinstance(expected, ExpectedError) and expected.pattern is None:
        expected = ExpectedError(text=lines.message())
    elif has_result:
        raise MalformedRecordError("a statement has no result: write query")
    return Sql(place, text=text, expected=expected, attempts=_attempts(retry), **labels)


def _attempts(words: list[str]) -> int:
    match words:
        case []:
            return 1
        case ["retry", number, "backoff", _] if number.isdigit():
            return int(number)
        case _:
            raise MalformedRecordError(f"{' '.join(words)!r} is not retry N backoff TIME")


def _let(words: list[str], lines: _Lines, place: Place, labels: Any) -> Record:
    names = tuple(name for name in re.split(r"[,\s]+", " ".join(words)) if name)
    return Let(place, names=names, text=lines.block()[0], **labels)


def _system(words: list[str], lines: _Lines, place: Place, labels: Any) -> Record:
    command, has_result = lines.block(_DELIMITER)
    if has_result:
        lines.message()
    return System(place, command=command, **labels)


def _sleep(words: list[str], lines: _Lines, place: Place, labels: Any) -> Record:
    return Sleep(place, seconds=to_micros(re.sub(r"(\d)([a-z])", r"\1 \2", " ".join(words))) / 1e6, **labels)


def _control(words: list[str], lines: _Lines, place: Place, labels: Any) -> Record:
    if len(words) != 2:
        raise MalformedRecordError("a control has a name and a value")
    return Control(place, name=words[0], value=words[1], **labels)


def _threshold(words: list[str], lines: _Lines, place: Place, labels: Any) -> Record:
    return Control(place, name="hash-threshold", value=words[0] if words else "0", **labels)


_READERS: dict[str, Callable[[list[str], _Lines, Place, Any], Record]] = {
    "statement": _statement,
    "query": _query,
    "let": _let,
    "system": _system,
    "sleep": _sleep,
    "control": _control,
    "hash-threshold": _threshold,
}
