"""count and count_distinct, exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.kernels.aggregates.lists import Lists, first_of_each, list_array, offsets_of
from windowpane.kernels.aggregates.protocol import KernelAggregate, Partial, SegmentAggregate
from windowpane.kernels.keys.codes import equality_codes
from windowpane.kernels.over.protocol import FramedAggregate
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running import RunningCount
from windowpane.kernels.segments import Segments
from windowpane.windowing.aggregates.canonical import Form, Frozen, form_of
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument


@dataclass(frozen=True, slots=True)
class Count:
    """The number of values that are not NULL; without an argument, of rows. Accumulator: that int."""

    result_type: ClassVar[pa.DataType] = pa.int64()

    def create_accumulator(self) -> int:
        return 0

    def add(self, accumulator: int, value: Value = True) -> int:
        return accumulator if value is None else accumulator + 1

    def merge(self, left: int, right: int) -> int:
        return left + right

    def get_result(self, accumulator: int) -> int:
        return accumulator


@dataclass(frozen=True, slots=True)
class CountDistinct:
    """The number of distinct values. Accumulator: the set of frozen values."""

    form: Form
    result_type: ClassVar[pa.DataType] = pa.int64()

    def create_accumulator(self) -> set[Frozen]:
        return set()

    def add(self, accumulator: set[Frozen], value: Value) -> set[Frozen]:
        if value is not None:
            accumulator.add(self.form.freeze(value))
        return accumulator

    def merge(self, left: set[Frozen], right: set[Frozen]) -> set[Frozen]:
        left |= right
        return left

    def get_result(self, accumulator: set[Frozen]) -> int:
        return len(accumulator)


@dataclass(frozen=True, slots=True)
class CountDistinctRows(CountDistinct):
    """The number of distinct combinations of several values, none of them NULL: the set of frozen tuples."""

    forms: tuple[Form, ...]

    def add(self, accumulator: set[Frozen], *values: Value) -> set[Frozen]:
        if None not in values:
            accumulator.add(tuple(form.freeze(value) for form, value in zip(self.forms, values, strict=True)))
        return accumulator


class ColumnarCount(KernelAggregate):
    takes_codes = True

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}n", "count" if self.slots else "count_all", "sum"),)

    def prepare(self, rows: pa.Table) -> dict[str, pa.Array]:
        return super().prepare(rows) if self.slots else {}

    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.fill_null(partials[f"{self.prefix}n"], 0).combine_chunks()


class FramedCount(FramedAggregate):
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        return pa.array(count)


class ColumnarCountDistinct(SegmentAggregate):
    """The number of distinct values. Partial: the list of them; of several columns, of their combinations without a null."""

    takes_codes = True

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{self.prefix}v{number}" for number in range(len(self.slots)))

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        present = np.logical_and.reduce([rows[slot].is_valid().to_numpy() for slot in self.slots])
        offsets = np.concatenate(([0], np.cumsum(present, dtype=np.int64)))
        kept = pa.array(present)
        lifted = zip(self.columns, self.slots, strict=True)
        return {name: list_array(offsets, flat(rows[slot]).filter(kept)) for name, slot in lifted}

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        columns = [Lists.of(partials[name]) for name in self.columns]
        places, offsets = columns[0].gathered(segments)
        numbers = np.repeat(np.arange(segments.count), np.diff(offsets))
        firsts = first_of_each(numbers, [equality_codes(lists.values)[places] for lists in columns])
        kept, offsets = pa.array(places[firsts]), offsets_of(numbers[firsts], segments.count)
        return {name: list_array(offsets, lists.values.take(kept)) for name, lists in zip(self.columns, columns, strict=True)}

    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.list_value_length(flat(partials[self.columns[0]])).cast(pa.int64())


COUNT = define(
    Definition(
        name="count",
        bind=lambda call: Count(),
        holistic=False,
        ordered=False,
        exact=True,
        idempotent=False,
        invertible=True,
        returns=Returns.OWN,
        compared_from=None,
        columnar=lambda call: ColumnarCount(call.prefix, call.slots),
        frame=lambda call: FramedCount,
        running=lambda call: RunningCount,
        duckdb="count",
        merged_by="+",
    )
)


def _distinct(call: Call) -> BoundAggregate:
    forms = tuple(map(form_of, call.types))
    return CountDistinct(forms[0]) if len(forms) == 1 else CountDistinctRows(forms[0], forms)


COUNT_DISTINCT = define(
    Definition(
        name="count_distinct",
        bind=_distinct,
        holistic=True,
        ordered=False,
        exact=True,
        idempotent=True,
        invertible=False,
        returns=Returns.OWN,
        compared_from=0,
        columnar=lambda call: ColumnarCountDistinct(call.prefix, call.slots),
    )
)


def count(column: Argument | None = None) -> Aggregate:
    """Count the rows, or the rows where a column is not NULL.

    Result: bigint, 0 for no rows. Source: Spark SQL ``count(*)``, ``count(col)``.

    Example:
        >>> count(), count("dep_delay")
        (count(), count('dep_delay'))
    """
    return Aggregate.of("count") if column is None else Aggregate.of("count", column)


def count_distinct(column: Argument, *columns: Argument) -> Aggregate:
    """Count the distinct values of a column, or of several columns their combinations without a NULL.

    Works on every type, also arrays, structs and maps. Keeps every distinct value: see
    ``approx_count_distinct``.

    Result: bigint, 0 for no values. Source: Spark SQL ``count(DISTINCT col, ...)``.

    Example:
        >>> count_distinct("tail_number")
        count_distinct('tail_number')
    """
    return Aggregate.of("count_distinct", column, *columns)
