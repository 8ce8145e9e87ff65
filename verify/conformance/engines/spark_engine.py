"""Engine ``spark``: window operator cases through Structured Streaming, one step a micro-batch.

Each step is a file of its own, and a file source hands out one file a batch, so batch ``i`` holds what step ``i`` caused. The
watermark comes from heartbeat rows alone: elements carry their event time in another column. Spark shows a watermark one batch
after the row that made it, so the heartbeat of a watermark step lies in the file of the step before.

What fires only at watermark ``MAX`` is left out, since a stream has no end; where Flink itself sorts its input and passes only
that one watermark on, the case is replayed as a static DataFrame. One state partition gives Flink's order of keys.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from verify.conformance.engines.spark_pipeline import LATE, Pipeline
from verify.conformance.engines.spark_refusals import refuse
from verify.conformance.engines.spark_scale import Scale
from verify.conformance.kinds.window_operator import steps_of
from verify.conformance.reading.fields import Json, NotUnderstoodError
from verify.conformance.reading.json_results import CLEARS
from verify.conformance.reading.programs import parse_program
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.comparison import compare_expect
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.windowing.times import MAX

_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",  # batches of a few rows are over before it pays
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
}
_UNSEEN = frozenset(
    {
        "watermarks",
        "intermediate",
        "intermediate_order",
        "window_contents",
        "state_entries",
        "event_time_timers",
        "processing_time_timers",
        "current_watermark",
    }
)
"""Fields of an ``expect`` that a query does not show; they are not compared here."""

_TOO_SLOW = "Python worker failed to connect back"
_ATTEMPTS = 3

_TIME = pa.timestamp("us", tz="UTC")
_COLUMNS = pa.schema([("key", pa.string()), ("value", pa.int64()), ("ts", _TIME), ("moved", _TIME), ("heartbeat", pa.bool_())])
_SCHEMA = "key string, value bigint, ts timestamp, moved timestamp, heartbeat boolean"


def spark_engine() -> dict[str, Callable[[Case, Options], list[Difference]]]:
    """Return the kinds that go through Spark."""
    return {"window_operator": replay, "window_operator_chain": replay, "sql": replay_sql}


def replay_sql(case: Case, options: Options) -> list[Difference]:
    """Run the statements of a case on a session whose views are streaming queries."""
    from verify.conformance.kinds import sql

    return sql.replay(case, options, session())


def replay(case: Case, options: Options) -> list[Difference]:
    """Run the case as a streaming query and compare what each of its batches wrote.

    Raises:
        NotUnderstoodError: the case cannot be replayed as a stream; the message is the reason.
    """
    steps = [step for step in steps_of(case) if not step.get("ignored", False)]
    stages = case.get("program").get("stages", [case.get("program")])
    refuse(case, stages, steps)
    scale = Scale.of(stages, steps)
    differences: list[Difference] = []
    for number, evictor in enumerate(case.get("evictor_variants", [stages[-1].get("evictor")])):
        variant = [*stages[:-1], {**stages[-1], "evictor": evictor}]
        label = "" if number == 0 else f"with evictor {evictor}: "
        programs = [scale.program(stage) for stage in variant]
        for found in patiently(partial(_replay, case, programs, steps, scale, options)):
            differences.append(replace(found, where=label + found.where))
    return differences


def patiently(run: Callable[[], Iterable[Difference]]) -> list[Difference]:
    """Run again where a busy machine did not start a Python worker within the ten seconds that Spark waits for it."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return list(run())
        except StreamingQueryException as error:
            if _TOO_SLOW not in str(error):
                raise
    return list(run())


