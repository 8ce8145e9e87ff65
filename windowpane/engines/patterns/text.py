"""The text engine of row patterns: conditions become one byte a row, all rows at once, and a regular expression searches them.

It runs patterns whose conditions look at the row itself and at rows before it. Which rows a match has follows from the groups of
the expression; where a part has several variables, the matcher that backtracks labels the few rows of the match.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.engines.patterns.batch import Decided, Partitions, PatternBatch
from windowpane.engines.patterns.measures import Matches
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.rows import python_keys, python_values
from windowpane.errors import MistakeError, present
from windowpane.hidden_columns import TIME, hidden
from windowpane.kernels.conditions import holds
from windowpane.kernels.patterns import regex
from windowpane.kernels.patterns.regex import GOING_ON, OPENING, PatternText
from windowpane.operators.patterns.matcher import Attempt, UnknownRowError
from windowpane.operators.patterns.search import Cursor, Found, Search
from windowpane.operators.patterns.values import Label
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.expressions import Constant, Expression, Operation
from windowpane.windowing.patterns.spec import PatternSpec
from windowpane.windowing.patterns.tree import Absence, Last, every_part
from windowpane.windowing.patterns.values import Moved, Picked
from windowpane.windowing.times import MAX

_NO_CONDITION = 128
_UNKNOWN = b"U"


def refusal(program: PatternProgram) -> str | None:
    """Return why the engine cannot run a program, ``None`` if it can."""
    return refusal_of(program.spec)


def refusal_of(spec: PatternSpec) -> str | None:
    """Return why the engine cannot run a pattern, ``None`` if it can."""
    for name, condition in spec.conditions.items():
        if not _is_of_rows(condition, spec.stands_for, name):
            return f"the condition of {name} is of the match so far or of rows to come"
    if any(_looks_ahead(measure.value) for measure in spec.measures):
        return "a measure is of rows behind the match"
    if spec.has_timeouts and any(isinstance(part, Absence | Last) for part in every_part(spec.pattern)):
        return "it has timeouts of a pattern that waits for the end"
    return regex.refusal(spec.pattern, len(spec.conditions))


def _is_of_rows(condition: Expression, stands_for: Callable[[str], frozenset[str]], name: str) -> bool:
    """Whether a condition is of its row and of those before: the last row of its variable is the row itself."""
    match condition:
        case Constant():
            return True
        case Operation(_, parts):
            return all(_is_of_rows(part, stands_for, name) for part in parts)
        case Picked(end, variable, _, offset):
            return end == "last" and not offset and (variable is None or name in stands_for(variable))
        case Moved(of, rows):
            return rows <= 0 and _is_of_rows(of, stands_for, name)
    return False


def held_by(variable: str) -> str:
    """Return the name of the column that says whether the condition of a variable holds."""
    return hidden(f"held_by_{variable}")


def _looks_ahead(value: Expression) -> bool:
    return any(map(_looks_ahead, value.operands)) or (isinstance(value, Moved) and value.rows > 0)


class PatternTextEngine:
    name = "pattern text"

    def __init__(self, program: PatternProgram) -> None:
        self._program = program
        spec = program.spec
        self._text = PatternText(spec.pattern, {name: bit for bit, name in enumerate(spec.conditions)})
        self._search = Search(spec, {name: Picked("last", None, held_by(name)) for name in spec.conditions})

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        return _Batch(self._program, store, self._text, self._search).run(rows, clock)


class _Batch(PatternBatch):
    def __init__(self, program: PatternProgram, store: BlobStore, text: PatternText, search: Search) -> None:
        super().__init__(program, store)
        self._text, self._search = text, search

    def search(self, rows: pa.Table, partitions: Partitions, known: int) -> None:
        searched = Searched(self.program, rows, partitions, known, self._text, self._search)
        decided, timeouts = Decided(), Decided()
        left = partitions.searched.tolist()
        if searched.matches is not None and _finds_spans_alone(self.program.spec):
            left = Together(searched, partitions, searched.matches).search()
        for number in left:
            with partitions.moving(number) as cursor:
                first, end = int(partitions.firsts[number]), int(partitions.ends[number])
                for row, values, is_timeout in InPartition(searched, first, end, cursor).results():
                    (timeouts if is_timeout else decided).add(first + (row or 0), values)
        self.decide(rows, decided, timeouts)
        if searched.matches is not None:
            self.emit(searched.matches.table(rows))


def _finds_spans_alone(spec: PatternSpec) -> bool:
    """Whether nothing comes out but matches, and where the search goes on follows from where a match ends."""
    return not spec.has_timeouts and spec.after_match.to in ("past last row", "to next row")


def _is_one_of(chosen: bytes) -> Mask:
    """Return for each byte whether it is one of some."""
    found = np.zeros(256, np.bool_)
    found[np.frombuffer(chosen, np.uint8)] = True
    return found


class Searched:
    """The rows of the partitions of a step, as bytes, and as Python values where these are asked for."""

    def __init__(
        self,
        program: PatternProgram,
        rows: pa.Table,
        partitions: Partitions,
        known: int,
        text: PatternText,
        search: Search,
    ) -> None:
        self.program, self.known, self.text, self.search = program, known, text, search
        self.times = rows[TIME].to_numpy()
        self._rows = rows
        self._opens = np.repeat(partitions.firsts, partitions.ends - partitions.firsts)
        self.bytes = self._of_rows()
        self.is_candidate = _is_one_of(text.openings)[self.bytes]
        spans = text.variables if program.spec.rows == "one" else None
        self.matches = None if spans is None else Matches(program, spans, self._opens, text.last_part, search.waits_for_bound)

    def _of_rows(self) -> Integers:
        """Return the byte of each row: a bit for each condition that holds."""
        found = np.full(self._rows.num_rows, _NO_CONDITION, np.uint8)
        for bit, condition in enumerate(self.program.spec.conditions.values()):
            mask = holds(condition, self._column, self._rows.num_rows)
            found |= mask.to_numpy(zero_copy_only=False).astype(np.uint8) << np.uint8(bit)
        return found

    def _column(self, leaf: Expression) -> pa.Array:
        if isinstance(leaf, Picked):
            return flat(self._rows[leaf.column])
        if not isinstance(leaf, Moved):
            raise MistakeError(f"{leaf!r} is of a match")
        places = np.arange(self._rows.num_rows) + leaf.rows
        return flat(self._rows[leaf.of.column]).take(pa.array(places, mask=places < self._opens))

    @cached_property
    def columns(self) -> Mapping[str, list[Value]]:
        """All columns as Python values; the condition of a variable is a column, too."""
        columns = {name: python_values(name, self._rows[name]) for name in self.program.columns.names}
        held = {held_by(name): (self.bytes >> np.uint8(bit) & 1 > 0).tolist() for name, bit in self.text.bits.items()}
        return columns | held

    def key(self, row: int) -> Value:
        return python_keys(self._rows.slice(row, 1), self.program.keys)[0]


class Together:
    """The search in the rows of all keys of a step at once, where matches are all that is looked for.

    The keys lie behind one another in one text. An attempt ends before the first row beyond its bound or, where its last moment
    is not known yet, behind the byte that says so. The first attempt that reaches it waits, and the rest of its key with it.
    """

    def __init__(self, searched: Searched, partitions: Partitions, matches: Matches) -> None:
        self._all, self._keys, self._matches = searched, partitions, matches
        numbers = partitions.searched
        begins = partitions.firsts[numbers] + partitions.starts[numbers]
        self._lengths = partitions.ends[numbers] - begins
        unknown = int(searched.known != MAX)
        self._opens = np.cumsum(self._lengths + 1 + unknown) - (self._lengths + 1 + unknown)
        self._shifts = begins - self._opens - 1  # a row is its place and this
        places = np.arange(int(self._lengths.sum())) - np.repeat(np.cumsum(self._lengths) - self._lengths, self._lengths)
        self._rows = places + np.repeat(begins, self._lengths)
        self._places = places + np.repeat(self._opens + 1, self._lengths)
        text = np.full(int((self._lengths + 1 + unknown).sum()), ord(_UNKNOWN), np.uint8)
        text[self._opens] = np.where(partitions.is_first[numbers] & (partitions.starts[numbers] == 0), OPENING, GOING_ON)
        text[self._places] = searched.bytes[self._rows]
        self._bytes, self._text = text, text.tobytes()
        self._ends = self._opens + 1 + self._lengths + unknown

    def search(self) -> list[int]:
        """Search, move the cursors, and return the numbers of keys that are left: too many rows wait there."""
        keys, all_spec = self._keys, self._all.program.spec
        at, owners, behind = self._candidates()
        places, stops = self._places[at].tolist(), behind.tolist()
        following = np.searchsorted(owners, owners, side="right").tolist()
        waits, founds, spans = self._found(places, stops, following, all_spec.after_match.to == "to next row")
        numbers = keys.searched
        keys.starts[numbers] = keys.ends[numbers] - keys.firsts[numbers]
        left = list[int]()
        for number in waits:
            owner, place = owners[number], places[number]
            key = numbers[owner]
            keys.starts[key] = place + self._shifts[owner] - keys.firsts[key]
            if self._ends[owner] - 1 - place > all_spec.most_rows:
                left.append(int(key))
        if founds:
            self._add(owners[founds], spans)
        return left

    def _candidates(self) -> tuple[Integers, Integers, Integers]:
        """Return the rows that a match may begin at, their keys, and the place behind the last row of each such attempt.

        Left out is what fails in any case: where no match goes on with the second row, or where a row is there whose absence is
        asked for.
        """
        text = self._all.text
        is_possible = self._all.is_candidate[self._rows]
        if text.seconds is not None:
            behind = np.minimum(self._places + 1, len(self._bytes) - 1)
            is_possible &= _is_one_of(text.seconds)[self._bytes[behind]]
        at = np.flatnonzero(is_possible)
        owners = np.repeat(np.arange(len(self._lengths)), self._lengths)[at]
        stops = self._stops(at, owners)
        if text.absence is None:
            return at, owners, stops
        rows, most = text.absence
        so_far = np.concatenate([[0], np.cumsum(_is_one_of(rows)[self._bytes])])
        fails = so_far[stops] > so_far[np.minimum(self._places[at] + most, stops)]
        return at[~fails], owners[~fails], stops[~fails]

    def _found(
        self, places: list[int], stops: list[int], following: list[int], to_next: bool
    ) -> tuple[list[int], list[int], list[tuple[tuple[int, int], ...]]]:
        """Return the attempts that wait, those that match, by their numbers, and the places of the groups of each match."""
        match, text, unknown = self._all.text.regex.match, self._text, _UNKNOWN[0]
        waits, founds, spans, number, count = list[int](), list[int](), list[tuple[tuple[int, int], ...]](), 0, len(places)
        last = self._all.text.last_part
        while number < count:
            found = match(text, places[number], stops[number])
            if found is None:
                number += 1
                continue
            groups = found.regs
            if text[groups[0][1] - 1] == unknown:
                waits.append(number)
                number = following[number]
                continue
            founds.append(number)
            spans.append(groups)
            number = number + 1 if to_next else bisect_left(places, groups[last][1], number + 1, following[number])
        return waits, founds, spans

    def _add(self, owners: Integers, spans: list[tuple[tuple[int, int], ...]]) -> None:
        keys = self._keys.searched[owners]
        firsts = np.searchsorted(owners, owners, side="left")
        numbers = self._keys.matches[keys] + np.arange(1, len(owners) + 1) - firsts
        self._matches.add(spans, self._shifts[owners].tolist(), numbers.tolist())
        self._keys.matches[self._keys.searched] += np.bincount(owners, minlength=len(self._lengths))

    def _stops(self, at: Integers, owners: Integers) -> Integers:
        """Return for each attempt the place behind its last row."""
        within, known = self._all.program.spec.within, self._all.known
        ends: Integers = self._ends[owners]
        if within is None:
            return ends
        times = self._all.times[self._rows]
        bounds = np.minimum(times[at], MAX - within) + (within - 1)
        moments = _moments(np.concatenate([times, bounds]), len(self._lengths))
        span = int(moments.max(initial=0)) + 1
        ordered = moments[: len(times)] + np.repeat(np.arange(len(self._lengths)) * span, self._lengths)
        behind = np.searchsorted(ordered, moments[len(times) :] + owners * span, side="right")
        begins = np.cumsum(self._lengths) - self._lengths
        stops: Integers = np.where(known < bounds, ends, behind - begins[owners] + self._opens[owners] + 1)
        return stops


def _moments(times: Integers, keys: int) -> Integers:
    """Return numbers from 0 on in the order of times, so small that a number of keys can be put in front of each."""
    least, most = (int(times.min()), int(times.max())) if len(times) else (0, 0)
    found: Integers = times - least if (most - least + 1) * keys <= MAX else np.unique(times, return_inverse=True)[1]
    return found


class InPartition:
    """The search in the rows of one partition.

    A *place* is where a row has its byte in ``_buffer``: the first row of the next attempt, at the beginning, is at 1.
    """

    def __init__(self, searched: Searched, first: int, end: int, cursor: Cursor) -> None:
        self._all, self._first, self._end, self._cursor = searched, first, end, cursor
        self._begins = self._first + self._cursor.start
        opening = OPENING if self._cursor.is_first and not self._cursor.start else GOING_ON
        rows = searched.bytes[self._begins : self._end].tobytes()
        self._buffer = bytes([opening]) + rows + (b"" if searched.known == MAX else _UNKNOWN)
        self._rows = len(rows)
        self._times = searched.times[self._begins : self._end]
        self._spec = searched.program.spec

    def results(self) -> Iterator[Found]:
        """Yield what is decided, but for matches that are spans, and move the cursor."""
        cursor = self._cursor
        while (place := self._place) <= self._rows:
            found = self._next(place)
            if self._spec.has_timeouts or self._spec.rows == "all unmatched":
                yield from self._failures(place, found.start() if found else self._rows + 1)
            if found is None:
                cursor.start = self._row(self._rows + 1)
                return
            cursor.start = self._row(found.start())
            if found.group().endswith(_UNKNOWN):
                if self._rows - found.start() + 1 <= self._spec.most_rows:
                    return
                cursor.overflow += 1
                yield from self._timed_out(found, int(self._times[-1]))
                self._all.search.move(cursor, None, None)
                continue
            yield from self._matched(found)

    @property
    def _place(self) -> int:
        return self._cursor.start - self._row(0)

    def _row(self, place: int) -> int:
        """Return the row at a place, counted as cursors count."""
        return self._begins - self._first + place - 1

    def _next(self, place: int) -> re.Match[bytes] | None:
        """Return the next match at or behind a place, or the next way that waits for an unknown row."""
        if self._spec.within is None:
            found = self._all.text.regex.search(self._buffer, place)
            return found if found is not None and found.start() <= self._rows else None
        match = self._all.text.regex.match
        for candidate in self._candidates(place, self._rows + 1):
            found = match(self._buffer, candidate, self._stop(candidate))
            if found is not None:
                return found
        return None

    def _candidates(self, place: int, end: int) -> list[int]:
        """Return the places that a match can begin at."""
        is_candidate = self._all.is_candidate[self._begins + place - 1 : self._begins + end - 1]
        found: list[int] = (np.flatnonzero(is_candidate) + place).tolist()
        return found

    def _stop(self, place: int) -> int:
        """Return the place behind the last row of an attempt that begins at a place, or behind the byte that says: unknown."""
        bound = self._bound(place)
        if self._all.known < bound:
            return len(self._buffer)
        return int(np.searchsorted(self._times, bound, side="right")) + 1

    def _bound(self, place: int) -> int:
        return present(self._spec.bound(int(self._times[place - 1])), "there is a bound")

    def _failures(self, place: int, end: int) -> Iterator[Found]:
        """Yield the rows of attempts that failed, from a place up to an end: unmatched ones, and timeouts."""
        if self._spec.rows == "all unmatched":
            nothing = (None,) * len(self._spec.measures)
            for row in range(max(self._row(place), self._cursor.covered), self._row(end)):
                yield Found(row, nothing)
        if self._spec.has_timeouts:
            for candidate in self._candidates(place, end):
                self._cursor.start = self._row(candidate)
                waiting = self._all.text.regex.match(self._buffer[: self._stop(candidate)] + _UNKNOWN, candidate)
                if waiting is not None:
                    yield from self._timed_out(waiting, self._bound(candidate))

    def _timed_out(self, waiting: re.Match[bytes], time: int) -> Iterator[Found]:
        attempt = self._attempt(waiting.start())
        if self._all.text.variables is None:
            with suppress(UnknownRowError):
                attempt.run()
        else:
            attempt.partial = self._labels(waiting)
        yield from self._all.search.timed_out(attempt, time)

    def _matched(self, found: re.Match[bytes]) -> Iterator[Found]:
        cursor, after = self._cursor, self._spec.after_match
        if self._all.matches is None:
            attempt = self._attempt(found.start())
            labels = attempt.run() if self._all.text.variables is None else self._labels(found)
            bound = None if self._spec.within is None else self._bound(found.start())
            yield from self._all.search.results(attempt, labels, cursor, self._partition_times, bound)
        else:
            self._all.matches.add([found.regs], [self._begins - 1], [cursor.matches + 1])
            labels = None if after.variable is None else self._labels(found)
        if labels is not None:
            self._all.search.move(cursor, labels, self._all.key(self._first))
            return
        cursor.matches += 1
        end = self._row(self._end_of(found))
        cursor.covered = max(cursor.covered, end)
        cursor.start = end if after.to == "past last row" else cursor.start + 1

    def _labels(self, found: re.Match[bytes]) -> tuple[Label, ...]:
        text = self._all.text
        parts = zip(present(text.variables, "parts have one variable"), text.is_shown, text.takes_no_row, strict=True)
        end = found.end() - found.group().endswith(_UNKNOWN)
        return tuple(
            Label(self._row(place), name, is_shown)
            for part, (name, is_shown, is_look) in enumerate(parts, start=1)
            for place in (() if is_look else range(found.start(part), min(found.end(part), end)))
        )

    def _end_of(self, found: re.Match[bytes]) -> int:
        """Return the place behind the last row of a match, which may look at rows that come after."""
        return found.end(self._all.text.last_part)

    def _attempt(self, place: int) -> Attempt:
        self._cursor.start = self._row(place)
        known = self._end - self._first if self._spec.within is None else self._row(min(self._stop(place), self._rows + 1))
        is_ended = self._all.known == MAX or (self._spec.within is not None and self._all.known >= self._bound(place))
        return self._all.search.attempt(None, self._columns, self._cursor, known, is_ended)

    @cached_property
    def _columns(self) -> Mapping[str, list[Value]]:
        return {name: values[self._first : self._end] for name, values in self._all.columns.items()}

    @cached_property
    def _partition_times(self) -> list[int]:
        times: list[int] = self._all.times[self._first : self._end].tolist()
        return times
