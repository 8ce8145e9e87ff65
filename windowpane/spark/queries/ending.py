"""The end of a stream: the last windows of a run that has taken all rows, and a checkpoint that takes no more.

An operator cannot know that a stream has ended, so its windows stay open in the checkpoint. ``flush_at_end`` closes them after
the run: the state is read from the checkpoint, engines on it advance to the end of time, as they do for static rows, and their
results are written as the batch after the last one. The state itself stays as it was.

A later row would open again what is closed, and its batch would have the number that the sinks know already. So
the checkpoint is marked: ``ending`` before the last windows are written, ``ended`` after that. Recovery: who finds ``ending``
without ``ended`` writes them once more, under the same number, which sinks take once. Either mark refuses every further start.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from windowpane.errors import EndedStreamError, InvalidSpecError
from windowpane.planning.engines import engine_of
from windowpane.planning.sinks import BatchTrigger
from windowpane.spark.building.program import BuiltProgram
from windowpane.spark.internals.earlier_operators import has_kept_rows
from windowpane.spark.session.checkpoints import mark_of, set_mark
from windowpane.spark.stages.bounded import ended_processor
from windowpane.spark.stages.wire import Wire

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ESCAPED = re.compile(r'[\s"<>\\^`{|}\[\]%#?]')
"""Characters that Java escapes in a URI: Spark's reader of state takes the URI for the path."""
_ENDING, _ENDED = "ending", "ended"
Write: TypeAlias = "Callable[[DataFrame, int], None]"

_HEARTBEAT = (
    "A stream that goes on closes its last windows with a heartbeat, a row that carries nothing but a time: "
    "wp.stream(..., heartbeat='column')."
)


def check_flush(built: BuiltProgram, checkpoint: str | None, trigger: BatchTrigger) -> None:
    if not trigger.get("availableNow"):
        raise InvalidSpecError(
            f"flush_at_end=True needs a run that ends: trigger={{'availableNow': True}}, not {dict(trigger)!r}. {_HEARTBEAT}"
        )
    if checkpoint is None:
        raise InvalidSpecError("flush_at_end=True needs a checkpoint: the last windows are read from it.")
    if _ESCAPED.search(checkpoint):
        raise InvalidSpecError(
            f"flush_at_end=True: Spark does not read the state of checkpoint {checkpoint!r}, since it escapes a space, a bracket "
            "or the like in its path. Give the checkpoint a path without."
        )
    is_chain = any(source.upstream is not None or has_kept_rows(source.dataframe) for source in built.sources)
    if len(built.operators) > 1 or is_chain:
        raise InvalidSpecError(
            "flush_at_end=True closes the windows of one operator, and here the results of one are the input of another, whose "
            f"state does not have them yet. {_HEARTBEAT}"
        )
    own = built.source.own_watermark
    if own is not None and own.of_each_key:
        raise InvalidSpecError(
            f"flush_at_end=True: with watermark={own!r} each key ends by itself. Leave per_key out, or read the finished input "
            "as a static DataFrame."
        )


def refuse_an_ended_stream(spark: SparkSession, checkpoint: str, built: BuiltProgram, write: Write, wire: Wire) -> None:
    """Refuse a checkpoint whose stream has ended; its last windows are written first, where that was interrupted."""
    number = _mark(spark, checkpoint, _ENDING)
    if number is None:
        return
    if _mark(spark, checkpoint, _ENDED) is None:
        _write_last_windows(spark, checkpoint, built, write, wire, number)
    raise EndedStreamError(checkpoint)


def end_stream(spark: SparkSession, checkpoint: str, built: BuiltProgram, write: Write, wire: Wire) -> None:
    states = spark.read.format("state-metadata").load(checkpoint)
    last = states.agg({"maxBatchId": "max"}).collect()[0][0]
    if last is not None:
        set_mark(spark, checkpoint, _ENDING, str(last + 1))
        _write_last_windows(spark, checkpoint, built, write, wire, last + 1)


def _write_last_windows(spark: SparkSession, checkpoint: str, built: BuiltProgram, write: Write, wire: Wire, number: int) -> None:
    (operator,) = built.operators
    wire = replace(wire, counters=built.counters)
    state = spark.read.format("statestore").option("stateVarName", "blobs").load(checkpoint)
    blobs = state.selectExpr("key.bucket", "user_map_key.name", "user_map_value.blob")
    last = ended_processor(partial(engine_of(operator.program), operator.program), wire)
    write(blobs.groupBy("bucket").applyInArrow(last, wire.spark_schema), number)
    set_mark(spark, checkpoint, _ENDED, str(number))


def _mark(spark: SparkSession, checkpoint: str, name: str) -> int | None:
    number = mark_of(spark, checkpoint, name)
    return None if number is None else int(number)
