"""The text engine of row patterns: conditions become one byte a row, all rows at once, and a regular expression searches them.

It runs patterns whose conditions look at the row itself and at rows before it. Which rows a match has follows from the groups of
the expression; where a part has several variables, the matcher that backtracks labels the few rows of the match.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.engines.patterns import left_out
from windowpane.engines.patterns.batch import Decided, Partitions, PatternBatch, PatternEngine
from windowpane.engines.patterns.measures import Matches
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.rows import python_keys, python_values
from windowpane.engines.spec import Combining
from windowpane.errors import MistakeError, present
from windowpane.hidden_columns import TIME, hidden
from windowpane.kernels.conditions import holds
from windowpane.kernels.patterns import regex
from windowpane.kernels.patterns.chains import Ways, ways
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


def refusal_of(spec: PatternSpec) -> str | None:
    """Return why the engine cannot run a pattern, ``None`` if it can."""
    for name, condition in spec.conditions.items():
        if not is_of_rows(condition, spec.stands_for, name):
            return f"the condition of {name} is of the match so far or of rows to come"
    if any(_looks_ahead(measure.value) for measure in spec.measures):
        return "a measure is of rows behind the match"
    if spec.has_timeouts and any(isinstance(part, Absence | Last) for part in every_part(spec.pattern)):
        return "it has timeouts of a pattern that waits for the end"
    if spec.has_timeouts and regex.may_pass_first(spec.pattern):
        return "its first row may be passed over, and a timeout has a row"
    return regex.refusal(spec.pattern, len(spec.conditions))


def held_by(variable: str) -> str:
    """Return the name of the column that says whether the condition of a variable holds."""
    return hidden(f"held_by_{variable}")


def _looks_ahead(value: Expression) -> bool:
    return any(map(_looks_ahead, value.operands)) or (isinstance(value, Moved) and value.rows > 0)


class PatternTextEngine(PatternEngine):
    name = "pattern text"
    reason = "conditions are bytes, all rows at once, which a regular expression searches"
    combining = Combining(left_out.combiner, left_out.refusal, folds_punctual=True, folds_ordered=True)

    def __init__(self, program: PatternProgram) -> None:
        super().__init__(program)
        spec = program.spec
        self.text = PatternText(spec.pattern, {name: bit for bit, name in enumerate(spec.conditions)})
        self.search = Search(spec, {name: Picked("last", None, held_by(name)) for name in spec.conditions})

    @classmethod
    def refusal(cls, program: PatternProgram) -> str | None:
        return refusal_of(program.spec)

    def open(self, store: BlobStore) -> _Batch:
        return _Batch(self, store)


class _Batch(PatternBatch):
    def __init__(self, engine: PatternTextEngine, store: BlobStore) -> None:
        super().__init__(engine, store)
        self._text, self._search = engine.text, engine.search

    def needed(self, rows: pa.Table) -> pa.Table:
        return left_out.without_others(self.program, rows) if self.program.leaves_rows_out else rows

    def search(self, rows: pa.Table, partitions: Partitions, known: int) -> None:
        searched = Searched(self.program, rows, partitions, known, self._text, self._search)
        decided, timeouts = Decided(), Decided()
        left = partitions.searched.tolist()
        if searched.finds_spans and self.program.spec.after_match.variable is None:
            left = Together(searched).search()
        for number in left:
            with partitions.moving(number) as cursor:
                first = int(partitions.firsts[number])
                for row, values, is_timeout in InPartition(searched, number, cursor).results():
                    (timeouts if is_timeout else decided).add(first + (row or 0), values)
        self.decide(rows, decided, timeouts)
        self.emit(searched.matches.table(rows, self.program.main_schema))
        self.emit_timeouts(searched.timeouts.table(rows, self.program.timeout_schema))


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
        # whether rows of results follow from where the parts of the pattern begin and end
        self.finds_spans = program.spec.rows == "one" and text.variables is not None
        own = program, text.variables or (), self._opens
        is_at_bound = search.waits_for_bound and program.spec.within is not None
        self.matches = Matches(*own, None if is_at_bound else text.last_part)
        self.timeouts = Matches(*own, None)

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
        keys, count, parts = self.keys, len(self.keys.firsts), self.pattern.chain
        is_attempt = can_match = self.pattern.openings[self._bytes]
        if parts is None:
            can_match = self.pattern.possible(self._written)[np.arange(self._rows.num_rows) + self.shifts[self._owners]]
            is_attempt = can_match | is_attempt if self.program.spec.has_timeouts else can_match
        begins = np.full(count, self._rows.num_rows)
        begins[keys.searched] = (keys.firsts + keys.starts)[keys.searched]
        at = np.flatnonzero(is_attempt & (np.arange(self._rows.num_rows) >= begins[self._owners]))
        owners = self._owners[at]
        places, stops = at + self.shifts[owners], self._stops(at, owners)
        if parts is None:
            return Attempts(owners, places.tolist(), Searching(self.pattern, self.text, places, stops, can_match[at]))
        found = ways(self.pattern, parts, self._written, places, stops)
        is_found = found.matches | found.waits
        counts = np.flatnonzero(is_found | found.wants if self.program.spec.has_timeouts else is_found)
        return Attempts(owners[counts], places[counts].tolist(), Chained(found.of(counts), self.pattern.last_part))

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


Spans = Sequence[Sequence[int]]
"""Places of a way, the first one and the one behind the last: of all its rows, and of parts of the pattern."""


class Finding(Protocol):
    """What finds the ways of attempts, which have numbers.

    Attributes:
        last: where the last part that takes rows stands in what ``way`` gives.
    """

    last: int

    def way(self, number: int, /) -> Spans | None:
        """Return the way of an attempt that matches, or that asks for a row which is not known: it ends behind its byte."""

    def partial(self, number: int, /) -> Spans | None:
        """Return the first way of an attempt that fails which ended for want of a row before the bound, if there is one."""

    def spans(self, numbers: Sequence[int], ways: Sequence[Spans]) -> Integers:
        """Return all places of ways that were given for attempts: (attempts, 1 + parts, 2)."""


class Searching:
    """Ways by a regular expression, attempt by attempt."""

    def __init__(self, pattern: PatternText, text: bytes, places: Integers, stops: Integers, can_match: Mask) -> None:
        match, partial = pattern.regex.match, pattern.partial.match
        starts, ends, tried = places.tolist(), stops.tolist(), can_match.tolist()

        def way(number: int, /) -> Spans | None:
            found = match(text, starts[number], ends[number]) if tried[number] else None
            return None if found is None else found.regs

        def partial_way(number: int, /) -> Spans | None:
            found = partial(text, starts[number], ends[number])
            return None if found is None else found.regs

        self.way, self.partial, self.last = way, partial_way, pattern.last_part

    def spans(self, numbers: Sequence[int], ways: Sequence[Spans]) -> Integers:
        return np.fromiter(chain.from_iterable(chain.from_iterable(ways)), np.int64).reshape(len(numbers), -1, 2)


class Chained:
    """Ways that were all found at once."""

    last = 1

    def __init__(self, found: Ways, last_part: int) -> None:
        self._wants, self._spans = found.wants.tolist(), found.spans
        self._all, self._last = found.spans[:, 0].tolist(), found.spans[:, last_part].tolist()

    def way(self, number: int, /) -> Spans | None:
        return None if self._wants[number] else (self._all[number], self._last[number])

    def partial(self, number: int, /) -> Spans | None:
        return (self._all[number], self._last[number]) if self._wants[number] else None

    def spans(self, numbers: Sequence[int], ways: Sequence[Spans]) -> Integers:
        found: Integers = self._spans[numbers]
        return found


class Attempts(NamedTuple):
    """The attempts of all keys, in order."""

    owners: Integers  # the number of the key of each
    places: list[int]  # where each begins
    finding: Finding

    def of(self, number: int) -> tuple[int, int]:
        """Return the numbers of the first attempt of a key, and of the one behind its last."""
        first, end = np.searchsorted(self.owners, (number, number + 1)).tolist()
        return first, end


class Together:
    """The search in the rows of all keys of a step at once, where rows of results follow from the spans of a way.

    The first attempt of a key that asks for a row that is not known waits, and the rest of its key with it.
    """

    def __init__(self, searched: Searched) -> None:
        self._all, self._keys = searched, searched.keys

    def search(self) -> list[int]:
        """Search, move the cursors, and return the numbers of keys that are left: too many rows wait there."""
        keys, (owners, places, _) = self._keys, self._all.attempts
        waits, founds, ways, failed, partial = self._found()
        numbers = keys.searched
        keys.starts[numbers] = keys.ends[numbers] - keys.firsts[numbers]
        left = list[int]()
        for number in waits:
            key, place = owners[number], places[number]
            keys.starts[key] = place - self._all.shifts[key] - keys.firsts[key]
            if self._all.behind[key] - 1 - place > self._all.program.spec.most_rows:
                left.append(int(key))
        self._add(self._all.matches, founds, founds, ways)
        self._add(self._all.timeouts, failed, founds, partial)
        keys.matches += np.bincount(owners[founds], minlength=len(keys.firsts))
        return left

    def _found(self) -> tuple[list[int], list[int], list[Spans], list[int], list[Spans]]:
        """Return the numbers of attempts that wait; of those that match and of those that time out, with their ways."""
        owners, places, finding = self._all.attempts
        spec, text, last, way = self._all.program.spec, self._all.text, finding.last, finding.way
        to_next, has_timeouts = spec.after_match.to == "to next row", spec.has_timeouts
        following = np.searchsorted(owners, owners, side="right").tolist()
        waits, founds, failed, ways, partial = list[int](), list[int](), list[int](), list[Spans](), list[Spans]()
        number, count = 0, len(places)
        while number < count:
            spans = way(number)
            if spans is None:
                if has_timeouts and (missing := finding.partial(number)) is not None:
                    failed.append(number)
                    partial.append(missing)
                number += 1
            elif text[spans[0][1] - 1] == UNKNOWN:
                waits.append(number)
                number = following[number]
            else:
                founds.append(number)
                ways.append(spans)
                number = number + 1 if to_next else bisect_left(places, spans[last][1], number + 1, following[number])
        return waits, founds, ways, failed, partial

    def _add(self, matches: Matches, attempts: list[int], founds: list[int], spans: Sequence[Spans]) -> None:
        """Add the ways of attempts; each match of a key before one counts."""
        if not attempts:
            return
        owners, _, finding = self._all.attempts
        of = owners[attempts]
        before = np.searchsorted(founds, attempts) - np.searchsorted(owners[founds], of) if founds else 0
        bounds = finding.spans(attempts, spans) - self._all.shifts[of][:, None, None]
        matches.add(bounds, self._keys.matches[of] + before + 1)


class InPartition:
    """The search in the rows of one key."""

    def __init__(self, searched: Searched, number: int, cursor: Cursor) -> None:
        self._all, self._cursor, self._number = searched, cursor, number
        self._first, self._end = int(searched.keys.firsts[number]), int(searched.keys.ends[number])
        self._opens = self._first + int(searched.shifts[number])  # the place of the first row of the key
        self._spec = searched.program.spec

    def results(self) -> Iterator[Found]:
        """Yield what is decided, but for ways that are added as spans, and move the cursor."""
        cursor, (_, places, finding) = self._cursor, self._all.attempts
        attempt, end = self._all.attempts.of(self._number)
        length = self._end - self._first
        while cursor.start < length:
            before = attempt = bisect_left(places, cursor.start + self._opens, attempt, end)
            spans = None
            while attempt < end and (spans := finding.way(attempt)) is None:
                attempt += 1
            start = length if spans is None else places[attempt] - self._opens
            yield from self._failures(range(before, attempt), start)
            cursor.start = start
            if spans is None:
                return
            if self._all.text[spans[0][1] - 1] != UNKNOWN:
                yield from self._matched(attempt, spans)
                continue
            if length - start <= self._spec.most_rows:
                return
            cursor.overflow += 1
            if self._spec.has_timeouts:
                yield from self._timed_out(attempt, spans, int(self._all.times[self._end - 1]))
            self._all.search.move(cursor, None, None)

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
            for number in attempts:
                spans = self._all.attempts.finding.partial(number)
                if spans is not None:
                    self._cursor.start = self._all.attempts.places[number] - self._opens
                    yield from self._timed_out(number, spans, self._bound(self._cursor.start))

    def _timed_out(self, number: int, spans: Spans, time: int) -> Iterator[Found]:
        attempt = self._attempt()
        if self._all.pattern.variables is None:
            with suppress(UnknownRowError):
                attempt.run()
        else:
            attempt.partial = self._labels(number, spans)
        yield from self._all.search.timed_out(attempt, time)

    def _matched(self, number: int, spans: Spans) -> Iterator[Found]:
        cursor, after, finding = self._cursor, self._spec.after_match, self._all.attempts.finding
        if not self._all.finds_spans:
            attempt = self._attempt()
            labels = attempt.run() if self._all.pattern.variables is None else self._labels(number, spans)
            bound = None if self._spec.within is None else self._bound(cursor.start)
            yield from self._all.search.results(attempt, labels, cursor, self._times, bound)
        else:
            bounds = finding.spans([number], [spans]) + (self._first - self._opens)
            self._all.matches.add(bounds, np.array([cursor.matches + 1]))
            labels = None if after.variable is None else self._labels(number, spans)
        if labels is not None:
            self._all.search.move(cursor, labels, self._all.key(self._first))
            return
        cursor.matches += 1
        end = spans[finding.last][1] - self._opens
        cursor.covered = max(cursor.covered, end)
        cursor.start = end if after.to == "past last row" else cursor.start + 1

    def _labels(self, number: int, spans: Spans) -> tuple[Label, ...]:
        """Return the rows that variables take on a way."""
        pattern, opens = self._all.pattern, self._opens
        places = self._all.attempts.finding.spans([number], [spans])[0, 1:].tolist()
        parts = zip(present(pattern.variables, "parts have one variable"), pattern.is_shown, places, strict=True)
        return tuple(
            Label(place - opens, name, is_shown)
            for name, is_shown, (first, behind) in parts
            if name is not None
            for place in range(first, min(behind, self._end - self._first + opens))
        )

    def _attempt(self) -> Attempt:
        known, is_ended = self._end - self._first, self._all.known == MAX
        if self._spec.within is not None:
            bound = self._bound(self._cursor.start)
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
