"""Any aggregate over the spans of any frames, by the bound aggregate itself: what no faster kernel covers.

Frames are visited in row order. One that begins where the frame before began, and ends no earlier, continues its
accumulator, so running frames and whole partitions cost one ``add`` a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.arrays.python_values import has_end_of_day
from windowpane.kernels.over.rows import SortedRows
from windowpane.windowing.aggregates.canonical import form_of
from windowpane.windowing.aggregates.protocol import BoundAggregate
from windowpane.windowing.over.spec import OverCall

_Spans = tuple[tuple[int, int], ...]


def folded(rows: SortedRows, call: OverCall, bound: BoundAggregate) -> pa.Array:
    spans = rows.spans(call.own_frame)
    wanted = np.flatnonzero(rows.wanted)
    fold = _Fold(bound, _arguments(rows, call), call.drops_repeats, [rows.column(n).type for n in call.arguments])
    values: list[Any] = [None] * rows.layout.size
    bounds = [(lo[wanted].tolist(), hi[wanted].tolist()) for lo, hi in spans]
    for number, row in enumerate(wanted.tolist()):
        values[row] = fold.of(tuple((lo[number], hi[number]) for lo, hi in bounds if hi[number] > lo[number]))
    return pa.array(values, bound.result_type)


def _arguments(rows: SortedRows, call: OverCall) -> list[tuple[Any, ...] | None]:
    """Return the arguments of each row as Python values, ``None`` for the rows that the FILTER leaves out."""
    columns = [_values(rows.column(name)) for name in call.arguments]
    arguments = list(zip(*columns, strict=True)) if columns else [()] * rows.layout.size
    if call.filter is None:
        return list(arguments)
    passes = rows.filtered(call.filter).tolist()
    return [each if passed else None for each, passed in zip(arguments, passes, strict=True)]


def _values(column: pa.Array) -> list[Any]:
    """Return a column as Python values; times as numbers where one is 24:00, which would be 0:00."""
    if pa.types.is_time64(column.type) and has_end_of_day(column):
        column = column.cast(pa.int64())
    return column.to_pylist()  # type: ignore[no-any-return]


class _Fold:
    def __init__(
        self, bound: BoundAggregate, arguments: list[tuple[Any, ...] | None], distinct: bool, kinds: Sequence[pa.DataType]
    ) -> None:
        self._bound = bound
        self._arguments = arguments
        self._forms = [form_of(kind) for kind in kinds] if distinct else None
        self._spans: _Spans | None = None
        self._begin()

    def _begin(self) -> None:
        self._accumulator = self._bound.create_accumulator()
        self._seen: set[Any] = set()

    def of(self, spans: _Spans) -> Any:
        if spans != self._spans:
            for lo, hi in self._missing(spans):
                self._add(lo, hi)
            self._spans = spans
        return self._bound.get_result(self._accumulator)

    def _missing(self, spans: _Spans) -> _Spans:
        """Return what the accumulator lacks of the spans, after starting anew if it has what they have not."""
        if self._spans is not None and len(self._spans) == 1 and len(spans) == 1:
            (lo, hi), (new_lo, new_hi) = self._spans[0], spans[0]
            if lo == new_lo and hi <= new_hi:
                return ((hi, new_hi),)
        self._begin()
        return spans

    def _add(self, lo: int, hi: int) -> None:
        for arguments in self._arguments[lo:hi]:
            if arguments is not None and self._is_new(arguments):
                self._accumulator = self._bound.add(self._accumulator, *arguments)

    def _is_new(self, arguments: tuple[Any, ...]) -> bool:
        if self._forms is None:
            return True
        frozen = tuple(None if v is None else form.freeze(v) for form, v in zip(self._forms, arguments, strict=True))
        if frozen in self._seen:
            return False
        self._seen.add(frozen)
        return True
