"""var_pop, var_samp, stddev_pop, stddev_samp: one pass over central moments.

Accumulator: the list [count, mean, m2] of floats, m2 being the sum of squared distances from the mean. The
update is Welford's, the merge that of Chan, Golub and LeVeque (1979), in the order of operations of Spark's
``CentralMomentAgg``, so that doubles agree to the last bit when the rows are in the same order.

Beyond the range of doubles the result depends on the values alone: NaN if one of them is NaN or infinite, else infinity.
Spark's is one of the two, by the order in which partial results meet; it has NaN, too, for a lone value whose square is no
double. Invariant: the mean is finite as long as all values are.

Columnar parts merge all at once and relative to the mean of one part, so that equal values have a variance of exactly 0. Where
a value is NaN or infinite, m2 is NaN and the mean is not finite; where only squares are beyond the range of doubles, m2 is
infinite and the mean finite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.arrays import Doubles, Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.errors import MistakeError
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.over.by_frame import BY_STEP, doubles, steps
from windowpane.kernels.over.frames import Layout
from windowpane.kernels.over.protocol import Running
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running import column_name, frame_ends
from windowpane.kernels.over.sums import doubles_of
from windowpane.kernels.segments import NOWHERE, Segments
from windowpane.sizes import Size
from windowpane.windowing.aggregates.decimals import is_spark_decimal
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument
from windowpane.windowing.over.types import bind_call


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance; ``missing`` degrees of freedom are 0 for the population, 1 for a sample."""

    missing: int
    result_type: ClassVar[pa.DataType] = pa.float64()

    def create_accumulator(self) -> list[float]:
        return [0.0, 0.0, 0.0]

    def add(self, accumulator: list[float], value: float | Decimal | None) -> list[float]:
        if value is not None:
            count, mean, m2 = accumulator
            count += 1.0
            delta = float(value) - mean
            step = delta / count
            m2 += delta * (delta - step)
            if m2 != m2:
                accumulator[:] = count, *beyond_doubles(mean, float(value))
            else:
                accumulator[:] = count, mean + step, m2
        return accumulator

    def merge(self, left: list[float], right: list[float]) -> list[float]:
        left_count, left_mean, left_m2 = left
        right_count, right_mean, right_m2 = right
        count = left_count + right_count
        delta = right_mean - left_mean
        step = delta / count if count else 0.0
        m2 = left_m2 + right_m2 + delta * step * left_count * right_count
        if m2 != m2:
            return _merged_beyond_doubles(left, right)
        return [count, left_mean + step * right_count, m2]

    def get_result(self, accumulator: list[float]) -> float | None:
        count, _, m2 = accumulator
        return m2 / (count - self.missing) if count > self.missing else None


def beyond_doubles(mean: float, value: float) -> tuple[float, float]:
    """Return mean and m2 where m2 is no number: of a mean so far and a value, or of two means.

    Example:
        >>> beyond_doubles(1e300, -1e300), beyond_doubles(1.0, math.inf)
        ((1e+300, inf), (nan, nan))
    """
    return (mean, math.inf) if math.isfinite(mean) and math.isfinite(value) else (math.nan, math.nan)


def _merged_beyond_doubles(left: list[float], right: list[float]) -> list[float]:
    """Return the merge of two accumulators where m2 is no number: of a part without values, it is the other part."""
    if not left[0] or not right[0]:
        return right if right[0] else left
    return [left[0] + right[0], *beyond_doubles(left[1], right[1])]


@dataclass(frozen=True, slots=True)
class StandardDeviation(Variance):
    def get_result(self, accumulator: list[float]) -> float | None:
        count, _, m2 = accumulator
        return math.sqrt(m2 / (count - self.missing)) if count > self.missing else None


# --- partials of columns ---


