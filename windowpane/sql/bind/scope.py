"""Names to columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.expressions.types import SqlType


@dataclass(frozen=True)
class Column:
    """A column of a plan: an id that no other column of the plan has, the name users see, and its type."""

    id: str
    name: str
    type: SqlType

    def renamed(self, name: str) -> Column:
        return replace(self, name=name)

    @property
    def expr(self) -> Expr:
        return Expr.of_column(self.id, self.type, self.name)

    def item(self, sql: str) -> str:
        """Return a value as this column, in the list of a SELECT, with its type."""
        return f"CAST({sql} AS {self.type.duckdb}) AS {quoted(self.id)}"


@dataclass(frozen=True)
class Visible:
    """A column that a query can name: by itself, or behind the alias of its table."""

    table: str
    column: Column
    merged: bool = False
    """Whether a NATURAL or USING join has merged it into another column, so that its bare name means that one."""
    is_row: bool = False
    """Whether it is the whole row of its table, a call that returns one value, so that the table's bare name means it, too."""


@dataclass(frozen=True)
class Scope:
    """The columns that the expressions of one SELECT can name, in order."""

    visible: tuple[Visible, ...] = ()

    def find(self, name: str, table: str | None = None) -> list[Column]:
        if table is not None:
            return [each.column for each in self.visible if each.table == table and each.column.name == name]
        found = [each.column for each in self.visible if each.column.name == name and not each.merged]
        return found or [each.column.renamed(name) for each in self.visible if each.is_row and each.table == name]

    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.table for each in self.visible))

    def of_table(self, table: str | None = None) -> list[Column]:
        return [each.column for each in self.visible if (not each.merged if table is None else each.table == table)]

    def with_columns(self, columns: Mapping[str, Column]) -> Scope:
        """Return the same names for other columns, given by the ids of those they had."""
        return Scope(tuple(replace(each, column=columns[each.column.id].renamed(each.column.name)) for each in self.visible))

    def __add__(self, other: Scope) -> Scope:
        return Scope(self.visible + other.visible)


class Ids:
    """Gives every column of a plan an id of its own: ``name#2`` of the second relation that is read, ``name@3`` where computed.

    State is kept by these ids: a relation may have more columns than before, and the ids of all others stay.
    """

    def __init__(self) -> None:
        self._computed = self._relations = 0

    def column(self, name: str, kind: SqlType) -> Column:
        self._computed += 1
        return Column(f"{name}@{self._computed}", name, kind)

    def columns(self, types: Mapping[str, SqlType]) -> dict[str, Column]:
        self._relations += 1
        return {name: Column(f"{name}#{self._relations}", name, kind) for name, kind in types.items()}
