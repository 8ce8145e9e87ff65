"""Nodes that handle each row alone, and those that read rows. They have no state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.expressions.types import INTEGER, VARCHAR, is_float
from windowpane.sql.nodes.base import Node, Unary, every_node, listed
from windowpane.windowing.assigners.base import WindowAssigner


@dataclass(frozen=True)
class Scan(Node):
    """The rows of a stored relation; ``stored`` are the names of its columns there, in order of ``columns``.

    ``small`` says that it has few rows and will: a join without keys may be made with it. ``keyed`` says that its key is that of
    a table, which has no NULL; that of a materialized view may have some.
    """

    relation: str = ""
    stored: tuple[str, ...] = ()
    storage: str = ""
    small: bool = False
    keyed: bool = False
    state_fields = ("relation", "stored")

    def sql(self, *relations: str, extra: str = "") -> str:
        pairs = zip(self.stored, self.columns, strict=True)
        items = ", ".join(f"{quoted(stored)} AS {quoted(column.id)}" for stored, column in pairs)
        return f"SELECT {items}{extra} FROM {relations[0] if relations else self.storage}"

    @property
    def detail(self) -> str:
        return self.relation


def scanned(node: Node) -> frozenset[str]:
    return frozenset(each.relation for each in every_node(node) if isinstance(each, Scan))


@dataclass(frozen=True)
class Values(Node):
    """Rows written in the SQL text: ``VALUES``, or the one row without columns of a SELECT without FROM."""

    rows: tuple[tuple[Expr, ...], ...] = ()

    def sql(self, *relations: str, extra: str = "") -> str:
        if not self.rows:
            return "SELECT 0 AS " + ", ".join(quoted(column.id) for column in self.columns) + " WHERE FALSE"
        rows = ", ".join(f"({', '.join(cell.sql for cell in row)})" for row in self.rows)
        return f"SELECT * FROM (VALUES {rows}) AS v({listed(tuple(column.id for column in self.columns))})"

    @property
    def detail(self) -> str:
        return f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"


@dataclass(frozen=True)
class Filter(Unary):
    condition: Expr = field(kw_only=True)

    def sql(self, *relations: str, extra: str = "") -> str:
        return f"SELECT * FROM {relations[0]} WHERE {self.condition.sql}"

    @property
    def detail(self) -> str:
        return self.condition.sql


@dataclass(frozen=True)
class OnTime(Filter):
    """The rows of a table that were not late: not below the watermark before them, which is in the column ``stamp``."""

    stamp: str = field(kw_only=True)


@dataclass(frozen=True)
class Project(Unary):
    items: tuple[Expr, ...] = field(kw_only=True)

    def sql(self, *relations: str, extra: str = "") -> str:
        pairs = zip(self.items, self.columns, strict=True)
        items = ", ".join(f"{item.sql} AS {quoted(column.id)}" for item, column in pairs)
        return f"SELECT {items}{extra} FROM {relations[0]}"

    @property
    def detail(self) -> str:
        pairs = zip(self.items, self.columns, strict=True)
        return ", ".join(f"{column.name} = {item.sql}" for item, column in pairs if not item.is_column)

    @property
    def unchanged(self) -> dict[str, str]:
        """The columns that are columns of its input: their ids here, and there."""
        return {column.id: item.column for item, column in zip(self.items, self.columns, strict=True) if item.is_column}


@dataclass(frozen=True)
class TimeWindows(Unary):
    """Each row once for each of its windows, with their bounds: TUMBLE, HOP, CUMULATE.

    ``count`` is how many windows a row may have, and ``windowpane_n`` counts them. ``time`` is
    the column they are made by, ``None`` if it is computed; ``assigner`` is the same windows for the window engines.
    """

    kind: str = field(kw_only=True)
    start: Expr = field(kw_only=True)
    end: Expr = field(kw_only=True)
    count: int = field(kw_only=True)
    condition: Expr = field(kw_only=True)
    text: str = field(kw_only=True)
    time: str | None = field(default=None, kw_only=True)
    assigner: WindowAssigner = field(kw_only=True)

    def sql(self, *relations: str, extra: str = "") -> str:
        start, end = self.columns[-2:]
        names = listed(tuple(column.id for column in self.columns[:-2]))
        bounds = f"{self.start.sql} AS {quoted(start.id)}, {self.end.sql} AS {quoted(end.id)}"
        return f"SELECT {names}{extra}, {bounds} FROM {relations[0]}{self.numbers} WHERE {self.condition.sql}"

    @property
    def numbers(self) -> str:
        """What stands behind the relation of rows, where a row may have several windows: their numbers."""
        return f", range({self.count}) AS numbers(windowpane_n)" if self.count > 1 else ""

    @property
    def detail(self) -> str:
        return f"{self.kind} {self.text}"


@dataclass(frozen=True)
class Unnest(Unary):
    """Each row once for each element of a list; behind its columns are the element and its number, from 1.

    ``series`` is the list as a relation of DuckDB's, where it is one of whole numbers that are the same for all rows.
    """

    elements: Expr = field(kw_only=True)
    series: str | None = field(default=None, kw_only=True)

    def sql(self, *relations: str, extra: str = "") -> str:
        value, number = self.columns[-2:]
        source = self.input
        if self.series is not None and not extra and isinstance(source, Values) and len(source.rows) == 1:
            cells = [f"{cell.sql} AS {quoted(column.id)}" for cell, column in zip(source.rows[0], source.columns, strict=True)]
            cells.append(f"CAST(windowpane_n AS {value.type.duckdb}) AS {quoted(value.id)}")
            return f"SELECT {', '.join(cells)}, row_number() OVER () AS {quoted(number.id)} FROM {self.series} AS s(windowpane_n)"
        names = listed(tuple(column.id for column in source.columns))
        items = f"CAST(unnest({self.elements.sql}) AS {value.type.duckdb}) AS {quoted(value.id)}"
        numbers = f"unnest(range(1, len({self.elements.sql}) + 1)) AS {quoted(number.id)}"
        return f"SELECT {names}{extra}, {items}, {numbers} FROM {relations[0]}"

    @property
    def detail(self) -> str:
        return self.elements.sql


@dataclass(frozen=True)
class Expand(Unary):
    """Each row once for each grouping set, with NULL in the columns of GROUP BY that the set leaves out.

    ``sets`` are, for each column of ``masked``, the numbers of the sets that have it; behind the input's columns are those
    that are masked, and the number of the set.
    """

    masked: tuple[str, ...] = field(kw_only=True)
    sets: tuple[tuple[int, ...], ...] = field(kw_only=True)
    count: int = field(kw_only=True)

    def sql(self, *relations: str, extra: str = "") -> str:
        added = self.columns[len(self.columns) - len(self.masked) - 1 :]
        items = [quoted(column.id) for column in self.input.columns]
        for source, numbers, column in zip(self.masked, self.sets, added, strict=False):
            chosen = ", ".join(map(str, numbers)) or "NULL"
            items.append(f"CASE WHEN windowpane_n IN ({chosen}) THEN {quoted(source)} END AS {quoted(column.id)}")
        items.append(f"CAST(windowpane_n AS INTEGER) AS {quoted(added[-1].id)}")
        return f"SELECT {', '.join(items)}{extra} FROM {relations[0]}, range({self.count}) AS numbers(windowpane_n)"

    @property
    def detail(self) -> str:
        return f"{self.count} grouping sets"


BRANCH_TYPE, IDENTITY_TYPE = INTEGER, VARCHAR


@dataclass(frozen=True)
class UnionAll(Node):
    """The rows of all inputs; the last two columns, their branch and their key there, identify them."""

    branches: tuple[Node, ...] = field(kw_only=True)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.branches

    def with_inputs(self, *inputs: Node) -> Self:
        return replace(self, branches=inputs)

    def sql(self, *relations: str, extra: str = "") -> str:
        parts = [self.branch_sql(index, relation) for index, relation in enumerate(relations)]
        return " UNION ALL ".join(parts)

    def branch_sql(self, index: int, relation: str, extra: str = "") -> str:
        branch = self.branches[index]
        visible = zip(branch.columns, self.columns[:-2], strict=False)
        items = [f"{quoted(source.id)} AS {quoted(column.id)}" for source, column in visible]
        key = ", ".join(_identity(branch, name) for name in branch.key) or "''"
        number, identity = self.columns[-2:]
        items += [f"{index} AS {quoted(number.id)}", f"CAST([{key}] AS VARCHAR) AS {quoted(identity.id)}"]
        return f"SELECT {', '.join(items)}{extra} FROM {relation}"


def _identity(node: Node, name: str) -> str:
    """Return a column of the key as text: the same for equal values, so 0.0 for -0.0."""
    value = f"({quoted(name)} + 0)" if is_float(node.column(name).type) else quoted(name)
    return f"CAST({value} AS VARCHAR)"
