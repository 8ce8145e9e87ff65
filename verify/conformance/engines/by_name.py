"""Which engine understands which kinds of cases.

An engine is a dict from kind to ``replay(case, options) -> differences``. A replay raises ``NotUnderstoodError`` for what it
leaves out, and the case is skipped with that reason. Engines that need more than this package are imported when chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from verify.conformance.engines.columnar_over import ColumnarOver
from verify.conformance.engines.engine_operator import EngineOperator
from verify.conformance.engines.engine_programs import columnar_program, reference_program
from verify.conformance.kinds import (
    join,
    over_window,
    pattern,
    refused,
    rolling,
    trigger_transcript,
    window_operator,
    window_operator_chain,
)
from verify.conformance.kinds.parts import (
    assigner,
    frame_finder,
    merging_window_set,
    sort,
    time_window,
    timer_service,
    trigger,
    tumble_start,
)
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.pane_runs import EngineRun
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.engines.rolling.engine import RollingEngine

Replay = Callable[[Case, Options], list[Difference]]
Engine = dict[str, Replay]


def _hop_window(case: Case, options: Options) -> list[Difference]:
    from verify.conformance.kinds import hop_window

    return hop_window.replay(case, options)


def _watermark_filter(case: Case, options: Options) -> list[Difference]:
    from verify.conformance.kinds import watermark_filter

    return watermark_filter.replay(case, options)


def row_engine() -> Engine:
    """Return the reference operators, element by element."""
    return {
        "window_operator": window_operator.replay,
        "window_operator_chain": window_operator_chain.replay,
        "refused": refused.replay,
        "assigner": assigner.replay,
        "trigger": trigger.replay,
        "trigger_transcript": trigger_transcript.replay,
        "trigger_refusal": trigger_transcript.replay_refusal,
        "merging_window_set": merging_window_set.replay,
        "time_window": time_window.replay,
        "timer_service": timer_service.replay,
        "hop_window": _hop_window,
        "watermark_filter": _watermark_filter,
        "tumble_start": tumble_start.replay,
        "over_window": over_window.replay,
        "rolling": rolling.replay,
        "join": join.replay,
        "pattern": pattern.replay,
        "sort": sort.replay,
        "affected_range_rows": frame_finder.affected_range_rows,
        "merge_rows_frames": frame_finder.merge_frames,
        "rows_frame_bounds": frame_finder.rows_frame_bounds,
        "range_logical_order": frame_finder.range_logical_order,
        "range_find_left_right": frame_finder.range_find_left_right,
    }


def reference_engine() -> Engine:
    """Return the reference engine of windows, step by step, on a bucket."""
    operator = partial(EngineOperator, reference_program)
    return {
        "window_operator": partial(window_operator.replay, operator=operator),
        "window_operator_chain": partial(window_operator_chain.replay, operator=operator),
    }


def columnar_engine() -> Engine:
    """Return the columnar engines, step by step, as the planner chooses them."""
    operator = partial(EngineOperator, columnar_program)
    return {
        "window_operator": partial(window_operator.replay, operator=operator),
        "window_operator_chain": partial(window_operator_chain.replay, operator=operator),
        "over_window": partial(over_window.replay, operator=ColumnarOver),
        "trigger_transcript": partial(trigger_transcript.replay, run=EngineRun),
        "rolling": partial(rolling.replay, engine=RollingEngine),
        "join": partial(join.replay, engine=None),
        "pattern": partial(pattern.replay, engine=pattern.text_engine),
    }


def local_engine() -> Engine:
    """Return the embedded engine: SQL on a session without Spark, and the operators it is made of."""
    from verify.conformance.kinds import pattern_in_sql, sql

    return {**row_engine(), "sql": sql.replay, "pattern": pattern_in_sql.replay}


def spark_engine() -> Engine:
    """Return Structured Streaming."""
    from verify.conformance.engines.spark_engine import spark_engine

    return spark_engine()


ENGINES: dict[str, Callable[[], Engine]] = {
    "reference": reference_engine,
    "row": row_engine,
    "columnar": columnar_engine,
    "local": local_engine,
    "spark": spark_engine,
}
