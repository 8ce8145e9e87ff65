"""Operators that need no engine of their own: each node of a plan as a function from changelog batches to one.

- Nodes that handle each row alone (scans, filters, projections, TUMBLE, HOP, CUMULATE, unions) run on the batch itself.
- ``Keyed`` runs groups, Top-N, sessions and set operations: it keeps its input, and recomputes the keys a batch touches.
- ``CloseSorter`` holds rows back until a watermark has passed them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from windowpane.errors import MistakeError
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import (
    Aggregate,
    CloseSort,
    Expand,
    Filter,
    Join,
    Match,
    Node,
    Over,
    Project,
    Scan,
    SessionWindows,
    SetOperation,
    TimeWindows,
    TopN,
    UnionAll,
    Unnest,
)
from windowpane.sql.streaming.clock import Clock
from windowpane.sql.streaming.deltas import WEIGHT, Delta, Rows, apply_to, difference, inserted, kept, same, settled, types_of
from windowpane.sql.streaming.freeing import free
from windowpane.state.blob_store import BlobStore

Deltas = Sequence[Delta | None]


class Blobs(BlobStore, Protocol):
    """Where an engine keeps its state from batch to batch."""

    def save(self) -> None:
        """Write what changed."""

    def forget(self) -> None:
        """Read again what is stored, after a transaction that was rolled back."""

    def drop(self) -> None:
        """Remove all blobs."""


class Operator(Protocol):
    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        """Return the changes of the result, given those of the inputs; ``initial`` for the first batch of all."""

    def forget(self) -> None:
        """Drop what is only cached, after a transaction that was rolled back."""
        return

    def drop(self) -> None:
        return


class Linear(Operator):
    """A node that handles each row alone. It has no state, and its query is part of that of the node that reads it.

    Not so filters: of two in one query, DuckDB may compute the upper one first, which may fail on rows that the lower one drops.
    """

    def __init__(self, node: Node, storage: Storage) -> None:
        self._node, self._storage = node, storage
        self._is_second_filter = isinstance(node, FILTERING) and any(map(_is_filtered, node.inputs))
        self._keeps_rows_apart = _keeps_rows_apart(node)

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        if self._is_second_filter:
            deltas = [None if delta is None else kept(self._storage, delta) for delta in deltas]
        weight = f", {quoted(WEIGHT)}"
        if isinstance(self._node, UnionAll):
            parts = [
                self._node.branch_sql(index, delta.relation, weight) for index, delta in enumerate(deltas) if delta is not None
            ]
        else:
            parts = [self._node.sql(delta.relation, extra=weight) for delta in deltas if delta is not None]
        if not parts:
            return None
        known = min(delta.rows for delta in deltas if delta is not None)
        return Delta.of(" UNION ALL ".join(parts), Rows.ANY if known is Rows.NETTED and not self._keeps_rows_apart else known)


class Constant(Operator):
    """Rows that are written in the SQL text: the first batch emits them."""

    def __init__(self, node: Node, storage: Storage) -> None:
        self._node, self._storage = node, storage

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        return inserted(f"({self._node.sql()})") if initial else None


def settled_inputs(node: Node, storage: Storage, deltas: Deltas) -> list[Delta | None]:
    """Return the batches of a node's inputs, in which every row counts once."""
    pairs = zip(deltas, node.inputs, strict=True)
    return [None if delta is None else settled(storage, delta, types_of(source.columns)) for delta, source in pairs]


class OnBlobs(Operator):
    """What operators share whose engine keeps its state as blobs."""

    _blobs: Blobs

    def forget(self) -> None:
        self._blobs.forget()

    def drop(self) -> None:
        self._blobs.drop()


def state_name(owner: str, part: int | str) -> str:
    """Return the table of a part of an operator's state."""
    return f"windowpane_state.{quoted(f'{owner}/{part}')}"


def state_table(storage: Storage, owner: str, part: int | str, columns: Mapping[str, str]) -> str:
    """Return it by the DuckDB types of its columns; it is made if it is not there."""
    table = state_name(owner, part)
    listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
    storage.run(f"CREATE TABLE IF NOT EXISTS {table} ({listed})")
    return table


def rows_table(storage: Storage, owner: str, part: int | str, node: Node) -> str:
    """Return the table of a part of an operator's state that has rows of a node."""
    return state_table(storage, owner, part, {column.id: column.type.duckdb for column in node.columns})


