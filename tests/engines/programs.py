"""Random windowed programs and streams, for comparing an engine with the reference operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from windowpane.engines.common.late_rows import DROPPED, WINDOWS_MISSED
from windowpane.engines.program import Program, SideOutput, Upstream
from windowpane.engines.protocol import BucketOutput
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.windowing.assigners import (
    CumulateEventTimeWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from windowpane.windowing.evictors import CountEvictor, DeltaEvictor, TimeEvictor
from windowpane.windowing.functions import ProcessWindowFunction, WindowFunctionSpec
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.tags import OutputTag
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    ProcessingTimeoutTrigger,
    PurgingTrigger,
)

LATE = OutputTag("late")
RESULT = pa.schema([("value", pa.string())])
ROW = pa.schema([("k", pa.string()), ("v", pa.int64())])
TIMESTAMP = pa.timestamp("us", tz="UTC")


class Recording(ProcessWindowFunction):
    """Emits the elements seen and how often this key and window have fired; the count is per-window where there is such state."""

    def __init__(self, per_window: bool) -> None:
        self._per_window = per_window

    def process(self, key, context, elements):
        state = context.window_state("n") if self._per_window else context.global_state("n")
        state.update((state.get() or 0) + 1)
        return [{"value": f"{[row['v'] for row in elements]} firing {state.get()}"}]

    def clear(self, context):
        if self._per_window:
            context.window_state("n").clear()


def _text(row: Any) -> str:
    return str(row and row["v"])


def _sum(left: dict, right: dict) -> dict:
    return {**left, "v": left["v"] + right["v"]}


class AsText(ProcessWindowFunction):
    """Emits the one row of an incremental function as text."""

    def process(self, key, context, elements):
        return [{"value": _text(row)} for row in elements]


def functions(merges: bool) -> st.SearchStrategy[WindowFunctionSpec]:
    return st.sampled_from(
        [
            WindowFunctionSpec.reduce(_sum, AsText()),
            WindowFunctionSpec.fold(tuple, lambda held, row: (*held, row["v"]), lambda left, right: left + right, FoldText()),
            WindowFunctionSpec.full(Recording(per_window=not merges)),
        ]
    )


class FoldText(ProcessWindowFunction):
    """Emits a folded tuple as text, in order: merges of several sessions may differ in theirs."""

    def process(self, key, context, elements):
        return [{"value": str(sorted(folded))} for folded in elements]


small = st.integers(1, 12)

merging_assigners = st.one_of(
    small.map(EventTimeSessionWindows),
    small.map(ProcessingTimeSessionWindows),
    small.map(lambda gap: EventTimeSessionWindows(lambda row: gap + row["v"] % 3)),
)
plain_assigners = st.one_of(
    st.builds(lambda size, offset: TumblingEventTimeWindows(size, offset % size), small, small),
    small.map(TumblingProcessingTimeWindows),
    st.builds(lambda size, slide: SlidingEventTimeWindows(size, slide), small, small),
    st.builds(lambda step, steps: CumulateEventTimeWindows(step * steps, step), small, st.integers(1, 4)),
    st.just(GlobalWindows()),
)
merging_triggers = st.one_of(
    st.none(),
    st.integers(1, 4).map(CountTrigger),
    small.map(ContinuousEventTimeTrigger),
    st.integers(1, 4).map(lambda n: PurgingTrigger(CountTrigger(n))),
    small.map(lambda n: PurgingTrigger(ContinuousEventTimeTrigger(n))),
    small.map(ContinuousProcessingTimeTrigger),
)
plain_triggers = st.one_of(
    merging_triggers,
    st.integers(0, 5).map(lambda limit: DeltaTrigger(limit, lambda old, new: abs(new["v"] - old["v"]))),
    st.builds(
        lambda n, timeout, reset: ProcessingTimeoutTrigger(CountTrigger(n), timeout, reset),
        st.integers(2, 4),
        small,
        st.booleans(),
    ),
)
evictors = st.one_of(
    st.none(),
    st.builds(lambda n, after: CountEvictor(n, do_evict_after=after), st.integers(0, 4), st.booleans()),
    st.builds(lambda n, after: TimeEvictor(n, do_evict_after=after), small, st.booleans()),
    st.integers(0, 5).map(lambda limit: DeltaEvictor(limit, lambda old, last: abs(last["v"] - old["v"]))),
)


@st.composite
def specs(draw: st.DrawFn) -> WindowSpec:
    merges = draw(st.booleans())
    assigner = draw(merging_assigners if merges else plain_assigners)
    trigger = draw(merging_triggers if merges else plain_triggers)
    if isinstance(assigner, GlobalWindows) and isinstance(getattr(trigger, "inner", trigger), ContinuousEventTimeTrigger):
        trigger = CountTrigger(2)
    return WindowSpec(
        assigner,
        draw(functions(merges)),
        trigger or assigner.default_trigger(),
        draw(evictors),
        draw(st.sampled_from([0, 0, 3, 20])),
        draw(st.sampled_from(["last", "each"])),
    )


@dataclass(frozen=True)
class Batch:
    """One micro-batch: the clocks at its start, and its rows (key, value, event time)."""

    watermark: int
    processing_time: int
    rows: tuple[tuple[str | None, int, int], ...]


@st.composite
def batches(draw: st.DrawFn, most_rows: int = 6) -> list[Batch]:
    row = st.tuples(st.sampled_from(["a", "b", None]), st.integers(-5, 9), st.integers(-20, 80))
    watermark, clock, drawn = -30, 1, []
    for rows in draw(st.lists(st.lists(row, max_size=most_rows), min_size=1, max_size=6)):
        drawn.append(Batch(watermark, clock, tuple(rows)))
        watermark += draw(st.integers(0, 25))
        clock += draw(st.integers(0, 9))
    return [*drawn, Batch(watermark, clock, ()), Batch(1000, clock + 1000, ())]


def program_of(spec: WindowSpec) -> Program:
    """Return a program over rows (k, v), keyed by k, with late data."""
    bound = pa.list_(pa.struct([("start", TIMESTAMP), ("end", TIMESTAMP)]))
    late = pa.schema([*ROW, (WINDOWS_MISSED, bound), (DROPPED, pa.bool_())])
    return Program(
        spec=spec,
        keys=pa.schema([("k", pa.string())]),
        key_columns=("k",),
        values=("k", "v"),
        main=RESULT,
        window_bound=TIMESTAMP,
        late_columns=("k", "v"),
        side_outputs=(SideOutput(LATE, late, is_late=True),),
        upstream=Upstream.SOURCE,
        description=(("program", "random"),),
    )


def table_of(batch: Batch, partition: int = 0, first: int = 0, every: int = 1) -> pa.Table:
    """Return rows ``first``, ``first + every``, ... of a batch as a blob brings them, with their places in the batch."""
    numbers = range(first, len(batch.rows), every)
    columns = {
        "k": pa.array([batch.rows[n][0] for n in numbers], pa.string()),
        "v": pa.array([batch.rows[n][1] for n in numbers], pa.int64()),
        TIME: pa.array([batch.rows[n][2] for n in numbers], pa.int64()),
        PARTITION: pa.array([partition] * len(numbers), pa.int32()),
        POSITION: pa.array(list(numbers), pa.int64()),
    }
    return pa.table(columns)


def results_of(output: BucketOutput) -> list[tuple]:
    """Return the main output as (key, start, end, value), in order."""
    return [
        (row["k"], row["window_start"], row["window_end"], row["value"])
        for number, table in output.tables
        if number == 0
        for row in _as_integers(table)
    ]


def late_of(output: BucketOutput) -> list[tuple]:
    """Return the late output as (key, value, dropped, windows missed), in order."""
    return [
        (row["k"], row["v"], row[DROPPED], [(w["start"], w["end"]) for w in row[WINDOWS_MISSED]])
        for number, table in output.tables
        if number == 1
        for row in _late_rows(table)
    ]


def _as_integers(table: pa.Table) -> list[dict]:
    for name in ("window_start", "window_end"):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.int64()))
    rows: list[dict] = table.to_pylist()
    return rows


def _late_rows(table: pa.Table) -> list[dict]:
    bound = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))
    index = table.column_names.index(WINDOWS_MISSED)
    rows: list[dict] = table.set_column(index, WINDOWS_MISSED, table[WINDOWS_MISSED].cast(bound)).to_pylist()
    return rows
