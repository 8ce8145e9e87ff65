"""Flink's older form of windows: ``GROUP BY TUMBLE(at, INTERVAL '1' HOUR)``, HOP and SESSION, with TUMBLE_START and its kin.

The window function is one of the keys of GROUP BY, over the rows of FROM and WHERE. It is the window table function of
that name below the groups, and the keys are the bounds of its windows; sessions are those of rows that agree in the other keys.
``TUMBLE_START(at, INTERVAL '1' HOUR)`` and ``_END`` are the bounds, ``_ROWTIME`` is the last millisecond. Source of the rules:
Flink's group window aggregation, which streaming SQL has beside its window table functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.binder import resolved
from windowpane.sql.parse.positions import Text
from windowpane.sql.windows.table_functions import TableCall

_LENGTHS = {"tumble": ("size",), "hop": ("slide", "size"), "session": ("gap",)}
_PARTS = ("start", "end", "rowtime", "proctime")


@dataclass(frozen=True)
class GroupWindow:
    tree: exp.Expr
    others: tuple[exp.Expr, ...]

    @property
    def name(self) -> str:
        """TUMBLE, HOP or SESSION, in small letters."""
        return str(self.tree.this).lower()

    def call(self, text: Text) -> TableCall:
        """Return the window table function that makes its windows."""
        names = _LENGTHS[self.name]
        time, *lengths = self.tree.expressions
        if len(lengths) != len(names):
            shown = f"{self.name.upper()}(time, {', '.join(names)})"
            raise text.syntax_error(self.tree, f"in GROUP BY it is {shown}, not with {len(lengths) + 1} arguments.")
        return TableCall(self.name, self.tree, self.tree, time, (), dict(zip(names, lengths, strict=True)), is_described=True)

    def select(self, tree: exp.Select, columns: Mapping[str, Column], text: Text) -> exp.Select:
        """Return the SELECT as one over the rows with their windows: grouped by the bounds, TUMBLE_START and its kin columns.

        Raises:
            SqlError: one of them is about another window.
        """
        written = tree.copy()
        keys = [resolved(column.renamed(f"window_{part}")) for part, column in columns.items()]
        written.set("expressions", [self._written(item, columns, text) for item in tree.expressions])
        written.set("group", exp.Group(expressions=[*keys, *(self._written(key, columns, text) for key in self.others)]))
        for clause in ("having", "qualify", "order"):
            if tree.args.get(clause) is not None:
                written.set(clause, self._written(tree.args[clause], columns, text))
        return written

    def _written(self, tree: exp.Expr, columns: Mapping[str, Column], text: Text) -> exp.Expr:
        def changed(part: exp.Expr) -> exp.Expr:
            function = str(part.this).lower() if isinstance(part, exp.Anonymous) else ""
            name, _, which = function.rpartition("_")
            if name != self.name or which not in _PARTS or part.find_ancestor(exp.Query):
                return part
            if [each.sql() for each in part.expressions] != [each.sql() for each in self.tree.expressions]:
                raise text.name_error(
                    part, f"{function} is about another window than {self.name.upper()} in GROUP BY. Repeat it."
                )
            if which == "proctime":
                raise text.unsupported(part, function.upper(), "Select PROCTIME() above the groups.")
            return resolved(columns[which].renamed(function))

        return tree.transform(changed)


def group_window(keys: list[exp.Expr], text: Text) -> GroupWindow | None:
    """Return the window function among the keys of GROUP BY, ``None`` if there is none."""
    found = [key for key in keys if isinstance(key, exp.Anonymous) and str(key.this).lower() in _LENGTHS and key.expressions]
    if not found:
        return None
    if len(found) > 1:
        raise text.unsupported(
            found[1], "a second window in GROUP BY", "Group by one, and put the other into a subquery in FROM."
        )
    return GroupWindow(found[0], tuple(key for key in keys if key is not found[0]))
