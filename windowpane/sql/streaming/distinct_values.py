"""The distinct values of an argument in each group, with the number of rows that have them: what DISTINCT in a call keeps.

A batch is counted by group and value and merged into the state, so it touches only the values that it has. A value begins to
count for a call when its number leaves 0, and ceases to when it is 0 again; the call is folded from these transitions. All calls
with one argument share one state, with a number for each FILTER among them. Source of the rule: Flink's ``DistinctInfo``, a map
of values that calls with one argument share, with a bit for each filter where rows stay, and a number where they do not.

State: one table; for each group and value the numbers ``c<n>``, one a filter. Where rows are never deleted, they are 0 or 1. A
value whose numbers are all 0 is not stored, nor is NULL. Where the state is in pages, a row has the number of its place, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from windowpane.sql.bind.scope import Column
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.written import in_one_spelling
from windowpane.sql.nodes import Aggregate, Fold
from windowpane.sql.streaming.deltas import WEIGHT, same
from windowpane.sql.streaming.operators import state_table

VALUE = "windowpane_value"

VALUES = "values"
"""What the name of such a table begins with; the number of the argument is behind it."""


@dataclass(frozen=True)
class Placing:
    """Where rows lie in pages.

    Args:
        column: the name of the column with the number that says it.
        sql_of: returns that number as SQL over the columns that tell rows apart.
    """

    column: str
    sql_of: Callable[[Sequence[Column]], str]


class DistinctValues:
    """The distinct values of one argument.

    Args:
        folds: the calls with DISTINCT of the argument.
        owner: whose state it is.
        number: its number among those of the node.
        placing: where its rows lie in pages; ``None`` where they are in none.
    """

    def __init__(
        self,
        node: Aggregate,
        folds: Sequence[Fold],
        storage: Storage,
        owner: str,
        number: int,
        placing: Placing | None = None,
    ) -> None:
        self._node, self._storage = node, storage
        self._filters = list(dict.fromkeys(fold.only for fold in folds))
        self._argument = node.input.column(str(folds[0].argument))
        keys = (*(node.column(group) for group in node.groups), Column(VALUE, VALUE, self._argument.type))
        self._names = [key.id for key in keys]
        self._numbers = [f"c{index}" for index in range(len(self._filters))]
        self.changed: str | None = None
        """The values whose numbers the last batch changed, as a relation with what is stored of them."""
        self._places = {} if placing is None else {placing.column: placing.sql_of(keys)}
        self.state_columns = (*self._names, *self._numbers, *self._places)
        counts = dict.fromkeys(self._numbers, "UTINYINT" if node.input.append_only else "BIGINT")
        kinds = {key.id: key.type.duckdb for key in keys} | counts | dict.fromkeys(self._places, "UBIGINT")
        self.table = state_table(storage, owner, f"{VALUES}{number}", kinds)

    def weight_of(self, fold: Fold) -> str:
        """Return the column of ``transitions`` for a call: 1 where a value begins to count, -1 where it ceases to."""
        return f"w{self._filters.index(fold.only)}"

    def counted(self, batch: str) -> str:
        """Return a batch counted by group and value; this needs no state."""
        value = in_one_spelling(quoted(self._argument.id), self._argument.type)
        weight = f"sum({quoted(WEIGHT)})"
        counts = [weight if each is None else f"coalesce({weight} FILTER (WHERE {each}), 0)" for each in self._filters]
        numbers = [self._number(count, name) for count, name in zip(counts, self._numbers, strict=True)]
        items = ", ".join([*self._node.shown_groups, f"{value} AS {VALUE}", *numbers])
        by = ", ".join([*self._node.group_values, value])
        rows = f"FROM {batch} WHERE {quoted(self._argument.id)} IS NOT NULL GROUP BY {by}"
        changes = f"SELECT {items} {rows} HAVING {_any(f'{name} <> 0' for name in self._numbers)}"
        places = [f", {place} AS {name}" for name, place in self._places.items()]
        return self._storage.temporary(f"SELECT *{''.join(places)} FROM ({changes})")

    def _number(self, count: str, name: str) -> str:
        count = f"least({count}, 1)" if self._node.input.append_only else count
        return f"({count})::BIGINT AS {name}"

    def transitions(self, counted: str) -> str:
        """Merge a counted batch into the state, and return the values that begin or cease to count, by group, with weights."""
        self.changed = merged = self._storage.temporary(self._merged_sql(counted))
        if not self._storage.is_empty(merged):
            columns, names = ", ".join(map(quoted, self.state_columns)), self._names
            was = f"(SELECT * FROM {merged} WHERE {_any(f'old_{name} > 0' for name in self._numbers)})"
            self._storage.run(f"DELETE FROM {self.table} AS s USING {was} AS b WHERE {same('s', 'b', names)}")
            kept = _any(f"{name} > 0" for name in self._numbers)
            self._storage.run(f"INSERT INTO {self.table} ({columns}) SELECT {columns} FROM {merged} WHERE {kept}")
        weights = [f"(({name} > 0)::INT - (old_{name} > 0)::INT) AS w{index}" for index, name in enumerate(self._numbers)]
        return f"(SELECT {', '.join([*map(quoted, self._names), *weights])} FROM {merged})"

    def _merged_sql(self, counted: str) -> str:
        """Return the values of a batch whose numbers change, with both numbers."""
        items = [f"b.{quoted(name)}" for name in (*self._names, *self._places)]
        for name in self._numbers:
            old = f"coalesce(s.{name}, 0)::BIGINT"
            items += [f"{self._number(f'{old} + b.{name}', name)}", f"{old} AS old_{name}"]
        joined = f"{counted} AS b LEFT JOIN {self.table} AS s ON {same('s', 'b', self._names)}"
        changed = _any(f"{name} <> old_{name}" for name in self._numbers)
        return f"SELECT * FROM (SELECT {', '.join(items)} FROM {joined}) WHERE {changed}"


def _any(conditions: Iterable[str]) -> str:
    return " OR ".join(conditions)
