"""The engines of labels: each label with the features of its key as of its time, in one call and without state.

Rows and labels of all keys are ordered once; a label finds the rows of its windows by bisection, so nothing is multiplied.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.values import Value
from windowpane.engines.common.arrival import ordered
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.engines.rolling.program import IS_LABEL, PointInTimeProgram, feature_schema
from windowpane.engines.rows import python_keys, python_rows
from windowpane.engines.spec import BucketEngine
from windowpane.errors import MissingEventTimeError
from windowpane.hidden_columns import TIME
from windowpane.kernels.keys.key_codes import key_codes, plain_key
from windowpane.kernels.rolling import FeatureKernel, bound_calls, span_refusal
from windowpane.operators.rolling.features import Features, HeldRow
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key


class _LabelEngine(BucketEngine[PointInTimeProgram]):
    state = "nothing"
    holds: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def serves(cls, program: PointInTimeProgram) -> bool:
        return not program.is_streaming

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Return the labels among ``rows``, in order, with their features."""
        table, program = ordered(rows), self.program
        if table is None:
            return BucketOutput()
        check_label_times(program, table)
        is_label = table[IS_LABEL].combine_chunks().to_numpy(zero_copy_only=False)
        labels = np.flatnonzero(is_label)
        if not len(labels):
            return BucketOutput()
        features = self.features(table, np.flatnonzero(~is_label), labels)
        given = table.take(pa.array(labels)).select(program.labels.names)
        result = pa.table([*given.columns, *features], schema=program.main_schema)
        return BucketOutput([(MAIN, result)], Counters(firings=len(labels)))

    @abstractmethod
    def features(self, table: pa.Table, rows: Integers, labels: Integers) -> list[pa.Array]:
        """Return the features of labels, an array for each call; ``rows`` and ``labels`` are numbers in the table."""


class PointInTimeEngine(_LabelEngine):
    """Gives all labels of a bucket their features at once."""

    name = "point in time"
    reason = "all labels find their rows by one search, and kernels fold them"

    def __init__(self, program: PointInTimeProgram) -> None:
        super().__init__(program)
        self._kernel = FeatureKernel(program.spec, program.columns)

    def features(self, table: pa.Table, rows: Integers, labels: Integers) -> list[pa.Array]:
        program, times = self.program, table[TIME].combine_chunks().to_numpy()
        keys = key_codes([plain_key(table[name]) for name in program.keys.names], table.num_rows)
        rows = rows[np.lexsort((times[rows], keys[rows]))]
        values = table.select(program.columns.names).take(pa.array(rows))
        instants = times[labels] - (0 if program.is_inclusive else 1)
        return self._kernel.values(values, keys[rows], times[rows], keys[labels], instants)

    @classmethod
    def refusal(cls, program: PointInTimeProgram) -> str | None:
        if program.known_at is not None:
            return "which rows were known differs from label to label"
        for what, fields in (("feature", feature_schema(program.spec, program.columns)), ("key", program.keys)):
            for field in fields:
                if pa.types.is_nested(field.type):
                    return f"{what} {field.name!r} is of type {field.type}"
        return span_refusal(program.spec, program.columns)


class PointInTimeReferenceEngine(_LabelEngine):
    """Gives labels their features, one by one."""

    name = "point in time reference"
    reason = "rows and labels of a key meet one by one"

    def __init__(self, program: PointInTimeProgram) -> None:
        super().__init__(program)
        self._features = Features(program.spec, bound_calls(program.spec, program.columns))

    def features(self, table: pa.Table, rows: Integers, labels: Integers) -> list[pa.Array]:
        keys = [encode_key(key) for key in python_keys(table, self.program.keys.names)]
        times, values = table[TIME].to_pylist(), python_rows(table.select(self.program.columns.names))
        held: dict[bytes, list[HeldRow]] = {}
        for number in rows.tolist():
            held.setdefault(keys[number], []).append(HeldRow(times[number], number, values[number]))
        for each in held.values():
            each.sort(key=attrgetter("time", "arrival"))
        found = zip(*(self._values(held.get(keys[number], []), times[number]) for number in labels.tolist()), strict=True)
        schema = feature_schema(self.program.spec, self.program.columns)
        return [pa.array(column, field.type) for column, field in zip(found, schema, strict=True)]

    def _values(self, rows: list[HeldRow], time: int) -> tuple[Value, ...]:
        instant = time if self.program.is_inclusive else time - 1
        start = min(window.start(instant) for window in self.program.spec.windows)
        first = bisect_left(rows, start, key=attrgetter("time"))
        seen = rows[first : bisect_right(rows, instant, key=attrgetter("time"))]
        known_at = self.program.known_at
        if known_at is not None:
            seen = [row for row in seen if row.values[known_at] is not None and row.values[known_at] <= time]
        return self._features.values(seen, instant)


def check_label_times(program: PointInTimeProgram, table: pa.Table) -> None:
    if table[TIME].null_count:
        absent = table.filter(pc.is_null(table[TIME])).slice(0, 1)
        raise MissingEventTimeError(python_keys(absent, program.keys.names)[0])
