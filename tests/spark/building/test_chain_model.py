"""Windows over early, late and final results of windows, beside a model of Flink's rules that shares no code with windowpane.

The model is Flink's pipeline: the first operator hands each result to the second one before the watermark that fired it. Sources
fall idle, the clock moves the watermark, windows close at once or a batch later; tasks bring their blobs in any order, and some
batches are run twice, as by a restart from the checkpoint before them. Rules: ``WindowOperator``, ``CombinedWatermarkStatus``
and, for early panes, Beam's; the watermark of a stream as docs/how-to/quiet-streams.md has it.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from tests.examples import seeds
from tests.spark.in_process import Moment, Stage, Task, counted, rows_between, tables, without_spark
from verify.sizes import drawn_sizes
from windowpane.engines.program import MAIN, WINDOW_END, Program, Upstream
from windowpane.hidden_columns import FIRING_WATERMARK, PASSED, TIME
from windowpane.planning.engines import combiner_of
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.spark.stages.encode import Encoder
from windowpane.windowing.panes import AccumulationMode
from windowpane.windowing.spec import PaneSettings

SECOND = 1_000_000
NEVER = -(2**62)
STAMP = pa.timestamp("us", "UTC")
LATE = wp.OutputTag("late")
Window = tuple[int, int]
Row = tuple[str, str, int, int]


# The model.


@dataclass(frozen=True)
class Windows:
    """What an operator of the model does: windows, how late rows may be, and when it fires."""

    kind: str
    size: int
    step: int = 0
    lateness: int = 0
    trigger: str = "end"
    count: int = 0

    def of(self, time: int) -> list[Window]:
        """Return the windows of an instant."""
        if self.kind == "session":
            return [(time, time + self.size)]
        step = self.step or self.size
        last = time // step * step
        return [(start, start + self.size) for start in range(last, time - self.size, -step)]


Result = tuple[Any, ...]
"""Of the first operator: key, begin, end, rows, sum of v; of the second one: key, begin, end, results, and the sums of both."""


@dataclass
class Operator:
    """Flink's window operator for the number of rows and the sums of their columns."""

    windows: Windows
    watermark: int = NEVER
    contents: dict[tuple[Any, Window], list[tuple[int | None, ...]]] = field(default_factory=dict)
    counts: Counter[tuple[Any, Window]] = field(default_factory=Counter)
    due: list[tuple[Any, Window]] = field(default_factory=list)
    late: int = 0

    def row(self, key: Any, time: int, *values: int | None) -> Iterator[Result]:
        """Take a row; yield what it fires."""
        spec, taken = self.windows, False
        for window in spec.of(time):
            window = self._merged(key, window) if spec.kind == "session" else window
            if window[1] - 1 + spec.lateness <= self.watermark:
                continue
            taken, place = True, (key, window)
            self.contents.setdefault(place, []).append(values)
            if spec.trigger == "end":
                if window[1] - 1 <= self.watermark and place not in self.due:
                    self.due.append(place)
                continue
            self.counts[place] += 1
            if self.counts[place] >= spec.count:
                self.counts[place] = 0
                yield self._fired(place, purges=spec.trigger in ("purge", "discard"))
        self.late += not taken

    def _merged(self, key: Any, window: Window) -> Window:
        """Return the session that a window is in, once those that it touches are one with it."""
        touched = [each for other, each in self.contents if other == key and each[0] <= window[1] and window[0] <= each[1]]
        merged = min(each[0] for each in (window, *touched)), max(each[1] for each in (window, *touched))
        rows = [row for each in touched for row in self.contents.pop((key, each))]
        if rows:
            self.contents[key, merged] = rows
        return merged

    def _fired(self, place: tuple[Any, Window], purges: bool = False) -> Result:
        rows = self.contents[place]
        if purges:
            self.contents[place] = []
        columns = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
        return (place[0], *place[1], len(rows), *(sum(column) if column else None for column in columns or [[]]))

    def refined(self) -> Iterator[Result]:
        """Yield the windows that late rows of a batch fire again, each once."""
        due, self.due = self.due, []
        for place in due:
            yield self._fired(place)

    def advance(self, watermark: int) -> Iterator[Result]:
        """Let the watermark advance; yield what it fires."""
        before, self.watermark = self.watermark, max(self.watermark, watermark)
        for place in sorted(self.contents, key=lambda each: each[1][1]):
            if before < place[1][1] - 1 <= self.watermark and self.windows.trigger in ("end", "accumulate", "discard"):
                yield self._fired(place)
        for place in list(self.contents):
            if place[1][1] - 1 + self.windows.lateness <= self.watermark:
                del self.contents[place]
                del self.counts[place]


