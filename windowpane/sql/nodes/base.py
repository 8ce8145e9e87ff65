"""What all nodes of a plan share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Self

from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import Expr, quoted


@dataclass(frozen=True)
class Watermark:
    """How the watermark of a column follows from those of base relations: the least of all parts.

    Each part is (relation, DuckDB expression over ``{w}``, the relation's watermark). It is ``final`` if no change of any kind
    arrives behind it, which is so where the rows of its relations stay; else rows behind it can still be deleted.
    """

    parts: tuple[tuple[str, str], ...]
    final: bool = True

    @classmethod
    def least(cls, *watermarks: Watermark) -> Watermark:
        parts = tuple(part for watermark in watermarks for part in watermark.parts)
        return cls(parts, all(watermark.final for watermark in watermarks))

    def unsettled(self) -> Watermark:
        """Return the watermark where rows behind it can still be deleted."""
        return replace(self, final=False)

    def under(self, expr: Expr) -> Watermark:
        """Return the watermark of an expression that rises with the column, which is the only one in it."""
        reached = Expr("{w}", expr.type)
        return self.through(expr.over(dict.fromkeys(expr.columns, reached)).sql)

    def through(self, template: str) -> Watermark:
        """Return the watermark of a monotonic expression over the column, in which ``{w}`` is the column."""
        return replace(self, parts=tuple((relation, template.replace("{w}", f"({sql})")) for relation, sql in self.parts))


Watermarks = Mapping[str, Watermark]


@dataclass(frozen=True)
class Order:
    column: str
    descending: bool
    nulls_first: bool

    @property
    def parts(self) -> list[str | bool]:
        return [self.column, self.descending, self.nulls_first]

    @property
    def sql(self) -> str:
        return f"{quoted(self.column)} {self.direction}"

    @property
    def direction(self) -> str:
        """What stands behind the column."""
        return f"{'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True)
class Node(ABC):
    """What all nodes share; see the module."""

    columns: tuple[Column, ...]
    key: tuple[str, ...]
    append_only: bool
    watermarks: Watermarks = field(default_factory=dict, compare=False)
    state_fields: ClassVar[tuple[str, ...]] = ()

    @property
    def label(self) -> str:
        return type(self).__name__

    @property
    def ids(self) -> set[str]:
        return {column.id for column in self.columns}

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def with_inputs(self, *inputs: Node) -> Self:
        """Return it over other inputs that have the columns of the old ones."""
        return self

    @abstractmethod
    def sql(self, *relations: str, extra: str = "") -> str:
        """Return its result as SQL over its inputs; ``extra`` is passed through by nodes that handle each row alone."""

    @property
    def detail(self) -> str:
        """What ``EXPLAIN`` writes behind its name."""
        return ""

    @property
    def state_parts(self) -> dict[str, Any]:
        """What the state of its operator depends on beside columns and key, as JSON has it: no generated SQL."""
        return {name: _plain(getattr(self, name)) for name in self.state_fields}

    def column(self, column_id: str) -> Column:
        return next(column for column in self.columns if column.id == column_id)


@dataclass(frozen=True)
class Unary(Node):
    input: Node = field(kw_only=True)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, *inputs: Node) -> Self:
        return replace(self, input=inputs[0])


@dataclass(frozen=True)
class Binary(Node):
    left: Node = field(kw_only=True)
    right: Node = field(kw_only=True)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, *inputs: Node) -> Self:
        return replace(self, left=inputs[0], right=inputs[1])


def every_node(node: Node) -> Iterator[Node]:
    """Yield the nodes of a plan, inputs first."""
    for source in node.inputs:
        yield from every_node(source)
    yield node


def changed_plan(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a plan in which ``change`` was made to every node, inputs first."""
    return change(node.with_inputs(*(changed_plan(source, change) for source in node.inputs)))


def listed(ids: tuple[str, ...]) -> str:
    return ", ".join(quoted(column_id) for column_id in ids)


def placed(partition: tuple[str, ...], order: tuple[Order, ...]) -> str:
    """Return PARTITION BY and ORDER BY as ``EXPLAIN`` writes them."""
    by = f" partition by {', '.join(partition)}" if partition else ""
    return by + (f" order by {', '.join(item.sql for item in order)}" if order else "")


def compile_plan(node: Node) -> str:
    return node.sql(*(f"({compile_plan(source)})" for source in node.inputs))


def _plain(value: Any) -> Any:
    """Return a field as JSON has it; parts of a plan are what they say that they are made of."""
    return [_plain(each) for each in value] if isinstance(value, tuple) else getattr(value, "parts", value)


def structure(node: Node) -> dict[str, Any]:
    """Return all of a plan that the state of its operators depends on, as JSON has it: not how its SQL is written."""
    return {
        "node": node.label,
        "columns": {column.id: column.type.duckdb for column in node.columns},
        "key": list(node.key),
        "append_only": node.append_only,
        **node.state_parts,
        "inputs": [structure(source) for source in node.inputs],
    }


def form(node: Node) -> Any:
    """Return what equals that of another node if the nodes are equal: ids of columns are numbers, in the order of the plan."""
    ids = dict.fromkeys(column.id for each in every_node(node) for column in each.columns)
    return _numbered(node, {name: f"#{number}" for number, name in enumerate(ids)})


def _numbered(value: object, numbers: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return numbers.get(value, value)
    if is_dataclass(value):
        parts = [getattr(value, each.name) for each in fields(value) if each.compare]
        return type(value), [_numbered(part, numbers) for part in parts]
    if isinstance(value, tuple | list):
        return [_numbered(part, numbers) for part in value]
    if isinstance(value, Mapping):
        return sorted(((_numbered(name, numbers), _numbered(part, numbers)) for name, part in value.items()), key=repr)
    return value


def explain_plan(node: Node, depth: int = 0) -> list[str]:
    detail = f": {node.detail}" if node.detail else ""
    lines = [f"{'  ' * depth}{node.label}{detail}"]
    for source in node.inputs:
        lines += explain_plan(source, depth + 1)
    return lines
