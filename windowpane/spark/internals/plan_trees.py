"""Trees of Spark's: a plan or an expression, as its ``toJSON`` writes it.

One text instead of a call through Py4J for each node and each part of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from windowpane.arrays.values import JsonValue
from windowpane.spark.internals.session import jvm_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark.sql import SparkSession

SELECTED = "Project"
FILTERED = "Filter"
_COLUMN = "AttributeReference"
STEPS = (SELECTED, FILTERED, "SubqueryAlias")
"""Nodes of plans that select columns and rows, or only give them a name, by Spark's names."""


@dataclass(frozen=True)
class Tree:
    kind: str  # the class in Spark, without its package, such as ``EqualTo``
    fields: Mapping[
        str, JsonValue
    ]  # what the node says of itself; a field that is an expression is a list of nodes, see ``tree_of``
    children: tuple[Tree, ...]  # the nodes below, in Spark's order


def tree_of(nodes: Sequence[Mapping[str, JsonValue]]) -> Tree:
    """Return the tree of nodes that are listed from the top down, each before its children."""
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
    if expression.kind == _COLUMN:
        yield expression
    for each in expression.children:
        yield from columns_in(each)


def number_of(column: Tree) -> int:
    """Return the number that Spark tells a column from others by (``exprId``)."""
    return int(column.fields["exprId"]["id"])


class Steps:
    """The nodes at the top of a plan that only select columns and rows, or give them a name, and the node below them."""

    def __init__(self, nodes: Sequence[JavaObject], below: JavaObject, trees: Sequence[Tree] = ()) -> None:
        self.nodes, self.below = tuple(nodes), below
        self._trees = tuple(trees)

    @classmethod
    def of(cls, plan: JavaObject) -> Steps:
        nodes = []
        while plan.nodeName() in STEPS:
            nodes.append(plan)
            plan = plan.child()
        return cls(nodes, plan)

    @property
    def trees(self) -> tuple[Tree, ...]:
        if not self._trees:
            top = tree_of(json.loads((*self.nodes, self.below)[0].toJSON()))
            self._trees = _first_children(top, len(self.nodes))
        return self._trees

    def without_below(self) -> Steps:
        """Return the steps of the plan that lacks the node below these: its own child is in its place."""
        lower = Steps.of(self.below.child())
        trees = self._trees and (*self._trees[:-1], *_first_children(self._trees[-1].children[0], len(lower.nodes)))
        return Steps([*self.nodes, *lower.nodes], lower.below, trees)


def _first_children(top: Tree, count: int) -> tuple[Tree, ...]:
    """Return a tree, its first child, the first child of that, and so on: as many as ``count`` below the first."""
    found = [top]
    for _ in range(count):
        found.append(found[-1].children[0])
    return tuple(found)


PlanNode: TypeAlias = Any
"""A node of a plan: of Spark's JVM, or what Spark Connect has in its place, which has no class that is public."""

UNREADABLE = (AttributeError, TypeError, Py4JError)  # What reading a plan of another form raises


def listed(sequence: JavaObject) -> list[JavaObject]:
    return [sequence.apply(place) for place in range(sequence.size())]


def sequence(items: Iterable[JavaObject], jvm: JVMView) -> JavaObject:
    """Return a sequence of Scala's."""
    given = jvm.java.util.ArrayList()
    for each in items:
        given.add(each)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(given).toSeq()


def dataframe_of(plan: JavaObject, spark: SparkSession) -> DataFrame:
    """Return the DataFrame of an analyzed plan, of a classic session."""
    of_plan = jvm_of(spark).org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)
    return DataFrame(of_plan, spark)


def connect_nodes(plan: PlanNode) -> list[PlanNode]:
    found, waiting = [], [plan]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting.extend(connect_below(node))
    return found


_BELOW = ("_child", "left", "right", "other", "_other")
"""The attributes in which a plan of Spark Connect has those below it; a join has its left one in two."""


def connect_below(plan: PlanNode) -> list[PlanNode]:
    """Return the plans right below one of Spark Connect, of a join and a union both."""
    below = (getattr(plan, name, None) for name in _BELOW)
    return list({id(each): each for each in below if each is not None}.values())


def connect_parts(frame: DataFrame, stops: tuple[str, ...]) -> list[DataFrame]:
    """Return a DataFrame of Spark Connect with each part alone of the unions that it is made of; itself where there is none.

    Args:
        frame: the DataFrame.
        stops: how the names of nodes begin below which no union is looked for.
    """
    from pyspark.sql.connect.plan import ToDF

    def parts(plan: PlanNode) -> list[PlanNode]:
        if type(plan).__name__ == "SetOperation" and plan.set_op == "union":
            as_names = copy if plan.by_name else partial(ToDF, cols=of_plan(plan).columns)
            return [_known_as(plan, as_names(each)) for part in connect_below(plan) for each in parts(part)]
        found = []
        for below in [] if type(plan).__name__.startswith(stops) else connect_below(plan):
            several = parts(below)
            found += [_with(plan, below, each) for each in several if len(several) > 1]
        return found or [plan]

    def of_plan(plan: PlanNode) -> DataFrame:
        return type(frame)(plan, frame.sparkSession)

    return [of_plan(each) for each in parts(frame._plan)]


def _known_as(union: PlanNode, part: PlanNode) -> PlanNode:
    """Return a part that stands for a union to columns that were taken from it; it is changed."""
    part.__dict__.update({name: number for name, number in vars(union).items() if name.endswith("plan_id")})
    return part


def _with(plan: PlanNode, below: PlanNode, other: PlanNode) -> PlanNode:
    """Return a plan of Spark Connect with another one in the place of one below it."""
    changed = copy(plan)
    for name in _BELOW:
        if getattr(plan, name, None) is below:
            setattr(changed, name, other)
    return changed
