"""Groups that are folded: a batch is aggregated by itself and merged into partial aggregates by group; no rows are kept.

Counts and sums of exact numbers can retract rows; a minimum, a maximum and a sum of floats cannot, and are folded where no row
is deleted; ``folding_rows`` folds extremes of rows that may be deleted. A call with DISTINCT is folded from the values that begin
or cease to be in its group, see ``distinct_values``. SELECT DISTINCT is a group without calls. All other calls recompute their
group, see ``operators.Keyed``.

State: a table of groups; for each the number of its rows, and for each call ``a<n>``, the sum or extreme, and ``n<n>``, how many
values it has. A group without rows is not stored. Beside it is a table for each argument of calls with DISTINCT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Aggregate, Fold, Node
from windowpane.sql.streaming.clock import Clock
from windowpane.sql.streaming.deltas import WEIGHT, Delta, Rows, differing, same
from windowpane.sql.streaming.distinct_values import VALUE, DistinctValues, Placing
from windowpane.sql.streaming.freeing import free
from windowpane.sql.streaming.operators import Deltas, Stateful, state_table

ROWS = "windowpane_rows"
FOLDED = "folded"
"""The part of the state of folded groups that has the groups."""

_OLD = "windowpane_old_"


def folds(node: Node) -> bool:
    if not isinstance(node, Aggregate) or len(node.folds) != len(node.calls):
        return False
    return all(fold is not None and (fold.takes_back or node.input.append_only) for fold in node.folds)


class Folded(Stateful):
    def __init__(self, node: Aggregate, storage: Storage, owner: str, clock: Clock, placing: Placing | None = None) -> None:
        """Run ``node`` with state under ``owner``; ``placing`` is that of distinct values."""
        self._node, self._storage, self._clock = node, storage, clock
        self._folds = [fold for fold in node.folds if fold is not None]
        kinds = {group: node.column(group).type.duckdb for group in node.groups} | {ROWS: "BIGINT"}
        for index, fold in enumerate(self._folds):
            kinds |= {f"a{index}": fold.kept, f"n{index}": "BIGINT"}
        self.state_columns = [tuple(kinds)]
        self.tables = [state_table(storage, owner, FOLDED, kinds)]
        self._set_up_values(owner, placing)

    def _set_up_values(self, owner: str, placing: Placing | None) -> None:
        by_argument: dict[str | None, list[Fold]] = {}
        for fold in self._folds:
            if fold.counts_values:
                by_argument.setdefault(fold.argument, []).append(fold)
        self._values_of: dict[str | None, DistinctValues] = {}
        for number, (argument, folds) in enumerate(by_argument.items()):
            self._values_of[argument] = DistinctValues(self._node, folds, self._storage, owner, number, placing)
        self.tables += [values.table for values in self.values]
        self.state_columns += [values.state_columns for values in self.values]
        self._counted: list[str] | None = None

    @property
    def values(self) -> list[DistinctValues]:
        """The state of calls with DISTINCT; its tables are behind that of the groups."""
        return list(self._values_of.values())

    def count_values(self, batch: Delta | str) -> list[str]:
        """Return the values of a batch, of each argument of calls with DISTINCT, counted; the next ``run`` is of this batch."""
        self._counted = [values.counted(str(batch)) for values in self.values]
        return self._counted

    def run(self, deltas: Deltas, *, initial: bool) -> Delta | None:
        changes = None
        if deltas[0] is not None or (initial and not self._node.groups):
            batch = deltas[0] or self._nothing()
            changes = self._taken(batch.run(self._storage) if self._values_of else batch, initial)
        for table in self.tables:
            free(self._node, self._storage, self._clock, [table])
        return changes

    def _nothing(self) -> Delta:
        items = ", ".join(column.item("NULL") for column in self._node.input.columns)
        return Delta(self._storage.temporary(f"SELECT {items}, 0 AS {quoted(WEIGHT)} LIMIT 0"))

    def _taken(self, batch: Delta, initial: bool) -> Delta | None:
        state, groups = self.tables[0], self._node.groups
        had_rows = self._has_rows(state)
        if initial or (groups and not had_rows):
            folded = self._storage.temporary(self._batch_sql(batch))
            columns = ", ".join(map(quoted, self.state_columns[0]))
            self._storage.run(f"INSERT INTO {state} SELECT {columns} FROM {folded} WHERE {ROWS} > 0")
            there = f" WHERE {ROWS} > 0" if groups else ""
            return Delta.of(f"SELECT {self._row('', 1)} FROM {folded}{there}", Rows.INSERTED)
        return self._replaced(self._storage.temporary(self._merged_sql(f"({self._batch_sql(batch)})")))

    def _replaced(self, merged: str) -> Delta:
        """Replace the stored groups by the merged ones, and return the changes of the result."""
        state, groups = self.tables[0], self._node.groups
        self._storage.run(f"DELETE FROM {state} AS s USING {merged} AS b WHERE {same('s', 'b', groups)}")
        columns = ", ".join(map(quoted, self.state_columns[0]))
        self._storage.run(f"INSERT INTO {state} SELECT {columns} FROM {merged} WHERE {ROWS} > 0")
        return Delta.of(self._changed_sql(merged), Rows.NETTED)

    def _changed_sql(self, merged: str) -> str:
        """Return the rows of the result that a batch changed, as they were and as they are; without GROUP BY there is one."""
        was, now = self._values(_OLD), self._values("")
        values = zip(was, now, self._node.columns, strict=True)
        differs = [differing(old, new, column.type) for old, new, column in values if old != new]
        if not self._node.groups:
            return f"SELECT {self._row('', 1)} FROM {merged} WHERE FALSE" if not differs else self._both(merged, differs, "", "")
        differs.append(f"({_OLD}{ROWS} > 0) <> ({ROWS} > 0)")
        return self._both(merged, differs, f"{_OLD}{ROWS} > 0 AND ", f"{ROWS} > 0 AND ")

    def _both(self, merged: str, differs: Sequence[str], was: str, now: str) -> str:
        changed = f"({' OR '.join(differs)})"
        deleted = f"SELECT {self._row(_OLD, -1)} FROM {merged} WHERE {was}{changed}"
        return f"{deleted} UNION ALL SELECT {self._row('', 1)} FROM {merged} WHERE {now}{changed}"

    def _values(self, prefix: str) -> list[str]:
        return _results(self._node, prefix)

    def _row(self, prefix: str, weight: int) -> str:
        return f"{rows_of_groups(self._node, prefix)}, {weight} AS {quoted(WEIGHT)}"

    def _batch_sql(self, batch: Delta | str) -> str:
        """Return the groups of a batch; what calls with DISTINCT add to them is merged into their state at once."""
        items = [*self._node.shown_groups, f"coalesce(sum({quoted(WEIGHT)}), 0)::BIGINT AS {ROWS}"]
        for index, fold in enumerate(self._folds):
            items += [] if fold.counts_values else _parts(fold, index, WEIGHT)
        by = f" GROUP BY {', '.join(self._node.group_values)}" if self._node.groups else ""
        folded = f"SELECT {', '.join(items)} FROM {batch}{by}"
        return self._with_distinct(folded, batch) if self._values_of else folded

    def _with_distinct(self, folded: str, batch: Delta | str) -> str:
        """Return the groups of a batch with what calls with DISTINCT add to them."""
        items, joined = ["b.*"], f"({folded}) AS b"
        counted, self._counted = self._counted or self.count_values(batch), None
        for number, (argument, values) in enumerate(self._values_of.items()):
            parts = list(map(quoted, self._node.groups))
            for index, fold in enumerate(self._folds):
                if fold.counts_values and fold.argument == argument:
                    parts += _parts(replace(fold, condition=None, argument=VALUE), index, values.weight_of(fold))
                    items += [f"CAST(coalesce(d{number}.a{index}, 0) AS {fold.kept}) AS a{index}"]
                    items += [f"coalesce(d{number}.n{index}, 0) AS n{index}"]
            by = f" GROUP BY {', '.join(map(quoted, self._node.groups))}" if self._node.groups else ""
            begun = f"(SELECT {', '.join(parts)} FROM {values.transitions(counted[number])}{by})"
            joined += f" LEFT JOIN {begun} AS d{number} ON {same('b', f'd{number}', self._node.groups)}"
        return f"SELECT {', '.join(items)} FROM {joined}"

    def _merged_sql(self, batch: str) -> str:
        """Return the groups of a folded batch as they are with it, and beside that as they were before."""
        values = [f"CAST({fold.merged(f's.a{index}', f'b.a{index}')} AS {fold.kept})" for index, fold in enumerate(self._folds)]
        seen = [f"coalesce(s.n{index}, 0) + b.n{index}" for index in range(len(values))]
        items = [f"b.{quoted(group)}" for group in self._node.groups]
        items += self._beside_old(f"coalesce(s.{ROWS}, 0) + b.{ROWS}", values, seen)
        condition = same("s", "b", self._node.groups)
        return f"SELECT {', '.join(items)} FROM {batch} AS b LEFT JOIN {self.tables[0]} AS s ON {condition}"

    def _beside_old(self, rows: str, values: Sequence[str], seen: Sequence[str]) -> list[str]:
        """Return the new state of groups as SQL, and beside that their old state, that of ``s``."""
        items = [f"{rows} AS {ROWS}", f"coalesce(s.{ROWS}, 0) AS {_OLD}{ROWS}"]
        for index, (value, number) in enumerate(zip(values, seen, strict=True)):
            items += [
                f"{value} AS a{index}",
                f"{number} AS n{index}",
                f"s.a{index} AS {_OLD}a{index}",
                f"s.n{index} AS {_OLD}n{index}",
            ]
        return items


def rows_of_groups(node: Aggregate, prefix: str = "") -> str:
    """Return the columns of the result over groups as they are stored; names of sums, extremes and numbers have a prefix."""
    values = zip(_results(node, prefix), node.columns, strict=True)
    return ", ".join(value if value == quoted(column.id) else f"{value} AS {quoted(column.id)}" for value, column in values)


def _results(node: Aggregate, prefix: str) -> list[str]:
    folds, width = (fold for fold in node.folds if fold is not None), len(node.groups)
    calls = zip(folds, node.columns[width:], strict=True)
    values = [f"CAST({_value(fold, index, prefix)} AS {column.type.duckdb})" for index, (fold, column) in enumerate(calls)]
    return [*map(quoted, node.groups), *values]


def _filtered(call: str, *conditions: str | None) -> str:
    given = [condition for condition in conditions if condition is not None]
    return f"{call} FILTER (WHERE {' AND '.join(given)})" if given else call


def _parts(fold: Fold, index: int, weight: str) -> list[str]:
    """Return what rows with weights add to a call, as the columns of its state."""
    weight = quoted(weight)
    return [f"CAST({_partial(fold, weight)} AS {fold.kept}) AS a{index}", f"{_seen(fold, weight)}::BIGINT AS n{index}"]


def _partial(fold: Fold, weight: str) -> str:
    """Return what a batch adds to a sum, or its extreme."""
    if fold.combined is not None:
        return _filtered(f"{fold.function}({fold.of})", f"{weight} > 0", fold.only)
    if fold.function == "count":
        return "0"
    inserted, deleted = (_filtered(f"sum({fold.of})", f"{weight} {sign} 0", fold.only) for sign in (">", "<"))
    return f"coalesce({inserted}, 0) - coalesce({deleted}, 0)" if fold.takes_back else f"coalesce({inserted}, 0)"


def _seen(fold: Fold, weight: str) -> str:
    """Return how many values a batch adds."""
    is_there = None if fold.argument is None else f"{fold.of} IS NOT NULL"
    return f"coalesce({_filtered(f'sum({weight})', is_there, fold.only)}, 0)"


def _value(fold: Fold, index: int, prefix: str) -> str:
    if fold.function == "count":
        return f"coalesce({prefix}n{index}, 0)"
    if fold.combined is not None:
        return f"{prefix}a{index}"
    average = f" / {prefix}n{index}" if fold.function == "avg" else ""
    return f"CASE WHEN {prefix}n{index} > 0 THEN {prefix}a{index}{average} END"
