"""Top-N over rows that may be deleted: the top rows are kept beside all rows, and a batch is compared with these.

An inserted row can only push others down, and a deleted one below the top changes nothing in it. So the new top is among the old
one and the inserted rows; only partitions that lose a row of their top are computed on all their rows.

State: the input, and the rows of it at places up to ``offset + limit``, each in a table. An append-only input needs no more than
its top, see ``operators.Keyed``.
"""

from __future__ import annotations

from windowpane.errors import MistakeError
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Node, TopN
from windowpane.sql.streaming.clock import Clock
from windowpane.sql.streaming.deltas import WEIGHT, Delta, apply_to, difference, distinct_items, kept, netted, same, types_of
from windowpane.sql.streaming.freeing import free
from windowpane.sql.streaming.operators import Deltas, Stateful, rows_table, settled_inputs


def keeps_top(node: Node) -> bool:
    """Whether the top of a node is worth keeping beside its rows."""
    return isinstance(node, TopN) and node.limit is not None and not node.input.append_only


class TopRows(Stateful):
    """A Top-N whose input may lose rows."""

    def __init__(self, node: TopN, storage: Storage, owner: str, clock: Clock) -> None:
        if node.limit is None:
            raise MistakeError("without a limit there is no top")
        self._node, self._storage, self._clock = node, storage, clock
        self._rows, self._top = (rows_table(storage, owner, part, node.input) for part in (0, "top"))
        self.tables = [self._rows, self._top]
        self._columns = [column.id for column in node.input.columns]
        self._first = f"QUALIFY {node.place_sql()} <= {node.offset + node.limit}"

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        (batch,) = settled_inputs(self._node, self._storage, deltas)
        changes, is_first = None, not self._has_rows(self._rows)
        if batch is not None and (initial or is_first):
            changes = self._filled(batch)
        elif batch is not None:
            batch = kept(self._storage, batch)
            changes = None if batch is None else self._changed(batch)
        for table in self.tables:
            free(self._node, self._storage, self._clock, [table])
        return changes

    def _filled(self, batch: Delta) -> Delta | None:
        apply_to(self._storage, self._rows, batch, self._columns, self._node.input.key)
        self._storage.run(f"INSERT INTO {self._top} SELECT * FROM {self._rows} {self._first}")
        return difference(self._storage, None, f"({self._node.sql(self._top)})", {})

    def _changed(self, batch: Delta) -> Delta | None:
        partition = self._node.partition
        touched = self._storage.temporary(f"SELECT DISTINCT {distinct_items('d', partition)} FROM {batch} AS d")
        old = self._storage.temporary(self._within(self._top, touched))
        reopened = self._reopened(batch, old)
        apply_to(self._storage, self._rows, batch, self._columns, self._node.input.key)
        new = self._storage.temporary(f"SELECT * FROM ({self._candidates(batch, old, reopened)}) {self._first}")
        moved = difference(self._storage, old, new, types_of(self._node.input.columns))
        if moved is not None:
            apply_to(self._storage, self._top, moved, self._columns, self._node.input.key)
        if self._node.number is None and self._node.offset == 0:
            return moved
        was, now = (
            f"SELECT *, {weight} AS {quoted(WEIGHT)} FROM ({self._node.sql(top)})" for top, weight in ((old, -1), (new, 1))
        )
        return netted(self._storage, f"{was} UNION ALL {now}", types_of(self._node.columns))

    def _reopened(self, batch: Delta, old: str) -> str | None:
        """Return the partitions that lose a row of their top, ``None`` if none does."""
        if batch.inserts:
            return None
        deleted = f"(SELECT * FROM {batch} WHERE {quoted(WEIGHT)} < 0)"
        condition = same("t", "d", self._node.input.key)
        lost = f"(SELECT t.* FROM {old} AS t SEMI JOIN {deleted} AS d ON {condition})"
        found = self._storage.temporary(f"SELECT DISTINCT {distinct_items('d', self._node.partition)} FROM {lost} AS d")
        return None if self._storage.is_empty(found) else found

    def _candidates(self, batch: Delta, old: str, reopened: str | None) -> str:
        """Return the query of the rows that may be in the new top."""
        names = ", ".join(map(quoted, self._columns))
        held = f"SELECT {names} FROM {old} UNION ALL SELECT {names} FROM {batch} WHERE {quoted(WEIGHT)} > 0"
        if reopened is None:
            return held
        condition = same("s", "t", self._node.partition)
        rest = f"SELECT s.* FROM ({held}) AS s ANTI JOIN {reopened} AS t ON {condition}"
        return f"{rest} UNION ALL {self._within(self._rows, reopened)}"

    def _within(self, rows: str, partitions: str) -> str:
        condition = same("s", "t", self._node.partition)
        return f"SELECT s.* FROM {rows} AS s SEMI JOIN {partitions} AS t ON {condition}"
