"""A plan that is spread over Spark: its stages as the Spark room runs them, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from windowpane.sql.nodes import Node
from windowpane.sql.on_spark.node_engine import NodeEngine
from windowpane.sql.on_spark.rowwise import Rowwise
from windowpane.sql.on_spark.stages import HASH, STAGE, Flow, Stage, cut, hash_sql
from windowpane.state.compact import from_stream


def spread(node: Node, letters: Any) -> Any:
    """Return a DataFrame of letters as one of the changes that the plan gives, as blobs."""
    from windowpane.spark.queries import staged

    plan = cut(node)
    stages = [staged.Stage(_inlets(stage), HASH, partial(NodeEngine, stage)) for stage in plan.stages]
    result = [staged.Inlet(number, Rowwise(flows)) for number, flows in by_stage(plan.result)]
    return staged.staged(letters, stages, result, STAGE)


def _inlets(stage: Stage) -> list[Any]:
    from windowpane.spark.queries import staged

    return [
        staged.Inlet(number, Rowwise(flows, hash_sql(stage.keys[index])), index)
        for index, arriving in enumerate(stage.inputs)
        for number, flows in by_stage(arriving)
    ]


def by_stage(flows: Sequence[Flow]) -> Iterator[tuple[int | None, tuple[Flow, ...]]]:
    """Yield the flows of each place they come from together."""
    for number in dict.fromkeys(flow.stage for flow in flows):
        yield number, tuple(flow for flow in flows if flow.stage == number)


def changes_of(batch: pa.Table) -> Iterator[pa.Table]:
    """Yield the changes that the blobs of a batch hold."""
    for blob in batch["blob"]:
        yield from_stream(blob.as_py())
