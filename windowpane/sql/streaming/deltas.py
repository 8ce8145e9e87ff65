"""Changelog batches as relations: netting, keeping state by them, and their words for users."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windowpane.engines.over_program import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.sql.expr import quoted
from windowpane.sql.storage import Storage

WEIGHT = "windowpane_w"


def same(one: str, other: str, names: Sequence[str]) -> str:
    """Return the condition that two aliased relations agree on columns, NULLs included."""
    return " AND ".join(f"{one}.{quoted(name)} IS NOT DISTINCT FROM {other}.{quoted(name)}" for name in names) or "TRUE"


def netted(storage: Storage, query: str, columns: Sequence[str]) -> str | None:
    """Return a batch in which every row counts once, ``None`` if nothing is left of it."""
    names = ", ".join(map(quoted, columns))
    weight = quoted(WEIGHT)
    by = f"GROUP BY {names} " if names else ""
    items = f"{names}, " if names else ""
    name = storage.temporary(f"SELECT {items}sum({weight})::INTEGER AS {weight} FROM ({query}) {by}HAVING sum({weight}) <> 0")
    return None if storage.is_empty(name) else name


def difference(storage: Storage, old: str | None, new: str, columns: Sequence[str]) -> str | None:
    """Return the batch that turns the result of one query into that of another."""
    names = ", ".join(map(quoted, columns))
    items = f"{names}, " if names else ""
    parts = [f"SELECT {items}1 AS {quoted(WEIGHT)} FROM {new}"]
    parts += [f"SELECT {items}-1 AS {quoted(WEIGHT)} FROM {old}"] if old is not None else []
    return netted(storage, " UNION ALL ".join(parts), columns)


def apply_to(storage: Storage, table: str, delta: str, columns: Sequence[str], key: Sequence[str]) -> None:
    """Change a stored relation by a netted batch; rows that went are found by key."""
    weight = quoted(WEIGHT)
    storage.run(f"DELETE FROM {table} AS s USING {delta} AS d WHERE d.{weight} < 0 AND {same('s', 'd', key)}")
    names = ", ".join(map(quoted, columns))
    storage.run(f"INSERT INTO {table} ({names}) SELECT {names} FROM {delta} WHERE {weight} > 0")


def with_words(delta: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return a netted batch with ``_change_type`` in place of weights: both halves of an update stand together.

    The words are insert, update_preimage, update_postimage, delete.
    """
    rows = delta.drop_columns([WEIGHT])
    weights = delta.column(WEIGHT).to_pylist()
    keys = list(zip(*(_hashable(delta.column(name)) for name in key), strict=True)) if key else [()] * len(weights)
    went = {identity: index for index, (identity, weight) in enumerate(zip(keys, weights, strict=True)) if weight < 0}
    came = {identity: index for index, (identity, weight) in enumerate(zip(keys, weights, strict=True)) if weight > 0}
    order: list[int] = []
    words: list[str] = []
    for identity in dict.fromkeys(keys):
        before, after = went.get(identity), came.get(identity)
        both = before is not None and after is not None
        if before is not None:
            order.append(before)
            words.append(UPDATE_PREIMAGE if both else DELETE)
        if after is not None:
            order.append(after)
            words.append(UPDATE_POSTIMAGE if both else INSERT)
    return rows.take(pa.array(order, pa.int64())).append_column(CHANGE_TYPE, pa.array(words, pa.string()))


def _hashable(column: pa.ChunkedArray) -> list[object]:
    return [tuple(value) if isinstance(value, list) else value for value in column.to_pylist()]


def to_weights(table: pa.Table) -> pa.Table:
    """Return a batch with weights in place of ``_change_type``."""
    words = table.column(CHANGE_TYPE).to_pylist()
    weights = pa.array([1 if word in (INSERT, UPDATE_POSTIMAGE) else -1 for word in words], pa.int32())
    return table.drop_columns([CHANGE_TYPE]).append_column(WEIGHT, weights)
