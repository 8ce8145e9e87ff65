"""Random windowed programs of built-in parts, made by a seeded generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Literal

import pyarrow as pa

from verify.fuzz.aggregates import every_aggregate
from verify.fuzz.columns import COLUMNS, GAPS, PLAIN
from windowpane import aggregates as agg
from windowpane.engines.program import Program, Upstream
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.windowing import assigners, evictors, triggers
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.panes import AccumulationMode, PaneBehavior
from windowpane.windowing.spec import DEFAULT_PANES, PaneSettings
from windowpane.windowing.times import MAX
from windowpane.windowing.triggers import composable

LATE = OutputTag("late")
TIMESTAMP = pa.timestamp("us", tz="UTC")
_KEYS: tuple[tuple[str, ...], ...] = (
    ("k",),
    ("k",),
    ("n",),
    ("f",),
    ("k", "n"),
    ("r",),
    ("l", "n"),
    (),
    ("u",),
    ("m", "b"),
    ("big", "u"),
    ("pair", "reals"),
    ("wide", "day"),
    ("text", "bytes", "b"),
)
_HASHED = tuple(field.name for field in COLUMNS if not pa.types.is_map(field.type))
"""Columns that keys may be: all but maps."""
_SORTED = tuple(field.name for field in COLUMNS if not pa.types.is_nested(field.type))
"""Columns that rows may be ordered by."""


@dataclass(frozen=True)
class GapBy:
    """A session gap that a column of the row holds."""

    gap: int

    def __call__(self, row: dict[str, Any]) -> int:
        """Return the gap after a row."""
        return self.gap + abs(int(row["n"] or 0))


@dataclass(frozen=True)
class Distance:
    """How far two rows are apart, by a column."""

    def __call__(self, old: dict[str, Any], new: dict[str, Any]) -> int:
        """Return it."""
        return abs(int(new["n"] or 0) - int(old["n"] or 0))


HOUR = 3_600_000_000
Clocks = Literal["event time", "processing time", "both"]
_MakesAssigner = Callable[[], assigners.WindowAssigner]
_ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe", "Asia/Kolkata")


def random_assigner(draw: Random) -> assigners.WindowAssigner:
    """Return an assigner."""
    size, slide = _random_length(draw), _random_length(draw)
    by_event_time, by_processing_time = _fixed_makers(draw, size, slide)
    makers: list[_MakesAssigner] = [
        *by_event_time,
        *by_processing_time,
        lambda: assigners.EventTimeSessionWindows.with_gap(size),
        lambda: assigners.EventTimeSessionWindows.with_dynamic_gap(GapBy(size)),
        lambda: assigners.ProcessingTimeSessionWindows.with_gap(size),
        lambda: assigners.ProcessingTimeSessionWindows.with_dynamic_gap(GapBy(size)),
        assigners.GlobalWindows.create,
        assigners.GlobalWindows.create_with_end_of_stream_trigger,
    ]
    made = draw.choice(makers)()
    # From a source of its own, so that the programs of seeds that were kept stay what they are.
    apart = Random(repr(made))
    return random_calendar(apart) if apart.random() < 0.1 else made


def random_fixed_assigner(draw: Random, clocks: Clocks = "both") -> assigners.WindowAssigner:
    """Return an assigner of short windows whose length is fixed, by the clock that is named."""
    by_event_time, by_processing_time = _fixed_makers(draw, draw.randint(1, 12), draw.randint(1, 12))
    both = [*by_event_time, *by_processing_time]
    makers = {"event time": by_event_time, "processing time": by_processing_time, "both": both}
    return draw.choice(makers[clocks])()


def _fixed_makers(draw: Random, size: int, slide: int) -> tuple[list[_MakesAssigner], list[_MakesAssigner]]:
    """Return what makes assigners of windows of one length, or some: by event time, and by processing time."""
    steps, slide = draw.randint(1, 4), max(slide, size // 60)
    longer, shorter = max(size, slide), min(size, slide)
    offset, by_slide = draw.randint(1 - size, size - 1), draw.randint(1 - slide, slide - 1)
    stagger = draw.choice([assigners.WindowStagger.ALIGNED] * 4 + [assigners.WindowStagger.NATURAL])
    by_event_time: list[_MakesAssigner] = [
        lambda: assigners.TumblingEventTimeWindows.of(size, offset, stagger),
        lambda: assigners.SlidingEventTimeWindows.of(size, slide, by_slide),
        lambda: assigners.SlidingEventTimeWindows.of(longer, shorter, draw.randint(1 - shorter, shorter - 1)),
        lambda: assigners.CumulateEventTimeWindows.of(slide * steps, slide, by_slide),
    ]
    by_processing_time: list[_MakesAssigner] = [
        lambda: assigners.TumblingProcessingTimeWindows.of(size, offset, stagger),
        lambda: assigners.SlidingProcessingTimeWindows.of(size, slide, by_slide),
    ]
    return by_event_time, by_processing_time


def random_calendar(draw: Random) -> assigners.CalendarWindows:
    """Return calendar windows, in a zone whose days are not all alike."""
    zone, calendar = draw.choice(_ZONES), assigners.CalendarWindows
    makers: list[Callable[[], assigners.CalendarWindows]] = [
        lambda: calendar.of(draw.choice(["1 day", "2 days", "1 week", "1 month"]), zone),
        lambda: calendar.of("3 days", zone, slide=draw.choice(["1 day", "2 days"])),
        lambda: calendar.of("2 months", zone, slide="1 month"),
        lambda: calendar.cumulate("1 day", f"{draw.randint(1, 13)} hours", zone),
        lambda: calendar.cumulate(draw.choice(["1 week", "1 month"]), "1 day", zone),
        lambda: calendar.cumulate("1 month", f"{draw.randint(2, 9)} days", zone),
    ]
    return draw.choice(makers)()


def time_unit(assigner: assigners.WindowAssigner) -> int:
    """Return the microseconds that rows of a program lie apart, about: those of calendar windows an hour."""
    return HOUR if isinstance(assigner, assigners.CalendarWindows) else 1


def _random_length(draw: Random) -> int:
    return draw.choice([draw.randint(1, 15)] * 6 + [draw.randint(1, 90)])


def random_trigger(draw: Random, assigner: assigners.WindowAssigner) -> triggers.Trigger | None:
    """Return a trigger that the assigner's windows can have; ``None`` for the default."""
    counting = triggers.CountTrigger.of(draw.choice([draw.randint(1, 4), draw.randint(0, 9)]))
    if isinstance(assigner, assigners.GlobalWindows):
        ending = triggers.EndOfStreamTrigger()
        return draw.choice([counting, counting, triggers.PurgingTrigger.of(counting), ending, None])
    of_clock = triggers.ContinuousEventTimeTrigger if assigner.is_event_time else triggers.ContinuousProcessingTimeTrigger
    continuous = draw.choice([of_clock, of_clock, triggers.ContinuousProcessingTimeTrigger])
    made = [assigner.default_trigger(), counting, continuous.of(draw.randint(1, 12) * time_unit(assigner))]
    trigger = draw.choice([None, None, *made, *made, counting, triggers.NeverTrigger()])
    return triggers.PurgingTrigger.of(trigger) if trigger is not None and draw.random() < 0.4 else trigger


