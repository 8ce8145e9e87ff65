"""``windowpane demo --live``: one day of the flights, paced in real time, its windows drawn while they fill.

The program is that of the demo: the same windows, trigger, lateness and numbering of results. It runs on the reference operator,
in this process and without Spark, so that it begins at once. A frame is a micro-batch: flights that have departed since the last
one, then the watermark that they make.
"""

from __future__ import annotations

import argparse
import datetime as dt
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

import windowpane as wp
from windowpane.arrays.values import JsonValue, Row, Value
from windowpane.demo import flights, program
from windowpane.testing import WindowTestHarness
from windowpane.testing.records import LateRecord
from windowpane.windowing.times import MIN, to_micros

DAY = dt.date(2013, 7, 10)
"""Thunderstorms: 192 flights left more than an hour and a half late, fifteen of them more than six hours."""
SPEED = 20.0
"""Minutes of the flights' clock in a second."""
FRAMES = 8
"""Frames a second."""

_MINUTE = 60_000_000
_COLUMNS = ("origin", "scheduled", "departed", "dep_delay")
_COLOURS = {program.EARLY: "yellow", program.ON_TIME: "green", program.REFINED: "magenta"}
_FLIGHTS_OF_A_BLOCK = 2

Delays = tuple[int, tuple[float, ...]]


class HourlyDelays(wp.AggregateFunction[Delays, dict[str, Value]]):
    """The aggregates of the demo's program, for the reference operator: how many flights of an hour, and their delays."""

    def create_accumulator(self) -> Delays:
        return 0, ()

    def add(self, value: Row, accumulator: Delays) -> Delays:
        """Count a flight; a cancelled one has no delay."""
        scheduled, delays = accumulator
        delay = value["dep_delay"]
        return scheduled + 1, delays if delay is None else (*delays, delay)

    def get_result(self, accumulator: Delays) -> dict[str, Value]:
        """Return what the demo's process function takes."""
        scheduled, delays = accumulator
        mean, p90 = (float(np.mean(delays)), float(np.quantile(delays, 0.9))) if delays else (None, None)
        return {"scheduled": scheduled, "departed": len(delays), "mean_delay": mean, "p90_delay": p90}

    def merge(self, left: Delays, right: Delays) -> Delays:
        return left[0] + right[0], left[1] + right[1]


@dataclass(frozen=True)
class Flight:
    """A flight on its way into the stream; times in microseconds."""

    origin: str
    scheduled: int
    arrives: int
    dep_delay: int | None


def flights_of(day: dt.date) -> list[Flight]:
    """Return the flights scheduled on a day, in the order in which they departed."""
    departures = flights.in_order_of_departure(flights.raw_flights(), [day.month]).select(_COLUMNS)
    on_day = pc.equal(departures["scheduled"].cast(pa.timestamp("us")).cast(pa.date32()), pa.scalar(day))
    times = [pa.field(name, pa.int64()) for name in ("scheduled", "departed")]
    chosen = departures.filter(on_day).cast(pa.schema([departures.schema.field(0), *times, departures.schema.field(3)]))
    return [
        Flight(row["origin"], row["scheduled"], row["departed"] or row["scheduled"], row["dep_delay"])
        for row in chosen.to_pylist()
    ]


@dataclass
class Hour:
    """One window: how many flights have come to it, and its results so far."""

    flights: int = 0
    results: list[dict[str, JsonValue]] = field(default_factory=list)


