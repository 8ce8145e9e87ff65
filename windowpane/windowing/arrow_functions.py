"""Functions of the user's on Arrow tables of many keys at once.

An Arrow aggregate function folds rows into partials as the built-in aggregates do; a window function is given the whole rows of
the firing windows of many keys. Which keys meet in one table is up to the engine, so a result must not depend on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import structs
from windowpane.arrays.values import Row, Value
from windowpane.errors import ArrowResultError, UserFunctionError, WindowpaneError
from windowpane.windowing.functions import AggregateFunction, ProcessContext, ProcessWindowFunction
from windowpane.windowing.windows import TimeWindow

if TYPE_CHECKING:
    import pandas as pd

GROUP = "__group"
"""The column of an Arrow aggregate function's tables that numbers the groups, from 0."""


class ArrowAggregateFunction(ABC):
    """Aggregates the rows of many keys and windows at once, on Arrow tables.

    A group is a key in a window, or a part of one; the int64 column ``__group`` (``GROUP``) numbers the groups of a table from 0.
    ``partial`` folds rows into partials, ``merge`` partials into fewer, ``finish`` makes results of them. Merging the partials of
    any parts of the rows, in any order, must give what ``partial`` gives of all rows: parts are folded before the shuffle, and
    slices are shared by windows. Partials are Arrow columns of any types, the same ones every time; a table has a row at least.

    Example:
        >>> class WeightedMean(ArrowAggregateFunction):
        ...     def partial(self, rows):
        ...         product = pc.multiply(rows["x"], rows["w"])
        ...         return self.merge(pa.table({GROUP: rows[GROUP], "xw": product, "w": rows["w"]}))
        ...     def merge(self, partials):
        ...         sums = partials.group_by(GROUP).aggregate([("xw", "sum"), ("w", "sum")])
        ...         return sums.rename_columns([GROUP, "xw", "w"])
        ...     def finish(self, partials):
        ...         return pa.table({"mean": pc.divide(partials["xw"], partials["w"])})
    """

    @abstractmethod
    def partial(self, rows: pa.Table) -> pa.Table:
        """Return partials, one row for each value of ``__group`` in ``rows``, in any order; with that column."""

    @abstractmethod
    def merge(self, partials: pa.Table) -> pa.Table:
        """Return partials of the same columns, one row for each value of ``__group``, in any order."""

    @abstractmethod
    def finish(self, partials: pa.Table) -> pa.Table:
        """Return the declared result columns, one row for each row of ``partials``, in their order."""


@dataclass(frozen=True)
class ArrowWindowFunction:
    """A function from the rows of firing windows to result rows, both Arrow tables of many keys."""

    function: Callable[[pa.Table], pa.Table]  # takes and returns a table
    kind: str  # the method that the user called, ``"apply_in_arrow"`` or ``"apply_in_pandas"``


@dataclass(frozen=True)
class InPandas:
    """A function on pandas DataFrames as one on Arrow tables."""

    function: Callable[[pd.DataFrame], pd.DataFrame]

    def __call__(self, rows: pa.Table) -> pa.Table:
        return pa.Table.from_pandas(self.function(rows.to_pandas()), preserve_index=False)


# --- calling them: what they raise is named, and what they return is checked ---