class ColumnarMoments(SegmentAggregate):
    parts = ("n", "mean", "m2")

    def __init__(self, prefix: str, slots: tuple[str, ...], missing: int, is_root: bool) -> None:
        super().__init__(prefix, slots)
        self._missing = missing
        self._is_root = is_root

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        values = flat(rows[self.slots[0]])
        counts = values.is_valid().cast(pa.float64())
        means = doubles_of(values)
        with np.errstate(all="ignore"):
            m2 = means - means  # 0, or NaN
        return dict(zip(self.columns, (counts, pa.array(means), pa.array(m2)), strict=True))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        counts, means, m2 = (_doubles(segments.gather(partials[name])) for name in self.columns)
        with np.errstate(all="ignore"):  # infinities make NaN, as they do in Spark
            merged = _merged(counts, means, m2, segments)
        return dict(zip(self.columns, map(pa.array, merged), strict=True))

    def finish(self, partials: pa.Table) -> pa.Array:
        counts, means, m2 = (_doubles(flat(partials[name])) for name in self.columns)
        freedom = counts - self._missing
        with np.errstate(all="ignore"):
            variances = np.where(np.isfinite(means), m2, np.nan) / freedom
            return pa.array(np.sqrt(variances) if self._is_root else variances, mask=freedom <= 0)


def _merged(counts: Doubles, means: Doubles, m2: Doubles, segments: Segments) -> tuple[Doubles, Doubles, Doubles]:
    present = counts > 0
    at = segments.last_where(present)
    origins = np.where(at == NOWHERE, 0.0, means[at]) if len(means) else means
    shifts = np.where(present, means - origins[segments.numbers], 0.0)
    total = segments.total(counts)
    mean_shift = segments.total(counts * shifts) / np.where(total > 0, total, 1.0)
    distances = np.where(present, shifts - mean_shift[segments.numbers], 0.0)
    merged = segments.total(m2 + counts * distances * distances)
    if np.isfinite(merged).all():
        return total, origins + mean_shift, merged
    return total, *_parts_beyond_doubles(
        present & ~(np.isfinite(means) & ~np.isnan(m2)), origins + mean_shift, origins, merged, segments
    )


def _parts_beyond_doubles(
    is_bad: Mask, means: Doubles, origins: Doubles, merged: Doubles, segments: Segments
) -> tuple[Doubles, Doubles]:
    """Return means and m2 of groups, some of which are beyond the range of doubles; bad parts have a value that is not finite."""
    has_bad = segments.total(is_bad.astype(np.int64)) > 0
    is_beyond = ~np.isfinite(merged)
    m2 = np.where(is_beyond, np.where(has_bad, np.nan, np.inf), merged)
    return np.where(is_beyond, np.where(has_bad, np.nan, origins), means), m2


def _doubles(array: pa.Array) -> Doubles:
    values: Doubles = array.to_numpy(zero_copy_only=False)
    return values


# --- frames of sorted rows ---


def _by_frame(column: pa.ChunkedArray, segments: Segments, variance: Variance) -> pa.Array:
    """Return variances by Welford's update, all frames a row a step; in the order of operations of the bound aggregate."""
    values, valid = doubles(column)
    values, valid = values[segments.order], valid[segments.order]
    count, mean, m2 = (np.zeros(segments.count) for _ in range(3))
    with np.errstate(all="ignore"):
        for rows, at in steps(segments):
            rows, at = rows[valid[at]], at[valid[at]]
            count[rows] += 1.0
            mean[rows], m2[rows] = welford(count[rows], mean[rows], m2[rows], values[at])
        for row in np.flatnonzero(np.diff(segments.offsets) > BY_STEP.value).tolist():
            held = slice(int(segments.offsets[row]), int(segments.offsets[row + 1]))
            count[row], mean[row], m2[row] = _folded(values[held][valid[held]], variance)
        freedom = count - variance.missing
        found = m2 / freedom
        return pa.array(np.sqrt(found) if isinstance(variance, StandardDeviation) else found, mask=freedom <= 0)


