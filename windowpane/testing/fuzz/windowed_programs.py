"""Random windowed programs of built-in parts, and random streams for them, made by a seeded generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa

from windowpane.engines.program import JUDGED, PARTITION, POSITION, TIME, Program, Upstream
from windowpane.plan import FunctionPlan, InputTypes, WindowPlan, compile_program
from windowpane.windowing import assigners, evictors, triggers
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates import constructors as agg
from windowpane.windowing.over_spec import OrderColumn
from windowpane.windowing.tags import OutputTag

LATE = OutputTag("late")
TIMESTAMP = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema(
    [
        ("k", pa.string()),
        ("f", pa.float64()),
        ("i", pa.int64()),
        ("n", pa.int32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("m", pa.decimal128(12, 2)),
        ("r", pa.struct([("x", pa.int32()), ("y", pa.float64())])),
        ("l", pa.list_(pa.string())),
    ]
)
_VALUES: dict[str, Callable[[Random], Any]] = {
    "k": lambda draw: draw.choice(["a", "b", "c", None]),
    "f": lambda draw: draw.choice([0.0, -0.0, 1.5, float("nan"), None]),
    "i": lambda draw: draw.choice([None, 0, 1, -7, draw.randint(-(10**6), 10**6), 2**61]),
    "n": lambda draw: draw.choice([None, draw.randint(-3, 3)]),
    "d": lambda draw: draw.choice([None, 0.0, -0.0, round(draw.uniform(-9, 9), 3), draw.choice([1.5, float("nan")])]),
    "s": lambda draw: draw.choice([None, "", "x", "y", "é"]),
    "b": lambda draw: draw.choice([None, True, False]),
    "m": lambda draw: draw.choice([None, "0.00", "12.34", "-99.90"]),
    "r": lambda draw: draw.choice([None, {"x": None, "y": 0.0}, {"x": 1, "y": -0.0}, {"x": 1, "y": 0.0}, {"x": 1, "y": None}]),
    "l": lambda draw: draw.choice([None, [], ["a"], ["a", None]]),
}
_KEYS: tuple[tuple[str, ...], ...] = (("k",), ("k",), ("k",), ("n",), ("f",), ("k", "n"), ("r",), ("l", "n"), ())


@dataclass(frozen=True)
class GapBy:
    """A session gap that a column of the row tells."""

    gap: int

    def __call__(self, row: dict[str, Any]) -> int:
        """Return the gap after a row."""
        return self.gap + abs(int(row["n"] or 0))


def random_assigner(draw: Random) -> assigners.WindowAssigner:
    """Return an assigner."""
    size, slide, steps = draw.randint(1, 15), draw.randint(1, 15), draw.randint(1, 4)
    makers: list[Callable[[], assigners.WindowAssigner]] = [
        lambda: assigners.TumblingEventTimeWindows.of(size, draw.randrange(size)),
        lambda: assigners.SlidingEventTimeWindows.of(size, slide),
        lambda: assigners.SlidingEventTimeWindows.of(max(size, slide), min(size, slide)),
        lambda: assigners.CumulateEventTimeWindows.of(slide * steps, slide),
        lambda: assigners.TumblingProcessingTimeWindows.of(size),
        lambda: assigners.SlidingProcessingTimeWindows.of(size, slide),
        lambda: assigners.EventTimeSessionWindows.with_gap(size),
        lambda: assigners.EventTimeSessionWindows.with_dynamic_gap(GapBy(size)),
        lambda: assigners.ProcessingTimeSessionWindows.with_gap(size),
        assigners.GlobalWindows.create,
    ]
    return draw.choice(makers)()


def random_trigger(draw: Random, assigner: assigners.WindowAssigner) -> triggers.Trigger | None:
    """Return a trigger that the assigner's windows can have; ``None`` for the default."""
    counting = triggers.CountTrigger.of(draw.randint(1, 4))
    if isinstance(assigner, assigners.GlobalWindows):
        return draw.choice([counting, counting, triggers.PurgingTrigger.of(counting), None])
    continuous = triggers.ContinuousEventTimeTrigger if assigner.is_event_time else triggers.ContinuousProcessingTimeTrigger
    made = [assigner.default_trigger(), counting, continuous.of(draw.randint(1, 12))]
    trigger = draw.choice([None, None, *made])
    return triggers.PurgingTrigger.of(trigger) if trigger is not None and draw.random() < 0.4 else trigger


