"""Groups that are folded: a batch is aggregated by itself and added to what is kept of each group, whose rows nobody keeps.

Counts and sums of exact numbers take rows away again; a minimum, a maximum and a sum of floats cannot, and are folded where rows
stay. DISTINCT is a group without calls. All other calls recompute their group, see ``operators.Keyed``.

State: one table; for each group the number of its rows, and for each call ``a<n>``, the sum or extreme, and ``n<n>``, how many
values it saw. A group without rows is not there.
"""

from __future__ import annotations

from windowpane.sql.expr import quoted
from windowpane.sql.nodes import Aggregate, Fold, Node
from windowpane.sql.storage import Storage
from windowpane.sql.streaming.clock import Clock
from windowpane.sql.streaming.deltas import WEIGHT, difference, same
from windowpane.sql.streaming.freeing import free
from windowpane.sql.streaming.operators import Deltas

_ROWS = "windowpane_rows"


def folds(node: Node) -> bool:
    """Whether every call of a node can be folded."""
    if not isinstance(node, Aggregate) or len(node.folds) != len(node.calls):
        return False
    return all(fold is not None and (fold.takes_back or node.input.append_only) for fold in node.folds)


def state_table(owner: str) -> str:
    """Return the name of the state of a folded node."""
    return f"windowpane_state.{quoted(f'{owner}/folded')}"


class Folded:
    """A GROUP BY whose calls are folded."""

    def __init__(self, node: Aggregate, storage: Storage, owner: str, clock: Clock) -> None:
        """Run ``node`` with state under ``owner``."""
        self._node, self._storage, self._clock = node, storage, clock
        self._folds = [fold for fold in node.folds if fold is not None]
        self.tables = [state_table(owner)]
        kinds = {group: node.column(group).type.duckdb for group in node.groups} | {_ROWS: "BIGINT"}
        for index, fold in enumerate(self._folds):
            kinds |= {f"a{index}": fold.kept, f"n{index}": "BIGINT"}
        self.state_columns = [tuple(kinds)]
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in kinds.items())
        storage.run(f"CREATE TABLE IF NOT EXISTS {self.tables[0]} ({columns})")

    def run(self, deltas: Deltas, *, initial: bool) -> str | None:
        """Return the changes of the groups that a batch touches."""
        changes = None
        if deltas[0] is not None or (initial and not self._node.groups):
            changes = self._taken(deltas[0] or self._nothing(), initial)
        free(self._node, self._storage, self._clock, self.tables)
        return changes

    def _nothing(self) -> str:
        items = ", ".join(f"CAST(NULL AS {column.type.duckdb}) AS {quoted(column.id)}" for column in self._node.input.columns)
        return self._storage.temporary(f"SELECT {items}, 0 AS {quoted(WEIGHT)} LIMIT 0")

    def _taken(self, batch: str, initial: bool) -> str | None:
        state, groups = self.tables[0], self._node.groups
        folded = self._storage.temporary(self._batch_sql(batch))
        columns = [column.id for column in self._node.columns]
        if initial or (groups and self._storage.is_empty(state)):
            self._storage.run(f"INSERT INTO {state} SELECT * FROM {folded} WHERE {_ROWS} > 0")
            return difference(self._storage, None, f"({self._result_sql(folded)})", columns)
        touched = f"SELECT s.* FROM {state} AS s SEMI JOIN {folded} AS b ON {same('s', 'b', groups)}"
        before = self._storage.temporary(touched)
        merged = self._storage.temporary(self._merged_sql(before, folded))
        self._storage.run(f"DELETE FROM {state} AS s USING {folded} AS b WHERE {same('s', 'b', groups)}")
        self._storage.run(f"INSERT INTO {state} SELECT * FROM {merged} WHERE {_ROWS} > 0")
        old = f"({self._result_sql(before)})"
        return difference(self._storage, old, f"({self._result_sql(merged)})", columns)

    def _batch_sql(self, batch: str) -> str:
        items = [quoted(group) for group in self._node.groups]
        items.append(f"coalesce(sum({quoted(WEIGHT)}), 0)::BIGINT AS {_ROWS}")
        for index, fold in enumerate(self._folds):
            items += [f"CAST({_partial(fold)} AS {fold.kept}) AS a{index}", f"{_seen(fold)}::BIGINT AS n{index}"]
        by = f" GROUP BY {', '.join(map(quoted, self._node.groups))}" if self._node.groups else ""
        return f"SELECT {', '.join(items)} FROM {batch}{by}"

    def _merged_sql(self, before: str, folded: str) -> str:
        items = [f"b.{quoted(group)}" for group in self._node.groups]
        items.append(f"coalesce(s.{_ROWS}, 0) + b.{_ROWS} AS {_ROWS}")
        for index, fold in enumerate(self._folds):
            combined = f"{fold.combined}(s.a{index}, b.a{index})" if fold.combined else f"coalesce(s.a{index}, 0) + b.a{index}"
            items += [f"CAST({combined} AS {fold.kept}) AS a{index}", f"coalesce(s.n{index}, 0) + b.n{index} AS n{index}"]
        return f"SELECT {', '.join(items)} FROM {folded} AS b LEFT JOIN {before} AS s ON {same('s', 'b', self._node.groups)}"

    def _result_sql(self, groups: str) -> str:
        """Return groups as rows of the result; without GROUP BY there is one, even of no rows."""
        items = [quoted(group) for group in self._node.groups]
        for index, (fold, column) in enumerate(zip(self._folds, self._node.columns[len(items) :], strict=True)):
            items.append(f"CAST({_value(fold, index)} AS {column.type.duckdb}) AS {quoted(column.id)}")
        if self._node.groups:
            return f"SELECT {', '.join(items)} FROM {groups} WHERE {_ROWS} > 0"
        return f"SELECT {', '.join(items) or '1'} FROM (SELECT 1) LEFT JOIN {groups} ON TRUE"

    def forget(self) -> None:
        """Nothing is cached."""

    def drop(self) -> None:
        """Remove the groups."""
        self._storage.run(f"DROP TABLE IF EXISTS {self.tables[0]}")


def _filtered(call: str, *conditions: str | None) -> str:
    given = [condition for condition in conditions if condition is not None]
    return f"{call} FILTER (WHERE {' AND '.join(given)})" if given else call


def _partial(fold: Fold) -> str:
    """Return what a batch adds to a sum, or its extreme."""
    if fold.combined is not None:
        return _filtered(f"{fold.function}({fold.argument})", fold.condition)
    if fold.function == "count":
        return "0"
    weight = quoted(WEIGHT)
    came, went = (_filtered(f"sum({fold.argument})", f"{weight} {sign} 0", fold.condition) for sign in (">", "<"))
    return f"coalesce({came}, 0) - coalesce({went}, 0)" if fold.takes_back else f"coalesce({came}, 0)"


def _seen(fold: Fold) -> str:
    """Return how many values a batch adds."""
    is_there = None if fold.argument is None else f"{fold.argument} IS NOT NULL"
    return f"coalesce({_filtered(f'sum({quoted(WEIGHT)})', is_there, fold.condition)}, 0)"


def _value(fold: Fold, index: int) -> str:
    if fold.function == "count":
        return f"coalesce(n{index}, 0)"
    if fold.combined is not None:
        return f"a{index}"
    return f"CASE WHEN n{index} > 0 THEN a{index}{f' / n{index}' if fold.function == 'avg' else ''} END"
