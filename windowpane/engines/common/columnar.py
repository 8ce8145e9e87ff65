"""What the columnar engines share: which programs they can run at all, and the grouped fold of their aggregates.

Keys are grouped by the columns of ``key_names``. Arrow does not group arrays and structs: a column of them is grouped by another
one, which holds each value's canonical encoding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.aggregates.user_code import KeptRows, UserAggregate
from windowpane.arrays.columns import flat, padded, replaced
from windowpane.engines.combiner import Combiner
from windowpane.engines.nested_keys.reading import decoded_keys
from windowpane.engines.nested_keys.writing import ENCODED, encoded_keys
from windowpane.engines.program import Program
from windowpane.engines.rows import python_keys, python_rows
from windowpane.errors import MissingTimestampError
from windowpane.hidden_columns import TIME, hidden
from windowpane.kernels.aggregates.protocol import is_scalar
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.keys.codes import canonical, is_nested
from windowpane.windowing.aggregates.canonical import is_array
from windowpane.windowing.arrow_functions import ArrowWindowFunction
from windowpane.windowing.panes import NO_PANES

_PREFIX = hidden("user_")
ALL = hidden("all")
"""Key column where there are no keys."""


def common_refusal(program: Program, *, shows_panes: bool = False, fires_again: bool = False) -> str | None:
    """Return why no columnar engine of built-in aggregates can run a program, ``None`` if one may.

    ``shows_panes``: it numbers panes and takes them back. ``fires_again``: a key may fire several times in a batch.
    """
    if fires_again and isinstance(program.arrow, ArrowWindowFunction):
        return "a function on tables of many keys would see several firings of a key at once"
    if program.spec.panes != NO_PANES and not shows_panes:
        return "panes are numbered one firing after the other"
    if program.spec.panes.retracts and program.arrow is not None:
        return "the result of a function is not kept, and may be another one when it is called again"
    if program.spec.panes != NO_PANES and isinstance(program.arrow, ArrowWindowFunction):
        return "a function on tables of many keys does not say which pane a row is from"
    if (program.arrow is None and not program.aggregates) or program.processes_results:
        return "the function is no plain list of built-in aggregates"
    if not all(is_scalar(kind) or _is_encoded(kind) for kind in program.keys.types):
        return "a key column holds maps, or values that no kernel knows"
    if fold_of(program) is not None:
        return None
    lacking = [str(each[1]) for each in program.aggregates if GroupedFold.of([each], program.value_types) is None]
    return f"{', '.join(lacking)} has no columnar form for its argument"


def fold_of(program: Program) -> GroupedFold | None:
    """Return the fold of a program's aggregates, ``None`` if one of them has no columnar form."""
    if isinstance(program.arrow, ArrowWindowFunction):
        return GroupedFold((KeptRows(_PREFIX, program.values),))
    if program.arrow is not None:
        return GroupedFold((UserAggregate(_PREFIX, program.values, program.arrow, program.main),))
    return GroupedFold.of(program.aggregates, program.value_types)


def key_names(program: Program) -> tuple[str, ...]:
    """Return the columns that rows are grouped by: at least one."""
    return group_columns(program) or (ALL,)


def group_columns(program: Program) -> tuple[str, ...]:
    """Return the columns that rows are grouped by; none where there are no keys."""
    named = zip(program.key_columns, program.keys, strict=True)
    return tuple(ENCODED + name if is_nested(field.type) else name for name, field in named)


def keyed(program: Program, rows: pa.Table, write: Callable[[str, pa.ChunkedArray], pa.Array] = encoded_keys) -> pa.Table:
    """Return rows that have the columns of ``key_names``; ``write`` makes those of nested keys."""
    if program.key_columns:
        return with_encoded_keys(program, rows, write)
    return rows.append_column(ALL, pa.array(np.zeros(rows.num_rows, np.int8)))


def with_encoded_keys(
    program: Program, rows: pa.Table, write: Callable[[str, pa.ChunkedArray], pa.Array] = encoded_keys
) -> pa.Table:
    """Return rows that have the columns of ``group_columns``; ``write`` makes those of nested keys.

    Raises:
        UnrepresentableValueError: a key that Python has no type for.
    """
    for name, column in zip(program.key_columns, group_columns(program), strict=True):
        if column != name and column not in rows.column_names:
            rows = rows.append_column(column, write(name, rows[name]))
    return rows


def key_arrays(program: Program, table: pa.Table) -> list[pa.Array]:
    """Return the keys of a table with the columns of ``group_columns``, as the output has them."""
    return [_key(table[name], field.type) for name, field in zip(group_columns(program), program.keys, strict=True)]


def _key(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    return decoded_keys(column, kind) if is_nested(kind) else flat(column).cast(kind)


def _is_encoded(kind: pa.DataType) -> bool:
    """Whether keys of a type are grouped by their encoding."""
    if is_array(kind):
        return is_scalar(kind.value_type) or _is_encoded(kind.value_type)
    return bool(pa.types.is_struct(kind)) and all(is_scalar(field.type) or _is_encoded(field.type) for field in kind)


def with_plain_keys(program: Program, rows: pa.Table) -> pa.Table:
    """Return rows with one spelling for equal keys: one NaN, no negative zero."""
    for name in group_columns(program):
        if pa.types.is_floating(rows[name].type):
            rows = replaced(rows, name, canonical(rows[name]))
    return rows


def with_columns_of_now(program: Program, fold: GroupedFold, held: pa.Table) -> pa.Table:
    """Return what is held of rows for a function on Arrow tables, with the columns of now: NULL in those that they did not have.

    Partials of a function's own are as the function made them.
    """
    if fold.columns[0] not in held.column_names:  # elements, which wait for an evictor
        return padded(held, program.value_types, list(dict.fromkeys([*key_names(program), *program.values, *held.column_names])))
    rows = fold.aggregates[0]
    return rows.padded(held, program.value_types) if isinstance(rows, KeptRows) else held


def folding_combiner(program: Program, fold: GroupedFold, fold_rows: Callable[[pa.Table], pa.Table], **options: Any) -> Combiner:
    """Return the combiner whose ``fold_rows`` groups the rows of a program by its keys, with ``fold``."""
    return Combiner(fold_rows, coded=_coded(program, fold), **options)


def _coded(program: Program, fold: GroupedFold) -> frozenset[str]:
    """Return the columns of texts that are read as numbers alone: keys, and arguments of nothing but such aggregates."""
    keys = {name for name, kind in zip(program.key_columns, program.keys.types, strict=True) if pa.types.is_string(kind)}
    texts = {field.name for field in program.value_types if pa.types.is_string(field.type)}
    taken = {slot for aggregate in fold.aggregates for slot in aggregate.coded_slots}
    others = {slot for aggregate in fold.aggregates for slot in aggregate.slots if slot not in aggregate.coded_slots}
    return frozenset((keys | taken & texts) - others)


def refuse_null_times(program: Program, rows: pa.Table) -> None:
    """Refuse a row without an event time, by name.

    Raises:
        MissingTimestampError: there is one.
    """
    if not rows[TIME].null_count:
        return
    row = rows.slice(rows[TIME].is_null().to_pylist().index(True), 1)
    key = python_keys(row, program.key_columns)[0]
    raise MissingTimestampError(program.spec.assigner, key, python_rows(row.select(program.values))[0])