def random_panes(draw: Random) -> PaneSettings:
    """Return settings of panes, under any of Flink's triggers."""
    modes: list[AccumulationMode | None] = [None, "accumulating", "discarding", "retracting", "retracting"]
    accumulation = draw.choice(modes)
    return PaneSettings(accumulation, shows_info=draw.random() < 0.5)


def random_composable_panes(draw: Random) -> PaneSettings:
    """Return settings of panes, under a composable trigger."""
    behaviors: list[PaneBehavior] = ["fire_always", "fire_if_non_empty"]
    modes: list[AccumulationMode] = ["accumulating", "discarding", "retracting"]
    on_time, closing = draw.choice(behaviors), draw.choice(behaviors)
    return PaneSettings(draw.choice(modes), on_time, closing, shows_info=draw.random() < 0.5, allows_unsafe_triggers=True)


def random_tree(draw: Random, depth: int = 0) -> composable.ComposableTrigger:
    """Return a composable trigger, safe or not."""

    def below() -> composable.ComposableTrigger:
        return random_tree(draw, depth + 1)

    def maybe() -> composable.ComposableTrigger | None:
        return below() if draw.random() < 0.7 else None

    makers: list[Callable[[], Any]] = [partial(_random_once, draw), composable.Default, composable.Always, composable.Never]
    if depth < 3:
        makers += [lambda: composable.AfterWatermark(maybe(), maybe())] * 3
        makers += [lambda: composable.Repeatedly(below())] * 2
        makers += [lambda: composable.AfterEach(*(below() for _ in range(draw.randint(1, 3))))]
        makers += [lambda: composable.OrFinally(below(), _random_once(draw))]
    tree: composable.ComposableTrigger = draw.choice(makers)()
    return tree


