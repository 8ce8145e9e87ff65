"""What the columnar engines share: which programs they can run at all, and the grouped fold of their aggregates."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.engines.program import TIME, Program
from windowpane.engines.rows import python_keys, python_rows
from windowpane.errors import MissingTimestampError
from windowpane.kernels.aggregates import is_scalar
from windowpane.kernels.aggregates.user_code import KeptRows, UserAggregate
from windowpane.kernels.codes import canonical
from windowpane.kernels.grouped_fold import GroupedFold
from windowpane.windowing.arrow_functions import ArrowWindowFunction

_PREFIX = "__windowpane_user_"
_ALL = "__windowpane_all"
"""Key column where there are no keys."""


def common_refusal(
    program: Program, *, numbers_rows: bool = False, respells_keys: bool = False, runs_user_code: bool = False
) -> str | None:
    """Return why no columnar engine of built-in aggregates can run a program, ``None`` if one may.

    Args:
        program: the program.
        numbers_rows: whether the engine numbers rows by arrival, which aggregates that depend on their order need.
        respells_keys: whether the engine puts rows through ``with_plain_keys`` before it groups them.
        runs_user_code: whether the engine knows aggregates through ``fold_of`` only, so that Arrow functions may stand there.
    """
    if program.arrow is not None and not runs_user_code:
        return "a function on Arrow tables needs the rows or partials that only some engines keep"
    if (program.arrow is None and not program.aggregates) or program.processes_results:
        return "the function is no plain list of built-in aggregates"
    kinds = [field.type for field in program.keys]
    if not all(is_scalar(kind) for kind in kinds):
        return "a key column holds arrays, structs or maps, which Arrow does not group"
    if not respells_keys and any(pa.types.is_floating(kind) for kind in kinds):
        return "a key column has floating point, which Arrow does not group as Spark does"
    fold = fold_of(program)
    if fold is None:
        return "an aggregate has no columnar form for its argument"
    return "an aggregate depends on the order of arrival" if fold.is_ordered and not numbers_rows else None


def fold_of(program: Program) -> GroupedFold | None:
    """Return the fold of a program's aggregates, ``None`` if one of them has no columnar form."""
    if isinstance(program.arrow, ArrowWindowFunction):
        return GroupedFold((KeptRows(_PREFIX, program.values),))
    if program.arrow is not None:
        return GroupedFold((UserAggregate(_PREFIX, program.values, program.arrow, program.main),))
    return GroupedFold.of(program.aggregates, program.value_types)


def key_names(program: Program) -> tuple[str, ...]:
    """Return the columns that hold the key: at least one."""
    return program.key_columns or (_ALL,)


def keyed(program: Program, rows: pa.Table) -> pa.Table:
    """Return rows that have the columns of ``key_names``."""
    if program.key_columns:
        return rows
    return rows.append_column(_ALL, pa.array(np.zeros(rows.num_rows, np.int8)))


def with_plain_keys(program: Program, rows: pa.Table) -> pa.Table:
    """Return rows with one spelling for equal keys: one NaN, no negative zero."""
    for name in program.key_columns:
        if pa.types.is_floating(rows[name].type):
            rows = rows.set_column(rows.column_names.index(name), name, canonical(rows[name]))
    return rows


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
