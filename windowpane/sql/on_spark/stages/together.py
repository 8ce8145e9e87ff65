"""Which stages run together, in one operator of Spark, without a shuffle between them; and of equal ones, which run once.

Stages run together whose rows stay in their bucket, as a Top-N by the key of the join below it. Of equal stages whose results
meet in one such set, one runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from windowpane.sql.on_spark.stages.layout import orders_of
from windowpane.sql.on_spark.stages.stage import Stage, Stages
from windowpane.sql.optimize.equal_nodes import equal_nodes


def with_sets(plan: Stages) -> Stages:
    """Return a plan whose stages run together where they can, and in which of equal stages one runs for all.

    It does where one set of stages takes what it emits: from there, a second reader would be a second operator of Spark.
    """
    same = equal_nodes([stage.node for stage in plan.stages])
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