def called(what: object, function: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
    """Return the table that a function of the user's returns."""
    try:
        result = function(table)
    except WindowpaneError:
        raise
    except Exception as error:
        raise UserFunctionError(what, "many at once", "any", error) from error
    if not isinstance(result, pa.Table):
        raise ArrowResultError(what, f"it returned a {type(result).__name__}, but a pyarrow.Table was expected")
    return result


def fitted(what: object, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of ``schema``, cast to its types."""
    missing = [name for name in schema.names if name not in table.column_names]
    unknown = [name for name in table.column_names if name not in schema.names]
    if missing or unknown:
        raise ArrowResultError(what, f"its table has the columns {table.column_names}, but {schema.names} were expected")
    return cast_as(what, table, schema, "table")


def cast_as(what: object, table: pa.Table, schema: pa.Schema, returned: str) -> pa.Table:
    """Return the columns of ``schema``, all of which exist, cast to its types; ``returned`` is what messages call the table."""
    chosen = table.select(schema.names)
    for column, field in zip(chosen.columns, schema, strict=True):
        if lost := _lost(column, field.type):
            raise ArrowResultError(what, f"its {returned} has a column {field.name!r} {lost}, and {field.type} was declared")
    try:
        return chosen.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        found, wanted = ([str(kind) for kind in each.types] for each in (chosen.schema, schema))
        raise ArrowResultError(what, f"its {returned} has the types {found}, not {wanted}: {error}") from error


def _lost(column: pa.ChunkedArray, kind: pa.DataType) -> str | None:
    """Return what Arrow would leave out without a word, were a column cast."""
    if pa.types.is_date(kind) and pa.types.is_timestamp(column.type):
        has_times = pc.any(pc.not_equal(column, pc.floor_temporal(column, unit="day"))).as_py()
        return "with times of day" if has_times else None
    unknown = next(_unknown_fields(column.type, kind), None)
    return None if unknown is None else f"with a field {unknown!r}"


def _unknown_fields(kind: pa.DataType, wanted: pa.DataType) -> Iterator[str]:
    if pa.types.is_struct(kind) and pa.types.is_struct(wanted):
        yield from (field.name for field in kind if wanted.get_field_index(field.name) < 0)
        pairs = [(field.type, wanted.field(field.name).type) for field in kind if wanted.get_field_index(field.name) >= 0]
    elif pa.types.is_nested(kind) and pa.types.is_nested(wanted) and kind.num_fields == wanted.num_fields:
        pairs = [(kind.field(number).type, wanted.field(number).type) for number in range(kind.num_fields)]
    else:
        pairs = []
    for pair in pairs:
        yield from _unknown_fields(*pair)


def windows_applied(function: ArrowWindowFunction, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the result rows of a window function as a table of ``schema``: keys, window bounds, declared columns."""
    return fitted(function.function, called(function.function, function.function, rows), schema)


def partials_of(function: ArrowAggregateFunction, step: str, table: pa.Table, groups: Integers, count: int) -> pa.StructArray:
    """Return what ``partial`` or ``merge`` gives for rows of ``count`` groups, a struct a group, in their order."""
    numbered = table.append_column(GROUP, pa.array(groups, pa.int64()))
    result = called(function, getattr(function, step), numbered)
    if GROUP not in result.column_names:
        raise ArrowResultError(function, f"{step} returned no column {GROUP!r}")
    order = pc.sort_indices(result[GROUP])
    if not np.array_equal(result[GROUP].take(order).to_numpy(), np.arange(count)):
        raise ArrowResultError(function, f"{step} returned {result.num_rows} rows for {count} groups, not one for each")
    return structs(result.drop_columns([GROUP]).take(order))


def results_of(function: ArrowAggregateFunction, partials: pa.StructArray, schema: pa.Schema) -> pa.Table:
    """Return what ``finish`` gives."""
    result = called(function, function.finish, pa.Table.from_struct_array(partials))
    if result.num_rows != len(partials):
        raise ArrowResultError(function, f"finish returned {result.num_rows} rows for {len(partials)} groups")
    return fitted(function, result, schema)


# --- as the reference operator runs them: a row, or a key and window, is a table of its own ---


@dataclass(frozen=True)
class ArrowByRow(AggregateFunction[pa.Table | None, Row]):
    """An Arrow aggregate function as one of Flink's: every row is a table of its own. Accumulator: the partial, as a table."""

    function: ArrowAggregateFunction
    rows: pa.Schema
    results: pa.Schema

    def create_accumulator(self) -> pa.Table | None:
        return None

    def add(self, value: Row, accumulator: pa.Table | None) -> pa.Table:
        row = pa.Table.from_pylist([dict(value)], schema=self.rows)
        return self.merge(accumulator, self._one("partial", row))

    def merge(self, left: pa.Table | None, right: pa.Table | None) -> pa.Table | None:
        if left is None or right is None:
            return left if right is None else right
        return self._one("merge", pa.concat_tables([left, right]))

    def _one(self, step: str, table: pa.Table) -> pa.Table:
        return pa.Table.from_struct_array(partials_of(self.function, step, table, np.zeros(table.num_rows, np.int64), 1))

    def get_result(self, accumulator: pa.Table | None) -> Row:
        """Return the result; NULLs of no rows, which an evictor may leave."""
        if accumulator is None:
            return dict.fromkeys(self.results.names)
        partials = structs(accumulator)
        row: dict[str, Value] = results_of(self.function, partials, self.results).to_pylist()[0]
        return row


@dataclass(frozen=True)
class ArrowByKey(ProcessWindowFunction):
    """An Arrow window function as a process function: every firing is a table of its own.

    ``rows`` are keys, window bounds and columns of the input, ``results`` keys, window bounds and declared columns.
    """

    function: ArrowWindowFunction
    rows: pa.Schema
    results: pa.Schema
    keys: int

    def process(self, key: Value, context: ProcessContext, elements: Sequence[Value]) -> Iterable[Value]:
        window = context.window
        bounds = (window.start, window.end) if isinstance(window, TimeWindow) else (None, None)
        given = [*((key,) if self.keys == 1 else key or ()), *bounds]
        columns = [pa.array([row[field.name] for row in elements], field.type) for field in list(self.rows)[len(given) :]]
        fixed = zip(given, list(self.rows)[: len(given)], strict=True)
        repeated = [self._repeated(value, field, len(elements)) for value, field in fixed]
        result = windows_applied(self.function, pa.table([*repeated, *columns], schema=self.rows), self.results)
        rows: list[dict[str, Value]] = result.select(self.results.names[len(given) :]).to_pylist()
        return rows

    def _repeated(self, value: Value, field: pa.Field, count: int) -> pa.Array:
        is_bound = self.rows.get_field_index(field.name) >= self.keys
        return pa.array([value] * count, pa.int64()).cast(field.type) if is_bound else pa.array([value] * count, field.type)