class Board:
    """The windows of a day while its flights depart.

    Args:
        day: the flights, in the order in which they arrive.
    """

    def __init__(self, day: Sequence[Flight]) -> None:
        self._waiting = list(reversed(day))
        spec = wp.WindowSpec(
            wp.TumblingEventTimeWindows.of("1 hour"),
            wp.WindowFunctionSpec.aggregate(HourlyDelays(), program.Timing()),
            wp.ContinuousEventTimeTrigger.of("15 minutes"),
            allowed_lateness=to_micros(program.ALLOWED_LATENESS),
            refine="last",
        )
        self._harness = WindowTestHarness(spec, watermarks=wp.Watermarks.bounded(program.WATERMARK))
        self.clock = day[0].arrives
        self.hours: dict[tuple[int, str], Hour] = {}
        self.dropped = 0

    @property
    def is_done(self) -> bool:
        return not self._waiting

    @property
    def watermark(self) -> int:
        """The watermark, in microseconds."""
        return self._harness.watermark

    def advance(self, clock: int) -> None:
        """Take the flights that have departed by ``clock``, then move the watermark."""
        self.clock = clock
        while self._waiting and self._waiting[-1].arrives <= clock:
            flight = self._waiting.pop()
            self._harness.process_element({"dep_delay": flight.dep_delay}, flight.scheduled, flight.origin)
            self._hour(flight.scheduled, flight.origin).flights += 1
        self._harness.finish_batch()
        self._take()

    def close(self) -> None:
        """End the day: the windows that are still open give their results."""
        self._harness.process_watermark(max(start for start, _ in self.hours) + 60 * _MINUTE)
        self._take()

    def _hour(self, instant: int, origin: str) -> Hour:
        return self.hours.setdefault((instant - instant % (60 * _MINUTE), origin), Hour())

    def _take(self) -> None:
        for record in self._harness.take_output():
            self._hour(record.timestamp, record.key).results.append(record.value)
        late = [record for record in self._harness.take_emitted() if isinstance(record, LateRecord) and record.dropped]
        for missed in late:
            self._hour(missed.timestamp, missed.key).flights -= 1
        self.dropped += len(late)

    def counted(self) -> dict[str, int]:
        """Return how many results were early, on time and refined."""
        timings = [result["timing"] for hour in self.hours.values() for result in hour.results]
        return {timing: timings.count(timing) for timing in _COLOURS}


def drawn(board: Board) -> Group:
    """Return the board as a picture: an hour a row, an airport a column."""
    origins = sorted({origin for _, origin in board.hours})
    table = Table("hour", *origins, title="Departures of an hour, by their schedule", expand=True)
    for start in sorted({start for start, _ in board.hours}):
        table.add_row(_clock(start), *[_cell(board.hours.get((start, origin), Hour())) for origin in origins])
    legend = Text.assemble(*[(f"{timing}: {number:,}   ", _COLOURS[timing]) for timing, number in board.counted().items()])
    reached = "none yet" if board.watermark == MIN else _clock(board.watermark)
    state = f"clock {_clock(board.clock)} · watermark {reached} · late and dropped {board.dropped}"
    return Group(table, Text(state), legend)


def _cell(hour: Hour) -> Text:
    blocks = Text("▇" * -(-hour.flights // _FLIGHTS_OF_A_BLOCK), "cyan")
    if not hour.results:
        return blocks
    last = hour.results[-1]
    timing, delay = last["timing"], last["mean_delay"]
    text = f" {last['flights'] + last['cancelled']} {timing}" + ("" if delay is None else f", {round(delay):+d} min")
    return blocks.append(text, _COLOURS[timing])


def _clock(instant: int) -> str:
    return f"{wp.TimeWindow(instant, instant).start_time:%a %H:%M}"


def show(
    console: Console,
    day: Sequence[Flight],
    speed: float = SPEED,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Board:
    """Show a day until its last flight has departed, and return its board.

    Args:
        console: where it is drawn.
        day: the flights, in the order in which they arrive.
        speed: minutes of the flights' clock in a second of ``now``.
        now: a clock, in seconds.
        sleep: waits on that clock.
    """
    board, began = Board(day), now()
    with Live(drawn(board), console=console, auto_refresh=False) as live:
        while not board.is_done:
            sleep(1 / FRAMES)
            board.advance(day[0].arrives + int((now() - began) * speed * _MINUTE))
            live.update(drawn(board), refresh=True)
        board.close()
        live.update(drawn(board), refresh=True)
    return board


def main(arguments: Iterable[str]) -> None:
    parser = argparse.ArgumentParser("windowpane demo --live", description="One day of flights, paced in real time.")
    parser.add_argument("--speed", type=float, default=SPEED, help="minutes of the flights' clock in a second (%(default)s)")
    parser.add_argument("--day", type=dt.date.fromisoformat, default=DAY, help="a day of 2013 (%(default)s)")
    chosen = parser.parse_args(list(arguments))
    if chosen.speed <= 0:
        parser.error(f"--speed {chosen.speed}: time goes forward, so it is more than 0.")
    if chosen.day.year != DAY.year:
        parser.error(f"--day {chosen.day}: the flights are those of {DAY.year}.")
    console = Console()
    board = show(console, flights_of(chosen.day), chosen.speed)
    console.print(
        f"{sum(hour.flights for hour in board.hours.values()):,} flights in {len(board.hours)} windows. A result is early while "
        "its hour fills, on time when the watermark has passed its end, refined when delayed flights depart after that.\n"
        "The whole year on Spark: windowpane demo"
    )