def _replay(case: Case, stages: Sequence[Json], steps: list[Json], scale: Scale, options: Options) -> Iterator[Difference]:
    clears = any("function_clears" in step.get("expect", {}) for step in steps)
    pipeline = Pipeline(tuple(parse_program(stage) for stage in stages), clears)
    is_sorted = case.get("input_sorted_by_ts", False)
    shown = Shown(scale)
    with tempfile.TemporaryDirectory(prefix="windowpane-conformance-") as folder:
        if is_sorted:
            _run_static(pipeline, steps, Path(folder), shown)
        else:
            _run_stream(pipeline, steps, Path(folder), shown, options.restart)
    yield from _compare(steps, shown, pipeline, "any" if is_sorted else case.get("contents_order", "exact"))


# Running it.


@dataclass
class Shown:
    """What a query wrote, in the units of the case: (batch, record) by output, (batch, count) by operator."""

    scale: Scale
    outputs: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    dropped: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def take_results(self, rows: Any, batch: int) -> None:
        """Take a batch of the main output."""
        for text, end in rows.select("json", F.unix_micros("window_end")).collect():
            record = json.loads(text)
            if "window" in record:
                record["window"] = self.scale.window(record["window"])
            if "watermark" in record:
                record["watermark"] = self.scale.units(record["watermark"])
            self._add("main", batch, {**record, "ts": self._last(end)})

    def take_late(self, rows: Any, batch: int) -> None:
        """Take a batch of late rows: elements, or, in a chain, results of an earlier window."""
        is_result = "window_end" in rows.columns
        time = "window_end" if is_result else "ts"
        for key, value, micros in rows.filter("dropped").select("key", "value", F.unix_micros(time)).collect():
            ts = self._last(micros) if is_result else self.scale.units(micros)
            self._add("late", batch, {"key": key, "value": value, "ts": ts})

    def take_clears(self, rows: Any, batch: int) -> None:
        """Take a batch of windows that the function was cleared for."""
        for (text,) in rows.collect():
            self._add("clears", batch, self.scale.window(json.loads(text)))

    def take_progress(self, progress: Any) -> None:
        """Take the counters of a batch."""
        for operator, metrics in progress["observedMetrics"].items():
            self.dropped.setdefault(operator, []).append((progress["batchId"], metrics["late_dropped"]))

    def _last(self, end: int | None) -> int:
        units = self.scale.units(end)
        return MAX if units is None else units - 1

    def _add(self, output: str, batch: int, record: Any) -> None:
        self.outputs.setdefault(output, []).append((batch, record))

    def between(self, output: str, after: int, upto: int) -> list[Any]:
        """Return what an output got in the batches behind ``after``."""
        return [record for batch, record in self.outputs.get(output, ()) if after < batch <= upto]

    def dropped_upto(self, operator: str, batch: int) -> int:
        """Return how many late elements an operator has dropped."""
        return sum(count for number, count in self.dropped.get(operator, ()) if number <= batch)


