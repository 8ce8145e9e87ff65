"""The features of many (key, instant) pairs from the sorted rows of all keys: kernels of OVER frames, on spans that are searched.

Counts and sums of integers and decimals are differences of running totals, extremes come from a sparse table, floats are added
frame by frame: a float that was added and subtracted is not 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.hidden_columns import TIME
from windowpane.kernels.over.calls import span_kernel
from windowpane.kernels.over.frames import Layout, Span
from windowpane.kernels.over.protocol import CallKernel
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.rolling.searching import spans_between
from windowpane.windowing.frames import CURRENT_ROW, Frame, preceding
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.rolling.spec import RollingCall, RollingSpec

ORDER = (OrderColumn(TIME, nulls_first=True),)


@dataclass
class SearchedRows(SortedRows):
    """Sorted rows with a span for each question, by the frame of the window."""

    searched: Mapping[Frame, Span] = field(default_factory=dict)  # the spans; a frame takes the place of a window

    def spans(self, frame: Frame) -> list[Span]:
        return [self.searched[frame]]


class FeatureKernel:
    def __init__(self, spec: RollingSpec, columns: pa.Schema) -> None:
        self._spec = spec
        self._over = OverSpec((), ORDER, (TIME,), tuple(_over_call(call, spec) for call in spec.calls))
        found = [span_kernel(call, columns) for call in self._over.calls]
        self._kernels: list[CallKernel] = [kernel for kernel in found if kernel is not None]
        self._bound = [
            call.aggregate.bind([columns.field(name).type for name in call.aggregate.arguments]) for call in spec.calls
        ]

    def values(self, rows: pa.Table, keys: Integers, times: Integers, asked: Integers, instants: Integers) -> list[pa.Array]:
        """Return the features of each question, an array for each call.

        Args:
            rows: the columns that calls read, sorted by key, time and arrival.
            keys: the key of each row, as a code.
            times: the time of each row.
            asked: the key of each question, as a code.
            instants: the instant of each question.

        Raises:
            AggregateOverflowError: a sum does not fit its type.
        """
        if not rows.num_rows:
            nothing = [each.get_result(each.create_accumulator()) for each in self._bound]
            return [pa.array([value] * len(asked), each.result_type) for value, each in zip(nothing, self._bound, strict=True)]
        windows = self._spec.windows
        bounds = [(window.start(instants), instants) for window in windows]
        spans = spans_between(keys, times, asked, bounds)
        return over_spans(self._over, self._kernels, rows, {frame_of(number): span for number, span in enumerate(spans)})


def over_spans(over: OverSpec, kernels: Sequence[CallKernel], rows: pa.Table, searched: Mapping[Frame, Span]) -> list[pa.Array]:
    """Return what kernels of aggregates give for spans of sorted rows, ``searched`` by the frames of their calls."""
    layout = Layout(np.ones(rows.num_rows, np.bool_), np.ones(rows.num_rows, np.bool_))
    every = np.ones(len(next(iter(searched.values()))[0]), np.bool_)
    found = SearchedRows(over, rows, layout, every[:0], every, searched=searched)
    with np.errstate(invalid="ignore"):  # opposite infinities add up to NaN, as they do in Spark
        return [kernel.value(found).cast(kernel.result_type) for kernel in kernels]


def refusal(spec: RollingSpec, columns: pa.Schema) -> str | None:
    for call in spec.calls:
        if span_kernel(_over_call(call, spec), columns) is None:
            return f"no kernel computes {call.aggregate} from the rows of a span"
    return None


def frame_of(window: int) -> Frame:
    """Return the frame that takes the place of a window of the spec, by its number."""
    return Frame.range_(preceding(window), CURRENT_ROW)


def _over_call(call: RollingCall, spec: RollingSpec) -> OverCall:
    aggregate, frame = call.aggregate, frame_of(spec.windows.index(call.window))
    return OverCall(aggregate.name, aggregate.arguments, frame, filter=call.condition, parameters=aggregate.parameters)
