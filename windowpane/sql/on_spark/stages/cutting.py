"""A plan cut into stages: nodes with state, one stage each, and between them what handles each row alone.

A stage runs on buckets of rows, spread by a hash of the columns by which its node can be computed apart: those of GROUP BY,
PARTITION BY, a join's keys. What handles rows alone (filters, projections, TUMBLE, HOP, CUMULATE, unions) runs where rows are, on
the way from one stage to the next, as one query of DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import BOOLEAN
from windowpane.sql.nodes import Aggregate, Filter, Node, Project, Scan, TimeWindows, UnionAll, Values
from windowpane.sql.on_spark.change_sets import CLOCK
from windowpane.sql.on_spark.stages.stage import INPUT, STAGE, Flow, Stage, Stages, alone, column_types
from windowpane.sql.on_spark.stages.together import with_sets
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.sql.streaming.folding import folds
from windowpane.sql.streaming.operators import LINEAR

_WEIGHTED = f", {quoted(WEIGHT)}"


def cut(node: Node) -> Stages:
    stages: list[Stage] = []
    result = _flows(node, stages)
    return with_sets(Stages(tuple(stages), tuple(result), alone(len(stages))))


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
