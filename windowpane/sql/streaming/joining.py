"""Joins: changes of one side are joined with the state of the other; a batch costs by its changes, not by all rows of a key.

State: both inputs, each in a table of its own, until the watermark frees rows (``freeing``). With L and R before a batch, L' and
R' after it, and dL and dR the batch:

- pairs change by ``dL x R`` and ``L' x dR``;
- a row without partner (which an outer join fills with NULL, an anti join returns and a semi join leaves out) is inserted or
  deleted with its own change: deleted rows of dL are looked up in R, inserted ones in R'. A row that stays changes only if it
  matches something in dR: it was alone if it matches nothing in R, and is alone if it matches nothing in R'.

The same holds for the right side. Rows of the batch itself are netted, so each part has a row at most once.

A join by arrival keeps the right side only, and returns ``dL x R'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Join
from windowpane.sql.streaming.clock import Clock
from windowpane.sql.streaming.deltas import WEIGHT, Delta, Rows, inserted, kept, same
from windowpane.sql.streaming.freeing import free, frees_rows
from windowpane.sql.streaming.operators import Deltas, KeepsInputs

_WATCHED = {"left": (0,), "right": (1,), "full": (0, 1), "semi": (0,), "anti": (0,)}
"""The sides of each kind of join whose rows without partner matter."""


class Joined(KeepsInputs):
    _node: Join

    def __init__(self, node: Join, storage: Storage, owner: str, clock: Clock, *, whole: bool = True) -> None:
        """Run ``node`` with state under ``owner``; ``whole`` if its tables hold all of it, not only that of some keys."""
        super().__init__(node, storage, owner, clock)
        self._whole = whole

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        """Return the changes of the result; a row may be inserted and deleted in one batch."""
        changes = self._taken(deltas, initial)
        free(self._node, self._storage, self._clock, self.tables, whole=self._whole)
        return changes

    def _taken(self, deltas: Deltas, initial: bool) -> Delta | None:
        batches = self._settled(deltas)
        if self._node.by_arrival:
            return self._met(batches)
        if not self._has_rows(*self.tables) or initial:
            return self._filled(batches)
        batches = self._kept(batches)
        if all(batch is None for batch in batches):
            return None
        return self._changed(batches)

    def _filled(self, batches: Deltas) -> Delta | None:
        for index in range(2):
            self._take(batches, index)
        joined = inserted(f"({self._node.sql(*self.tables)})")
        is_read_in_time = self._whole and not frees_rows(self._node, self._clock)
        return joined if is_read_in_time else kept(self._storage, joined)

    def _met(self, batches: Deltas) -> Delta | None:
        """Return the rows of the left side with their partners on the right side, whose own rows are taken first."""
        self._take(batches, 1)
        if batches[0] is None:
            return None
        rows = f"(SELECT {', '.join(map(quoted, self.state_columns[0]))} FROM {batches[0]})"
        return kept(self._storage, inserted(f"({self._node.sql(rows, self.tables[1])})"))

    def _changed(self, batches: Deltas) -> Delta | None:
        sides = [_Side(self._node, index, self.tables, self._storage) for index in _WATCHED.get(self._node.kind, ())]
        parts = self._pairs(batches[0], self.tables[1], "l")
        for side in sides:
            parts += side.before(batches)
        self._take(batches, 0)
        parts += self._pairs(self.tables[0], batches[1], "r")
        self._take(batches, 1)
        for side in sides:
            parts += side.after(batches)
        rows = [part for part in parts if not self._storage.is_empty(part)]
        if not rows:
            return None
        query = " UNION ALL ".join(f"SELECT * FROM {part}" for part in rows)
        return Delta.of(query, Rows.INSERTED if self._only_inserts(batches) else Rows.ANY)

    def _only_inserts(self, batches: Deltas) -> bool:
        """Whether rows of the result are only inserted: a row may delete the result that its partner had without it."""
        if not all(batch is None or batch.inserts for batch in batches):
            return False
        gives_way = {0: self._node.kind in ("right", "full"), 1: self._node.kind in ("left", "full", "anti")}
        return not any(batches[index] is not None and gives_way[index] for index in range(2))

    def _pairs(self, left: Delta | str | None, right: Delta | str | None, weighted: str) -> list[str]:
        """Return the pairs of two relations, of which the one named ``weighted`` has weights."""
        node = self._node
        if left is None or right is None or node.kind in ("semi", "anti"):
            return []
        items = [f"{name}.{quoted(column)}" for name, ids in zip("lr", self.state_columns, strict=True) for column in ids]
        items.append(f"{weighted}.{quoted(WEIGHT)}")
        query = f"SELECT {', '.join(items)} FROM {left} AS l INNER JOIN {right} AS r ON {node.condition_of('l', 'r')}"
        return [self._storage.temporary(query)]


@dataclass
class _Side:
    """The rows of one side of a join that have no partner."""

    node: Join
    index: int
    tables: Sequence[str]
    storage: Storage
    _staying: str | None = None

    def before(self, batches: Deltas) -> list[str]:
        """Return the rows without partner that their own change deletes, on the state before the batch."""
        own, other = batches[self.index], batches[1 - self.index]
        if other is not None:
            self._staying = self._touched(own, other)
        if own is None or own.inserts:
            return []
        return [self._given(self._where(own, "<"), "-1")]

    def after(self, batches: Deltas) -> list[str]:
        """Return the inserted rows without partner, and the unchanged rows that got a partner or lost their last one."""
        parts = []
        own = batches[self.index]
        if own is not None:
            parts.append(self._given(self._where(own, ">"), "1"))
        if self._staying is not None:
            parts.append(self._turned(self._staying))
        return parts

    def _touched(self, own: Delta | None, other: Delta) -> str | None:
        """Return the rows that do not change themselves and match a change of the other side, and whether they are alone."""
        key = self.node.inputs[self.index].key
        rows = f"(SELECT s.* FROM {self.tables[self.index]} AS s SEMI JOIN {other} AS o ON {self._condition('s', 'o')})"
        if own is not None and not own.inserts:
            rows = f"(SELECT s.* FROM {rows} AS s ANTI JOIN {self._where(own, '<')} AS d ON {same('s', 'd', key)})"
        found = self.storage.temporary(f"SELECT * FROM {rows}")
        if self.storage.is_empty(found):
            return None
        lonely = self._alone(found)
        return self.storage.temporary(
            f"SELECT *, FALSE AS was_alone FROM {self._matched(found)} UNION ALL SELECT *, TRUE FROM {lonely}"
        )

    def _turned(self, staying: str) -> str:
        now = self.storage.temporary(
            f"SELECT *, FALSE AS is_alone FROM {self._matched(staying)} UNION ALL SELECT *, TRUE FROM {self._alone(staying)}"
        )
        is_inserted = "was_alone" if self.node.kind == "semi" else "is_alone"
        weight = f"CASE WHEN {is_inserted} THEN 1 ELSE -1 END"
        return self.storage.temporary(
            f"SELECT {self._items()}, {weight} AS {quoted(WEIGHT)} FROM {now} WHERE was_alone <> is_alone"
        )

    def _given(self, rows: str, weight: str) -> str:
        found = self._matched(rows) if self.node.kind == "semi" else self._alone(rows)
        return self.storage.temporary(f"SELECT {self._items()}, {weight} AS {quoted(WEIGHT)} FROM {found}")

    def _alone(self, rows: str) -> str:
        return f"(SELECT s.* FROM {rows} AS s ANTI JOIN {self.tables[1 - self.index]} AS o ON {self._condition('s', 'o')})"

    def _matched(self, rows: str) -> str:
        return f"(SELECT s.* FROM {rows} AS s SEMI JOIN {self.tables[1 - self.index]} AS o ON {self._condition('s', 'o')})"

    def _condition(self, own: str, other: str) -> str:
        return self.node.condition_of(*((own, other) if self.index == 0 else (other, own)))

    def _where(self, batch: Delta, sign: str) -> str:
        names = ", ".join(quoted(column.id) for column in self.node.inputs[self.index].columns)
        return f"(SELECT {names} FROM {batch} WHERE {quoted(WEIGHT)} {sign} 0)"

    def _items(self) -> str:
        """Return the columns of the result, those of the other side NULL."""
        own = self.node.inputs[self.index].ids
        columns = self.node.columns
        return ", ".join(quoted(column.id) if column.id in own else column.item("NULL") for column in columns)
