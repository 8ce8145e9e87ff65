"""Which stages run together, in one operator of Spark, without a shuffle between them; and of equal ones, which run once.

Stages run together whose rows stay in their bucket, as a Top-N by the key of the join below it. Of equal stages whose results
meet in one such set, one runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from windowpane.sql.nodes import Node, every_node
from windowpane.sql.on_spark.stages.layout import orders_of
from windowpane.sql.on_spark.stages.stage import Stage, Stages


def with_sets(plan: Stages) -> Stages:
    """Return a plan whose stages run together where they can, and in which of equal stages one runs for all.

    It does where one set of stages takes what it emits: from there, a second reader would be a second operator of Spark.
    """
    same = _equal_nodes([stage.node for stage in plan.stages])
    while True:
        shared = _together(plan.with_one_for(same))
        kept = plan.others(same)
        apart = {number for number, stage in same.items() if len(shared.readers(kept.index(stage))) > 1}
        if not apart:
            return shared
        same = {number: stage for number, stage in same.items() if number not in apart}


def _together(plan: Stages) -> Stages:
    """Return a plan whose stages run together where they can."""
    found: dict[int, tuple[int, ...]] = {}
    stages = list(plan.stages)
    read = Counter(flow.stage for stage in stages for flows in stage.inputs for flow in flows)
    for number, stage in enumerate(stages):
        below, spread = _kept_from(stage, [None if read[each] > 1 else stages[each] for each in range(number)])
        found[number] = (*sorted(each for last in below for each in found.pop(last)), number)
        stages[number] = replace(stage, spread=spread)
    for numbers in found.values():
        orders = tuple(orders_of(*(keys for number in numbers for keys in stages[number].keys)))
        for number in numbers:
            stages[number] = replace(stages[number], orders=orders)
    return replace(plan, stages=tuple(stages), together=tuple(found.values()))


def _kept_from(stage: Stage, stages: Sequence[Stage | None]) -> tuple[list[int], tuple[int, ...] | None]:
    """Return the stages whose results are in the bucket already where a stage takes them, and how it is spread then.

    ``stages`` are those before it, ``None`` for those that others read, too. Where it would be spread by some of its keys alone,
    rows from elsewhere would come to fewer buckets: then there are none.
    """
    below: list[int] = []
    spread: tuple[int, ...] | None = None
    for index, flows in enumerate(stage.inputs):
        flow = flows[0]
        source = None if flow.stage is None or len(flows) > 1 else stages[flow.stage]
        if flow.stage is not None and source is not None:
            kept = stage.spread_below(flow, index, source)
            if kept is not None and spread in (None, kept):
                below, spread = [*below, flow.stage], kept
    is_coarser = len(set(spread or ())) < len(stage.keys[0])
    return (below, spread) if below and not (is_coarser and len(below) < len(stage.inputs)) else ([], None)


def _equal_nodes(nodes: Sequence[Node]) -> dict[int, int]:
    """Return for each node that equals an earlier one the number of the first such, by its own number.

    Equal nodes have the same rows, in columns of other ids, in the same order, as of a query in WITH that is read twice. Which
    nodes are equal depends on the plan alone, in any process.
    """
    forms = [_form(node) for node in nodes]
    firsts = {number: forms.index(form) for number, form in enumerate(forms)}
    return {number: first for number, first in firsts.items() if first != number}


def _form(node: Node) -> Any:
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
