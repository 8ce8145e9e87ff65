"""Hourly tumbling windows: one row is late but allowed and refines its result, one is too late and leaves by the side."""

from replay import replay, session, show

import windowpane as wp

SCHEMA = "origin string, scheduled timestamp, delay int"
BATCHES = [
    [("JFK", "2013-01-01 08:05:00", 10), ("JFK", "2013-01-01 08:50:00", 30), ("LGA", "2013-01-01 08:15:00", 0)],
    [("JFK", "2013-01-01 09:30:00", 5)],  # moves the watermark to 09:30: the windows of 08:00 close
    [("JFK", "2013-01-01 08:59:00", 80)],  # late, within the two hours allowed
    [("JFK", "2013-01-01 14:00:00", 1)],  # moves the watermark to 14:00
    [("LGA", "2013-01-01 08:20:00", 99)],  # too late
]


def main(spark):
    """Run to the end of the input, printing each batch."""
    late = wp.OutputTag("late")
    result = (
        wp.stream(replay(spark, SCHEMA, *BATCHES), event_time="scheduled", watermark="0 seconds")
        .key_by("origin")
        .window(wp.TumblingEventTimeWindows.of("1 hour"))
        .allowed_lateness("2 hours")
        .side_output_late_data(late)
        .aggregate(flights=wp.count(), delay=wp.avg("delay"))
    )
    query = result.start(main=show("hourly"), late=show("late"), trigger={"availableNow": True})
    query.awaitTermination()


if __name__ == "__main__":
    main(session())
