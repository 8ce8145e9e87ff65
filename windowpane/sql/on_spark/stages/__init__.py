"""A plan of SQL in stages for Spark: how it is cut (``cutting``), what runs together, and where rows belong (``layout``)."""

from __future__ import annotations

from windowpane.sql.on_spark.stages.cutting import cut, spread_lines, stage_names
from windowpane.sql.on_spark.stages.stage import HASH, INPUT, STAGE, Flow, Stage, Stages, column_types

__all__ = ["HASH", "INPUT", "STAGE", "Flow", "Stage", "Stages", "column_types", "cut", "spread_lines", "stage_names"]
