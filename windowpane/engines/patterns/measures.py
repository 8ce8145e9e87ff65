"""The measures of matches that are spans of rows: of each, all matches at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.rows import python_values
from windowpane.errors import MistakeError, present
from windowpane.hidden_columns import TIME
from windowpane.kernels.conditions import values
from windowpane.kernels.patterns.spans import ABSENT, Spans
from windowpane.windowing.expressions import Expression, Operation
from windowpane.windowing.patterns.values import Aggregated, Began, Classifier, MatchNumber, MatchTime, Moved, Picked
from windowpane.windowing.times import MAX


class Matches:
    """Matches of a step, or the ways that time out, in the order that they were found in.

    Args:
        program: the program.
        variables: the variable that takes the rows of each part, ``None`` for rows that are passed over.
        opens: the first row of the partition of each row.
        last_part: the number of the part whose last row says the event time; ``None`` where that is the bound of each.
    """

    def __init__(
        self, program: PatternProgram, variables: tuple[str | None, ...], opens: Integers, last_part: int | None
    ) -> None:
        self._program, self._variables, self._opens, self._last_part = program, variables, opens, last_part
        self._bounds: list[Integers] = []
        self._numbers: list[Integers] = []

    def add(self, bounds: Integers, numbers: Integers) -> None:
        """Add matches: of all their rows and of each part the first row and the one behind the last, (matches, 1 + parts, 2)."""
        self._bounds.append(bounds)
        self._numbers.append(numbers)

    def table(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """Return the matches as rows of an output, by its schema."""
        if not self._bounds:
            return schema.empty_table()
        bounds = np.concatenate(self._bounds)[:, 1:]
        spans = Spans(bounds[:, :, 0], bounds[:, :, 1], self._variables)
        keys = rows.select(self._program.keys).take(pa.array(bounds[:, 0, 0]))
        measures = [self._measure(measure.value, rows, spans, field.type) for measure, field in self._measured]
        return with_measures(keys, measures, schema)

    @property
    def _measured(self) -> Value:
        return zip(self._program.spec.measures, self._program.measures, strict=True)

    def _measure(self, value: Expression, rows: pa.Table, spans: Spans, kind: pa.DataType | None) -> pa.Array:
        match value:
            case Operation():
                return values(value, lambda leaf: self._measure(leaf, rows, spans, None))
            case Picked():
                return _taken(rows, value.column, self._rows_of(value, spans))
            case Moved(of, moved):
                places = self._rows_of(of, spans)
                moved_to = np.maximum(places + moved, 0)
                is_there = (places != ABSENT) & (places + moved >= self._opens[places])
                return _taken(rows, of.column, np.where(is_there, moved_to, ABSENT))
            case Began(column):
                return _taken(rows, column, spans.starts[:, 0])
            case Aggregated():
                return self._aggregate(value, rows, spans, kind)
            case Classifier(variable):
                names = pa.array([name or "" for name in self._variables])
                parts = spans.last_parts(self._names(variable))
                return names.take(pa.array(parts, mask=parts == ABSENT))
            case MatchNumber():
                return pa.array(np.concatenate(self._numbers), kind)
            case MatchTime():
                return pa.array(self._times(rows, spans), pa.int64()).cast(kind)
        raise MistakeError(f"{value!r} is no measure")

    def _times(self, rows: pa.Table, spans: Spans) -> Integers:
        times, within = rows[TIME].to_numpy(), self._program.spec.within
        if self._last_part is None and within is not None:
            found: Integers = np.minimum(times[spans.starts[:, 0]], MAX - within) + (within - 1)
            return found
        last: Integers = times[spans.ends[:, present(self._last_part, "without a bound nothing waits for it") - 1] - 1]
        return last

    def _names(self, variable: str | None) -> Collection[str] | None:
        return None if variable is None else self._program.spec.stands_for(variable)

    def _rows_of(self, picked: Picked, spans: Spans) -> Integers:
        return spans.rows(picked.end == "first", self._names(picked.variable), picked.offset)

    def _aggregate(self, call: Aggregated, rows: pa.Table, spans: Spans, kind: pa.DataType | None) -> pa.Array:
        names = self._names(call.variable)
        if call.name == "count":
            return pa.array(_counts(call, rows, spans, names), kind)
        columns = [python_values(name, rows[name]) for name in call.columns]
        parts, aggregate, found = spans.parts_of(names), call.aggregate, []
        for starts, ends in zip(spans.starts[:, parts].tolist(), spans.ends[:, parts].tolist(), strict=True):
            accumulator = aggregate.create_accumulator()
            for start, end in zip(starts, ends, strict=True):
                for row in range(start, end):
                    accumulator = aggregate.add(accumulator, *(column[row] for column in columns))
            found.append(aggregate.get_result(accumulator))
        return pa.array(found, kind)


def with_measures(shown: pa.Table, measures: Sequence[pa.Array], schema: pa.Schema) -> pa.Table:
    """Return columns that results are shown with and their measures, as the columns of an output."""
    columns = [*(flat(column) for column in shown.columns), *measures]
    return pa.Table.from_arrays([column.cast(kind.type) for column, kind in zip(columns, schema, strict=True)], schema=schema)


def _taken(rows: pa.Table, column: str, places: Integers) -> pa.Array:
    return flat(rows[column]).take(pa.array(places, mask=places == ABSENT))


def _counts(call: Aggregated, rows: pa.Table, spans: Spans, names: Collection[str] | None) -> Integers:
    """Return how many rows have all columns of a call that counts."""
    is_there = np.ones(rows.num_rows, np.bool_)
    for name in call.columns:
        is_there &= pc.is_valid(flat(rows[name])).to_numpy(zero_copy_only=False)
    before = np.concatenate([[0], np.cumsum(is_there)])
    parts = spans.parts_of(names)
    found: Integers = (before[spans.ends[:, parts]] - before[spans.starts[:, parts]]).sum(axis=1)
    return found