def _folded(values: Doubles, variance: Variance) -> list[float]:
    accumulator = variance.create_accumulator()
    for value in values.tolist():
        accumulator = variance.add(accumulator, value)
    return accumulator


# --- running frames ---


MANY = Size("segments worth a step of moments", 16, (1, 2))
"""So many segments at least are worth a step of numpy's."""


class RunningMoments(Running):
    """Count, mean and sum of squared distances from it."""

    @property
    def names(self) -> tuple[str, str, str]:
        count, mean, squares = (column_name(what, self.call) for what in ("moment0", "moment1", "moment2"))
        return count, mean, squares

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(name, pa.float64()) for name in self.names])

    def scan(self, rows: SortedRows) -> None:
        if self.names[0] in rows.carries:
            return
        moments = np.zeros((3, rows.layout.size))
        if rows.seeded.any():
            moments[:, rows.seeded_firsts] = [rows.seeds(name)[0].to_numpy() for name in self.names]
        values = doubles_of(rows.column(self.call.arguments[0]))
        counted = rows.counted(self.call.arguments, self.call.filter)
        _scan(moments, values, counted, rows.layout, rows.seeded)
        rows.carries.update(zip(self.names, map(pa.array, moments), strict=True))

    def value(self, rows: SortedRows) -> pa.Array:
        [name] = self.call.arguments
        variance = bind_call(self.call, pa.schema([(name, self.kind)]))
        if not isinstance(variance, Variance):
            raise MistakeError("the registry gives moments to variances only")
        ends = frame_ends(rows, self.call)
        count, squares = (rows.carries[name].to_numpy() for name in (self.names[0], self.names[2]))
        if not len(count):
            return pa.array([], pa.float64())
        freedom = np.where(ends.some, count[ends.row], 0.0) - variance.missing
        with np.errstate(all="ignore"):
            found = squares[ends.row] / freedom
            return pa.array(np.sqrt(found) if isinstance(variance, StandardDeviation) else found, mask=freedom <= 0)


def _scan(moments: Doubles, values: Doubles, counted: Mask, layout: Layout, seeded: Mask) -> None:
    """Fill in the moments of every row; those of seeded segments' first rows are given."""
    fresh = layout.segment_firsts[~seeded]
    lengths = layout.segment_ends - layout.segment_firsts
    by_length = np.argsort(-lengths, kind="stable")
    starts, lengths = layout.segment_firsts[by_length], lengths[by_length]
    with np.errstate(all="ignore"):
        _update(moments, np.zeros((3, len(fresh))), values, counted, fresh)
        step = 1
        while (going := int(np.searchsorted(-lengths, -step, side="left"))) >= MANY.value:
            rows = starts[:going] + step
            _update(moments, moments[:, rows - 1], values, counted, rows)
            step += 1
        for start, length in zip(starts[:going].tolist(), lengths[:going].tolist(), strict=True):
            _fold(moments, values, counted, start + step, start + length)


def _update(moments: Doubles, before: Doubles, values: Doubles, counted: Mask, rows: Integers) -> None:
    count, mean, squares = before
    after = np.stack([count + 1.0, *welford(count + 1.0, mean, squares, values[rows])])
    moments[:, rows] = np.where(counted[rows], after, before)


def _fold(moments: Doubles, values: Doubles, counted: Mask, first: int, end: int) -> None:
    variance = Variance(0)
    accumulator = moments[:, first - 1].tolist()
    folded = []
    for value, counts in zip(values[first:end].tolist(), counted[first:end].tolist(), strict=True):
        accumulator = variance.add(accumulator, value if counts else None)
        folded.append(tuple(accumulator))
    if folded:
        moments[:, first:end] = np.array(folded).T


