"""Two windows in a row, in one query: requests per server and minute, then the busiest server of each five minutes."""

from replay import replay, session, show

import windowpane as wp

SCHEMA = "server string, at timestamp"
BATCHES = [
    [("a", "2024-05-01 10:00:10"), ("a", "2024-05-01 10:00:20"), ("b", "2024-05-01 10:00:30")],
    [("b", f"2024-05-01 10:03:{second}") for second in (10, 20, 30)],
    [("a", "2024-05-01 10:06:00")],  # moves the watermark to 10:06: both windows close, in this order, in one batch
]


def main(spark):
    """Run to the end of the input, printing each batch."""
    per_minute = (
        wp.stream(replay(spark, SCHEMA, *BATCHES), event_time="at", watermark="0 seconds")
        .key_by("server")
        .window(wp.TumblingEventTimeWindows.of("1 minute"))
        .aggregate(requests=wp.count())
    )
    busiest = per_minute.window_all(wp.TumblingEventTimeWindows.of("5 minutes")).aggregate(
        server=wp.arg_max("server", by="requests"), requests=wp.max("requests")
    )
    busiest.start(main=show("busiest"), trigger={"availableNow": True}).awaitTermination()


if __name__ == "__main__":
    main(session())
