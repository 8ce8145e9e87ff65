"""A plan cut into stages: nodes with state, one stage each, and between them what handles each row alone.

A stage runs on buckets of rows, spread by a hash of the columns by which its node can be computed apart: those of GROUP BY,
PARTITION BY, a join's keys. What handles rows alone (filters, projections, TUMBLE, HOP, CUMULATE, unions) runs where rows are, on
the way from one stage to the next, as one query of DuckDB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import BOOLEAN
from windowpane.sql.nodes import Aggregate, Filter, Node, Project, Scan, TimeWindows, UnionAll, Values, form
from windowpane.sql.on_spark.change_sets import CLOCK
from windowpane.sql.on_spark.stages.layout import orders_of
from windowpane.sql.on_spark.stages.stage import INPUT, STAGE, Flow, Stage, Stages, alone, column_types
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.sql.streaming.folding import folds
from windowpane.sql.streaming.operators import LINEAR

_WEIGHTED = f", {quoted(WEIGHT)}"


def cut(node: Node) -> Stages:
    stages: list[Stage] = []
    result = _flows(node, stages)
    return _with_sets(Stages(tuple(stages), tuple(result), alone(len(stages))))


def _flows(node: Node, stages: list[Stage]) -> list[Flow]:
    if isinstance(node, Scan):
        kinds = tuple((name, column.type.duckdb) for name, column in zip(node.stored, node.columns, strict=True))
        return [Flow(None, node.relation, kinds, node.sql(INPUT, extra=_WEIGHTED))]
    if isinstance(node, Values):
        return [Flow(None, CLOCK, (), f"SELECT *, 1 AS {quoted(WEIGHT)} FROM ({node.sql()})")]
    if isinstance(node, UnionAll):
        return [
            flow.then(node.branch_sql(index, f"({flow.sql})", _WEIGHTED))
            for index, branch in enumerate(node.branches)
            for flow in _flows(branch, stages)
        ]
    inputs = tuple(tuple(_flows(source, stages)) for source in node.inputs)
    if isinstance(node, LINEAR):
        return [flow.then(node.sql(f"({flow.sql})", extra=_WEIGHTED), _unchanged(node, flow.unchanged)) for flow in inputs[0]]
    if isinstance(node, Aggregate) and (read := _read_alone(node)) is not None:
        inputs = (tuple(flow.then(_counted_sql(node, read, flow.sql), flow.unchanged) for flow in inputs[0]),)
    stages.append(Stage(node, inputs))
    emitted = {column.id: column.id for column in node.columns}
    return [Flow(len(stages) - 1, STAGE, column_types(node.columns), f"SELECT * FROM {INPUT}", emitted)]


def _unchanged(node: Node, before: Mapping[str, str]) -> dict[str, str]:
    """Return which columns are unchanged behind a node that handles each row alone, of those that were before it."""
    if isinstance(node, Project):
        return {name: before[of] for name, of in node.unchanged.items() if of in before}
    return dict(before) if isinstance(node, Filter | TimeWindows) else {}


def _read_alone(node: Aggregate) -> list[str] | None:
    """Return the columns that folded groups read of their input, if rows with the same ones may travel as one; else ``None``.

    They are few beside the groups where all others are boolean, the conditions of FILTER. A sum takes each row by itself.
    """
    if not folds(node) or any(fold is not None and fold.function in ("sum", "avg") for fold in node.folds):
        return None
    read = set().union(*(call.columns for call in node.calls)) - set(node.groups)
    others = [column for column in node.input.columns if column.id in read]
    return [*node.groups, *(column.id for column in others)] if all(column.type == BOOLEAN for column in others) else None


def _counted_sql(node: Aggregate, read: Sequence[str], rows: str) -> str:
    """Return changes with those as one that are the same to folded groups; what the groups do not read is NULL."""
    kept = [quoted(column.id) for column in node.input.columns if column.id in read]
    unread = [column for column in node.input.columns if column.id not in read]
    items = [*kept, *(column.item("NULL") for column in unread)]
    by = f" GROUP BY {', '.join(kept)}" if kept else ""
    weight = f"CAST(sum({quoted(WEIGHT)}) AS INTEGER) AS {quoted(WEIGHT)}"
    return f"SELECT {', '.join([*items, weight])} FROM ({rows}){by} HAVING sum({quoted(WEIGHT)}) <> 0"


def spread_lines(plan: Stages) -> list[str]:
    if not plan.stages:
        return ["Spread over Spark: every row alone, where it is"]
    number = len(plan.together)
    lines = [f"Spread over Spark in {number} stage{'' if number == 1 else 's'} on buckets of keys"]
    for name, numbers in zip(stage_names(plan), plan.together, strict=True):
        stages = [plan.stages[number] for number in numbers]
        keys = " and ".join(dict.fromkeys(", ".join(key.name for key in keys) for stage in stages for keys in stage.keys))
        lines.append(f"  {name}: {f'by {keys}' if keys else 'one bucket, since it has no keys'}")
    return lines


def stage_names(plan: Stages) -> list[str]:
    """Return the names of stages that run together, each set as one."""
    labels = [", then ".join(plan.stages[number].node.label for number in numbers) for numbers in plan.together]
    return [f"stage {number}, {label}" for number, label in enumerate(labels, start=1)]


def _with_sets(plan: Stages) -> Stages:
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
    forms = [form(node) for node in nodes]
    firsts = {number: forms.index(each) for number, each in enumerate(forms)}
    return {number: first for number, first in firsts.items() if first != number}