def random_clock_tree(draw: Random) -> composable.ComposableTrigger:
    """Return a composable trigger that is never ready for a row: rows of windows without lateness fold before the shuffle."""

    def delay() -> composable.ComposableTrigger:
        return composable.AfterProcessingTime(draw.randint(1, 12))

    def early() -> composable.ComposableTrigger:
        one, other = delay(), delay()
        made = [one, one, one, composable.AfterAny(one, other), composable.AfterAll(one, other), composable.AfterEach(one, other)]
        return draw.choice(made)

    makers: list[Callable[[], composable.ComposableTrigger]] = [
        lambda: composable.EarlyAndFinal(delay=draw.randint(1, 12)),
        lambda: composable.AfterWatermark(early(), draw.choice([None, composable.AfterCount(1)])),
        lambda: composable.Repeatedly(early()),
        lambda: composable.OrFinally(composable.Repeatedly(early()), composable.AfterWatermark()),
        lambda: composable.AfterEach(early(), composable.Default()),
    ]
    return draw.choice(makers)()


def with_flinks_trigger(
    draw: Random, tree: composable.ComposableTrigger, assigner: assigners.WindowAssigner
) -> composable.ComposableTrigger:
    """Return a tree with one of Flink's triggers beside it, in places where it begins anew while its window is open."""
    leaves: list[triggers.Trigger] = [triggers.ContinuousProcessingTimeTrigger.of(draw.randint(1, 12))]
    if not isinstance(assigner, assigners.GlobalWindows):
        leaves += [triggers.ContinuousEventTimeTrigger.of(draw.randint(1, 12) * time_unit(assigner))] * 2
    if not isinstance(assigner, assigners.MergingWindowAssigner):
        leaves += [triggers.DeltaTrigger.of(draw.randint(0, 4), Distance())]
        leaves += [random_timeout(draw, triggers.CountTrigger.of(draw.randint(1, 6)))] * 2
    leaf, once = draw.choice(leaves), _random_once(draw)
    anew = composable.Repeatedly(composable.OrFinally(leaf, once))
    made = [anew, composable.AfterWatermark(early=anew), composable.AfterWatermark(late=leaf), composable.AfterEach(once, leaf)]
    return draw.choice([*made, composable.AfterEach(composable.OrFinally(leaf, once), tree)])


def _random_once(draw: Random, depth: int = 0) -> composable.ComposableTrigger:
    """Return a composable trigger that fires once."""
    makers: list[Callable[[], Any]] = [
        lambda: composable.AfterCount(draw.randint(1, 4)),
        lambda: composable.AfterProcessingTime(draw.randint(0, 12)),
        composable.AfterWatermark,
    ]
    if depth < 2:
        several = [composable.AfterAny, composable.AfterAll]
        makers += [lambda: draw.choice(several)(*(_random_once(draw, depth + 1) for _ in range(draw.randint(1, 3))))]
    once: composable.ComposableTrigger = draw.choice(makers)()
    return once


