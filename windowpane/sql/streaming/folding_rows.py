"""Groups that are folded though rows may be deleted: if one had an extreme, the group is folded anew, from its rows.

Everything else is as in ``folding``: inserted rows are folded in, and counts and sums retract deleted ones. State: the folded
groups, and beside them the input, in a table.
"""

from __future__ import annotations

from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Aggregate, Node
from windowpane.sql.streaming.clock import Clock
from windowpane.sql.streaming.deltas import WEIGHT, Delta, apply_to, distinct_items, kept, same, settled, types_of
from windowpane.sql.streaming.folding import ROWS, Folded
from windowpane.sql.streaming.freeing import free
from windowpane.sql.streaming.operators import Deltas, rows_table


def folds_with_rows(node: Node) -> bool:
    """Whether every call of a node can retract rows, or is an extreme, and none counts distinct values."""
    if not isinstance(node, Aggregate) or len(node.folds) != len(node.calls):
        return False
    given = [fold for fold in node.folds if fold is not None and not fold.counts_values]
    return len(given) == len(node.folds) and all(fold.takes_back or fold.combined is not None for fold in given)


class FoldedWithRows(Folded):
    """A GROUP BY with extremes of rows that may be deleted."""

    def __init__(self, node: Aggregate, storage: Storage, owner: str, clock: Clock) -> None:
        super().__init__(node, storage, owner, clock)
        self._rows = rows_table(storage, owner, 0, node.input)
        self.others = [self._rows]

    def _all_rows(self) -> str:
        return f"(SELECT *, 1 AS {quoted(WEIGHT)} FROM {self._rows})"

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        changes = super().run(deltas, initial=initial)
        free(self._node, self._storage, self._clock, [self._rows])
        return changes

    def _taken(self, batch: Delta, initial: bool) -> Delta | None:
        names, key = [column.id for column in self._node.input.columns], self._node.input.key
        counted = settled(self._storage, batch, types_of(self._node.input.columns))
        if not self._has_rows(self._rows) or initial:
            if counted is not None:
                apply_to(self._storage, self._rows, counted, names, key)
            return super()._taken(Delta(self._all_rows()), initial)
        counted = None if counted is None else kept(self._storage, counted)
        if counted is None:
            return None
        reopened = self._reopened(counted)
        apply_to(self._storage, self._rows, counted, names, key)
        if reopened is None:
            return super()._taken(counted, initial)
        parts = [self._anew_sql(reopened)]
        if self._node.groups:
            parts.append(self._others_sql(counted, reopened))
        return self._replaced(self._storage.temporary(" UNION ALL ".join(parts)))

    def _reopened(self, batch: Delta) -> str | None:
        """Return the groups that lose a row with an extreme of theirs, ``None`` if none does."""
        extremes = {index: fold for index, fold in enumerate(self._folds) if fold.combined is not None}
        if batch.inserts or not extremes:
            return None
        values = [
            f"CASE WHEN {fold.only or 'TRUE'} THEN CAST({fold.of} AS {fold.kept}) END AS v{index}"
            for index, fold in extremes.items()
        ]
        groups = [quoted(group) for group in self._node.groups]
        deleted = f"(SELECT {', '.join([*groups, *values])} FROM {batch} WHERE {quoted(WEIGHT)} < 0)"
        lost = " OR ".join(f"d.v{index} = s.a{index}" for index in extremes)
        items, condition = distinct_items("s", self._node.groups), same("d", "s", self._node.groups)
        query = f"SELECT DISTINCT {items} FROM {deleted} AS d JOIN {self.tables[0]} AS s ON {condition} WHERE {lost}"
        found = self._storage.temporary(query)
        return None if self._storage.is_empty(found) else found

    def _others_sql(self, batch: Delta, reopened: str) -> str:
        """Return the other groups of a batch, merged with their state."""
        rest = f"(SELECT b.* FROM {batch} AS b ANTI JOIN {reopened} AS t ON {same('b', 't', self._node.groups)})"
        return self._merged_sql(f"({self._batch_sql(rest)})")

    def _anew_sql(self, reopened: str) -> str:
        """Return the groups that are folded anew, as they are and beside that as they were."""
        groups, state = self._node.groups, self.tables[0]
        rows = f"(SELECT r.* FROM {self._all_rows()} AS r SEMI JOIN {reopened} AS t ON {same('r', 't', groups)})"
        values, seen = [f"b.a{index}" for index in range(len(self._folds))], range(len(self._folds))
        items = [f"t.{quoted(group)}" for group in groups]
        items += self._beside_old(f"coalesce(b.{ROWS}, 0)", values, [f"coalesce(b.n{index}, 0)" for index in seen])
        folded = f"({self._batch_sql(rows)}) AS b ON {same('b', 't', groups)}"
        was = f"{state} AS s ON {same('s', 't', groups)}"
        return f"SELECT {', '.join(items)} FROM {reopened} AS t LEFT JOIN {folded} LEFT JOIN {was}"
