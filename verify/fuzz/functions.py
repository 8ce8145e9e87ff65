"""Kind ``functions``: windows with functions of the user's own, on an engine against the operator alone, batch by batch.

The engine is the row engine, or the reference where that refuses. It and its state are made anew from bytes before every batch,
and rows come to it in two tables, out of order. The operator runs once, in memory. Compared are results and late rows in order,
counters, entries of state, and timers. The functions of the engine change in place what they are given and what they have
emitted, those of the operator nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from verify.fuzz.outcome import Outcome, differences_of
from verify.fuzz.windowed_programs import LATE, TIMESTAMP, random_assigner, random_trigger, time_unit
from verify.fuzz.windowed_streams import SmallBatch, small_stream
from windowpane.engines.batch.late_rows import DROPPED, WINDOWS_MISSED
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START, Program, SideOutput, Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.row.engine import RowEngine
from windowpane.engines.row.reference import ReferenceEngine
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.windows import describe
from windowpane.state.keyed import KeyedState
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import Timer, TimerQueue
from windowpane.testing.harness import WindowTestHarness
from windowpane.windowing import assigners, evictors, triggers
from windowpane.windowing.functions import (
    AggregateFunction,
    FoldAggregate,
    ProcessWindowFunction,
    ReduceAggregate,
    WindowFunctionSpec,
)
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MIN
from windowpane.windowing.triggers import TriggerResult
from windowpane.windowing.windows import GLOBAL_WINDOW

_ROW = pa.schema([("k", pa.string()), ("n", pa.int64())])
_RESULT = pa.schema([("value", pa.string())])
_INTEGER_BOUNDS = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))

_COUNTED = ("late_elements", "late_dropped", "firings", "merges")

Rows = Iterable[dict[str, Any]]


class _CountsFirings(ProcessWindowFunction):
    """Emits the elements and how often this key has fired, or this key and window, where windows do not merge."""

    def __init__(self, per_window: bool) -> None:
        self._per_window = per_window

    def process(self, key: Any, context: Any, elements: Rows) -> Rows:
        state = context.window_state("n") if self._per_window else context.global_state("n")
        state.update((state.get() or 0) + 1)
        return [{"value": f"{[row['n'] for row in elements]} firing {state.get()}"}]

    def clear(self, context: Any) -> None:
        if self._per_window:
            context.window_state("n").clear()


class _ReducedAsText(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Rows:
        return [{"value": str(row and row["n"])} for row in elements]


class _FoldedAsText(ProcessWindowFunction):
    """Emits a folded tuple in order: the order of several merged sessions in it is not defined."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Rows:
        return [{"value": str(folded if folded is None else sorted(folded))} for folded in elements]


class _LeavesEmpty(AggregateFunction[Any, Any]):
    """Gathers numbers; a negative one drops those before it, as an accumulator that is ``None`` does."""

    def create_accumulator(self) -> Any:
        return ()

    def add(self, value: dict[str, Any], accumulator: Any) -> Any:
        return None if value["n"] < 0 else (*(accumulator or ()), value["n"])

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, left: Any, right: Any) -> Any:
        return left + right


class _InPlace(AggregateFunction[Any, Any]):
    """The same in a list, which is the result, too."""

    def create_accumulator(self) -> Any:
        return []

    def add(self, value: dict[str, Any], accumulator: Any) -> Any:
        return None if value["n"] < 0 else _appended(accumulator or [], value)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, left: Any, right: Any) -> Any:
        return _extended(left, right)


class _Spoiling(ProcessWindowFunction):
    """Does what another one does, and empties what it was given, and each row that it has emitted."""

    def __init__(self, inner: ProcessWindowFunction) -> None:
        self._inner = inner

    def process(self, key: Any, context: Any, elements: Any) -> Rows:
        for row in self._inner.process(key, context, elements) or ():
            yield row
            row.clear()
        for element in elements:
            if element is not None:
                element.clear()

    def clear(self, context: Any) -> None:
        self._inner.clear(context)


