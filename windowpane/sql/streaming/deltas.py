"""Changelog batches as relations: netting, keeping state by them, and their words for users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.engines.over.program import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.kernels.over.sorting import partition_numbers
from windowpane.sql.bind.scope import Column
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.expressions.written import has_spellings, spelling
from windowpane.sql.values.far_instants import cells

WEIGHT = "windowpane_w"

Types = Mapping[str, SqlType]
"""The columns of a batch, with their types."""


def types_of(columns: Iterable[Column]) -> Types:
    """Return columns of a plan as those of a batch."""
    return {column.id: column.type for column in columns}


def same(one: str, other: str, names: Sequence[str]) -> str:
    """Return the condition that two aliased relations agree on columns, NULLs included."""
    return " AND ".join(f"{one}.{quoted(name)} IS NOT DISTINCT FROM {other}.{quoted(name)}" for name in names) or "TRUE"


def differing(one: str, other: str, kind: SqlType) -> str:
    """Return the condition that two values are not the same as written."""
    differ = f"{one} IS DISTINCT FROM {other}"
    return f"({differ} OR {spelling(one, kind)} <> {spelling(other, kind)})" if has_spellings(kind) else differ


def distinct_items(alias: str, names: Sequence[str]) -> str:
    """Return the columns of an aliased relation for ``SELECT DISTINCT``; without columns, a constant for the only group."""
    return ", ".join(f"{alias}.{quoted(name)}" for name in names) or "1 AS windowpane_one"


class Inserts(str):
    """A batch of inserted rows only. Rows have keys, so it has none of them twice: no rows cancel, and none are deleted."""

    __slots__ = ()


class Netted(str):
    """A batch in which every row counts once, as inserted or as deleted."""

    __slots__ = ()


def like(query: str, *deltas: str | None) -> str:
    """Return a query that keeps rows of batches as they are, with the mark that all of them have."""
    given = [delta for delta in deltas if delta is not None]
    if all(isinstance(delta, Inserts) for delta in given):
        return Inserts(query)
    return Netted(query) if len(given) == 1 and isinstance(given[0], Netted) else query


def kept(storage: Storage, delta: str) -> str | None:
    """Return a batch that can be read many times, ``None`` if it is empty; one that is a query runs now."""
    if delta.startswith("("):
        delta = like(storage.temporary(f"SELECT * FROM {delta}"), delta)
    return None if storage.is_empty(delta) else delta


def settled(storage: Storage, delta: str, columns: Types) -> str | None:
    """Return a batch in which every row counts once, ``None`` if no change remains; a batch that is so already stays as it is."""
    return delta if isinstance(delta, Inserts | Netted) else netted(storage, f"SELECT * FROM {delta}", columns)


def netted(storage: Storage, query: str, columns: Types) -> str | None:
    """Return the changes of a query as a batch in which every row counts once, ``None`` if no change remains.

    Rows that are the same as written cancel, see ``written``.
    """
    names = ", ".join(map(quoted, columns))
    weight = quoted(WEIGHT)
    spellings = [spelling(quoted(name), kind) for name, kind in columns.items() if has_spellings(kind)]
    by = f"GROUP BY {', '.join([names, *spellings])} " if names else ""
    items = f"{names}, " if names else ""
    name = storage.temporary(f"SELECT {items}sum({weight})::INTEGER AS {weight} FROM ({query}) {by}HAVING sum({weight}) <> 0")
    return None if storage.is_empty(name) else Netted(name)


def difference(storage: Storage, old: str | None, new: str, columns: Types) -> str | None:
    """Return the batch that turns the result of one query into that of another."""
    if old is None or storage.is_empty(old):
        return kept(storage, Inserts(f"(SELECT *, 1 AS {quoted(WEIGHT)} FROM {new})"))
    names = ", ".join(map(quoted, columns))
    items = f"{names}, " if names else ""
    parts = [f"SELECT {items}1 AS {quoted(WEIGHT)} FROM {new}", f"SELECT {items}-1 AS {quoted(WEIGHT)} FROM {old}"]
    return netted(storage, " UNION ALL ".join(parts), columns)


def apply_to(storage: Storage, table: str, delta: str, columns: Sequence[str], key: Sequence[str]) -> None:
    """Change a stored relation by a netted batch; deleted rows are found by key."""
    weight, names = quoted(WEIGHT), ", ".join(map(quoted, columns))
    if isinstance(delta, Inserts):
        storage.run(f"INSERT INTO {table} ({names}) SELECT {names} FROM {delta}")
        return
    storage.run(f"DELETE FROM {table} AS s USING {delta} AS d WHERE d.{weight} < 0 AND {same('s', 'd', key)}")
    storage.run(f"INSERT INTO {table} ({names}) SELECT {names} FROM {delta} WHERE {weight} > 0")


def with_words(delta: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return a netted batch with ``_change_type`` in place of weights: both halves of an update are adjacent.

    The words are insert, update_preimage, update_postimage, delete.
    """
    rows, inserted = delta.drop_columns([WEIGHT]), pc.greater(delta.column(WEIGHT), 0).to_numpy()
    if inserted.all():
        return rows.append_column(CHANGE_TYPE, pa.array([INSERT]).take(pa.array(np.zeros(len(inserted), np.int64))))
    numbers = _key_numbers([delta.column(name).combine_chunks() for name in key], delta.num_rows)
    firsts = np.unique(numbers, return_index=True)[1]
    order = np.lexsort((inserted, firsts[numbers]))
    inserts, deletes = (np.bincount(numbers[which], minlength=len(firsts)) for which in (inserted, ~inserted))
    is_update = (inserts > 0) & (deletes > 0)
    words = np.where(inserted, 0, 2) + is_update[numbers]
    named = pa.array([INSERT, UPDATE_POSTIMAGE, DELETE, UPDATE_PREIMAGE]).take(pa.array(words[order]))
    return rows.take(pa.array(order)).append_column(CHANGE_TYPE, named)


def _key_numbers(columns: Sequence[pa.Array], rows: int) -> Integers:
    """Return a number for the key of each row, dense from 0."""
    if any(pa.types.is_nested(column.type) or pa.types.is_interval(column.type) for column in columns):
        columns = [pa.array([repr(_value(cell)) for cell in cells(column)]) for column in columns]
    return np.unique(partition_numbers(columns, rows), return_inverse=True)[1].reshape(-1)


def _value(cell: Any) -> Any:
    """Return a value that equal cells share."""
    if isinstance(cell, list):
        return [_value(each) for each in cell]
    if isinstance(cell, pa.MonthDayNano):
        return (cell.months * 30 + cell.days) * 86_400_000_000_000 + cell.nanoseconds
    return cell + 0.0 if isinstance(cell, float) else cell


def to_weights(table: pa.Table) -> pa.Table:
    """Return a batch with weights in place of ``_change_type``."""
    inserted = pc.is_in(table.column(CHANGE_TYPE), pa.array([INSERT, UPDATE_POSTIMAGE]))
    weights = pc.if_else(inserted, pa.scalar(1, pa.int32()), pa.scalar(-1, pa.int32()))
    return table.drop_columns([CHANGE_TYPE]).append_column(WEIGHT, weights)
