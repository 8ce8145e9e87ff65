"""Operators that read the clock: temporal filters, and the time at which a row was taken in.

The clock of a view never goes back: a flush takes the later of the clock's time and the time of the flush before it, which is
kept with the state, so that a session which opens the file again continues from there.
"""

from __future__ import annotations

from dataclasses import replace

from windowpane.sql.embedded.macros import NOW
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.expressions.operators import combined
from windowpane.sql.nodes import ClockStamp, TemporalFilter
from windowpane.sql.streaming.deltas import WEIGHT, Delta, Rows, netted, same, types_of
from windowpane.sql.streaming.operators import Deltas, Stateful, rows_table, settled_inputs, state_table


def _moment(micros: int) -> str:
    return f"timezone('UTC', make_timestamp({micros}))"


def _told(expr: Expr, moment: str) -> Expr:
    if expr.template == NOW:
        return replace(expr, template=moment)
    return replace(expr, parts=tuple(_told(part, moment) for part in expr.parts)) if expr.parts else expr


def _needed(node: TemporalFilter, moment: str) -> str:
    return _told(combined("AND", node.possible, node.undecided), moment).sql


def settled_where(node: TemporalFilter, moment: str) -> str:
    """Return the condition on rows that the clock has settled at a moment, in the result or not: they are not kept."""
    return f"({_needed(node, moment)}) IS NOT TRUE"


class TemporalFilterer(Stateful):
    """Deletes rows from the result, and inserts rows, as the clock advances.

    State: the rows that can still leave or enter the result, in a table. A row that the clock has settled, in the result or not,
    is not kept: whether a deleted one was in the result follows from its values and the time of the last flush, in microseconds
    in a second table.
    """

    def __init__(self, node: TemporalFilter, storage: Storage, owner: str) -> None:
        self._node, self._storage = node, storage
        self.tables = [rows_table(storage, owner, 0, node.input)]
        self._clock = state_table(storage, owner, 1, {"micros": "BIGINT"})
        self.others = [self._clock]
        self._columns = [column.id for column in node.columns]

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        before, now = self._moments()
        (batch,) = settled_inputs(self._node, self._storage, deltas)
        parts = []
        if batch is not None:
            parts.append(self._rows(batch, f"{quoted(WEIGHT)} > 0", 1, now))
            if before is not None:
                parts.append(self._rows(batch, f"{quoted(WEIGHT)} < 0", -1, before))
                self._forget_deleted(batch)
        if before is not None and before != now:
            parts += [self._rows(self.tables[0], "TRUE", 1, now), self._rows(self.tables[0], "TRUE", -1, before)]
        changes = netted(self._storage, " UNION ALL ".join(parts), types_of(self._node.columns)) if parts else None
        self._keep(batch, now)
        return changes

    def _moments(self) -> tuple[str | None, str]:
        """Return the time of the last flush and that of this one as SQL, and remember the latter."""
        held = self._storage.value(f"SELECT max(micros) FROM {self._clock}")
        micros = max(int(self._storage.value(f"SELECT epoch_us({NOW})")), held if held is not None else -(2**62))
        self._storage.run(f"DELETE FROM {self._clock}")
        self._storage.run(f"INSERT INTO {self._clock} VALUES ({micros})")
        return None if held is None else _moment(held), _moment(micros)

    def _at(self, condition: Expr, moment: str) -> str:
        """Return a condition as SQL, at a moment of the clock."""
        return _told(condition, moment).sql

    def _rows(self, relation: Delta | str, which: str, weight: int, moment: str) -> str:
        names = ", ".join(map(quoted, self._columns))
        condition = self._at(self._node.condition, moment)
        return f"SELECT {names}, {weight} AS {quoted(WEIGHT)} FROM {relation} WHERE {which} AND {condition}"

    def _forget_deleted(self, batch: Delta) -> None:
        if not batch.inserts:
            matching = same("s", "d", self._node.input.key)
            self._storage.run(f"DELETE FROM {self.tables[0]} AS s USING {batch} AS d WHERE d.{quoted(WEIGHT)} < 0 AND {matching}")

    def _keep(self, batch: Delta | None, now: str) -> None:
        """Drop the rows that the clock has settled, and keep those of a batch that it has not."""
        table, names = self.tables[0], ", ".join(map(quoted, self._columns))
        needed = _needed(self._node, now)
        self._storage.run(f"DELETE FROM {table} WHERE {settled_where(self._node, now)}")
        if batch is not None:
            inserted = f"{quoted(WEIGHT)} > 0 AND {needed}"
            self._storage.run(f"INSERT INTO {table} ({names}) SELECT {names} FROM {batch} WHERE {inserted}")


class ClockStamper(Stateful):
    """Adds the time of the flush to each inserted row.

    State: where rows can be deleted, the key of each with its time, so that it is deleted as it was inserted; else nothing.
    """

    def __init__(self, node: ClockStamp, storage: Storage, owner: str) -> None:
        self._node, self._storage = node, storage
        self._columns = [column.id for column in node.input.columns]
        self._stamp = quoted(node.columns[-1].id)
        kinds = {name: node.input.column(name).type.duckdb for name in node.input.key} | {node.columns[-1].id: "TIMESTAMPTZ"}
        self.tables = [] if node.append_only else [state_table(storage, owner, 0, kinds)]

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        (batch,) = settled_inputs(self._node, self._storage, deltas)
        if batch is None:
            return None
        names, weight = ", ".join(f"b.{quoted(name)}" for name in self._columns), quoted(WEIGHT)
        inserted = f"SELECT {names}, {NOW} AS {self._stamp}, b.{weight} FROM {batch} AS b WHERE b.{weight} > 0"
        if not self.tables:
            return Delta(self._storage.temporary(inserted), Rows.INSERTED)
        matching = same("s", "b", self._node.input.key)
        stamped = f"{batch} AS b JOIN {self.tables[0]} AS s ON {matching}"
        deleted = f"SELECT {names}, s.{self._stamp}, b.{weight} FROM {stamped} WHERE b.{weight} < 0"
        changes = self._storage.temporary(f"{inserted} UNION ALL {deleted}")
        self._storage.run(f"DELETE FROM {self.tables[0]} AS s USING {batch} AS b WHERE b.{weight} < 0 AND {matching}")
        kept = ", ".join([*map(quoted, self._node.input.key), self._stamp])
        self._storage.run(f"INSERT INTO {self.tables[0]} SELECT {kept} FROM {changes} WHERE {weight} > 0")
        return None if self._storage.is_empty(changes) else Delta(changes)