@cache
def session() -> Any:
    """Return a session of its own settings, in the running Spark or in a local one."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("windowpane-conformance")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = (SparkSession.getActiveSession() or builder.getOrCreate()).newSession()
    spark.sparkContext.setLogLevel("ERROR")
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    return spark


def _run_stream(pipeline: Pipeline, steps: Sequence[Json], folder: Path, shown: Shown, restart: bool) -> None:
    """Run the query over all steps; where the case restarts, up to there, and again from its checkpoint."""
    source, checkpoint = folder / "in", folder / "checkpoint"
    source.mkdir()
    rows = session().readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))
    result = pipeline.on(rows.withWatermark("moved", "0 milliseconds"))
    sinks: dict[str, Any] = {"main": shown.take_results}
    sinks |= {"late": shown.take_late} if pipeline.late_is_output else {}
    sinks |= {"clears": shown.take_clears} if pipeline.clears else {}
    batches = _batches(steps)
    for number, (step, following) in enumerate(batches):
        _write(_rows(step, following, shown.scale), source / f"{number:06}.parquet", number)
        if restart or "snapshot_restore" in step or number == len(batches) - 1:
            query = result.start(checkpoint=str(checkpoint), trigger={"availableNow": True}, **sinks)
            query.awaitTermination()
            for progress in query.recentProgress:
                shown.take_progress(progress)


def _run_static(pipeline: Pipeline, steps: Sequence[Json], folder: Path, shown: Shown) -> None:
    """Run the elements as a static DataFrame; everything is shown as batch 0."""
    file = folder / "rows.parquet"
    _write(pa.concat_tables([_rows(step, {}, shown.scale) for step in steps if "element" in step]), file, 0)
    result = pipeline.on(session().read.schema(_SCHEMA).parquet(str(file)))
    shown.take_results(result.df, 0)
    if pipeline.late_is_output:
        shown.take_late(result.get_side_output(LATE), 0)
    if pipeline.clears:
        shown.take_clears(result.get_side_output(CLEARS), 0)


def _batches(steps: Sequence[Json]) -> list[tuple[Json, Json]]:
    """Return (step, the one after it) for each batch: a watermark that comes first needs a batch before it to bring it."""
    acting = [step for step in steps if "expect" not in step]
    first: list[Json] = [{}] if _begins_with_watermark(steps) else []
    return list(zip([*first, *acting], [*first, *acting, {}][1:], strict=True))


def _begins_with_watermark(steps: Sequence[Json]) -> bool:
    return bool(steps) and "watermark" in steps[0]


def _rows(step: Json, following: Json, scale: Scale) -> pa.Table:
    """Return the rows of a batch: the element of its step, and the heartbeat of the watermark that follows."""
    rows: list[tuple[Any, ...]] = []
    if "element" in step:
        element = step["element"]
        rows.append((element["key"], element["value"], scale.event_time(element["ts"]), 0, False))
    moved = scale.heartbeat(following["watermark"]) if "watermark" in following else 0
    rows.append((None, None, None, moved, True))
    arrays = [pa.array(values, column.type) for values, column in zip(zip(*rows, strict=True), _COLUMNS, strict=True)]
    return pa.table(arrays, schema=_COLUMNS)


def _write(table: pa.Table, path: Path, number: int) -> None:
    """Write a file; its age gives the source the order."""
    pq.write_table(table, path)
    os.utime(path, (number, number))


# Comparing.


def _compare(steps: Sequence[Json], shown: Shown, pipeline: Pipeline, contents_order: str) -> Iterator[Difference]:
    """Compare each expectation with the batches since the one before."""
    batch = 0 if _begins_with_watermark(steps) else -1
    seen = cleared = -1
    for number, step in enumerate(steps):
        if "expect" not in step:
            batch += 1
            continue
        hidden = _UNSEEN if len(pipeline.programs) == 1 else _UNSEEN | {"late"}
        expect = {name: value for name, value in step["expect"].items() if name not in hidden}
        yield from compare_expect(expect, _reader(shown, pipeline, seen, cleared, batch), f"step {number}", contents_order)
        seen = batch
        cleared = batch if "function_clears" in expect else cleared


def _reader(shown: Shown, pipeline: Pipeline, seen: int, cleared: int, batch: int) -> Callable[[str], Any]:
    """Return what reads a field of an expectation from the batches up to ``batch``."""
    late = shown.between("late", seen, batch)
    first, last = "windowpane", "windowpane_next"
    fields: dict[str, Callable[[], Any]] = {
        "output": lambda: shown.between("main", seen, batch),
        "function_clears": lambda: shown.between("clears", cleared, batch),
        "late": lambda: late,
        "late2": lambda: late,
        "late_records_dropped": lambda: 0 if _keeps_late(pipeline, 0) else shown.dropped_upto(first, batch),
        "late_records_dropped2": lambda: 0 if _keeps_late(pipeline, -1) else shown.dropped_upto(last, batch),
    }

    def read(name: str) -> Any:
        if name not in fields:
            raise NotUnderstoodError(f"expect field {name!r} is not shown by a query")
        return fields[name]()

    return read


def _keeps_late(pipeline: Pipeline, stage: int) -> bool:
    """Whether late elements of a window go to a side output, where Flink does not count them."""
    return pipeline.programs[stage].late_side_output
