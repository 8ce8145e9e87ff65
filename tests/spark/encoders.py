"""Encoders without Spark around them."""

from __future__ import annotations

import pyarrow as pa

import windowpane as wp
from windowpane.planning.engines import combiner_of
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.spark.stages.encode import Encoder


def encoder(kind: pa.DataType, window: wp.WindowAssigner, buckets: int) -> Encoder:
    """Return an encoder of rows (k, v): a sum of v by k."""
    columns = pa.schema([("k", kind), ("v", pa.int64())])
    plan = WindowPlan(("k",), window, FunctionPlan("aggregate", aggregates=(("n", wp.sum("v")),)), event_time="t")
    types = InputTypes(columns, pa.schema([("k", kind)]), ("k",), pa.timestamp("us", "UTC"), {"n": ("v",)})
    combiner = combiner_of(compile_program(plan, types, columns.names))
    return Encoder(("k",), None, False, None, (), buckets, combiner)
