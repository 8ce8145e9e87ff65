"""Operators with state that the rows of a stream have passed already, as its plan says; PySpark has no public way to read it.

Where the plan cannot be read there are none: rows then count as those of a source. On Spark Connect the text of ``spark.sql`` is
not read. The outputs of our own programs are known by an alias, which stays in the plan of what is made of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from windowpane.spark.internals.plan_trees import UNREADABLE, PlanNode, connect_below, connect_nodes, connect_parts, listed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BY_WATERMARK = ("Aggregate", "Distinct")  # Nodes that emit a row when the watermark has passed it, in output mode append
_FUNCTIONS = ("FlatMapGroups", "TransformWithState")
"""How the names of nodes of functions with state begin; here and on Spark Connect, where one more has a name of its own."""
_FUNCTION_ON_CONNECT = "ApplyInPandasWithState"
_JOIN = "Join"
_UNION = "Union"
_ANY = re.compile("|".join((*_BY_WATERMARK, *_FUNCTIONS, _JOIN)))
"""What the text of a plan with such a node contains: one call instead of several for each node."""


_RESULT = re.compile(r"windowpane_result_\d+")
_RESULTS: dict[str, object] = {}
"""The programs whose outputs have an alias, by it; the latest ones, since nobody knows how long a DataFrame lives in the JVM."""
_REMEMBERED = 500
_NUMBERS = count(1)


def as_result(dataframe: DataFrame, program: object) -> DataFrame:
    """Return an output of a program, by which ``results_in`` of what is made of it knows the program."""
    name = f"windowpane_result_{next(_NUMBERS)}"
    _RESULTS[name] = program
    for oldest in list(_RESULTS)[:-_REMEMBERED]:
        _RESULTS.pop(oldest, None)
    return dataframe.alias(name)


def results_in(dataframe: DataFrame) -> tuple[object, ...]:
    """Return the programs of whose outputs a DataFrame is made, each before those that were built on it."""
    try:
        if hasattr(dataframe, "_jdf"):
            names = _RESULT.findall(dataframe._jdf.queryExecution().analyzed().toString())
        else:
            names = [str(getattr(node, "_alias", "")) for node in connect_nodes(dataframe._plan)]
    except UNREADABLE:
        return ()
    return tuple(dict.fromkeys(_RESULTS[name] for name in reversed(names) if name in _RESULTS))


def holds_results(dataframe: DataFrame) -> bool:
    """Whether outputs of programs are in the plan of a DataFrame; a table of results has their columns, with their metadata.

    True where the plan does not say it: it cannot be read, or is the text of ``spark.sql`` on Spark Connect.
    """
    try:
        if hasattr(dataframe, "_jdf"):
            return _RESULT.search(dataframe._jdf.queryExecution().analyzed().toString()) is not None
        nodes = list(connect_nodes(dataframe._plan))
        return any(type(node).__name__ == "SQL" or _RESULT.match(str(getattr(node, "_alias", ""))) for node in nodes)
    except UNREADABLE:
        return True


def has_kept_rows(dataframe: DataFrame) -> bool:
    """Whether rows of a stream leave an operator that may have kept them: their times may be behind the watermark of the batch.

    Such operators are aggregations, joins of two streams, and functions with state. Deduplication keeps no row back.
    """
    return any(map(_has_state, _nodes(dataframe)))


def waits_for_watermark(dataframe: DataFrame, passed_on: str) -> bool:
    """Whether rows of a stream leave an operator that emits what the watermark has passed: an aggregation, or windows."""
    found = list(_nodes(dataframe))
    if any(name in _BY_WATERMARK for name, _ in found):
        return True
    if not any(name.startswith(_FUNCTIONS) for name, _ in found):
        return False
    selecting = [node for name, node in found if name == "Project"]
    if hasattr(dataframe, "_jdf"):
        return any(passed_on in str(node.schema().json()) for node in selecting)
    return any(passed_on in str(getattr(column._expr, "_metadata", "")) for node in selecting for column in node._columns)


def united(dataframe: DataFrame, name: str) -> list[Mapping[str, object]]:
    """Return the metadata that a column has in each part of the unions that it comes from; Spark shows that of the first one.

    Nothing where it comes from none. What an operator unites below, as a join its two sides, does not count.
    """
    try:
        if not hasattr(dataframe, "_jdf"):
            return _united_on_connect(dataframe, name)
        plan = dataframe._jdf.queryExecution().analyzed()
        if _UNION not in plan.toString():
            return []
        return [json.loads(found) for found in _united(plan, listed(plan.output())[dataframe.columns.index(name)])]
    except UNREADABLE:
        return []


def _united(plan: PlanNode, column: PlanNode) -> list[str]:
    """Return the metadata of a column of a plan, as JSON, in each part of the unions that it comes from, nothing for none."""
    kind, below = str(plan.nodeName()), listed(plan.children())
    if kind == _UNION:
        place = [each.exprId() for each in listed(plan.output())].index(column.exprId())
        parts = [(child, listed(child.output())[place]) for child in below]
        return [found for child, part in parts for found in _united(child, part) or [str(part.metadata().json())]]
    if kind == "Project":
        made = next(each for each in listed(plan.projectList()) if each.exprId() == column.exprId())
        column = made.child() if made.nodeName() == "Alias" else made
        if column.nodeName() != "AttributeReference":
            return []  # which is computed
    child = next((each for each in below if any(column.exprId() == one.exprId() for one in listed(each.output()))), None)
    return [] if child is None else _united(child, column)


def _united_on_connect(dataframe: DataFrame, name: str) -> list[Mapping[str, object]]:
    """Return the same as the server says it of each part alone; a part that lacks the column has nothing to say."""
    parts, found = connect_parts(dataframe, _FUNCTIONS), list[Mapping[str, object]]()
    for part in parts if len(parts) > 1 else ():
        with suppress(PySparkException):
            found.append(part.schema[name].metadata)
    return found


def _has_state(named: tuple[str, PlanNode]) -> bool:
    name, _ = named
    return name in _BY_WATERMARK or name.startswith(_FUNCTIONS) or name in (_JOIN, _FUNCTION_ON_CONNECT)


def _nodes(dataframe: DataFrame) -> Iterator[tuple[str, PlanNode]]:
    """Yield the nodes of the plan of a stream with such operators, each with its name, without joins with static rows."""
    if not getattr(dataframe, "isStreaming", False):
        return
    try:
        if hasattr(dataframe, "_jdf"):
            plan = dataframe._jdf.queryExecution().analyzed()
            if _ANY.search(plan.toString()):
                yield from _of_spark(plan)
        else:
            yield from _of_connect(dataframe._plan)
    except UNREADABLE:
        return


def _of_spark(plan: PlanNode) -> Iterator[tuple[str, PlanNode]]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if not node.isStreaming():
            continue
        name, below = str(node.nodeName()), listed(node.children())
        waiting += below
        if name != _JOIN or all(child.isStreaming() for child in below):
            yield name, node


def _of_connect(plan: PlanNode) -> Iterator[tuple[str, PlanNode]]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        name, below = type(node).__name__, connect_below(node)
        waiting += below
        if _is_stream(node) and (name != _JOIN or all(map(_is_stream, below))):
            yield name, node


def _is_stream(plan: PlanNode) -> bool:
    return bool(getattr(plan, "_is_streaming", False)) or any(map(_is_stream, connect_below(plan)))
