"""The engines of labels: each label with the features of its key as of its time, in one call and without state.

Rows and labels of all keys are ordered once; a label finds the rows of its windows by bisection, so nothing is multiplied.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.common.arrival import ordered
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.engines.rolling.program import IS_LABEL, PointInTimeProgram, feature_schema
from windowpane.engines.rows import python_keys, python_rows
from windowpane.errors import MissingEventTimeError
from windowpane.hidden_columns import TIME
from windowpane.kernels.keys.key_codes import key_codes, plain_key
from windowpane.kernels.rolling import FeatureKernel, bound_calls, span_refusal
from windowpane.operators.rolling.features import Features, HeldRow
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key


class PointInTimeEngine:
    name = "point in time"

    def __init__(self, program: PointInTimeProgram) -> None:
        self._program = program
        self._kernel = FeatureKernel(program.spec, program.columns)

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        table = ordered(rows)
        if table is None:
            return BucketOutput()
        program = self._program
        keys = key_codes([plain_key(table[name]) for name in program.keys.names], table.num_rows)
        check_label_times(program, table)
        times = table[TIME].combine_chunks().to_numpy()
        are_labels = table[IS_LABEL].combine_chunks().to_numpy(zero_copy_only=False)
        labels = np.flatnonzero(are_labels)
        if not len(labels):
            return BucketOutput()
        held = np.flatnonzero(~are_labels)
        held = held[np.lexsort((times[held], keys[held]))]
        features = self._kernel.values(
            table.select(program.columns.names).take(pa.array(held)),
            keys[held],
            times[held],
            keys[labels],
            times[labels] - (0 if program.is_inclusive else 1),
        )
        return _labelled(program, table, labels.tolist(), features)


def refusal(program: PointInTimeProgram) -> str | None:
    if program.known_at is not None:
        return "which rows were known differs from label to label"
    for field in feature_schema(program.spec, program.columns):
        if pa.types.is_nested(field.type):
            return f"feature {field.name!r} is of type {field.type}"
    for key in program.keys:
        if pa.types.is_nested(key.type):
            return f"key {key.name!r} is of type {key.type}"
    return span_refusal(program.spec, program.columns)


class PointInTimeReferenceEngine:
    name = "point in time reference"

    def __init__(self, program: PointInTimeProgram) -> None:
        self._program = program
        self._features = Features(program.spec, bound_calls(program.spec, program.columns))

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        table = ordered(rows)
        if table is None:
            return BucketOutput()
        program = self._program
        keys = [encode_key(key) for key in python_keys(table, program.keys.names)]
        are_labels, times = table[IS_LABEL].to_pylist(), table[TIME].to_pylist()
        check_label_times(program, table)
        held = self._held(table, keys, are_labels, times)
        labels = [number for number, is_label in enumerate(are_labels) if is_label]
        if not labels:
            return BucketOutput()
        values = [self._values(held.get(keys[number], []), times[number]) for number in labels]
        features = feature_schema(program.spec, program.columns)
        computed = [pa.array(each, field.type) for each, field in zip(zip(*values, strict=True), features, strict=True)]
        return _labelled(program, table, labels, computed)

    def _held(self, table: pa.Table, keys: list[bytes], are_labels: list[bool], times: list[int]) -> dict[bytes, list[HeldRow]]:
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


def check_label_times(program: PointInTimeProgram, table: pa.Table) -> None:
    if table[TIME].null_count:
        absent = table.filter(pc.is_null(table[TIME])).slice(0, 1)
        raise MissingEventTimeError(python_keys(absent, program.keys.names)[0])


def _labelled(program: PointInTimeProgram, table: pa.Table, labels: list[int], features: Sequence[pa.Array]) -> BucketOutput:
    given = table.take(pa.array(labels)).select(program.labels.names)
    result = pa.table([*given.columns, *features], schema=program.main_schema)
    return BucketOutput([(MAIN, result)], Counters(firings=len(labels)))
