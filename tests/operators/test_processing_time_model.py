"""Windows of processing time beside a model of Flink's rules that shares no code with the operator, under a clock that is driven.

The model takes an element at a time. Every engine takes the same rows in batches, is stopped now and then and made anew from the
bytes of its state, and is not called while it has no rows and its next timer lies ahead. Source of the rules: ``WindowOperator``,
``MergingWindowSet`` and the triggers of Flink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from tests.engines.columnar_programs import program_of
from tests.examples import seeds
from verify.sizes import drawn_sizes
from windowpane.engines.program import MAIN, Program
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MAX, MIN

Pane = tuple[int | None, int]
"""A window: begin and end; a global one has no begin, and ends at ``MAX``."""
Rows = Sequence[tuple[str | None, int]]


@dataclass
class Context:
    """What a trigger sees of one key and window."""

    model: Model
    key: str | None
    pane: Pane

    @property
    def state(self) -> dict[str, int]:
        return self.model.states.setdefault((self.key, self.pane), {})

    @property
    def last(self) -> int:
        return self.pane[1] - 1

    def register(self, time: int) -> None:
        self.model.timers.add((time, self.key, self.pane))

    def delete(self, time: int) -> None:
        self.model.timers.discard((time, self.key, self.pane))


class AtEnd:
    """``ProcessingTimeTrigger``. Triggers answer with F for fire and P for purge."""

    def element(self, context: Context) -> str:
        context.register(context.last)
        return ""

    def timer(self, time: int, context: Context) -> str:
        return "F"

    def clear(self, context: Context) -> None:
        context.delete(context.last)

    def merge(self, context: Context, merged: list[dict[str, int]]) -> None:
        context.register(context.last)


@dataclass
class Count:
    """``CountTrigger``."""

    most: int

    def element(self, context: Context) -> str:
        context.state["count"] = context.state.get("count", 0) + 1
        if context.state["count"] < self.most:
            return ""
        del context.state["count"]
        return "F"

    def timer(self, time: int, context: Context) -> str:
        return ""

    def clear(self, context: Context) -> None:
        context.state.pop("count", None)

    def merge(self, context: Context, merged: list[dict[str, int]]) -> None:
        counted = sum(each.pop("count", 0) for each in merged)
        if counted:
            context.state["count"] = context.state.get("count", 0) + counted


@dataclass
class Continuous:
    """``ContinuousProcessingTimeTrigger``."""

    interval: int

    def _register(self, time: int, context: Context) -> None:
        due = min(time + self.interval, context.last)
        context.state["due"] = min(due, context.state.get("due", due))
        context.register(due)

    def element(self, context: Context) -> str:
        if "due" not in context.state:
            self._register(context.model.now // self.interval * self.interval, context)
        return ""

    def timer(self, time: int, context: Context) -> str:
        if context.state.get("due") != time:
            return ""
        del context.state["due"]
        self._register(time, context)
        return "F"

    def clear(self, context: Context) -> None:
        if "due" in context.state:
            context.delete(context.state.pop("due"))

    def merge(self, context: Context, merged: list[dict[str, int]]) -> None:
        dues = [each.pop("due") for each in (*merged, context.state) if "due" in each]
        if dues:
            context.state["due"] = min(dues)
            context.register(min(dues))


@dataclass
class Purging:
    """``PurgingTrigger``."""

    inner: Any

    def element(self, context: Context) -> str:
        return "FP" if self.inner.element(context) else ""

    def timer(self, time: int, context: Context) -> str:
        return "FP" if self.inner.timer(time, context) else ""

    def clear(self, context: Context) -> None:
        self.inner.clear(context)

    def merge(self, context: Context, merged: list[dict[str, int]]) -> None:
        self.inner.merge(context, merged)


@dataclass
class Timeout:
    """``ProcessingTimeoutTrigger``."""

    inner: Any
    timeout: int
    resets: bool
    clears: bool

    def element(self, context: Context) -> str:
        answer: str = self.inner.element(context)
        if answer:
            self.clear(context)
            return answer
        if self.resets and "timeout" in context.state:
            context.delete(context.state.pop("timeout"))
        if "timeout" not in context.state:
            context.state["timeout"] = context.model.now + self.timeout
            context.register(context.state["timeout"])
        return answer

    def timer(self, time: int, context: Context) -> str:
        answer = self.inner.timer(time, context)
        if self.clears:
            self.clear(context)
        return "FP" if "P" in answer else "F"

    def clear(self, context: Context) -> None:
        if "timeout" in context.state:
            context.delete(context.state.pop("timeout"))
        self.inner.clear(context)


@dataclass
class Model:
    """The operator: windows of one kind, a trigger, and how many elements an evictor leaves."""

    kind: str
    size: int
    slide: int
    offset: int
    trigger: Any
    kept: int | None
    now: int = 0
    timers: set[tuple[int, str | None, Pane]] = field(default_factory=set)
    states: dict[tuple[str | None, Pane], dict[str, int]] = field(default_factory=dict)
    contents: dict[tuple[str | None, Pane], list[int]] = field(default_factory=dict)
    sessions: dict[str | None, list[Pane]] = field(default_factory=dict)
    emitted: list[tuple[str | None, Pane, list[int]]] = field(default_factory=list)

    def batch(self, now: int, rows: Rows) -> list[tuple[str | None, Pane, list[int]]]:
        """Return what is emitted: by the clock, then by the rows."""
        self.emitted = []
        self._advance(now)
        for key, value in rows:
            for pane in self._assigned(key):
                context = Context(self, key, pane)
                self.contents.setdefault((key, pane), []).append(value)
                self._act(self.trigger.element(context), key, pane)
                if pane[1] != MAX:
                    context.register(context.last)  # the window is cleaned up
        return self.emitted

    def _assigned(self, key: str | None) -> list[Pane]:
        if self.kind == "global":
            return [(None, MAX)]
        if self.kind == "session":
            return [self._merged(key, self.now, self.now + self.size)]
        slide = self.size if self.kind == "tumbling" else self.slide
        newest = self.now - (self.now - self.offset) % slide
        return [(begin, begin + self.size) for begin in range(newest, self.now - self.size, -slide)]

    def _merged(self, key: str | None, begin: int, end: int) -> Pane:
        live = self.sessions.setdefault(key, [])
        met = [pane for pane in live if begin <= pane[1] and (pane[0] or 0) <= end]
        merged = (min([begin, *(pane[0] or 0 for pane in met)]), max([end, *(pane[1] for pane in met)]))
        self.sessions[key] = [*(pane for pane in live if pane not in met), merged]
        old = [pane for pane in met if pane != merged]
        if old:
            self.trigger.merge(Context(self, key, merged), [self.states.setdefault((key, pane), {}) for pane in old])
        for pane in old:
            self.trigger.clear(Context(self, key, pane))
            self.timers.discard((pane[1] - 1, key, pane))
            self.contents.setdefault((key, merged), []).extend(self.contents.pop((key, pane), []))
        return merged

    def _act(self, answer: str, key: str | None, pane: Pane) -> None:
        rows = self.contents.get((key, pane))
        if "F" in answer and rows:
            rows[:] = rows if self.kept is None else rows[-self.kept :]
            self.emitted.append((key, pane, list(rows)))
        if "P" in answer:
            self.contents.pop((key, pane), None)

    def _advance(self, now: int) -> None:
        self.now = now
        while due := [timer for timer in self.timers if timer[0] <= now]:
            timer = min(due, key=lambda each: each[0])
            self.timers.discard(timer)
            time, key, pane = timer
            if self.kind == "session" and pane not in self.sessions.get(key, []):
                continue  # it was merged away
            context = Context(self, key, pane)
            self._act(self.trigger.timer(time, context), key, pane)
            if pane[1] != MAX and time == context.last:
                self.contents.pop((key, pane), None)
                self.trigger.clear(context)
                if self.kind == "session":
                    self.sessions[key].remove(pane)


def random_pair(draw: Random) -> tuple[Program, Model]:
    """Return a program and its model."""
    kind, size, slide = draw.choice(["tumbling", "sliding", "session", "global"]), draw.randint(1, 14), draw.randint(1, 14)
    offset, most, interval = draw.randrange(min(size, slide)), draw.randint(1, 4), draw.randint(1, 9)
    assigner: Any = {
        "tumbling": lambda: wp.TumblingProcessingTimeWindows.of(size, offset),
        "sliding": lambda: wp.SlidingProcessingTimeWindows.of(size, slide, offset),
        "session": lambda: wp.ProcessingTimeSessionWindows.with_gap(size),
        "global": wp.GlobalWindows.create,
    }[kind]()
    pairs: list[tuple[Any, Any]] = [(wp.CountTrigger.of(most), Count(most))]
    if kind != "global":
        continuous = wp.ContinuousProcessingTimeTrigger.of(interval), Continuous(interval)
        pairs += [(wp.ProcessingTimeTrigger(), AtEnd()), continuous]
    trigger, model = draw.choice(pairs)
    if kind != "session" and draw.random() < 0.3:
        resets, clears = draw.random() < 0.5, draw.random() < 0.5
        trigger = wp.ProcessingTimeoutTrigger.of(trigger, interval, resets, clears)
        model = Timeout(model, interval, resets, clears)
    if draw.random() < 0.4:
        trigger, model = wp.PurgingTrigger.of(trigger), Purging(model)
    kept = draw.choice([None, None, None, draw.randint(1, 3)])
    aggregates = {"n": wp.count(), "s": wp.sum("v"), "all": wp.collect_list("v")}
    evictor = None if kept is None else wp.CountEvictor.of(kept)
    return program_of(assigner, trigger, evictor, late=False, aggregates=aggregates), Model(
        kind, size, slide, offset, model, kept
    )


def random_batches(draw: Random) -> list[tuple[int, Rows]]:
    """Return what arrives at which time of the clock, with an end behind every window."""
    now, made = draw.choice([1, 50, 1_700_000_000_000_000]), list[tuple[int, Rows]]()
    for _ in range(draw.randint(2, 12)):
        rows = [(draw.choice(["a", "b", None]), draw.randint(1, 99)) for _ in range(draw.choice([0, 0, 1, 2, 5, 20]))]
        made.append((now, rows))
        now += draw.choice([0, 1, 1, 2, 3, 7, 40])
    return [*made, (now + 1_000, []), (now + 2_000, [])]


def table(rows: Rows) -> pa.Table:
    keys, values = ([row[place] for row in rows] for place in range(2))
    columns = {"k": pa.array(keys, pa.string()), "v": pa.array(values, pa.int64()), "w": pa.array(values, pa.int32())}
    system = {TIME: pa.array([0] * len(rows), pa.int64()), PARTITION: pa.array([0] * len(rows), pa.int32())}
    return pa.table({**columns, **system, POSITION: pa.array(range(len(rows)), pa.int64())})


def instant(time: int | None) -> datetime | None:
    return None if time in (None, MAX) else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time or 0)


def results(output: BucketOutput) -> list[tuple[Any, ...]]:
    rows = [row for number, part in output.tables if number == MAIN for row in part.to_pylist()]
    return sorted((tuple(row[name] for name in ("k", "window_start", "window_end", "all", "n", "s")) for row in rows), key=repr)


def differences(program: Program, model: Model, batches: list[tuple[int, Rows]], draw: Random) -> list[Any]:
    """Return what an engine emits otherwise than the model, in the first batch where it does."""
    store, engine, output = MemoryBlobStore(), make_engine(program), BucketOutput()
    only_when_due = draw.random() < 0.5
    for number, (now, rows) in enumerate(batches):
        emitted = model.batch(now, rows)
        wanted = sorted(((k, instant(p[0]), instant(p[1]), all_, len(all_), sum(all_)) for k, p, all_ in emitted), key=repr)
        due = output.next_processing_time
        is_asleep = (due is None or due > now) if only_when_due else output.is_idle
        got: list[tuple[Any, ...]] = []
        if rows or not is_asleep:
            output = engine.run(store, [table(rows)] if rows else [], Clock(MIN, now))
            got = results(output)
        if got != wanted:
            return [f"batch {number} at {now}", got, wanted]
        if draw.random() < 0.5:
            held, store = store.snapshot(), MemoryBlobStore()
            store.restore(held)
            engine = make_engine(program)
    return []


@pytest.mark.parametrize("seed", seeds(60))
def test_engines_do_what_the_rules_say(seed: int) -> None:
    program, _ = random_pair(Random(seed))
    for engine in sorted({"reference", program.engine}):
        draw = Random(seed)
        _, model = random_pair(draw)
        batches = random_batches(draw)
        with drawn_sizes(seed):
            assert not differences(with_engine(program, engine), model, batches, draw), (seed, engine, program.spec)