class OwnTrigger(triggers.Trigger):
    """Fires at every few elements of a window, at a large one, and at its end; sets a timer and takes one back."""

    def __init__(self, every: int, purges: bool) -> None:
        """Fire at so many elements."""
        self._every = every
        self._answer = TriggerResult.FIRE_AND_PURGE if purges else TriggerResult.FIRE

    def on_element(self, element: Any, timestamp: int, window: Any, context: Any) -> TriggerResult:
        """Count, in a state of its own."""
        seen = context.value_state("seen")
        seen.update((seen.get() or 0) + 1)
        if element["n"] == 0:
            context.delete_event_time_timer(window.max_timestamp)
            return TriggerResult.PURGE
        if window.max_timestamp > context.current_watermark:
            context.register_event_time_timer(window.max_timestamp)
        if seen.get() < self._every and element["n"] < 8:
            return TriggerResult.CONTINUE
        seen.clear()
        return self._answer

    def on_event_time(self, time: int, window: Any, context: Any) -> TriggerResult:
        """Fire."""
        return self._answer

    def clear(self, window: Any, context: Any) -> None:
        """Forget the count."""
        context.value_state("seen").clear()

    def can_merge(self) -> bool:
        """Return true: the greatest count is merged."""
        return True

    def on_merge(self, window: Any, context: Any) -> None:
        """Go on from the greatest count."""
        context.merge_reducing_state("seen", max)

    def __repr__(self) -> str:
        """Return it with its settings."""
        return f"OwnTrigger({self._every}, {self._answer})"


class OwnEvictor(evictors.Evictor):
    """Takes odd numbers away before the function, and those divisible by four behind it."""

    def evict_before(self, elements: evictors.Elements, size: int, window: Any, context: Any) -> evictors.Elements:
        """Keep even numbers."""
        return [element for element in elements if element.value["n"] % 2 == 0]

    def evict_after(self, elements: evictors.Elements, size: int, window: Any, context: Any) -> evictors.Elements:
        """Keep those that four does not divide."""
        return [element for element in elements if element.value["n"] % 4]