@dataclass
class Clock:
    """The watermark that a stream makes, by the rules of the documents."""

    strategy: wp.Watermarks
    latest: dict[str | None, int] = field(default_factory=dict)
    silent: dict[str | None, int] = field(default_factory=dict)
    watermark: int = NEVER
    now: int | None = None
    run: str = ""
    caught_up: bool = False

    def batch(self, times: dict[str | None, int], now: int, run: str) -> None:
        """Take the latest times of a batch that was planned at ``now``."""
        if run != self.run or self.now is None:
            self.caught_up, passed = False, 0
        else:
            passed = max(0, now - self.now)
        idleness, bound = self.strategy.idleness, self.strategy.behind_now
        self.now, self.run = now, run
        for source in self.silent:
            self.silent[source] += passed if idleness is None else min(passed, (idleness + 1) // 2)
        for source, time in times.items():
            self.latest[source], self.silent[source] = max(time, self.latest.get(source, time)), 0
        active = [self.latest[each] for each in self.latest if idleness is None or self.silent[each] < idleness]
        made = min(active) if active else max(self.latest.values(), default=NEVER)
        made = made if made == NEVER else made - self.strategy.delay - 1
        if bound is not None:
            if not times or any(time >= now - bound for time in times.values()):
                self.caught_up = True
            if self.caught_up:
                made = max(made, now - bound - 1)
        self.watermark = max(self.watermark, made)

    def at_once(self, times: dict[str | None, int], now: int) -> int | None:
        """Return the watermark at the end of a batch, if rows close windows at once; its clock is that of the batch before."""
        if not self.strategy.is_at_once:
            return None
        rows_alone = copy.deepcopy(self)
        rows_alone.batch(times, now if self.now is None else self.now, run=self.run)
        return rows_alone.watermark


# The same with windowpane.


def random_first(draw: Random) -> Windows:
    size = draw.choice([4, 10]) * SECOND
    trigger = draw.choice(["end", "end", "end", "count", "purge", "accumulate", "discard"])
    kind = "session" if trigger == "end" and draw.random() < 0.25 else draw.choice(["tumbling", "tumbling", "sliding"])
    step = size // 2 if kind == "sliding" else 0
    lateness = draw.choice([0, 5, 30, 60]) * SECOND if kind != "session" and trigger in ("end", "count", "purge") else 0
    return Windows(kind, size // 2 if kind == "session" else size, step, lateness, trigger, draw.randint(1, 3))


def random_second(draw: Random) -> Windows:
    return Windows("tumbling", draw.choice([4, 10, 20]) * SECOND, lateness=draw.choice([0, 0, 0, 10]) * SECOND)


def random_strategy(draw: Random) -> wp.Watermarks | None:
    """Return a strategy of which the operator makes the watermark, ``None`` for one that Spark makes."""
    if draw.random() < 0.3:
        return None
    strategy = wp.Watermarks.bounded(draw.choice([0, 3]) * SECOND)
    if draw.random() < 0.75:
        strategy = strategy.per_source("s")
        strategy = strategy.with_idleness(draw.choice([4, 10, 11]) * SECOND) if draw.random() < 0.75 else strategy
    if draw.random() < 0.3:
        strategy = strategy.not_behind_now(draw.choice([10, 30]) * SECOND)
    return strategy.at_once() if strategy.is_sparks or draw.random() < 0.4 else strategy


def plan_of(spec: Windows, keys: tuple[str, ...], aggregates: dict[str, Any], late: bool, upstream: Upstream) -> WindowPlan:
    assigners = {
        "tumbling": lambda: wp.TumblingEventTimeWindows.of(spec.size),
        "sliding": lambda: wp.SlidingEventTimeWindows.of(spec.size, spec.step),
        "session": lambda: wp.EventTimeSessionWindows.with_gap(spec.size),
    }
    early: dict[str, AccumulationMode] = {"accumulate": "accumulating", "discard": "discarding"}
    trigger: Any = None
    rest: dict[str, Any] = {}
    if spec.trigger in ("count", "purge"):
        trigger = wp.CountTrigger.of(spec.count)
        trigger = wp.PurgingTrigger.of(trigger) if spec.trigger == "purge" else trigger
    elif spec.trigger in early:
        trigger = wp.AfterWatermark(early=wp.AfterCount(spec.count))
        rest["panes"] = PaneSettings(early[spec.trigger])
    parts = Settings.among({"allowed_lateness": spec.lateness, "late_tag": LATE if late else None})
    function = FunctionPlan("aggregate", aggregates=tuple(aggregates.items()))
    return WindowPlan(keys, assigners[spec.kind](), function, trigger, event_time="t", upstream=upstream, **parts, **rest)


CALLS: tuple[dict[str, Any], dict[str, Any]] = (
    {"n": wp.count(), "total": wp.sum("v")},
    {"results": wp.count(), "n": wp.sum("n"), "total": wp.sum("total")},
)
"""What both operators compute beside the model."""

MORE: tuple[dict[str, Any], dict[str, Any]] = (
    CALLS[0] | {"low": wp.min("v"), "kinds": wp.count_distinct("v"), "middle": wp.median("v"), "odd": wp.bool_or("odd")},
    CALLS[1] | {"high": wp.max("total"), "middle": wp.median("n"), "mean": wp.avg("n"), "kinds": wp.count_distinct("k")},
)
"""Calls for which the order of rows does not matter; sums and means are of whole numbers."""


class Chain:
    """Two operators in a row."""

    def __init__(
        self,
        draw: Random,
        first: Windows,
        second: Windows,
        strategy: wp.Watermarks | None,
        by_frame: bool,
        calls: tuple[dict[str, Any], dict[str, Any]] = CALLS,
    ) -> None:
        self.keys = draw.choice([("k",), ("k",), ()])
        self.by_frame, self.strategy, self.has_late = by_frame, strategy, draw.random() < 0.5
        columns, buckets = pa.schema([("k", pa.string()), ("v", pa.int64()), ("odd", pa.bool_())]), draw.choice([2, 7])
        plan = plan_of(first, ("k",), calls[0], self.has_late, Upstream.SOURCE)
        types = InputTypes(columns, pa.schema([("k", pa.string())]), ("k",), STAMP, slots_of(calls[0]))
        program = compile_program(plan, types, columns.names)
        time_mode = "EventTime" if strategy is None else "None" if strategy.waits_for_rows_alone else "ProcessingTime"
        combiner = None if self.has_late else combiner_of(program)
        dropped = tuple(
            name for name in ("t", "s", "odd") if name not in (*program.values, *program.late_columns, *program.key_columns)
        )
        self.first = Stage(
            program,
            Encoder(("k",), "t", False, None, dropped, buckets, combiner, own_watermark=strategy),
            time_mode,
            own=strategy,
            buckets=buckets,
            chunk=draw.choice([2, 1_000]),
        )
        results = pa.schema([("k", pa.string()), ("n", pa.int64()), ("total", pa.int64())])
        upstream = Upstream.WINDOW if by_frame else Upstream.WINDOW_WITH_WATERMARKS
        plan = plan_of(second, self.keys, calls[1], True, upstream)
        keys = pa.schema([results.field(name) for name in self.keys])
        program = compile_program(plan, InputTypes(results, keys, self.keys, STAMP, slots_of(calls[1])), results.names)
        kept = {*program.values, *program.late_columns, *program.key_columns, TIME, FIRING_WATERMARK, PASSED}
        dropped = tuple(name for name in self.first.program.main_schema.names if name not in kept)
        self.second = Stage(
            program,
            Encoder(
                self.keys,
                WINDOW_END if by_frame else None,
                by_frame,
                None,
                dropped,
                buckets,
                combiner_of(program),
                follows_watermark=strategy is not None,
                calls_all=by_frame,
            ),
            time_mode,
            follows=strategy is not None,
            buckets=buckets,
            chunk=draw.choice([2, 1_000]),
        )

    def run(self, parts: list[pa.Table], moment: Moment, draw: Random) -> tuple[Any, ...]:
        """Return what a batch emits: results and late rows of both operators."""
        one = self.first.run(parts, moment, draw)
        between = rows_between(one, self.first.program, system=not self.by_frame, reports=self.strategy is not None)
        other = self.second.run(between, moment, draw)
        self.emitted = [[pair for pair in bucket if pair[0] >= MAIN] for bucket in (*one, *other)]
        return (
            sorted_rows(tables(one, MAIN), self.first.program),
            counted(one, "late_dropped"),
            sorted_rows(tables(other, MAIN), self.second.program),
            counted(other, "late_dropped"),
        )

    emitted: list[list[tuple[int, bytes]]]
    """The results and late rows of the last batch, by bucket, as they are emitted."""

    def snapshot(self) -> Any:
        return self.first.snapshot(), self.second.snapshot()

    def restore(self, held: Any) -> None:
        self.first.restore(held[0])
        self.second.restore(held[1])


def slots_of(calls: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the columns of the arguments of calls."""
    return {name: tuple(call.arguments) for name, call in calls.items()}


def sorted_rows(found: list[pa.Table], program: Program) -> list[Result]:
    rows, names = [], [name for name, *_ in program.aggregates]
    for table in found:
        keys = table["k"].to_pylist() if "k" in program.keys.names else [None] * table.num_rows
        bounds = [table[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
        rows += list(zip(keys, *bounds, *(table[name].to_pylist() for name in names), strict=True))
    return sorted(rows, key=repr)


def last_of_each(rows: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return the last result of each key and window; the second operator counts up, so it is the largest."""
    last: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for *place, results, n, total in rows:
        last[tuple(place)] = max(last.get(tuple(place), (0,)), (results, n, total or 0))
    return last


@dataclass
class Model:
    """The pipeline."""

    first: Operator
    second: Operator
    clock: Clock | None
    is_keyed: bool
    by_frame: bool
    sparks: int = NEVER
    emitted: list[Result] = field(default_factory=list)
    final: list[Result] = field(default_factory=list)

    def batch(self, rows: list[Row], now: int, run: str) -> tuple[list[Result], int, list[Result], int]:
        """Return what a batch emits, and how many rows each operator drops: first all of the first one."""
        self.emitted, self.final = [], []
        late = self.first.late, self.second.late
        by_source = self.clock is not None and self.clock.strategy.source is not None
        times: dict[str | None, int] = {}
        for _, source, time, _ in rows:
            name = source if by_source else None
            times[name] = max(time, times.get(name, time))
        sparks = self.sparks if self.sparks >= 0 else NEVER  # Spark's begins at 0, and never goes below
        watermark = sparks if self.clock is None else self.clock.watermark
        self._advance(watermark)
        for key, _, time, value in rows:
            self._emit(self.first.row(key, time, value))
        self._emit(self.first.refined())
        if self.clock is None:
            self.sparks = max([self.sparks, *(time - 1 for time in times.values())])
        else:
            reached = self.clock.at_once(times, now)
            self.clock.batch(times, now, run)
            if reached is not None:
                self._advance(reached)
        if self.by_frame:
            for result in self.emitted:
                self._take(result)
            self.final += [*self.second.refined(), *self.second.advance(watermark)]
        self.final += self.second.refined()
        return self.emitted, self.first.late - late[0], self.final, self.second.late - late[1]

    def _advance(self, watermark: int) -> None:
        self._emit(self.first.advance(watermark))
        if not self.by_frame:
            self.final += [*self.second.refined(), *self.second.advance(watermark)]

    def _emit(self, results: Iterator[Result]) -> None:
        for result in results:
            self.emitted.append(result)
            if not self.by_frame:
                self._take(result)

    def _take(self, result: Result) -> None:
        key, _, end, *sums = result
        self.final += self.second.row(key if self.is_keyed else None, end - 1, *sums)


# Random programs.


def random_batches(draw: Random) -> Iterator[tuple[list[list[Row]], int, bool]]:
    """Yield the rows of each task, the clock in milliseconds, and whether a new run begins with the batch."""
    now, at = 1_700_000_000_000, draw.choice([0, 1_700_000_000])
    sources = ["a", "b", "c"]
    quiet = draw.choice(sources)
    for number in range(draw.randint(4, 12)):
        tasks = []
        for _ in range(draw.randint(1, 3)):
            rows = []
            for _ in range(draw.choice([0, 2, 6])):
                source = draw.choice(sources)
                if source == quiet and 2 < number < 9:
                    continue
                behind = draw.choice([0, 0, 1, 3, 8, 20, 30])
                rows.append((draw.choice("klmnopqrstuv"[: 2 + number]), source, (at - behind) * SECOND, draw.randrange(100)))
            tasks.append(rows)
        yield ([] if draw.random() < 0.2 else tasks), now, draw.random() < 0.15
        now, at = now + draw.choice([1, 1_000, 4_000, 9_000]), at + draw.choice([0, 2, 5, 12])


def table_of(rows: list[Row]) -> pa.Table:
    keys, sources, times, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = [pa.array(keys, pa.string()), pa.array(values, pa.int64()), pa.array(times, STAMP), pa.array(sources, pa.string())]
    return pa.table([*columns, pa.array([value % 2 == 1 for value in values], pa.bool_())], names=["k", "v", "t", "s", "odd"])


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No task of Spark's; stages read that of the model."""
    without_spark(monkeypatch)
    yield
    Task.current = None


def run(seed: int) -> tuple[int, int]:
    """Run the program of a seed beside the model; return how many results were final, and how many rows late downstream."""
    draw = Random(f"chain {seed}")
    strategy = random_strategy(draw)
    by_frame = strategy is None and draw.random() < 0.6
    first, second = random_first(draw), random_second(draw)
    chain = Chain(draw, first, second, strategy, by_frame)
    model = Model(Operator(first), Operator(second), None if strategy is None else Clock(strategy), bool(chain.keys), by_frame)
    name, number, results, late = "run", -1, 0, 0
    for tasks, now, is_new_run in random_batches(draw):
        rows = [row for task in tasks for row in task]
        if not rows and (chain.first.time_mode == "None" or number < 0):
            continue  # Spark has no such batch
        number += 1
        name = f"run {number}" if is_new_run else name
        if first.kind == "session":  # a late row is taken where another row of its batch joins it with a session, see the docs
            under = NEVER if model.clock is None else model.clock.watermark
            under = max(under, model.sparks)
            tasks = [[row for row in task if row[2] + first.size - 1 > under] for task in tasks]
            rows = [row for task in tasks for row in task]
            if not rows and chain.first.time_mode == "None":
                continue
        sparks = max(0, (model.sparks + 1) // 1_000) if strategy is None else 0
        held, moment = chain.snapshot(), Moment(number, sparks, now, name)
        got = chain.run([table_of(task) for task in tasks] or [table_of([])], moment, draw)
        if draw.random() < 0.4:  # it was not committed
            chain.restore(held)
            emitted = chain.emitted
            name = f"run {number} again" if draw.random() < 0.5 else name
            again = chain.run([table_of(task) for task in tasks] or [table_of([])], dataclasses.replace(moment, run=name), draw)
            assert again == got, f"seed {seed}, batch {number} run again"
            assert chain.emitted == emitted, f"seed {seed}, batch {number} run again: another order"
        fired, dropped, final, final_dropped = model.batch(rows, now * 1_000, name)
        expected = sorted(fired, key=repr), dropped, last_of_each(final), final_dropped
        about = f"seed {seed}, batch {number}, {first}, {second}, {strategy}, by_frame={by_frame}, keys={chain.keys}"
        assert (got[0], got[1], last_of_each(got[2]), got[3]) == expected, about
        results, late = results + len(final), late + final_dropped
    return results, late


@pytest.mark.parametrize("seed", seeds(300))
def test_a_random_chain_is_that_of_the_model(no_spark: None, seed: int) -> None:
    with drawn_sizes(seed):
        run(seed)


@pytest.mark.parametrize("seed", seeds(100))
def test_the_order_of_rows_in_a_batch_does_not_matter(no_spark: None, seed: int) -> None:
    """Where it may: results by count, and a late row of a session that another row of its batch joins with it."""
    draw = Random(f"order {seed}")
    first = random_first(draw)
    while first.trigger not in ("end", "discard", "accumulate"):
        first = random_first(draw)
    if first.trigger != "end":
        first = dataclasses.replace(first, count=10_000)  # no row but the last one of its window fires
    second, strategy = random_second(draw), random_strategy(draw)
    by_frame, way = strategy is None and draw.random() < 0.6, draw.randrange(2**32)
    one, other = (Chain(Random(way), first, second, strategy, by_frame, MORE) for _ in range(2))
    latest, number = 0, -1
    with drawn_sizes(seed):
        for tasks, now, _ in random_batches(draw):
            rows = [row for task in tasks for row in task]
            if first.kind == "session":
                rows = [row for row in rows if row[2] >= latest]  # none is late
            if not rows and (one.first.time_mode == "None" or number < 0):
                continue
            number += 1
            moment = Moment(number, 0 if strategy is not None else latest // 1_000, now, "run")
            shuffled = draw.sample(rows, len(rows))
            cut = draw.randint(0, len(rows))
            expected = one.run([table_of(rows)], moment, draw)
            got = other.run([table_of(shuffled[:cut]), table_of(shuffled[cut:])], moment, draw)
            assert got == expected, f"seed {seed}, batch {number}, {first}, {second}, {strategy}, by_frame={by_frame}"
            latest = max([latest, *(time for _, _, time, _ in rows)])