def random_timeout(draw: Random, trigger: triggers.Trigger) -> triggers.Trigger:
    """Return a trigger with a timeout around it, or in it where it purges."""
    timeout, resets, clears = draw.randint(0, 9), draw.random() < 0.5, draw.random() < 0.5
    if isinstance(trigger, triggers.PurgingTrigger) and draw.random() < 0.5:
        return triggers.PurgingTrigger.of(random_timeout(draw, trigger.inner))
    return triggers.ProcessingTimeoutTrigger.of(trigger, timeout, resets, clears)


def random_evictor(draw: Random) -> evictors.Evictor | None:
    """Return an evictor, mostly none."""
    after = draw.random() < 0.3
    by_count = evictors.CountEvictor.of(draw.randint(-1, 8), after)
    by_time = evictors.TimeEvictor.of(draw.choice([0, 1, 3, 12, 40]), after)
    return draw.choice([None] * 8 + [by_count, by_count, by_time])


_ORDERLESS: tuple[Aggregate, ...] = (
    agg.count(),
    agg.count("i"),
    agg.sum("i"),
    agg.sum("n"),
    agg.sum("d"),
    agg.sum("m"),
    agg.min("n"),
    agg.max("i"),
    agg.min("d"),
    agg.max("d"),
    agg.max("s"),
    agg.avg("i"),
    agg.avg("d"),
    agg.avg("m"),
    agg.var_pop("n"),
    agg.stddev_samp("d"),
    agg.bool_and("b"),
    agg.bool_or("b"),
    agg.count_distinct("s"),
    agg.count_distinct("s", "n"),
    agg.mode("n"),
    agg.mode("d"),
    agg.median("n"),
    agg.quantile("d", 0.25),
    agg.approx_count_distinct("u"),
    agg.approx_quantile("n", 0.5, accuracy=10_000),
)
"""Aggregates of ordinary values that do not depend on the order of arrival."""

_EVERY = every_aggregate(COLUMNS, ("big", "text", "d"))
"""Every aggregate, of a column of any type that it takes."""


def random_aggregates(draw: Random) -> dict[str, Aggregate]:
    """Return one to four aggregates by output name; often such that do not depend on the order of arrival."""
    chosen = draw.choices(_ORDERLESS if draw.random() < 0.4 else _EVERY, k=draw.randint(1, 4))
    return {f"r{number}": aggregate for number, aggregate in enumerate(chosen)}


def random_keys(draw: Random) -> tuple[str, ...]:
    """Return key columns of any types."""
    if draw.random() < 0.6:
        return draw.choice(_KEYS)
    return tuple(draw.sample(_HASHED, draw.choice([1, 1, 2, 3])))


def program_of(
    assigner: assigners.WindowAssigner,
    aggregates: Mapping[str, Aggregate],
    keys: tuple[str, ...] = ("k",),
    upstream: Upstream = Upstream.SOURCE,
    window_bound: pa.DataType = TIMESTAMP,
    columns: pa.Schema = PLAIN,
    **parts: Any,
) -> Program:
    """Return a compiled program: the planner has chosen its engine.

    Args:
        assigner: the assigner.
        aggregates: the aggregates by output name.
        keys: the key columns.
        upstream: where rows come from.
        window_bound: type of window bounds.
        columns: the columns of its rows.
        parts: trigger, evictor, refine and order_by, as a ``WindowPlan`` takes them, and ``Settings`` by name.
    """
    function = FunctionPlan("aggregate", aggregates=tuple(aggregates.items()))
    plan = WindowPlan(keys, assigner, function, event_time="t", upstream=upstream, **Settings.among(parts))
    slots = {name: aggregate.arguments for name, aggregate in aggregates.items()}
    types = InputTypes(columns, pa.schema([columns.field(key) for key in keys]), keys, window_bound, slots)
    return compile_program(plan, types, columns.names)


