"""The program: how late do flights leave each airport, hour by hour?

An hour's first results come early, each quarter of an hour while flights still depart; then one on time, when the watermark says
that the hour is complete; then refined ones, for up to six hours, as delayed flights depart after all. A flight that departs even
later is dropped, but not lost: it goes to the side output ``late``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import windowpane as wp
from windowpane import ContinuousEventTimeTrigger, TumblingEventTimeWindows
from windowpane.arrays.values import Row
from windowpane.demo import flights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WATERMARK = "30 minutes"
ALLOWED_LATENESS = "6 hours"
LATE = wp.OutputTag("late")

EARLY, ON_TIME, REFINED = "early", "on time", "refined"
RESULT = "firing bigint, timing string, flights bigint, cancelled bigint, mean_delay double, p90_delay double"


class Timing(wp.ProcessWindowFunction):
    """Numbers the results of an hour, and adds to each whether it is early, on time or refined.

    When the watermark jumps past several quarters of an hour, each of them fires, on the same flights; only the first has
    new values, and only that one is emitted.
    """

    def process(self, key: str, context: wp.ProcessContext, elements: Sequence[Row]) -> Iterator[Row]:
        """Take the hour's aggregates and return them as a result, unless the last one was the same."""
        (hour,) = elements
        last = context.window_state("last")
        firing, was, seen = last.get() or (0, EARLY, 0)
        timing = self._timing(context, was)
        if hour["scheduled"] == seen and timing != ON_TIME:
            return
        last.update((firing + 1, timing, hour["scheduled"]))
        yield {
            "firing": firing + 1,
            "timing": timing,
            "flights": hour["departed"],
            "cancelled": hour["scheduled"] - hour["departed"],
            "mean_delay": hour["mean_delay"],
            "p90_delay": hour["p90_delay"],
        }

    def clear(self, context: wp.ProcessContext) -> None:
        context.window_state("last").clear()

    def _timing(self, context: wp.ProcessContext, was: str) -> str:
        if context.current_watermark < context.window.max_timestamp:
            return EARLY
        return ON_TIME if was == EARLY else REFINED


def hourly_delays(departures: DataFrame) -> wp.Result:
    """Return the program over a DataFrame of departures; delays are in minutes."""
    return (
        wp.stream(departures, event_time="scheduled", watermark=WATERMARK, heartbeat="heartbeat")
        .key_by("origin")
        .window(TumblingEventTimeWindows.of("1 hour"))
        .trigger(ContinuousEventTimeTrigger.of("15 minutes"))
        .allowed_lateness(ALLOWED_LATENESS)
        .side_output_late_data(LATE)
        .aggregate(
            scheduled=wp.count(),
            departed=wp.count("dep_delay"),
            mean_delay=wp.avg("dep_delay"),
            p90_delay=wp.quantile("dep_delay", 0.9),
            process=Timing(),
            schema=RESULT,
        )
    )


def start(spark: SparkSession, replay: Path, out: Path) -> StreamingQuery:
    """Start the program on the files in ``replay``, one a micro-batch; return the query, which ends by itself."""
    departures = spark.readStream.schema(flights.SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(replay))
    return hourly_delays(departures).start(
        main=str(out / "main"),
        late=str(out / "late"),
        checkpoint=str(out / "checkpoint"),
        trigger={"availableNow": True},
    )
