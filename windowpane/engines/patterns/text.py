"""The text engine of row patterns: conditions become one byte a row, all rows at once, and a regular expression searches them.

It runs patterns whose conditions look at the row itself and at rows before it. Which rows a match has follows from the groups of
the expression; where a part has several variables, the matcher that backtracks labels the few rows of the match.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.engines.patterns.batch import Decided, Partitions, PatternBatch
from windowpane.engines.patterns.left_out import without_others
from windowpane.engines.patterns.measures import Matches
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.rows import python_keys, python_values
from windowpane.errors import MistakeError, present
from windowpane.hidden_columns import TIME, hidden
from windowpane.kernels.conditions import holds
from windowpane.kernels.patterns import regex
from windowpane.kernels.patterns.regex import GOING_ON, OPENING, UNKNOWN, PatternText
from windowpane.operators.patterns.matcher import Attempt, UnknownRowError
from windowpane.operators.patterns.search import Cursor, Found, Search
from windowpane.operators.patterns.values import Label
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.expressions import Expression
from windowpane.windowing.patterns.spec import PatternSpec
from windowpane.windowing.patterns.tree import Absence, Last, every_part
from windowpane.windowing.patterns.values import Moved, Picked, is_of_rows
from windowpane.windowing.times import MAX

_NO_CONDITION = 128


def refusal(program: PatternProgram) -> str | None:
    """Return why the engine cannot run a program, ``None`` if it can."""
    return refusal_of(program.spec)


def refusal_of(spec: PatternSpec) -> str | None:
    """Return why the engine cannot run a pattern, ``None`` if it can."""
    for name, condition in spec.conditions.items():
        if not is_of_rows(condition, spec.stands_for, name):
            return f"the condition of {name} is of the match so far or of rows to come"
    if any(_looks_ahead(measure.value) for measure in spec.measures):
        return "a measure is of rows behind the match"
    if spec.has_timeouts and any(isinstance(part, Absence | Last) for part in every_part(spec.pattern)):
        return "it has timeouts of a pattern that waits for the end"
    return regex.refusal(spec.pattern, len(spec.conditions))


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

    def needed(self, rows: pa.Table) -> pa.Table:
        return without_others(self.program, rows) if self.program.leaves_rows_out else rows

    def search(self, rows: pa.Table, partitions: Partitions, known: int) -> None:
        searched = Searched(self.program, rows, partitions, known, self._text, self._search)
        decided, timeouts = Decided(), Decided()
        left = partitions.searched.tolist()
        if searched.matches is not None and _finds_spans_alone(self.program.spec):
            left = Together(searched, searched.matches).search()
        for number in left:
            with partitions.moving(number) as cursor:
                first = int(partitions.firsts[number])
                for row, values, is_timeout in InPartition(searched, number, cursor).results():
                    (timeouts if is_timeout else decided).add(first + (row or 0), values)
        self.decide(rows, decided, timeouts)
        if searched.matches is not None:
            self.emit(searched.matches.table(rows))


def _finds_spans_alone(spec: PatternSpec) -> bool:
    """Whether nothing comes out but matches, and where the search goes on follows from where a match ends."""
    return not spec.has_timeouts and spec.after_match.to in ("past last row", "to next row")


class Searched:
    """The rows of the keys of a step, as one text, and as Python values where these are asked for.

    The keys lie behind one another in the text, each behind a byte that no row is and, where further rows may come, before one
    that says so. The *place* of a row is where its byte is: its number and the shift of its key.
    """

    def __init__(
        self,
        program: PatternProgram,
        rows: pa.Table,
        partitions: Partitions,
        known: int,
        text: PatternText,
        search: Search,
    ) -> None:
        self.program, self.known, self.pattern, self.search, self.keys = program, known, text, search, partitions
        self.times = rows[TIME].to_numpy()
        self._rows = rows
        lengths, count = partitions.ends - partitions.firsts, len(partitions.firsts)
        self._owners = np.repeat(np.arange(count), lengths)
        self._opens = partitions.firsts[self._owners]
        beside = 1 if known == MAX else 2
        self.shifts = 1 + beside * np.arange(count)
        self.behind = partitions.ends + self.shifts + beside - 1
        self._bytes = self._of_rows()
        written = np.full(rows.num_rows + beside * count, UNKNOWN, np.uint8)
        written[partitions.firsts + self.shifts - 1] = np.where(partitions.is_first, OPENING, GOING_ON)
        written[np.arange(rows.num_rows) + self.shifts[self._owners]] = self._bytes
        self._written, self.text = written, written.tobytes()
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
        held = {held_by(name): (self._bytes >> np.uint8(bit) & 1 > 0).tolist() for name, bit in self.pattern.bits.items()}
        return columns | held

    def key(self, row: int) -> Value:
        return python_keys(self._rows.slice(row, 1), self.program.keys)[0]

    @cached_property
    def attempts(self) -> Attempts:
        """The attempts of all keys that are searched, without those that find neither a match nor a timeout in any case."""
        keys, count = self.keys, len(self.keys.firsts)
        can_match = self.pattern.possible(self._written)[np.arange(self._rows.num_rows) + self.shifts[self._owners]]
        is_attempt = can_match
        if self.program.spec.has_timeouts:
            is_attempt = is_attempt | self.pattern.openings[self._bytes]
        begins = np.full(count, self._rows.num_rows)
        begins[keys.searched] = (keys.firsts + keys.starts)[keys.searched]
        at = np.flatnonzero(is_attempt & (np.arange(self._rows.num_rows) >= begins[self._owners]))
        owners, can_match = self._owners[at], can_match[at]
        places, stops = at + self.shifts[owners], self._stops(at, owners)
        if self.pattern.absence is not None:
            is_there, most = self.pattern.absence
            so_far = np.concatenate([[0], np.cumsum(is_there[self._written])])
            can_match &= so_far[stops] == so_far[np.minimum(places + most, stops)]
        if not self.program.spec.has_timeouts:
            owners, places, stops, can_match = owners[can_match], places[can_match], stops[can_match], can_match[can_match]
        return Attempts(owners, places.tolist(), stops.tolist(), can_match.tolist())

    def _stops(self, at: Integers, owners: Integers) -> Integers:
        """Return for each attempt the place behind its last row or, where that is not known yet, behind the byte that says so."""
        within, ends = self.program.spec.within, self.behind[owners]
        if within is None or not len(at):
            return ends
        bounds = np.minimum(self.times[at], MAX - within) + (within - 1)
        moments = _moments(np.concatenate([self.times, bounds]), len(self.keys.firsts))
        span = int(moments.max()) + 1
        ordered = moments[: len(self.times)] + self._owners * span
        last = np.searchsorted(ordered, moments[len(self.times) :] + owners * span, side="right")
        stops: Integers = np.where(self.known < bounds, ends, last + self.shifts[owners])
        return stops


def _moments(times: Integers, keys: int) -> Integers:
    """Return numbers from 0 on in the order of times, so small that a number of keys can be put in front of each."""
    least, most = int(times.min()), int(times.max())
    found: Integers = times - least if (most - least + 1) * keys <= MAX else np.unique(times, return_inverse=True)[1]
    return found


class Attempts(NamedTuple):
    """The attempts of all keys, in order."""

    owners: Integers  # the number of the key of each
    places: list[int]  # where each begins
    stops: list[int]  # the place that it ends before
    can_match: list[bool]  # whether it may match or wait

    def of(self, number: int) -> tuple[int, int]:
        """Return the numbers of the first attempt of a key, and of the one behind its last."""
        first, end = np.searchsorted(self.owners, (number, number + 1)).tolist()
        return first, end


class Together:
    """The search in the rows of all keys of a step at once, where matches are all that is looked for.

    The first attempt that reaches the byte for what is not known waits, and the rest of its key with it.
    """

    def __init__(self, searched: Searched, matches: Matches) -> None:
        self._all, self._keys, self._matches = searched, searched.keys, matches

    def search(self) -> list[int]:
        """Search, move the cursors, and return the numbers of keys that are left: too many rows wait there."""
        keys, spec, (owners, places, *_) = self._keys, self._all.program.spec, self._all.attempts
        waits, founds, spans = self._found(spec.after_match.to == "to next row")
        numbers = keys.searched
        keys.starts[numbers] = keys.ends[numbers] - keys.firsts[numbers]
        left = list[int]()
        for number in waits:
            key, place = owners[number], places[number]
            keys.starts[key] = place - self._all.shifts[key] - keys.firsts[key]
            if self._all.behind[key] - 1 - place > spec.most_rows:
                left.append(int(key))
        if founds:
            self._add(owners[founds], spans)
        return left

    def _found(self, to_next: bool) -> tuple[list[int], list[int], list[tuple[tuple[int, int], ...]]]:
        """Return the attempts that wait, those that match, by their numbers, and the places of the groups of each match."""
        owners, places, stops, _ = self._all.attempts
        following = np.searchsorted(owners, owners, side="right").tolist()
        match, text = self._all.pattern.regex.match, self._all.text
        waits, founds, spans, number, count = list[int](), list[int](), list[tuple[tuple[int, int], ...]](), 0, len(places)
        last = self._all.pattern.last_part
        while number < count:
            found = match(text, places[number], stops[number])
            if found is None:
                number += 1
                continue
            groups = found.regs
            if text[groups[0][1] - 1] == UNKNOWN:
                waits.append(number)
                number = following[number]
                continue
            founds.append(number)
            spans.append(groups)
            number = number + 1 if to_next else bisect_left(places, groups[last][1], number + 1, following[number])
        return waits, founds, spans

    def _add(self, owners: Integers, spans: list[tuple[tuple[int, int], ...]]) -> None:
        firsts = np.searchsorted(owners, owners, side="left")
        numbers = self._keys.matches[owners] + np.arange(1, len(owners) + 1) - firsts
        self._matches.add(spans, (-self._all.shifts[owners]).tolist(), numbers.tolist())
        self._keys.matches += np.bincount(owners, minlength=len(self._keys.firsts))


class InPartition:
    """The search in the rows of one key."""

    def __init__(self, searched: Searched, number: int, cursor: Cursor) -> None:
        self._all, self._cursor, self._number = searched, cursor, number
        self._first, self._end = int(searched.keys.firsts[number]), int(searched.keys.ends[number])
        self._opens = self._first + int(searched.shifts[number])  # the place of the first row of the key
        self._spec = searched.program.spec

    def results(self) -> Iterator[Found]:
        """Yield what is decided, but for matches that are spans, and move the cursor."""
        cursor, places = self._cursor, self._all.attempts.places
        attempt, end = self._all.attempts.of(self._number)
        length = self._end - self._first
        while cursor.start < length:
            attempt = bisect_left(places, cursor.start + self._opens, attempt, end)
            number, found = self._next(attempt, end)
            yield from self._failures(range(attempt, number), length if found is None else found.start() - self._opens)
            attempt = number
            if found is None:
                cursor.start = length
                return
            cursor.start = found.start() - self._opens
            if self._waits(found):
                if length - cursor.start <= self._spec.most_rows:
                    return
                cursor.overflow += 1
                yield from self._timed_out(found, int(self._all.times[self._end - 1]))
                self._all.search.move(cursor, None, None)
                continue
            yield from self._matched(found)

    def _next(self, attempt: int, end: int) -> tuple[int, re.Match[bytes] | None]:
        """Return the first attempt from one on that matches or waits, with its match, or the end and nothing."""
        match, text, (_, places, stops, can_match) = self._all.pattern.regex.match, self._all.text, self._all.attempts
        for number in range(attempt, end):
            found = match(text, places[number], stops[number]) if can_match[number] else None
            if found is not None:
                return number, found
        return end, None

    def _waits(self, found: re.Match[bytes]) -> bool:
        return self._all.text[found.end() - 1] == UNKNOWN

    def _bound(self, row: int) -> int:
        return present(self._spec.bound(int(self._all.times[self._first + row])), "there is a bound")

    def _failures(self, attempts: range, end: int) -> Iterator[Found]:
        """Yield the rows of attempts that failed, from where the search stands up to a row: unmatched ones, and timeouts."""
        start = self._cursor.start
        if self._spec.rows == "all unmatched":
            nothing = (None,) * len(self._spec.measures)
            for row in range(max(start, self._cursor.covered), end):
                yield Found(row, nothing)
        if self._spec.has_timeouts:
            partial, text, (_, places, stops, _) = self._all.pattern.partial.match, self._all.text, self._all.attempts
            for number in attempts:
                waiting = partial(text, places[number], stops[number])
                if waiting is not None:
                    self._cursor.start = places[number] - self._opens
                    yield from self._timed_out(waiting, self._bound(self._cursor.start))

    def _timed_out(self, waiting: re.Match[bytes], time: int) -> Iterator[Found]:
        attempt = self._attempt(waiting)
        if self._all.pattern.variables is None:
            with suppress(UnknownRowError):
                attempt.run()
        else:
            attempt.partial = self._labels(waiting)
        yield from self._all.search.timed_out(attempt, time)

    def _matched(self, found: re.Match[bytes]) -> Iterator[Found]:
        cursor, after = self._cursor, self._spec.after_match
        if self._all.matches is None:
            attempt = self._attempt(found)
            labels = attempt.run() if self._all.pattern.variables is None else self._labels(found)
            bound = None if self._spec.within is None else self._bound(cursor.start)
            yield from self._all.search.results(attempt, labels, cursor, self._times, bound)
        else:
            self._all.matches.add([found.regs], [self._first - self._opens], [cursor.matches + 1])
            labels = None if after.variable is None else self._labels(found)
        if labels is not None:
            self._all.search.move(cursor, labels, self._all.key(self._first))
            return
        cursor.matches += 1
        end = found.end(self._all.pattern.last_part) - self._opens
        cursor.covered = max(cursor.covered, end)
        cursor.start = end if after.to == "past last row" else cursor.start + 1

    def _labels(self, found: re.Match[bytes]) -> tuple[Label, ...]:
        text = self._all.pattern
        parts = zip(present(text.variables, "parts have one variable"), text.is_shown, strict=True)
        end = found.end() - self._waits(found)
        return tuple(
            Label(place - self._opens, name, is_shown)
            for part, (name, is_shown) in enumerate(parts, start=1)
            if name is not None
            for place in range(found.start(part), min(found.end(part), end))
        )

    def _attempt(self, found: re.Match[bytes]) -> Attempt:
        start = found.start() - self._opens
        known, is_ended = self._end - self._first, self._all.known == MAX
        if self._spec.within is not None:
            bound = self._bound(start)
            known = bisect_right(self._times, bound)
            is_ended = is_ended or self._all.known >= bound
        return self._all.search.attempt(None, self._columns, self._cursor, known, is_ended)

    @cached_property
    def _columns(self) -> Mapping[str, list[Value]]:
        return {name: values[self._first : self._end] for name, values in self._all.columns.items()}

    @cached_property
    def _times(self) -> list[int]:
        times: list[int] = self._all.times[self._first : self._end].tolist()
        return times
