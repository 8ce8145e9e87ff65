"""The logical plan: relational operators over columns with ids, each able to say itself in DuckDB's SQL.

The same plan is run as one query (``compile_plan``) and as operators over changelogs (``streaming``). Every node has

- ``columns``, among them all columns of
- ``key``: what identifies a row of its result (empty: there is at most one row),
- ``append_only``: whether rows of its result, once there, stay,
- ``watermarks``: the columns of which rows below a value can be told to come no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from windowpane.sql.expr import Expr, quoted
from windowpane.sql.over_calls import OverNodeCall, over_sql
from windowpane.sql.scope import Column
from windowpane.sql.types import BIGINT, INTEGER, VARCHAR


@dataclass(frozen=True)
class Watermark:
    """How the watermark of a column follows from those of base relations: the least of all parts.

    Each part is (relation, DuckDB expression over ``{w}``, the relation's watermark).
    """

    parts: tuple[tuple[str, str], ...]

    def through(self, template: str) -> Watermark:
        """Return the watermark of a monotonic expression over the column, ``{w}`` standing for it."""
        return Watermark(tuple((relation, template.replace("{w}", f"({sql})")) for relation, sql in self.parts))


Watermarks = Mapping[str, Watermark]


@dataclass(frozen=True)
class Order:
    """One column of an ORDER BY inside a plan."""

    column: str
    descending: bool
    nulls_first: bool

    @property
    def sql(self) -> str:
        """As DuckDB has it."""
        nulls = "FIRST" if self.nulls_first else "LAST"
        return f"{quoted(self.column)} {'DESC' if self.descending else 'ASC'} NULLS {nulls}"


@dataclass(frozen=True)
class Node(ABC):
    """What all nodes share; see the module."""

    columns: tuple[Column, ...]
    key: tuple[str, ...]
    append_only: bool
    watermarks: Watermarks = field(default_factory=dict, compare=False)

    label: ClassVar[str] = "node"

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes it reads from."""
        return ()

    @abstractmethod
    def sql(self, *relations: str, extra: str = "") -> str:
        """Return its result as SQL over its inputs; ``extra`` is passed through by nodes that handle each row alone."""

    @property
    def detail(self) -> str:
        """What ``EXPLAIN`` says behind its name."""
        return ""

    def column(self, column_id: str) -> Column:
        """Return a column by id."""
        return next(column for column in self.columns if column.id == column_id)


def listed(ids: tuple[str, ...]) -> str:
    """Return ids as a list of SQL columns."""
    return ", ".join(quoted(column_id) for column_id in ids)


@dataclass(frozen=True)
class Scan(Node):
    """The rows of a stored relation; ``stored`` are the names of its columns there, in order of ``columns``."""

    relation: str = ""
    stored: tuple[str, ...] = ()
    storage: str = ""
    label: ClassVar[str] = "Scan"

    def sql(self, *relations: str, extra: str = "") -> str:
        pairs = zip(self.stored, self.columns, strict=True)
        items = ", ".join(f"{quoted(stored)} AS {quoted(column.id)}" for stored, column in pairs)
        return f"SELECT {items}{extra} FROM {relations[0] if relations else self.storage}"

    @property
    def detail(self) -> str:
        return self.relation


@dataclass(frozen=True)
class Values(Node):
    """Rows written in the text: ``VALUES``, or the one row without columns of a SELECT without FROM."""

    rows: tuple[tuple[str, ...], ...] = ()
    label: ClassVar[str] = "Values"

    def sql(self, *relations: str, extra: str = "") -> str:
        if not self.rows:
            return "SELECT 0 AS " + ", ".join(quoted(column.id) for column in self.columns) + " WHERE FALSE"
        rows = ", ".join(f"({', '.join(row)})" for row in self.rows)
        return f"SELECT * FROM (VALUES {rows}) AS v({listed(tuple(column.id for column in self.columns))})"

    @property
    def detail(self) -> str:
        return f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"


@dataclass(frozen=True)
class Unary(Node):
    """A node with one input."""

    input: Node = field(kw_only=True)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Filter(Unary):
    """The rows that a condition holds for."""

    condition: Expr = field(kw_only=True)
    label: ClassVar[str] = "Filter"

    def sql(self, *relations: str, extra: str = "") -> str:
        return f"SELECT * FROM {relations[0]} WHERE {self.condition.sql}"

    @property
    def detail(self) -> str:
        return self.condition.sql


@dataclass(frozen=True)
class Project(Unary):
    """Expressions, one for each column."""

    items: tuple[str, ...] = field(kw_only=True)
    label: ClassVar[str] = "Project"

    def sql(self, *relations: str, extra: str = "") -> str:
        pairs = zip(self.items, self.columns, strict=True)
        items = ", ".join(f"{item} AS {quoted(column.id)}" for item, column in pairs)
        return f"SELECT {items}{extra} FROM {relations[0]}"

    @property
    def detail(self) -> str:
        computed = [
            f"{column.name} = {item}"
            for item, column in zip(self.items, self.columns, strict=True)
            if item not in (quoted(column.id), *(quoted(source.id) for source in self.input.columns))
        ]
        return ", ".join(computed)


@dataclass(frozen=True)
class TimeWindows(Unary):
    """Each row once for each of its windows, with their bounds: TUMBLE, HOP, CUMULATE.

    ``starts`` and ``ends`` are SQL; ``count`` is how many windows a row may have, and ``windowpane_n`` counts them.
    """

    kind: str = field(kw_only=True)
    start: str = field(kw_only=True)
    end: str = field(kw_only=True)
    count: int = field(kw_only=True)
    condition: str = field(kw_only=True)
    text: str = field(kw_only=True)
    label: ClassVar[str] = "TimeWindows"

    def sql(self, *relations: str, extra: str = "") -> str:
        start, end = self.columns[-2:]
        names = listed(tuple(column.id for column in self.columns[:-2]))
        bounds = f"{self.start} AS {quoted(start.id)}, {self.end} AS {quoted(end.id)}"
        numbers = f", range({self.count}) AS numbers(windowpane_n)" if self.count > 1 else ""
        return f"SELECT {names}{extra}, {bounds} FROM {relations[0]}{numbers} WHERE {self.condition}"

    @property
    def detail(self) -> str:
        return f"{self.kind} {self.text}"


@dataclass(frozen=True)
class SessionWindows(Unary):
    """Each row with the bounds of its session: rows of a partition that follow one another in less than the gap."""

    partition: tuple[str, ...] = field(kw_only=True)
    time: str = field(kw_only=True)
    gap: str = field(kw_only=True)
    text: str = field(kw_only=True)
    label: ClassVar[str] = "SessionWindows"

    def sql(self, *relations: str, extra: str = "") -> str:
        start, end = self.columns[-2:]
        names = listed(tuple(column.id for column in self.columns[:-2]))
        by = f"PARTITION BY {listed(self.partition)} " if self.partition else ""
        session = f"PARTITION BY {listed((*self.partition, 'windowpane session'))}"
        time = quoted(self.time)
        begins = f"CASE WHEN lag({time}) OVER ({by}ORDER BY {time}) + {self.gap} > {time} THEN 0 ELSE 1 END"
        flagged = f'SELECT *, {begins} AS "windowpane begins" FROM {relations[0]} WHERE {time} IS NOT NULL'
        numbered = (
            f'SELECT *, sum("windowpane begins") OVER ({by}ORDER BY {time} RANGE UNBOUNDED PRECEDING) AS "windowpane session" '
            f"FROM ({flagged})"
        )
        bounds = (
            f"min({time}) OVER ({session}) AS {quoted(start.id)}, max({time}) OVER ({session}) + {self.gap} AS {quoted(end.id)}"
        )
        return f"SELECT {names}, {bounds} FROM ({numbered})"

    @property
    def detail(self) -> str:
        return self.text


@dataclass(frozen=True)
class Fold:
    """A call of an aggregate that can be kept as a partial result, and rows added to it.

    Args:
        function: ``count``, ``sum``, ``avg``, ``min`` or ``max``.
        argument: SQL of the argument, ``None`` for ``count(*)``.
        condition: SQL of ``FILTER``, ``None`` without.
        kept: the DuckDB type of the partial result.
        takes_back: whether rows can be taken away again.
        combined: what combines two partial results, ``None`` where they are added.
    """

    function: str
    argument: str | None
    condition: str | None
    kept: str
    takes_back: bool
    combined: str | None = None


@dataclass(frozen=True)
class Aggregate(Unary):
    """Groups by columns, with one call for each further column: ``calls`` as SQL, ``folds`` those that can be folded."""

    groups: tuple[str, ...] = field(kw_only=True)
    calls: tuple[str, ...] = field(kw_only=True)
    folds: tuple[Fold | None, ...] = field(default=(), kw_only=True)
    label: ClassVar[str] = "Aggregate"

    def sql(self, *relations: str, extra: str = "") -> str:
        pairs = zip(self.calls, self.columns[len(self.groups) :], strict=True)
        items = [quoted(group) for group in self.groups]
        items += [f"{call} AS {quoted(column.id)}" for call, column in pairs]
        by = f" GROUP BY {listed(self.groups)}" if self.groups else ""
        return f"SELECT {', '.join(items) or '1'} FROM {relations[0]}{by}"

    @property
    def detail(self) -> str:
        by = f" by {', '.join(self.groups)}" if self.groups else ""
        return f"{', '.join(self.calls)}{by}"


@dataclass(frozen=True)
class Over(Unary):
    """The input with one column for each call over one combination of PARTITION BY and ORDER BY."""

    partition: tuple[str, ...] = field(kw_only=True)
    order: tuple[Order, ...] = field(kw_only=True)
    calls: tuple[OverNodeCall, ...] = field(kw_only=True)
    closes: bool = field(default=False, kw_only=True)
    label: ClassVar[str] = "Over"

    def sql(self, *relations: str, extra: str = "") -> str:
        order = tuple((item.column, item.sql, item.descending) for item in self.order)
        return over_sql(relations[0], self.columns, self.partition, order, self.calls, self.input.key)

    @property
    def detail(self) -> str:
        by = f" partition by {', '.join(self.partition)}" if self.partition else ""
        order = f" order by {', '.join(item.sql for item in self.order)}" if self.order else ""
        closes = ", once closed" if self.closes else ""
        return f"{', '.join(call.text for call in self.calls)}{by}{order}{closes}"


@dataclass(frozen=True)
class TopN(Unary):
    """The rows of each partition at places ``offset + 1`` to ``offset + limit``; ties of the last one too if ``with_ties``.

    ``number`` is the column for the place, ``None`` if nobody wants it.
    """

    partition: tuple[str, ...] = field(kw_only=True)
    order: tuple[Order, ...] = field(kw_only=True)
    limit: int | None = field(kw_only=True)
    offset: int = field(default=0, kw_only=True)
    with_ties: bool = field(default=False, kw_only=True)
    number: str | None = field(default=None, kw_only=True)
    label: ClassVar[str] = "TopN"

    def sql(self, *relations: str, extra: str = "") -> str:
        place = self.place_sql()
        upto = "" if self.limit is None else f" AND {place} <= {self.offset + self.limit}"
        number = f", {place} AS {quoted(self.number)}" if self.number else ""
        return f"SELECT *{number} FROM {relations[0]} QUALIFY {place} > {self.offset}{upto}"

    def place_sql(self) -> str:
        """Return the place of a row in its partition as SQL."""
        by = f"PARTITION BY {listed(self.partition)} " if self.partition else ""
        order = [item.sql for item in self.order]
        if not self.with_ties:
            order += [f"{quoted(name)} ASC NULLS LAST" for name in self.input.key]
        ordered = f"ORDER BY {', '.join(order)}" if order else ""
        return f"{'rank' if self.with_ties else 'row_number'}() OVER ({by}{ordered})"

    @property
    def detail(self) -> str:
        by = f" partition by {', '.join(self.partition)}" if self.partition else ""
        ties = " with ties" if self.with_ties else ""
        return f"limit {self.limit}, offset {self.offset}{ties}{by} order by {', '.join(item.sql for item in self.order)}"


@dataclass(frozen=True)
class Join(Node):
    """Rows of two inputs side by side; ``keys`` are pairs of columns that must be equal, ``residual`` what else must hold."""

    left: Node = field(kw_only=True)
    right: Node = field(kw_only=True)
    kind: str = field(kw_only=True)
    keys: tuple[tuple[str, str], ...] = field(kw_only=True)
    null_safe: bool = field(default=False, kw_only=True)
    residual: Expr | None = field(default=None, kw_only=True)
    label: ClassVar[str] = "Join"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def sql(self, *relations: str, extra: str = "") -> str:
        left, right = relations
        equal = "IS NOT DISTINCT FROM" if self.null_safe else "="
        conditions = [f"l.{quoted(one)} {equal} r.{quoted(other)}" for one, other in self.keys]
        conditions += [self.residual.sql] if self.residual is not None else []
        if not conditions and self.kind == "inner":
            return f"SELECT * FROM {left} AS l CROSS JOIN {right} AS r"
        condition = " AND ".join(conditions) or "TRUE"
        return f"SELECT * FROM {left} AS l {self.kind.upper()} JOIN {right} AS r ON {condition}"

    @property
    def detail(self) -> str:
        keys = ", ".join(f"{one} = {other}" for one, other in self.keys)
        residual = f" and {self.residual.sql}" if self.residual is not None else ""
        return f"{self.kind} on {keys}{residual}"


@dataclass(frozen=True)
class UnionAll(Node):
    """The rows of all inputs; the last two columns, their branch and their key there, identify them."""

    branches: tuple[Node, ...] = field(kw_only=True)
    label: ClassVar[str] = "UnionAll"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.branches

    def sql(self, *relations: str, extra: str = "") -> str:
        parts = [self.branch_sql(index, relation) for index, relation in enumerate(relations)]
        return " UNION ALL ".join(parts)

    def branch_sql(self, index: int, relation: str, extra: str = "") -> str:
        """Return the rows of one branch as SQL."""
        branch = self.branches[index]
        visible = zip(branch.columns, self.columns[:-2], strict=False)
        items = [f"{quoted(source.id)} AS {quoted(column.id)}" for source, column in visible]
        key = ", ".join(f"CAST({quoted(name)} AS VARCHAR)" for name in branch.key) or "''"
        number, identity = self.columns[-2:]
        items += [f"{index} AS {quoted(number.id)}", f"CAST([{key}] AS VARCHAR) AS {quoted(identity.id)}"]
        return f"SELECT {', '.join(items)}{extra} FROM {relation}"


@dataclass(frozen=True)
class SetOperation(Node):
    """EXCEPT or INTERSECT of the columns of two inputs, duplicates removed."""

    left: Node = field(kw_only=True)
    right: Node = field(kw_only=True)
    kind: str = field(kw_only=True)
    label: ClassVar[str] = "SetOperation"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def sql(self, *relations: str, extra: str = "") -> str:
        width = len(self.columns)
        parts = []
        for node, relation in zip(self.inputs, relations, strict=True):
            items = zip(node.columns[:width], self.columns, strict=True)
            parts.append(f"SELECT {', '.join(f'{quoted(a.id)} AS {quoted(b.id)}' for a, b in items)} FROM {relation}")
        return f" {self.kind.upper()} ".join(parts)

    @property
    def detail(self) -> str:
        return self.kind


@dataclass(frozen=True)
class CloseSort(Unary):
    """Holds rows back until the watermark of ``column`` has passed them: EMIT ON WINDOW CLOSE."""

    column_id: str = field(kw_only=True)
    label: ClassVar[str] = "CloseSort"

    def sql(self, *relations: str, extra: str = "") -> str:
        return f"SELECT * FROM {relations[0]}"

    @property
    def detail(self) -> str:
        return f"by {self.column_id}"


BRANCH_TYPE, IDENTITY_TYPE, NUMBER_TYPE = INTEGER, VARCHAR, BIGINT


def compile_plan(node: Node) -> str:
    """Return a plan as one query."""
    return node.sql(*(f"({compile_plan(source)})" for source in node.inputs))


def explain_plan(node: Node, depth: int = 0) -> list[str]:
    """Return a plan as lines, inputs indented."""
    detail = f": {node.detail}" if node.detail else ""
    lines = [f"{'  ' * depth}{node.label}{detail}"]
    for source in node.inputs:
        lines += explain_plan(source, depth + 1)
    return lines