def random_evictor(draw: Random) -> evictors.Evictor | None:
    """Return an evictor, mostly none."""
    count, after = draw.randint(0, 4), draw.random() < 0.2
    return draw.choice([None] * 8 + [evictors.CountEvictor.of(count, after), evictors.TimeEvictor.of(count * 3, after)])


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
    **parts: Any,
) -> Program:
    """Return a compiled program over ``COLUMNS``: the planner has chosen its engine.

    Args:
        assigner: the assigner.
        aggregates: the aggregates by output name.
        keys: the key columns.
        upstream: where rows come from.
        parts: trigger, evictor, allowed_lateness, late_tag, refine, order_by and engine, as a ``WindowPlan`` takes them.
    """
    function = FunctionPlan("aggregate", aggregates=tuple(aggregates.items()))
    plan = WindowPlan(keys, assigner, function, event_time="t", upstream=upstream, **parts)
    slots = {name: aggregate.arguments for name, aggregate in aggregates.items()}
    types = InputTypes(COLUMNS, pa.schema([COLUMNS.field(key) for key in keys]), keys, TIMESTAMP, slots)
    return compile_program(plan, types, COLUMNS.names)


def random_program(draw: Random) -> Program:
    """Return a program of random parts."""
    assigner = random_assigner(draw)
    return program_of(
        assigner,
        random_aggregates(draw),
        draw.choice(_KEYS),
        draw.choice([Upstream.SOURCE] * 4 + [Upstream.JUDGED_WINDOW, Upstream.WINDOW]),
        trigger=random_trigger(draw, assigner),
        evictor=random_evictor(draw),
        allowed_lateness=draw.choice([0, 0, 3, 20]) if assigner.is_event_time else 0,
        late_tag=draw.choice([None, LATE]),
        refine=draw.choice(["last", "last", "each"]),
        order_by=tuple(_order_column(draw, name) for name in draw.choice([(), (), ("n",), ("s", "i")])),
    )


def _order_column(draw: Random, name: str) -> OrderColumn:
    return OrderColumn(name, draw.random() < 0.5, nulls_first=draw.random() < 0.5)


@dataclass(frozen=True)
class Batch:
    """One micro-batch: the clocks at its start in microseconds, its rows as the parts that input partitions bring."""

    watermark: int
    processing_time: int
    parts: tuple[pa.Table, ...]


def random_stream(draw: Random, program: Program) -> list[Batch]:
    """Return batches: disordered rows, some of them late, clocks that move on, and an end behind every window."""
    before, watermark, now, made = -40, -30, 1, []
    for _ in range(draw.randint(1, 7)):
        rows = random_rows(draw, draw.randint(0, 8), watermark)
        made.append(Batch(watermark, now, _parts(draw, _judged(draw, program, rows, (before, watermark)))))
        before, watermark = watermark, watermark + draw.choice([0, draw.randint(0, 25)])
        now += draw.randint(0, 9)
    return [*made, Batch(watermark, now, ()), Batch(1000, now + 1000, ()), Batch(2000, now + 2000, ())]


def random_rows(draw: Random, count: int, watermark: int) -> pa.Table:
    """Return rows around a watermark, in order of arrival, with their system columns."""
    columns = {field.name: _column(draw, field, count) for field in COLUMNS}
    times = [watermark + draw.randint(-25, 40) for _ in range(count)]
    system = {
        TIME: pa.array(times, pa.int64()),
        PARTITION: pa.array([0] * count, pa.int32()),
        POSITION: pa.array(range(count), pa.int64()),
    }
    return pa.table({**columns, **system})


def _column(draw: Random, field: pa.Field, count: int) -> pa.Array:
    values = [_VALUES[field.name](draw) for _ in range(count)]
    return pa.array(values, pa.string()).cast(field.type) if pa.types.is_decimal(field.type) else pa.array(values, field.type)


def _judged(draw: Random, program: Program, rows: pa.Table, watermarks: tuple[int, int]) -> pa.Table:
    """Return rows as an earlier window emits them: under the watermark before its batch, or under that of the batch."""
    if program.upstream is not Upstream.JUDGED_WINDOW:
        return rows
    judged = [draw.choice(watermarks) for _ in range(rows.num_rows)]
    return rows.append_column(JUDGED, pa.array(judged, pa.int64()))


def _parts(draw: Random, rows: pa.Table) -> tuple[pa.Table, ...]:
    """Return the rows as one or two tables, in no order."""
    at = draw.randint(0, rows.num_rows)
    return (rows.slice(at), rows.slice(0, at)) if draw.random() < 0.5 else (rows,)


def with_engine(program: Program, engine: str) -> Program:
    """Return the program for another engine; the description that a restart compares stays."""
    return replace(program, engine=engine)
