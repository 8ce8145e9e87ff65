"""Calling functions on Arrow tables: what they raise is named, and what they return is checked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import structs
from windowpane.errors import ArrowResultError, UserFunctionError, WindowpaneError
from windowpane.windowing.arrow.functions import GROUP, ArrowAggregateFunction, ArrowWindowFunction


def called(what: object, function: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
    """Return the table that a function of the user's returns.

    Raises:
        UserFunctionError: it raised.
        ArrowResultError: it returned something else.
    """
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
    """Return the columns of ``schema``, cast to its types.

    Raises:
        ArrowResultError: a column is missing, is one too many, or cannot be cast.
    """
    missing = [name for name in schema.names if name not in table.column_names]
    unknown = [name for name in table.column_names if name not in schema.names]
    if missing or unknown:
        raise ArrowResultError(what, f"its table has the columns {table.column_names}, but {schema.names} were expected")
    return cast_as(what, table, schema, "table")


def cast_as(what: object, table: pa.Table, schema: pa.Schema, returned: str) -> pa.Table:
    """Return the columns of ``schema``, all of which exist, cast to its types; ``returned`` is what messages call the table.

    Raises:
        ArrowResultError: a column cannot be cast.
    """
    chosen = table.select(schema.names)
    try:
        return chosen.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        found, wanted = ([str(kind) for kind in each.types] for each in (chosen.schema, schema))
        raise ArrowResultError(what, f"its {returned} has the types {found}, not {wanted}: {error}") from error


def windows_applied(function: ArrowWindowFunction, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the result rows of a window function as a table of ``schema``: keys, window bounds, declared columns.

    Raises:
        UserFunctionError: the function raised.
        ArrowResultError: what it returned does not fit.
    """
    return fitted(function.function, called(function.function, function.function, rows), schema)


def partials_of(function: ArrowAggregateFunction, step: str, table: pa.Table, groups: Integers, count: int) -> pa.StructArray:
    """Return what ``partial`` or ``merge`` gives for rows of ``count`` groups, a struct a group, in their order.

    Raises:
        UserFunctionError: the function raised.
        ArrowResultError: it did not return one row for each group.
    """
    numbered = table.append_column(GROUP, pa.array(groups, pa.int64()))
    result = called(function, getattr(function, step), numbered)
    if GROUP not in result.column_names:
        raise ArrowResultError(function, f"{step} returned no column {GROUP!r}")
    order = pc.sort_indices(result[GROUP])
    if not np.array_equal(result[GROUP].take(order).to_numpy(), np.arange(count)):
        raise ArrowResultError(function, f"{step} returned {result.num_rows} rows for {count} groups, not one for each")
    return structs(result.drop_columns([GROUP]).take(order))


def results_of(function: ArrowAggregateFunction, partials: pa.StructArray, schema: pa.Schema) -> pa.Table:
    """Return what ``finish`` gives.

    Raises:
        UserFunctionError: the function raised.
        ArrowResultError: its table does not fit the declared schema, or has not one row for each group.
    """
    result = called(function, function.finish, pa.Table.from_struct_array(partials))
    if result.num_rows != len(partials):
        raise ArrowResultError(function, f"finish returned {result.num_rows} rows for {len(partials)} groups")
    return fitted(function, result, schema)
