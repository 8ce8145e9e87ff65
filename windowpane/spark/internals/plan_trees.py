"""Trees of Spark's: a plan or an expression, as its ``toJSON`` writes it.

One text instead of a call through Py4J for each node and each part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SELECTED = "Project"
FILTERED = "Filter"
_COLUMN = "AttributeReference"
STEPS = (SELECTED, FILTERED, "SubqueryAlias")
"""Nodes of plans that select columns and rows, or only give them a name, by Spark's names."""


@dataclass(frozen=True)
class Tree:
    """A node of a plan or an expression, and those below it.

    Args:
        kind: the class in Spark, without its package, such as ``EqualTo``.
        fields: what the node says of itself; a field that is an expression is a list of nodes, see ``tree_of``.
        children: the nodes below, in Spark's order.
    """

    kind: str
    fields: Mapping[str, Any]
    children: tuple[Tree, ...]


def tree_of(nodes: Sequence[Mapping[str, Any]]) -> Tree:
    """Return the tree of nodes that are listed from the top down, each before its children.

    Raises:
        ValueError: they are no single tree.
    """
    waiting: list[Tree] = []
    for node in reversed(nodes):
        children = tuple(waiting.pop() for _ in range(node["num-children"]))
        waiting.append(Tree(str(node["class"]).rpartition(".")[2], node, children))
    if len(waiting) != 1:
        raise ValueError(f"{len(waiting)} trees, and one was expected")
    return waiting[0]


def column_of(selected: Tree) -> Tree | None:
    """Return the column that a ``Project`` selects, under its own name or another; ``None`` for one that Spark computes."""
    found = selected.children[0] if selected.kind == "Alias" else selected
    return found if found.kind == _COLUMN else None


def columns_in(expression: Tree) -> Iterator[Tree]:
    """Return the columns that an expression reads."""
    if expression.kind == _COLUMN:
        yield expression
    for each in expression.children:
        yield from columns_in(each)


def number_of(column: Tree) -> int:
    """Return the number that Spark tells a column from others by (``exprId``)."""
    return int(column.fields["exprId"]["id"])