class Stateful(Operator):
    """What operators share that keep tables, and ask, until it is so, whether these have rows; ``others`` are never asked."""

    tables: list[str]
    others: Sequence[str] = ()
    _storage: Storage
    _had_rows = False

    def _has_rows(self, *tables: str) -> bool:
        self._had_rows = self._had_rows or not all(map(self._storage.is_empty, tables))
        return self._had_rows

    def forget(self) -> None:
        self._had_rows = False

    def drop(self) -> None:
        for table in (*self.tables, *self.others):
            self._storage.run(f"DROP TABLE IF EXISTS {table}")


class KeepsInputs(Stateful):
    """What operators share that keep their inputs, each in a table of its own."""

    def __init__(self, node: Node, storage: Storage, owner: str, clock: Clock) -> None:
        self._node, self._storage, self._clock = node, storage, clock
        self.tables = [rows_table(storage, owner, index, source) for index, source in enumerate(node.inputs)]
        self.state_columns = [tuple(column.id for column in source.columns) for source in node.inputs]

    def _settled(self, deltas: Deltas) -> list[Delta | None]:
        return settled_inputs(self._node, self._storage, deltas)

    def _kept(self, batches: Deltas) -> list[Delta | None]:
        return [None if batch is None else kept(self._storage, batch) for batch in batches]

    def _take(self, batches: Deltas, index: int) -> None:
        batch = batches[index]
        if batch is not None:
            apply_to(self._storage, self.tables[index], batch, self.state_columns[index], self._node.inputs[index].key)


class Keyed(KeepsInputs):
    """A node whose result can be computed key by key.

    State: its inputs, each in a table of its own. A batch's keys are computed on the state before it and after it; the
    difference is the changes of the result. Rows that can no longer matter are dropped: those that the watermark has made
    useless (``freeing``), and those beyond the limit of an append-only Top-N.
    """

    def __init__(self, node: Node, storage: Storage, owner: str, clock: Clock) -> None:
        super().__init__(node, storage, owner, clock)
        self._keys = [keys_of(node, index) for index in range(len(node.inputs))]

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        batches = self._settled(deltas)
        if initial or self._is_first:
            return self._filled(batches)
        batches = self._kept(batches)
        if all(batch is None for batch in batches):
            self._free()
            return None
        touched = self._touched(batches)
        old = self._storage.temporary(self._node.sql(*self._restricted(touched)))
        self._take_all(batches)
        new = f"({self._node.sql(*self._restricted(touched))})"
        changes = difference(self._storage, old, new, types_of(self._node.columns))
        self._trim(touched)
        self._free()
        return changes

    @property
    def _is_first(self) -> bool:
        """Whether there are no rows, and so no result: groups without GROUP BY have one of no rows."""
        if isinstance(self._node, Aggregate) and not self._node.groups:
            return False
        return not self._has_rows(*self.tables)

    def _filled(self, batches: Deltas) -> Delta | None:
        """Return the result of the first batch, which is all of the state."""
        self._take_all(batches)
        changes = difference(self._storage, None, f"({self._node.sql(*self.tables)})", {})
        self._trim(None)
        self._free()
        return changes

    def _take_all(self, batches: Deltas) -> None:
        for index in range(len(self.tables)):
            self._take(batches, index)

    def _free(self) -> None:
        free(self._node, self._storage, self._clock, self.tables)

    def _touched(self, batches: Deltas) -> str | None:
        """Return the keys of a batch, ``None`` if the node has no keys."""
        if not self._keys[0]:
            return None
        parts = []
        for batch, keys in zip(batches, self._keys, strict=True):
            if batch is not None:
                items = ", ".join(f"{quoted(name)} AS k{index}" for index, name in enumerate(keys))
                parts.append(f"SELECT {items} FROM {batch}")
        if not parts:
            return None
        return self._storage.temporary(f"SELECT DISTINCT * FROM ({' UNION ALL '.join(parts)})")

    def _restricted(self, touched: str | None) -> list[str]:
        if touched is None:
            return list(self.tables)
        restricted = []
        for table, keys in zip(self.tables, self._keys, strict=True):
            condition = " AND ".join(f"s.{quoted(name)} IS NOT DISTINCT FROM t.k{index}" for index, name in enumerate(keys))
            restricted.append(f"(SELECT s.* FROM {table} AS s SEMI JOIN {touched} AS t ON {condition})")
        return restricted

    def _trim(self, touched: str | None) -> None:
        node = self._node
        if not isinstance(node, TopN) or not node.input.append_only or node.limit is None:
            return
        place, last = node.place_sql(), node.offset + node.limit
        beyond = f"SELECT * FROM {self._restricted(touched)[0]} QUALIFY {place} > {last}"
        name = self._storage.temporary(beyond)
        self._storage.run(f"DELETE FROM {self.tables[0]} AS s USING {name} AS d WHERE {same('s', 'd', node.input.key)}")


