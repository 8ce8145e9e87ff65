"""The features of many (key, instant) pairs from the sorted rows of all keys, or from pieces of them.

A piece is the partial aggregates of a key's rows in a length of time that no window cuts: rows fold into pieces once, and a
window merges those of its span. Calls that differ in their windows alone share partials; rows that a filter leaves out are NULL
to its aggregate. From rows themselves kernels of OVER frames compute, on spans that are searched. Counts and sums of integers and
decimals are differences of running totals, extremes come from a sparse table, floats are added frame by frame: a float that was
added and subtracted is not 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.errors import present
from windowpane.hidden_columns import TIME, hidden
from windowpane.kernels.aggregates.protocol import ColumnarAggregate, KernelAggregate, Partial
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.over.frames import Layout, Span
from windowpane.kernels.over.protocol import CallKernel
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.window import span_kernel
from windowpane.kernels.ranges import Places
from windowpane.kernels.segments import Segments, concatenated
from windowpane.sizes import Size
from windowpane.windowing.aggregates import Aggregate, BoundAggregate
from windowpane.windowing.frames import CURRENT_ROW, Frame, preceding
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.rolling import RollingCall, RollingSpec

ORDER = (OrderColumn(TIME, nulls_first=True),)


@dataclass
class SearchedRows(SortedRows):
    searched: Mapping[Frame, Span] = field(default_factory=dict)  # the spans; a frame takes the place of a window

    def spans(self, frame: Frame) -> list[Span]:
        return [self.searched[frame]]


def bound_calls(spec: RollingSpec, columns: pa.Schema) -> list[BoundAggregate]:
    return [call.aggregate.bind([columns.field(name).type for name in call.aggregate.arguments]) for call in spec.calls]


def window_spans(spec: RollingSpec, keys: Integers, times: Integers, asked: Integers, instants: Integers) -> list[Span]:
    """Return for each window the spans that questions (key, instant) have among rows, sorted by key and time; keys are codes."""
    places = Places.of(keys, times)
    ends = places.before(asked, instants, or_at=True)
    starts = [places.before(asked, window.start(instants), or_at=False) for window in spec.windows]
    return [(start, np.maximum(start, ends)) for start in starts]


class FeatureKernel:
    """The calls of a spec over rows; ``span_refusal`` says whether they can be computed."""

    def __init__(self, spec: RollingSpec, columns: pa.Schema) -> None:
        self._spec = spec
        self._over = OverSpec((), ORDER, (TIME,), tuple(_over_call(call, spec) for call in spec.calls))
        found = [span_kernel(call, columns) for call in self._over.calls]
        self._kernels = [kernel for kernel in found if kernel is not None]
        self._bound = bound_calls(spec, columns)

    def values(self, rows: pa.Table, keys: Integers, times: Integers, asked: Integers, instants: Integers) -> list[pa.Array]:
        """Return the features of questions (key, instant), an array for each call; rows are sorted by key, time and arrival."""
        if not rows.num_rows:
            nothing = [each.get_result(each.create_accumulator()) for each in self._bound]
            return [pa.array([value] * len(asked), each.result_type) for value, each in zip(nothing, self._bound, strict=True)]
        spans = window_spans(self._spec, keys, times, asked, instants)
        return over_spans(self._over, self._kernels, rows, {frame_of(number): span for number, span in enumerate(spans)})


def over_spans(over: OverSpec, kernels: Sequence[CallKernel], rows: pa.Table, searched: Mapping[Frame, Span]) -> list[pa.Array]:
    """Return what kernels of aggregates give for spans of sorted rows, ``searched`` by the frames of their calls."""
    layout = Layout(np.ones(rows.num_rows, np.bool_), np.ones(rows.num_rows, np.bool_))
    every = np.ones(len(next(iter(searched.values()))[0]), np.bool_)
    found = SearchedRows(over, rows, layout, every[:0], every, searched=searched)
    with np.errstate(invalid="ignore"):  # opposite infinities add up to NaN, as they do in Spark
        return [kernel.value(found).cast(kernel.result_type) for kernel in kernels]


def span_refusal(spec: RollingSpec, columns: pa.Schema) -> str | None:
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


_GATHERED = Size("pieces gathered at once for windows", 1 << 22, (3, 20))

_OVERLAP = Size("pieces gathered for each that is held", 4, (0, 1))
"""Spans of more are not gathered: kernels of OVER frames answer from running totals and sparse tables."""
_SUMMED = (pa.int64(), pa.float64())


class PieceFeatures:
    """The calls of a spec over pieces; ``piece_refusal`` says whether they can be computed."""

    def __init__(self, spec: RollingSpec, columns: pa.Schema) -> None:
        self._spec = spec
        self._columns = columns
        calls = [_unfiltered(call) for call in spec.calls]
        self.distinct = tuple(dict.fromkeys(calls))
        fold = present(GroupedFold.of([("", *each) for each in self.distinct], _types(spec, columns)), "the planner checked")
        self.fold = fold
        self._aggregate = [fold.aggregates[self.distinct.index(call)] for call in calls]
        self._bound = bound_calls(spec, columns)
        self.types = [each.result_type for each in self._bound]

    def prepared(self, rows: pa.Table) -> pa.Table:
        """Return rows with what the aggregates read: an argument is NULL where the filter of its call does not hold."""
        for name, (argument, condition) in _masked(self._spec).items():
            is_kept = pc.fill_null(rows[condition], False)
            column = pc.if_else(is_kept, rows[argument], pa.scalar(None, rows.schema.field(argument).type))
            rows = rows.append_column(name, column)
        return rows

    def values(
        self, partials: pa.Table, owners: Integers, times: Integers, asked: Integers, instants: Integers
    ) -> tuple[list[pa.Array], Mask]:
        """Return the features of each question, an array for each call, and for which questions no window has a row."""
        spans = window_spans(self._spec, owners, times, asked, instants)
        features: list[pa.Array] = [None] * len(self._bound)
        is_empty = np.ones(len(asked), np.bool_)
        for window, span in zip(self._spec.windows, spans, strict=True):
            is_empty &= span[0] >= span[1]
            calls = [number for number, call in enumerate(self._spec.calls) if call.window == window]
            for number, array in zip(calls, self._window(calls, partials, span), strict=True):
                features[number] = array
        return features, is_empty

    def _window(self, calls: Sequence[int], partials: pa.Table, span: Span) -> list[pa.Array]:
        aggregates = tuple(dict.fromkeys(self._aggregate[number] for number in calls))
        filled = np.flatnonzero(span[1] > span[0])
        places = np.full(len(span[0]), -1)
        places[filled] = np.arange(len(filled))
        low, high = span[0][filled], span[1][filled]
        found: dict[ColumnarAggregate, pa.Array] = {}
        if len(filled):
            overlap = int((high - low).sum()) > _OVERLAP.value * partials.num_rows
            searched = _searched(aggregates, partials, (low, high)) if overlap else {}
            rest = tuple(each for each in aggregates if each not in searched)
            found = searched | (_merged(rest, partials, low, high) if rest else {})
        return [self._placed(number, found.get(self._aggregate[number]), places) for number in calls]

    def _placed(self, number: int, found: pa.Array | None, places: Integers) -> pa.Array:
        """Return the results of one call where they belong, and what it gives for no rows elsewhere."""
        bound = self._bound[number]
        nothing = pa.scalar(bound.get_result(bound.create_accumulator()), bound.result_type)
        if found is None:
            return pa.repeat(nothing, len(places))
        placed = found.cast(bound.result_type).take(pa.array(places, mask=places < 0))
        if not nothing.is_valid or (places >= 0).all():
            return placed
        return pc.if_else(pa.array(places >= 0), placed, nothing)


def piece_refusal(spec: RollingSpec, columns: pa.Schema) -> str | None:
    for call in spec.calls:
        fold = GroupedFold.of([("", *_unfiltered(call))], _types(spec, columns))
        if fold is None:
            return f"{call.aggregate} has no columnar form for its argument"
        if fold.is_ordered:
            return f"{call.aggregate} depends on the order of rows"
        if len(fold.aggregates[0].slots) > 1:
            return f"{call.aggregate} has several arguments"
    return None


def _merged(
    aggregates: tuple[ColumnarAggregate, ...], partials: pa.Table, low: Integers, high: Integers
) -> dict[ColumnarAggregate, pa.Array]:
    """Return the results of aggregates for spans, none empty, whose pieces are put together: so many at once as fit in memory."""
    fold = GroupedFold(aggregates)
    partials, sizes = partials.select(list(fold.columns)), high - low
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // _GATHERED.value)) + 1
    merged = [
        fold.merge_segments(partials, Segments(concatenated(*part), np.append(0, np.cumsum(part[1]))))
        for part in zip(np.split(low, cuts), np.split(sizes, cuts), strict=True)
    ]
    return dict(zip(aggregates, fold.finish(pa.concat_tables(merged).combine_chunks()), strict=True))


def _searched(aggregates: tuple[ColumnarAggregate, ...], partials: pa.Table, span: Span) -> dict[ColumnarAggregate, pa.Array]:
    """Return the results of aggregates whose partials kernels of OVER frames merge: running totals, sparse tables."""
    found: dict[ColumnarAggregate, pa.Array] = {}
    for aggregate in aggregates:
        if not isinstance(aggregate, KernelAggregate):
            continue
        calls = [OverCall(each.merge, (each.name,), frame_of(0)) for each in aggregate.partials]
        kernels = [span_kernel(call, partials.schema) for call in calls]
        known = [kernel for kernel in kernels if kernel is not None]
        if len(known) < len(calls) or not all(_is_merged_so(each, partials.schema) for each in aggregate.partials):
            continue
        columns = over_spans(OverSpec((), ORDER, (TIME,), tuple(calls)), known, partials, {frame_of(0): span})
        names = [each.name for each in aggregate.partials]
        (found[aggregate],) = aggregate.results(aggregate.normalise(pa.table(columns, names=names)))
    return found


def _is_merged_so(partial: Partial, types: pa.Schema) -> bool:
    """Whether the kernel of a partial's merge gives a value of the partial's type: sums of narrow types and decimals widen."""
    return partial.merge in ("min", "max") or (partial.merge == "sum" and types.field(partial.name).type in _SUMMED)


def _unfiltered(call: RollingCall) -> tuple[Aggregate, tuple[str, ...]]:
    """Return the aggregate of a call without its filter, and the columns that it reads."""
    aggregate, condition = call.aggregate, call.condition
    if condition is None:
        return aggregate, aggregate.arguments
    arguments = aggregate.arguments or (condition,)
    slots = tuple(_masked_name(name, condition) for name in arguments)
    return Aggregate(aggregate.name, slots, aggregate.parameters), slots


def _masked(spec: RollingSpec) -> dict[str, tuple[str, str]]:
    """Return the masked columns: for each name, the argument and the condition."""
    return {
        _masked_name(argument, call.condition): (argument, call.condition)
        for call in spec.calls
        if call.condition is not None
        for argument in call.aggregate.arguments or (call.condition,)
    }


def _masked_name(argument: str, condition: str) -> str:
    return hidden(f"{argument}_where_{condition}")


def _types(spec: RollingSpec, columns: pa.Schema) -> pa.Schema:
    masked = [pa.field(name, columns.field(argument).type) for name, (argument, _) in _masked(spec).items()]
    return pa.schema([*columns, *masked])
