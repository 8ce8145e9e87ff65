"""An OVER window as one kernel: sorted rows in, the values of all calls out.

Between a row's columns and its values are the carry columns of running calls; an engine that keeps a row keeps them with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Mask
from windowpane.arrays.columns import flat
from windowpane.kernels.keys.ordered_codes import is_sortable
from windowpane.kernels.over.calls import call_kernel
from windowpane.kernels.over.frames import Layout
from windowpane.kernels.over.protocol import CallKernel
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.sorting import layout_of
from windowpane.windowing.over.spec import OverSpec


@dataclass(frozen=True)
class Values:
    outputs: list[pa.Array]
    carries: list[pa.Array]


class OverWindow:
    def __init__(self, spec: OverSpec, columns: pa.Schema) -> None:
        self.spec = spec
        self.calls: list[CallKernel] = [call_kernel(call, columns) for call in spec.calls]
        self.framed = [call for call in self.calls if not call.is_running]
        self.running = [call for call in self.calls if call.is_running]
        self.carries = pa.schema(list({field.name: field for call in self.calls for field in call.carries}.values()))
        self.read = list(dict.fromkeys([*spec.order_names, *(name for call in spec.calls for name in call.columns)]))

    def rows(self, table: pa.Table, starts_segment: Mask, seeded: Mask, wanted: Mask | None = None) -> SortedRows:
        """Return sorted rows to be computed; the first of a seeded segment has carry columns. All are wanted if not said."""
        ordered = [flat(table[name]) for name in self.spec.order_names]
        layout: Layout = layout_of(starts_segment, ordered)
        every = np.ones(len(starts_segment), np.bool_) if wanted is None else wanted
        return SortedRows(self.spec, table, layout, seeded, every)

    def values(self, rows: SortedRows) -> Values:
        with np.errstate(invalid="ignore", over="ignore"):  # sums are infinite, and of opposite infinities NaN, as in Spark
            for call in self.calls:
                call.scan(rows)
            outputs = [call.value(rows).cast(call.result_type) for call in self.calls]
        return Values(outputs, [rows.carries[name] for name in self.carries.names])


def refusal(spec: OverSpec, columns: pa.Schema) -> str | None:
    for name in (*spec.partition_by, *spec.order_names, *spec.key):
        kind = columns.field(name).type
        if not is_sortable(kind):
            return f"column {name!r} of type {kind} is not sorted by Arrow as Spark does"
    return None