def random_program(draw: Random) -> tuple[Program, pa.Schema]:
    """Return a program of random parts, and the columns of its rows: those it reads and a few others, which late rows carry.

    Raises:
        WindowpaneError: the parts do not go together.
    """
    assigner, keys, aggregates = random_assigner(draw), random_keys(draw), random_aggregates(draw)
    order_by = tuple(_order_column(draw, name) for name in _random_order(draw))
    read = {*keys, *(name for each in aggregates.values() for name in each.arguments), *(column.name for column in order_by), "n"}
    read |= set(draw.sample(COLUMNS.names, 2))
    columns = pa.schema([field for field in COLUMNS if field.name in read])
    sessions = assigners.EventTimeSessionWindows | assigners.ProcessingTimeSessionWindows
    if isinstance(assigner, sessions) and callable(assigner.gap):
        gaps = Random(f"gap {assigner} {keys}").choice([None, *GAPS])
        if gaps is not None:
            assigner, columns = type(assigner).with_dynamic_gap(gaps.name), columns.append(gaps)
    upstream = draw.choice([Upstream.SOURCE] * 4 + [Upstream.WINDOW_WITH_WATERMARKS, Upstream.WINDOW])
    flink, evictor = random_trigger(draw, assigner), random_evictor(draw)
    trigger: triggers.Trigger | composable.ComposableTrigger | None = flink
    # From a source of its own, so that the programs of seeds that were kept stay what they are.
    apart, panes, is_by_clock = Random(f"panes {assigner} {keys} {aggregates}"), DEFAULT_PANES, False
    chance = apart.random()
    if chance < 0.2:
        trigger, evictor, panes = triggers.EachBatch(), None, random_panes(apart)
    elif chance < 0.4:
        trigger, evictor, panes = random_tree(apart), None, random_composable_panes(apart)
        is_by_clock = apart.random() < 0.3
        trigger = random_clock_tree(apart) if is_by_clock else trigger
        beside = Random(f"beside {trigger}")
        if beside.random() < 0.2 and isinstance(trigger, composable.ComposableTrigger):
            trigger = with_flinks_trigger(beside, trigger, assigner)
    elif chance < 0.5 and flink is not None:
        trigger, evictor, panes = random_timeout(apart, flink), None, PaneSettings(shows_info=apart.random() < 0.5)
    elif chance < 0.56 and not isinstance(assigner, assigners.MergingWindowAssigner):
        by_rows = triggers.DeltaTrigger.of(apart.randint(0, 4), Distance())
        trigger, evictor = random_timeout(apart, by_rows) if apart.random() < 0.5 else by_rows, None
    elif chance > 0.9 and not isinstance(flink, triggers.NeverTrigger | triggers.PurgingTrigger):
        evictor, panes = None, random_panes(apart)
    lateness, late_tag = _random_lateness(draw, assigner), draw.choice([None, LATE])
    program = program_of(
        assigner,
        aggregates,
        keys,
        upstream,
        pa.int64(),
        columns,
        trigger=trigger,
        evictor=evictor,
        panes=panes,
        allowed_lateness=0 if is_by_clock else lateness,
        late_tag=None if is_by_clock else late_tag,
        refine=draw.choice(["last", "last", "each"]),
        order_by=order_by,
    )
    return program, columns


def _random_lateness(draw: Random, assigner: assigners.WindowAssigner) -> int:
    if not assigner.is_event_time:
        return 0
    lateness = draw.choice([0, 0, 3, 20, 20, 2**62, MAX])
    return lateness * time_unit(assigner) if lateness <= 20 else lateness


def _random_order(draw: Random) -> tuple[str, ...]:
    if draw.random() < 0.1:
        return tuple(draw.sample(_SORTED, draw.randint(1, 2)))
    return draw.choice([(), (), ("n",), ("s", "i"), ("d",)])


def _order_column(draw: Random, name: str) -> OrderColumn:
    return OrderColumn(name, draw.random() < 0.5, nulls_first=draw.random() < 0.5)


def with_engine(program: Program, engine: str) -> Program:
    """Return the program for another engine; the description that a restart compares stays."""
    return replace(program, engine=engine)