def _added(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return {**left, "n": left["n"] + right["n"]}


def _added_in_place(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    right["n"] += left.pop("n")
    return right


def _appended(held: list[int], row: dict[str, Any]) -> list[int]:
    held.append(row["n"])
    return held


def _extended(left: list[int], right: list[int]) -> list[int]:
    left += right
    return left


_CHANGING: dict[str, AggregateFunction[Any, Any] | None] = {
    "reduce": ReduceAggregate(_added_in_place),
    "fold": FoldAggregate(list, _appended, _extended),
    "aggregate": _InPlace(),
    "process": None,
}
"""What takes the place of the incremental function of a kind."""


def in_place(spec: WindowSpec) -> WindowSpec:
    """Return a computation with the same results, whose functions change in place what they are given and have emitted."""
    function = spec.function
    return replace(spec, function=replace(function, process=_Spoiling(function.process), accumulate=_CHANGING[function.kind]))


def _distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    return float(abs(one["n"] - other["n"]))


def random_function(draw: Random, merges: bool) -> WindowFunctionSpec:
    """Return a function: one that reduces, one that folds, or one over all elements with state of its own."""
    fold = WindowFunctionSpec.fold(tuple, lambda held, row: (*held, row["n"]), lambda left, right: left + right, _FoldedAsText())
    reduce = WindowFunctionSpec.reduce(_added, _ReducedAsText())
    own = WindowFunctionSpec.aggregate(_LeavesEmpty(), _FoldedAsText())
    return draw.choice([reduce, fold, own, WindowFunctionSpec.full(_CountsFirings(per_window=not merges))])


def random_spec(draw: Random) -> WindowSpec:
    """Return a windowed computation, of parts that may be functions of the user's own."""
    short_session = assigners.EventTimeSessionWindows.with_gap(draw.randint(1, 9))
    assigner = short_session if draw.random() < 0.15 else random_assigner(draw)
    merges = isinstance(assigner, assigners.MergingWindowAssigner)
    return WindowSpec(
        assigner,
        random_function(draw, merges),
        _random_trigger(draw, assigner, merges) or assigner.default_trigger(),
        _random_evictor(draw),
        draw.choice([0, 0, 3, 20]) * time_unit(assigner),
        draw.choice(["last", "each"]),
    )


def _random_trigger(draw: Random, assigner: assigners.WindowAssigner, merges: bool) -> triggers.Trigger | None:
    """Return any trigger, of event time for windows of processing time, too."""
    if draw.random() < 0.4:
        return random_trigger(draw, assigner) if draw.random() < 0.3 else None
    period = draw.randint(1, 12) * time_unit(assigner)
    counting = triggers.CountTrigger.of(draw.randint(1, 4))
    choices: list[triggers.Trigger | None] = [random_trigger(draw, assigner), None, counting]
    choices += [OwnTrigger(draw.randint(1, 4), draw.random() < 0.5), triggers.PurgingTrigger.of(OwnTrigger(2, False))]
    choices += [triggers.PurgingTrigger.of(counting), triggers.ContinuousProcessingTimeTrigger.of(period)]
    if not isinstance(assigner, assigners.GlobalWindows):  # it would fire for ever
        continuous = triggers.ContinuousEventTimeTrigger.of(period)
        choices += [continuous, triggers.PurgingTrigger.of(continuous)]
    if not merges:
        choices.append(triggers.DeltaTrigger(draw.randint(0, 5), _distance))
        waits_for = triggers.CountTrigger.of(draw.randint(2, 4))
        choices.append(triggers.ProcessingTimeoutTrigger(waits_for, draw.randint(1, 12), draw.random() < 0.5))
    return draw.choice(choices)


def _random_evictor(draw: Random) -> evictors.Evictor | None:
    after = draw.random() < 0.5
    by_count = evictors.CountEvictor.of(draw.randint(0, 4), after)
    by_time = evictors.TimeEvictor.of(draw.randint(1, 12), after)
    return draw.choice([None, by_count, by_time, evictors.DeltaEvictor(draw.randint(0, 5), _distance), OwnEvictor()])


def program_of(spec: WindowSpec) -> Program:
    """Return the program of a computation over rows (k, n), keyed by k, with late rows."""
    bounds = pa.list_(pa.struct([("start", TIMESTAMP), ("end", TIMESTAMP)]))
    late = pa.schema([*_ROW, (WINDOWS_MISSED, bounds), (DROPPED, pa.bool_())])
    return Program(
        spec=spec,
        keys=pa.schema([_ROW.field("k")]),
        key_columns=("k",),
        values=("k", "n"),
        main=_RESULT,
        window_bound=TIMESTAMP,
        late_columns=("k", "n"),
        side_outputs=(SideOutput(LATE, late, is_late=True),),
        upstream=Upstream.SOURCE,
        description={"program": "random"},
    )


def table_of(batch: SmallBatch, first: int = 0, every: int = 1) -> pa.Table:
    """Return rows ``first``, ``first + every``, ... of a batch as Spark sends them, with their positions in the batch."""
    numbers = range(first, len(batch.rows), every)
    columns = {
        "k": pa.array([batch.rows[number][0] for number in numbers], pa.string()),
        "n": pa.array([batch.rows[number][1] for number in numbers], pa.int64()),
        TIME: pa.array([batch.rows[number][2] for number in numbers], pa.int64()),
        PARTITION: pa.array([0] * len(numbers), pa.int32()),
        POSITION: pa.array(list(numbers), pa.int64()),
    }
    return pa.table(columns)


def run_batch(program: Program, store: MemoryBlobStore, batch: SmallBatch) -> BucketOutput:
    """Run a batch with a new engine, so that nothing survives but the store; rows come in two tables, out of order."""
    tables = [table_of(batch, first=1, every=2), table_of(batch, first=0, every=2)]
    return engine_class(program)(program).run(store, tables, Clock(batch.watermark, batch.processing_time))


def engine_class(program: Program) -> type[RowEngine | ReferenceEngine]:
    """Return the engine of functions of the user's own."""
    return RowEngine if RowEngine.refusal(program) is None else ReferenceEngine


def results_of(output: BucketOutput) -> list[tuple[Any, ...]]:
    """Return results as (key, start, end, value), in order."""
    columns = [("k", pa.string()), (WINDOW_START, pa.int64()), (WINDOW_END, pa.int64()), ("value", pa.string())]
    tables = [table.select([name for name, _ in columns]) for number, table in output.tables if number == MAIN]
    return [tuple(row.values()) for table in tables for row in table.cast(pa.schema(columns)).to_pylist()]


def late_of(output: BucketOutput) -> list[tuple[Any, ...]]:
    """Return late rows as (key, number, dropped, windows missed), in order."""
    rows: list[dict[str, Any]] = []
    for number, table in output.tables:
        if number == 1:
            at = table.column_names.index(WINDOWS_MISSED)
            rows += table.set_column(at, WINDOWS_MISSED, table[WINDOWS_MISSED].cast(_INTEGER_BOUNDS)).to_pylist()
    return [(row["k"], row["n"], row[DROPPED], [(w["start"], w["end"]) for w in row[WINDOWS_MISSED]]) for row in rows]


def state_of(store: MemoryBlobStore) -> list[Any]:
    """Return the entries of the engine's state, and which timers are set."""
    slots = KeyedState(SortedPages(store, "s")).slots()
    return [list(slots), *(list(map(_timer, TimerQueue(SortedPages(store, name)))) for name in ("e", "p"))]


def _timer(timer: Timer) -> tuple[Any, ...]:
    return timer.time, timer.key, timer.window


class _Operator:
    """The operator alone, with what it emits in the form of ``results_of`` and ``late_of``."""

    def __init__(self, spec: WindowSpec) -> None:
        self._harness: Any = WindowTestHarness(spec)
        self._moved = MIN
        self._counted = [0] * len(_COUNTED)

    def run(self, batch: SmallBatch) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return results and late rows of a batch."""
        harness = self._harness
        if batch.watermark > self._moved:  # Flink's input gate lets no other pass
            harness.process_watermark(batch.watermark)
            self._moved = batch.watermark
        harness.set_processing_time(batch.processing_time)
        for key, number, time in batch.rows:
            harness.process_element({"k": key, "n": number}, time, key)
        harness.finish_batch()
        results = [(each.key, *_bounds(each.window), each.value["value"]) for each in harness.output]
        late = [(e.key, e.value["n"], e.dropped, [_bounds(window) for window in e.windows_missed]) for e in harness.late]
        harness.take_emitted()
        return results, late

    def counted(self) -> list[int]:
        """Return what was counted since the last call."""
        total = [getattr(self._harness.counters, name) for name in _COUNTED]
        since = [now - before for now, before in zip(total, self._counted, strict=True)]
        self._counted = total
        return since

    @property
    def state(self) -> list[Any]:
        """The entries of state, and which timers are set."""
        harness = self._harness
        slots = [(each.key, each.window, each.name) for each in harness.state_entries()]
        return [slots, *(list(map(_timer, timers)) for timers in (harness.event_time_timers, harness.processing_time_timers))]

    @property
    def open_windows(self) -> int:
        """How many windows are open."""
        counters = self._harness.counters
        return int(counters.windows_opened - counters.windows_closed)


def _bounds(window: Any) -> tuple[int | None, int | None]:
    return (None, None) if window == GLOBAL_WINDOW else (window.start, window.end)


def differences(spec: WindowSpec, stream: Sequence[SmallBatch]) -> list[str]:
    """Return what differs in the first batch where something does."""
    operator, program, held = _Operator(spec), program_of(in_place(spec)), MemoryBlobStore().snapshot()
    for number, batch in enumerate(stream):
        store = MemoryBlobStore()
        store.restore(held)
        output = run_batch(program, store, batch)
        held = store.snapshot()
        results, late = operator.run(batch)
        compared = {
            "results": (results, results_of(output)),
            "late rows": (late, late_of(output)),
            "open windows": (operator.open_windows, output.counters.open_windows),
            "counters": (operator.counted(), [getattr(output.counters, name) for name in _COUNTED]),
            "state": (operator.state, state_of(store)),
        }
        found = [f"{name}: expected {one}\n    got      {other}" for name, (one, other) in compared.items() if one != other]
        if found:
            return [f"batch {number}, {batch}: {each}" for each in found]
    return []


def run(seed: int) -> Outcome:
    """Make the program of a seed, run it on its engine and on the operator, and compare."""
    draw = Random(seed)
    spec = random_spec(draw)
    stream = small_stream(draw, draw.choice([6, 6, 40]), time_unit(spec.assigner))
    found = differences_of(seed, lambda: differences(spec, stream))
    return Outcome(seed, _text_of(spec), engine_class(program_of(spec)).name, found)


def _text_of(spec: WindowSpec) -> str:
    parts = {
        "assigner": describe(spec.assigner),
        "function": repr(spec.function),
        "trigger": describe(spec.trigger),
        "evictor": describe(spec.evictor),
        "lateness": f"{spec.allowed_lateness}, refine {spec.refine}",
    }
    return "\n".join(f"    {name:<10} {value}" for name, value in parts.items())
