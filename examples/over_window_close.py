"""OVER windows on window close: each reading once, in order, beside the highest of the hour before it; one is too late."""

from replay import replay, session, show

import windowpane as wp

SCHEMA = "id int, sensor string, at timestamp, value int"
BATCHES = [
    [(1, "a", "2024-05-01 10:30:00", 7), (2, "a", "2024-05-01 10:00:00", 9)],
    [(3, "a", "2024-05-01 11:20:00", 5)],
    [(4, "a", "2024-05-01 10:10:00", 8)],  # the watermark is 11:20 by now
    [(5, "a", "2024-05-01 13:00:00", 1)],
    [(6, "a", "2024-05-01 13:30:00", 1)],
]


def main(spark):
    """Run to the end of the input, printing the results of each batch."""
    late = wp.OutputTag("late")
    result = (
        wp.over(replay(spark, SCHEMA, *BATCHES), event_time="at", watermark="0 seconds", key="id")
        .partition_by("sensor")
        .order_by("at")
        .select("id", "at", "value", n=wp.row_number(), hour=wp.max("value").range("-1 hour", 0))
        .side_output_late_data(late)
        .emit_on_window_close()
    )
    print(result.explain())
    result.start(main=show("closed"), late=show("late"), trigger={"availableNow": True}).awaitTermination()


if __name__ == "__main__":
    main(session())
