"""Trees of Spark's: a plan or an expression, as its ``toJSON`` writes it.

One text instead of a call through Py4J for each node and each part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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
