"""The engine of labels: each label with the features of its key as of its time, in one call and without state.

Rows of a key are ordered once; a label takes the rows of its windows from there by bisection, so nothing is multiplied.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa

from windowpane.engines.common.rows import python_keys, python_rows
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.engines.rolling.program import IS_LABEL, PointInTimeProgram, bound_calls, feature_schema
from windowpane.engines.rolling.reference import in_order_of_arrival
from windowpane.errors import MissingEventTimeError
from windowpane.hidden_columns import TIME
from windowpane.operators.rolling.features import Features, HeldRow
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key


class PointInTimeEngine:
    """Gives labels their features."""

    name = "point in time"

    def __init__(self, program: PointInTimeProgram) -> None:
        """Run ``program``."""
        self._program = program
        self._features = Features(program.spec, bound_calls(program.spec, program.columns))

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Return the labels among ``rows``, in order, with their features."""
        table = in_order_of_arrival(rows)
        if table is None:
            return BucketOutput()
        program = self._program
        keys = [encode_key(key) for key in python_keys(table, program.key_columns)]
        are_labels, times = table[IS_LABEL].to_pylist(), table[TIME].to_pylist()
        if None in times:
            raise MissingEventTimeError(python_keys(table, program.key_columns)[times.index(None)])
        held = self._held(table, keys, are_labels, times)
        labels = [number for number, is_label in enumerate(are_labels) if is_label]
        if not labels:
            return BucketOutput()
        values = [self._values(held.get(keys[number], []), times[number]) for number in labels]
        given = table.take(pa.array(labels)).select(program.labels.names)
        features = feature_schema(program.spec, program.columns)
        computed = [pa.array(each, field.type) for each, field in zip(zip(*values, strict=True), features, strict=True)]
        result = pa.table([*given.columns, *computed], schema=program.main_schema)
        return BucketOutput([(MAIN, result)], Counters(firings=len(labels)))

    def _held(self, table: pa.Table, keys: list[bytes], are_labels: list[bool], times: list[int]) -> dict[bytes, list[HeldRow]]:
        """Return the rows of each key, in order."""
        held: dict[bytes, list[HeldRow]] = {}
        values = python_rows(table.select(self._program.columns.names))
        for number, is_label in enumerate(are_labels):
            if not is_label:
                held.setdefault(keys[number], []).append(HeldRow(times[number], number, values[number]))
        for rows in held.values():
            rows.sort(key=attrgetter("time", "arrival"))
        return held

    def _values(self, rows: list[HeldRow], time: int) -> tuple[Any, ...]:
        instant = time if self._program.is_inclusive else time - 1
        start = min(window.start(instant) for window in self._program.spec.windows)
        first = bisect_left(rows, start, key=attrgetter("time"))
        seen = rows[first : bisect_right(rows, instant, key=attrgetter("time"))]
        known_at = self._program.known_at
        if known_at is not None:
            seen = [row for row in seen if row.values[known_at] is not None and row.values[known_at] <= time]
        return self._features.values(seen, instant)