def _define(name: str, variance: type[Variance], missing: int) -> None:
    def bind(call: Call) -> BoundAggregate:
        if not (pa.types.is_integer(call.type) or pa.types.is_floating(call.type) or is_spark_decimal(call.type)):
            raise call.refusal("a number")
        return variance(missing)

    define(
        Definition(
            name=name,
            bind=bind,
            holistic=False,
            ordered=False,
            exact=False,
            idempotent=False,
            invertible=False,
            returns=Returns.OWN,
            compared_from=0,
            columnar=lambda call: ColumnarMoments(call.prefix, call.slots, missing, variance is StandardDeviation),
            by_frame=lambda call, bound: partial(_by_frame, variance=variance(missing)),
            running=lambda call: RunningMoments,
            duckdb=name,
        )
    )


_define("var_pop", Variance, 0)
_define("var_samp", Variance, 1)
_define("stddev_pop", StandardDeviation, 0)
_define("stddev_samp", StandardDeviation, 1)


def var_pop(column: Argument) -> Aggregate:
    """Take the variance of the whole population: the mean squared distance from the mean.

    Result: double, 0 for one value, NaN if a value is NaN. Source: Spark SQL ``var_pop``.

    Example:
        >>> var_pop("dep_delay")
        var_pop('dep_delay')
    """
    return Aggregate.of("var_pop", column)


def var_samp(column: Argument) -> Aggregate:
    """Take the variance estimated from a sample: divided by n - 1.

    Result: double, NULL for one value, NaN if a value is NaN. Source: Spark SQL ``var_samp``.

    Example:
        >>> var_samp("dep_delay")
        var_samp('dep_delay')
    """
    return Aggregate.of("var_samp", column)


def variance(column: Argument) -> Aggregate:
    """Take the variance of a sample: another name of ``var_samp``, as in Spark SQL.

    Example:
        >>> variance("dep_delay") == var_samp("dep_delay")
        True
    """
    return var_samp(column)


def var(column: Argument) -> Aggregate:
    """Take the variance of a sample: a short name of ``var_samp``.

    Example:
        >>> var("dep_delay")
        var_samp('dep_delay')
    """
    return var_samp(column)


def stddev_pop(column: Argument) -> Aggregate:
    """Take the standard deviation of the whole population: the square root of ``var_pop``.

    Result: double, 0 for one value, NaN if a value is NaN. Source: Spark SQL ``stddev_pop``.

    Example:
        >>> stddev_pop("dep_delay")
        stddev_pop('dep_delay')
    """
    return Aggregate.of("stddev_pop", column)


def stddev_samp(column: Argument) -> Aggregate:
    """Take the standard deviation of a sample: the square root of ``var_samp``.

    Result: double, NULL for one value, NaN if a value is NaN. Source: Spark SQL ``stddev_samp``.

    Example:
        >>> stddev_samp("dep_delay")
        stddev_samp('dep_delay')
    """
    return Aggregate.of("stddev_samp", column)


def stddev(column: Argument) -> Aggregate:
    """Take the standard deviation of a sample: another name of ``stddev_samp``, as in Spark SQL.

    Example:
        >>> stddev("dep_delay")
        stddev_samp('dep_delay')
    """
    return stddev_samp(column)


def welford(counts: Doubles, means: Doubles, m2: Doubles, values: Doubles) -> tuple[Doubles, Doubles]:
    """Return means and m2 after one value more each; ``counts`` are those with it.

    Example:
        >>> welford(np.array([2.0]), np.array([1.0]), np.array([0.0]), np.array([3.0]))
        (array([2.]), array([2.]))
    """
    with np.errstate(all="ignore"):
        delta = values - means
        step = delta / counts
        after, squares = means + step, m2 + delta * (delta - step)
    is_beyond = np.isnan(squares)
    if is_beyond.any():
        is_finite = np.isfinite(means) & np.isfinite(values)
        after = np.where(is_beyond, np.where(is_finite, means, np.nan), after)
        squares = np.where(is_beyond, np.where(is_finite, np.inf, np.nan), squares)
    return after, squares