def keys_of(node: Node, index: int) -> tuple[str, ...]:
    """Return the columns of an input by which the result can be computed apart."""
    if isinstance(node, Aggregate):
        return node.groups
    if isinstance(node, TopN | SessionWindows | Over | Match):
        return node.partition
    if isinstance(node, Join):
        return tuple(pair[index] for pair in node.keys)
    if not isinstance(node, SetOperation):
        raise MistakeError("every other node with keys is a set operation")
    return tuple(column.id for column in node.inputs[index].columns[: len(node.columns)])


class CloseSorter(Stateful):
    """Holds rows back until the watermark of one of some columns has passed them, then emits them once.

    State: the rows held back, in a table. Rows whose columns are NULL stay. Where rows behind the watermark can still change
    (their table is not APPEND ONLY), a second table has the limits of the last batch, as SQL by column: emitted rows are final,
    so changes behind the limits are dropped.
    """

    def __init__(self, node: CloseSort, storage: Storage, owner: str, clock: Clock) -> None:
        self._node, self._storage, self._clock = node, storage, clock
        self.tables = [rows_table(storage, owner, 0, node.input)]
        self.state_columns = [tuple(column.id for column in node.columns)]
        self._columns = [column.id for column in node.columns]
        if not all(node.watermarks[name].final for name in node.by):
            self.others = [state_table(storage, owner, 1, {"name": "VARCHAR", "value": "VARCHAR"})]

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        if deltas[0] is not None:
            batch = settled(self._storage, self._open(deltas[0]), types_of(self._node.columns))
            if batch is not None:
                apply_to(self._storage, self.tables[0], batch, self._columns, self._node.input.key)
        limits = [(name, self._clock.of(self._node.watermarks[name])) for name in self._node.by]
        passed = " OR ".join(f"{quoted(name)} < {limit}" for name, limit in limits if limit is not None)
        if not passed:
            return None
        self._remember(limits)
        order = quoted(self._node.by[0])
        query = f"SELECT *, 1 AS {quoted(WEIGHT)} FROM {self.tables[0]} WHERE {passed} ORDER BY {order}"
        released = self._storage.temporary(query)
        if self._storage.is_empty(released):
            return None
        self._storage.run(f"DELETE FROM {self.tables[0]} WHERE {passed}")
        return Delta(released, Rows.INSERTED)

    def _open(self, delta: Delta) -> Delta:
        """Return a batch without changes of rows that have been emitted already."""
        held = [limit for table in self.others for limit in self._storage.run(f"SELECT name, value FROM {table}")]
        if not held:
            return delta
        passed = " OR ".join(f"{quoted(name)} < {value}" for name, value in held)
        return delta.through(f"SELECT * FROM {delta} WHERE ({passed}) IS NOT TRUE")

    def _remember(self, limits: Sequence[tuple[str, str | None]]) -> None:
        for table in self.others:
            self._storage.run(f"DELETE FROM {table}")
            for name, limit in limits:
                if limit is not None:
                    self._storage.run(f"INSERT INTO {table} VALUES (?, ?)", [name, limit])


LINEAR = (Scan, Filter, Project, TimeWindows, Expand, Unnest, UnionAll)
FILTERING = (Filter, TimeWindows)


def _keeps_rows_apart(node: Node) -> bool:
    """Whether two rows that differ in the input differ in the result, if both are in it."""
    if isinstance(node, Project):
        return node.input.ids <= set(node.unchanged.values())
    return isinstance(node, Filter)


def _is_filtered(node: Node) -> bool:
    return isinstance(node, LINEAR) and (isinstance(node, FILTERING) or any(map(_is_filtered, node.inputs)))
