"""Changelog batches as relations: netting, keeping state by them, and their words for users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.kernels.over.sorting import partition_numbers
from windowpane.sql.bind.scope import Column
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.expressions.written import has_spellings, spelling
from windowpane.sql.values.far_instants import cells
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE

WEIGHT = "windowpane_w"

Types = Mapping[str, SqlType]
"""The columns of a batch, with their types."""


def types_of(columns: Iterable[Column]) -> Types:
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


class Rows(IntEnum):
    """What is known of the rows of a batch; each says more than the one before."""

    ANY = 0
    """A row may be inserted and deleted, and more than once."""

    NETTED = 1
    """Every row counts once, as inserted or as deleted."""

    INSERTED = 2
    """They are inserted only. Rows have keys, so none is there twice: no rows cancel, and none are deleted."""


@dataclass(frozen=True)
class Delta:
    """A changelog batch: rows with their weights, as a relation.

    Args:
        relation: its name, or a query in parentheses, as FROM has it.
        is_query: whether it is a query, which runs wherever it is read.
    """

    relation: str
    rows: Rows = Rows.ANY
    is_query: bool = False

    @classmethod
    def of(cls, query: str, rows: Rows = Rows.ANY) -> Delta:
        """Return the result of a query as a batch."""
        return cls(f"({query})", rows, is_query=True)

    def __str__(self) -> str:
        return self.relation

    @property
    def inserts(self) -> bool:
        return self.rows is Rows.INSERTED

    def run(self, storage: Storage) -> Delta:
        """Return it as a relation that can be read many times: one that is a query runs now."""
        return Delta(storage.temporary(f"SELECT * FROM {self}"), self.rows) if self.is_query else self

    def through(self, query: str) -> Delta:
        """Return the result of a query that keeps its rows as they are."""
        return Delta.of(query, self.rows)


def kept(storage: Storage, delta: Delta) -> Delta | None:
    """Return a batch that can be read many times, ``None`` if it is empty."""
    delta = delta.run(storage)
    return None if storage.is_empty(delta.relation) else delta


def settled(storage: Storage, delta: Delta, columns: Types) -> Delta | None:
    """Return a batch in which every row counts once, ``None`` if no change remains; a batch that is so already stays as it is."""
    return netted(storage, f"SELECT * FROM {delta}", columns) if delta.rows is Rows.ANY else delta


def inserted(relation: str) -> Delta:
    return Delta.of(f"SELECT *, 1 AS {quoted(WEIGHT)} FROM {relation}", Rows.INSERTED)


def netted(storage: Storage, query: str, columns: Types) -> Delta | None:
    """Return the changes of a query as a batch in which every row counts once, ``None`` if no change remains.

    Rows that are the same as written cancel, see ``written``.
    """
    names = ", ".join(map(quoted, columns))
    weight = quoted(WEIGHT)
    spellings = [spelling(quoted(name), kind) for name, kind in columns.items() if has_spellings(kind)]
    by = f"GROUP BY {', '.join([names, *spellings])} " if names else ""
    items = f"{names}, " if names else ""
    name = storage.temporary(f"SELECT {items}sum({weight})::INTEGER AS {weight} FROM ({query}) {by}HAVING sum({weight}) <> 0")
    return None if storage.is_empty(name) else Delta(name, Rows.NETTED)


def difference(storage: Storage, old: str | None, new: str, columns: Types) -> Delta | None:
    """Return the batch that turns the result of one query into that of another."""
    if old is None or storage.is_empty(old):
        return kept(storage, inserted(new))
    names = ", ".join(map(quoted, columns))
    items = f"{names}, " if names else ""
    parts = [f"SELECT {items}1 AS {quoted(WEIGHT)} FROM {new}", f"SELECT {items}-1 AS {quoted(WEIGHT)} FROM {old}"]
    return netted(storage, " UNION ALL ".join(parts), columns)


def instead(storage: Storage, old: str, new: str | None, columns: Types) -> Delta | None:
    """Return the batch after which a relation has the rows of another batch, ``None`` where it has them."""
    names = ", ".join(map(quoted, columns))
    before = f"SELECT {names}, -1 AS {quoted(WEIGHT)} FROM {old}"
    return netted(storage, before if new is None else f"{before} UNION ALL SELECT {names}, {quoted(WEIGHT)} FROM {new}", columns)


def apply_to(storage: Storage, table: str, delta: Delta, columns: Sequence[str], key: Sequence[str]) -> None:
    """Change a stored relation by a netted batch; deleted rows are found by key."""
    weight, names = quoted(WEIGHT), ", ".join(map(quoted, columns))
    if delta.inserts:
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


def _value(cell: object) -> Any:
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
