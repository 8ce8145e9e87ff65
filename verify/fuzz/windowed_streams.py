"""Random streams for windowed programs: batches of disordered rows and the clocks they come under."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import pyarrow as pa

from verify.fuzz.columns import PLAIN, values
from verify.fuzz.windowed_programs import HOUR, time_unit
from windowpane.engines.program import Program, Upstream
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.watermarks import WatermarkGenerator, Watermarks

_EPOCHS = [0] * 8 + [-(10**9), 1_700_000_000_000_000, MIN + 100, MAX - 10_000]
"""Where a stream lies in time."""
_CHANGES = [1_711_843_200_000_000, 1_541_296_800_000_000, 1_325_235_600_000_000, 1_728_144_000_000_000, -2_422_054_408_000_000]
"""Near which clocks were put: Berlin in 2024, Sao Paulo in 2018, Apia in 2011, Lord Howe in 2024, Berlin in 1893."""
_END = 2_000
"""Behind the last row: all windows have ended, but those of very long periods."""


@dataclass(frozen=True)
class Batch:
    """One micro-batch: the clocks at its start in microseconds, its rows as the parts that input partitions bring."""

    watermark: int
    processing_time: int
    parts: tuple[pa.Table, ...]


@dataclass(frozen=True)
class _Shape:
    """What a stream is like: where it begins, how far apart rows are, how many a batch has, whether some have no time."""

    epoch: int
    unit: int
    largest: int
    lacks_times: bool


def _random_shape(draw: Random, hour: int) -> _Shape:
    epoch = draw.choice(_EPOCHS)
    unit = 1 if abs(epoch) > 2**62 else draw.choice([1] * 9 + [1_000_000])
    if hour > 1:
        epoch, unit = draw.choice(_CHANGES), hour
    largest = draw.choice([8] * 60 + [30] * 25 + [150] * 14 + [1_000])
    return _Shape(epoch, unit, largest, draw.random() < 0.05)


def random_stream(draw: Random, program: Program, columns: pa.Schema = PLAIN) -> list[Batch]:
    """Return batches: disordered rows, some of them late, clocks that move on, and an end behind every window."""
    shape = _random_shape(draw, time_unit(program.spec.assigner))
    at, now, made = -30, 1, []
    before, watermark = MIN, draw.choice([MIN, shape.epoch + at * shape.unit])
    for _ in range(draw.randint(1, 7)):
        rows = random_rows(draw, draw.randint(0, shape.largest), shape.epoch + at * shape.unit, shape.unit, columns)
        rows = _without_times(draw, rows) if shape.lacks_times else rows
        made.append(Batch(watermark, now, _parts(draw, _fired_under(draw, program, rows, (before, watermark)))))
        at += draw.choice([0, draw.randint(0, 25)])
        before, watermark = watermark, draw.choice([watermark, *[shape.epoch + at * shape.unit] * 5])
        now += draw.choice([draw.randint(0, 9), draw.randint(0, 9), 100])
    end = shape.epoch + (at + _END) * shape.unit
    clocks = [
        (watermark, now),
        (end, now + 1_000),
        (end + 1_000, now + 2_000),
        *([(MAX, now + 3_000)] if draw.random() < 0.3 else []),
    ]
    return [*made, *(Batch(*clock, ()) for clock in clocks)]


def under_strategy(draw: Random, stream: Sequence[Batch]) -> list[Batch]:
    """Return batches under the watermarks that a random strategy makes of their rows; those without rows keep theirs at least."""
    unit = draw.choice([1, 1, HOUR])
    idleness, behind_now = draw.choice([None, None, 3, 30]), draw.choice([None, None, None, 50 * unit])
    strategy = Watermarks(draw.choice([0, 3, 25]) * unit, source="source", idleness=idleness, behind_now=behind_now)
    generator, made = WatermarkGenerator(strategy), []
    for batch in stream:
        rows = [time for part in batch.parts for time in part[TIME].drop_null().to_pylist()]
        reached = generator.state.watermark
        made.append(replace(batch, watermark=reached if batch.parts else max(reached, batch.watermark)))
        for time in rows:
            generator.on_event({"source": draw.randrange(3)}, time)
        generator.on_periodic_emit(batch.processing_time)
    return made


def random_rows(draw: Random, count: int, around: int, unit: int = 1, columns: pa.Schema = PLAIN) -> pa.Table:
    """Return rows around an instant, in order of arrival from up to three input partitions, with their system columns."""
    arrays = {field.name: pa.array(values(draw, field.name, count), field.type) for field in columns}
    times = [min(max(around + draw.randint(-25, 40) * unit, MIN + 1), MAX) for _ in range(count)]
    partitions = draw.choice([1, 1, 3])
    system = {
        TIME: pa.array(times, pa.int64()),
        PARTITION: pa.array(sorted(draw.randrange(partitions) for _ in range(count)), pa.int32()),
        POSITION: pa.array(range(count), pa.int64()),
    }
    return pa.table({**arrays, **system})


def _without_times(draw: Random, rows: pa.Table) -> pa.Table:
    times = pa.array([None if draw.random() < 0.05 else time for time in rows[TIME].to_pylist()], pa.int64())
    return rows.set_column(rows.column_names.index(TIME), TIME, times)


def _fired_under(draw: Random, program: Program, rows: pa.Table, watermarks: tuple[int, int]) -> pa.Table:
    """Return rows as an earlier window emits them: under the watermark before its batch, or under that of the batch."""
    if program.upstream is not Upstream.WINDOW_WITH_WATERMARKS:
        return rows
    fired_under = [draw.choice(watermarks) for _ in range(rows.num_rows)]
    return rows.append_column(FIRING_WATERMARK, pa.array(fired_under, pa.int64()))


def _parts(draw: Random, rows: pa.Table) -> tuple[pa.Table, ...]:
    """Return the rows as one or two tables, in no order."""
    at = draw.randint(0, rows.num_rows)
    return (rows.slice(at), rows.slice(0, at)) if draw.random() < 0.5 else (rows,)


@dataclass(frozen=True)
class SmallBatch:
    """One micro-batch that is small enough to be written out: the clocks at its start, and its rows.

    A row is (key, number, event time).
    """

    watermark: int
    processing_time: int
    rows: tuple[tuple[str | None, int, int], ...]


def small_stream(draw: Random, most_rows: int = 6, unit: int = 1) -> list[SmallBatch]:
    """Return a few batches of a few rows of two keys and NULL, at most so many a batch, and an end behind every window."""
    watermark, now, made = -30, 1, []
    for _ in range(draw.randint(1, 6)):
        rows = [
            (draw.choice(["a", "b", None]), draw.randint(-5, 9), draw.randint(-20, 80) * unit)
            for _ in range(draw.randint(0, most_rows))
        ]
        made.append(SmallBatch(watermark * unit, now, tuple(rows)))
        watermark += draw.randint(0, 25)
        now += draw.randint(0, 9)
    return [*made, SmallBatch(watermark * unit, now, ()), SmallBatch(_END * unit, now + 1_000, ())]
