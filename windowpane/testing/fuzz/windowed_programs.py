"""Random windowed programs of built-in parts, made by a seeded generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa

from windowpane.engines.program import Program, Upstream
from windowpane.plan import FunctionPlan, WindowPlan
from windowpane.planner import InputTypes, compile_program
from windowpane.testing.fuzz.windowed_streams import COLUMNS
from windowpane.windowing import assigners, evictors, triggers
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates import constructors as agg
from windowpane.windowing.over_spec import OrderColumn
from windowpane.windowing.tags import OutputTag
from windowpane.windowing.times import MAX

LATE = OutputTag("late")
TIMESTAMP = pa.timestamp("us", tz="UTC")
_KEYS: tuple[tuple[str, ...], ...] = (
    ("k",),
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
)


@dataclass(frozen=True)
class GapBy:
    """A session gap that a column of the row tells."""

    gap: int

    def __call__(self, row: dict[str, Any]) -> int:
        """Return the gap after a row."""
        return self.gap + abs(int(row["n"] or 0))


def random_assigner(draw: Random) -> assigners.WindowAssigner:
    """Return an assigner."""
    size, slide, steps = _random_length(draw), _random_length(draw), draw.randint(1, 4)
    slide = max(slide, size // 60)
    longer, shorter = max(size, slide), min(size, slide)
    offset, by_slide = draw.randint(1 - size, size - 1), draw.randint(1 - slide, slide - 1)
    stagger = draw.choice([assigners.WindowStagger.ALIGNED] * 4 + [assigners.WindowStagger.NATURAL])
    makers: list[Callable[[], assigners.WindowAssigner]] = [
        lambda: assigners.TumblingEventTimeWindows.of(size, offset, stagger),
        lambda: assigners.SlidingEventTimeWindows.of(size, slide, by_slide),
        lambda: assigners.SlidingEventTimeWindows.of(longer, shorter, draw.randint(1 - shorter, shorter - 1)),
        lambda: assigners.CumulateEventTimeWindows.of(slide * steps, slide, by_slide),
        lambda: assigners.TumblingProcessingTimeWindows.of(size, offset, stagger),
        lambda: assigners.SlidingProcessingTimeWindows.of(size, slide, by_slide),
        lambda: assigners.EventTimeSessionWindows.with_gap(size),
        lambda: assigners.EventTimeSessionWindows.with_dynamic_gap(GapBy(size)),
        lambda: assigners.ProcessingTimeSessionWindows.with_gap(size),
        lambda: assigners.ProcessingTimeSessionWindows.with_dynamic_gap(GapBy(size)),
        assigners.GlobalWindows.create,
        assigners.GlobalWindows.create_with_end_of_stream_trigger,
    ]
    return draw.choice(makers)()


def _random_length(draw: Random) -> int:
    return draw.choice([draw.randint(1, 15)] * 6 + [draw.randint(1, 90)])


def random_trigger(draw: Random, assigner: assigners.WindowAssigner) -> triggers.Trigger | None:
    """Return a trigger that the assigner's windows can have; ``None`` for the default."""
    counting = triggers.CountTrigger.of(draw.randint(1, 4))
    if isinstance(assigner, assigners.GlobalWindows):
        ending = triggers.EndOfStreamTrigger()
        return draw.choice([counting, counting, triggers.PurgingTrigger.of(counting), ending, None])
    continuous = triggers.ContinuousEventTimeTrigger if assigner.is_event_time else triggers.ContinuousProcessingTimeTrigger
    made = [assigner.default_trigger(), counting, continuous.of(draw.randint(1, 12))]
    trigger = draw.choice([None, None, *made, *made, triggers.NeverTrigger()])
    return triggers.PurgingTrigger.of(trigger) if trigger is not None and draw.random() < 0.4 else trigger


def random_evictor(draw: Random) -> evictors.Evictor | None:
    """Return an evictor, mostly none."""
    count, after = draw.randint(0, 4), draw.random() < 0.3
    return draw.choice([None] * 6 + [evictors.CountEvictor.of(count, after), evictors.TimeEvictor.of(count * 3, after)])


_AGGREGATES: tuple[Aggregate, ...] = (
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
    agg.approx_count_distinct("i"),
    agg.approx_quantile("n", 0.5),
    agg.first("s"),
    agg.first("n", ignore_nulls=True),
    agg.last("d"),
    agg.last("s", ignore_nulls=True),
    agg.any_value("i"),
    agg.arg_min("s", "n"),
    agg.arg_max("i", "d"),
    agg.collect_list("n"),
    agg.collect_set("d"),
    agg.string_agg("s", "+"),
)


def random_aggregates(draw: Random) -> dict[str, Aggregate]:
    """Return one to four aggregates by output name; mostly such that do not depend on the order of arrival."""
    plain = _AGGREGATES[:26]
    chosen = draw.choices(plain if draw.random() < 0.6 else _AGGREGATES, k=draw.randint(1, 4))
    return {f"r{number}": aggregate for number, aggregate in enumerate(chosen)}


def program_of(
    assigner: assigners.WindowAssigner,
    aggregates: Mapping[str, Aggregate],
    keys: tuple[str, ...] = ("k",),
    upstream: Upstream = Upstream.SOURCE,
    window_bound: pa.DataType = TIMESTAMP,
    **parts: Any,
) -> Program:
    """Return a compiled program over ``COLUMNS``: the planner has chosen its engine.

    Args:
        assigner: the assigner.
        aggregates: the aggregates by output name.
        keys: the key columns.
        upstream: where rows come from.
        window_bound: type of window bounds.
        parts: trigger, evictor, allowed_lateness, late_tag, refine, order_by and engine, as a ``WindowPlan`` takes them.
    """
    function = FunctionPlan("aggregate", aggregates=tuple(aggregates.items()))
    plan = WindowPlan(keys, assigner, function, event_time="t", upstream=upstream, **parts)
    slots = {name: aggregate.arguments for name, aggregate in aggregates.items()}
    types = InputTypes(COLUMNS, pa.schema([COLUMNS.field(key) for key in keys]), keys, window_bound, slots)
    return compile_program(plan, types, COLUMNS.names)


def random_program(draw: Random) -> Program:
    """Return a program of random parts."""
    assigner = random_assigner(draw)
    return program_of(
        assigner,
        random_aggregates(draw),
        draw.choice(_KEYS),
        draw.choice([Upstream.SOURCE] * 4 + [Upstream.JUDGED_WINDOW, Upstream.WINDOW]),
        pa.int64(),
        trigger=random_trigger(draw, assigner),
        evictor=random_evictor(draw),
        allowed_lateness=draw.choice([0, 0, 3, 20, 20, 2**62, MAX]) if assigner.is_event_time else 0,
        late_tag=draw.choice([None, LATE]),
        refine=draw.choice(["last", "last", "each"]),
        order_by=tuple(_order_column(draw, name) for name in draw.choice([(), (), ("n",), ("s", "i"), ("d",)])),
    )


def _order_column(draw: Random, name: str) -> OrderColumn:
    return OrderColumn(name, draw.random() < 0.5, nulls_first=draw.random() < 0.5)


def with_engine(program: Program, engine: str) -> Program:
    """Return the program for another engine; the description that a restart compares stays."""
    return replace(program, engine=engine)
