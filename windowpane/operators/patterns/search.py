"""The search through a partition: attempt after attempt, each decided once, in the order of the rows.

Rows up to the watermark are known. An attempt that asks for a later one waits, and the attempts behind it with it, so what came
out stays: results of a watermark are a beginning of those of a later one. With a bound, no row at or behind the first row's time
plus the bound belongs to the attempt, so a watermark that has come so far decides it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from windowpane.arrays.values import Value
from windowpane.errors import SkipTargetError
from windowpane.operators.patterns.matcher import Attempt, UnknownRowError, compile_pattern
from windowpane.operators.patterns.values import Label, Path, Values
from windowpane.windowing.expressions import Expression
from windowpane.windowing.patterns.spec import PatternSpec
from windowpane.windowing.times import MAX


class Found(NamedTuple):
    """One row of results."""

    row: int | None  # the row of the partition that it is shown with; ``None`` for one row a match
    values: tuple[Value, ...]  # the measures
    is_timeout: bool = False  # whether it is an attempt that failed for want of a row


@dataclass
class Cursor:
    """Where the search stands in a partition; rows are counted from the first one that is kept."""

    start: int = 0  # the row that the next attempt begins at
    matches: int = 0  # how many matches there were
    covered: int = 0  # the rows before this one are in no further unmatched row
    is_first: bool = True  # whether no row was before the first one
    skipped: int = 0  # how many matches had no row to go on at
    overflow: int = 0  # how many attempts were given up, since they waited with too many rows


class Search:
    """The search of a pattern, for any partition."""

    def __init__(self, spec: PatternSpec, conditions: Mapping[str, Expression] | None = None) -> None:
        """Search for ``spec``, with other conditions if some are given."""
        self._spec = spec
        self._conditions = spec.conditions if conditions is None else conditions
        self._steps = compile_pattern(spec.pattern)

    def advance(
        self, key: object, columns: Mapping[str, Sequence[Value]], times: Sequence[int], cursor: Cursor, watermark: int
    ) -> Iterator[Found]:
        """Yield the results that a watermark decides, and move the cursor; no time of a row is above the watermark.

        Raises:
            SkipTargetError: a match has no row to go on at.
            PatternLimitError: the search for one match takes too many steps.
        """
        spec = self._spec
        while cursor.start < len(times):
            bound = spec.bound(times[cursor.start])
            known = len(times) if bound is None else _below(times, bound + 1, cursor.start)
            is_ended = watermark == MAX or (bound is not None and watermark >= bound)
            attempt = self.attempt(key, columns, cursor, known, is_ended)
            labels: Sequence[Label] | None = None
            try:
                labels = attempt.run()
                found = list(self.results(attempt, labels, cursor, times, bound))
            except UnknownRowError:
                if known - cursor.start <= spec.most_rows:
                    return
                cursor.overflow += 1
                found = list(self.timed_out(attempt, times[-1]))
            yield from found
            self.move(cursor, labels, key)

    def attempt(self, key: object, columns: Mapping[str, Sequence[Value]], cursor: Cursor, known: int, is_ended: bool) -> Attempt:
        """Return the attempt that begins where the search stands, of which ``known`` rows of the partition are known."""
        spec, start, number = self._spec, cursor.start, cursor.matches + 1
        return Attempt(
            self._steps,
            self._conditions,
            spec.subsets,
            columns,
            start,
            known,
            is_ended,
            cursor.is_first,
            number,
            key,
            spec.most_steps,
        )

    def move(self, cursor: Cursor, labels: Sequence[Label] | None, key: object) -> None:
        """Move the cursor past an attempt.

        Raises:
            SkipTargetError: its match has no row to go on at.
        """
        if labels is None:
            cursor.start += 1
            return
        cursor.matches += 1
        if not labels:
            cursor.start += 1
            return
        cursor.covered = max(cursor.covered, labels[-1].row + 1)
        after = self._spec.after_match
        if after.to == "past last row":
            cursor.start = labels[-1].row + 1
            return
        if after.variable is not None:
            names = self._spec.stands_for(after.variable)
            rows = [label.row for label in labels if label.variable in names]
            target = None if not rows else rows[0] if after.to == "to first" else rows[-1]
            if target is not None and target != cursor.start:
                cursor.start = target
                return
            if self._spec.on_error == "raise":
                raise SkipTargetError(key, after.variable, has_row=target is not None)
            cursor.skipped += 1
        cursor.start += 1

    def results(
        self, attempt: Attempt, labels: Sequence[Label] | None, cursor: Cursor, times: Sequence[int], bound: int | None
    ) -> Iterator[Found]:
        """Yield what comes out of a decided attempt, before the cursor moves; ``labels`` is ``None`` where it has no match.

        ``bound``: its last microsecond, ``None`` where there is none.
        """
        spec, start = self._spec, attempt.start
        if labels is None:
            if spec.rows == "all unmatched" and start >= cursor.covered:
                yield Found(start, (None,) * len(spec.measures))
            if bound is not None:
                yield from self.timed_out(attempt, bound)
            return
        measured = self._measured(attempt, labels, self._time(labels, times, start, bound))
        if spec.rows == "one":
            yield Found(None, measured(None))
        elif not labels:
            if spec.rows != "all omit empty":
                yield Found(start, measured(None))
        else:
            running = Path(spec.subsets)
            for label in labels:
                running.append(label)
                if label.is_shown:
                    yield Found(label.row, measured(running))

    def timed_out(self, attempt: Attempt, time: int) -> Iterator[Found]:
        """Yield the first path of an attempt that ended for want of a row, if timeouts are asked for."""
        if self._spec.has_timeouts and attempt.partial is not None:
            yield Found(None, self._measured(attempt, attempt.partial, time)(None), is_timeout=True)

    def _time(self, labels: Sequence[Label], times: Sequence[int], start: int, bound: int | None) -> int:
        """Return the event time of a match: of its last row, but of one that waits for what does not come, the bound."""
        if self.waits_for_bound and bound is not None:
            return bound
        return times[labels[-1].row if labels else start]

    @property
    def waits_for_bound(self) -> bool:
        """Whether a match is of what does not come within its bound."""
        return any(step.kind == "absent" for step in self._steps)

    def _measured(self, attempt: Attempt, labels: Sequence[Label], time: int) -> Callable[[Path | None], tuple[Value, ...]]:
        """Return what computes the measures of a match: of the rows so far, or where none are given of all of them."""
        values = Values(attempt, attempt.start, attempt.number, time)
        whole, measures = Path(self._spec.subsets, labels), self._spec.measures
        finals = {each.name: values.of(each.value, whole) for each in measures if each.is_final}

        def measured(running: Path | None) -> tuple[Value, ...]:
            path = whole if running is None else running
            return tuple(finals[each.name] if each.is_final else values.of(each.value, path) for each in measures)

        return measured


def _below(times: Sequence[int], end: int, start: int) -> int:
    """Return how many times are below ``end``; they ascend, and those before ``start`` are."""
    return bisect_left(times, end, start)
