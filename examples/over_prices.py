"""OVER windows on update: the step from one trade to the next, as a changelog; a late trade changes the step after it."""

from replay import replay, session, show

import windowpane as wp

SCHEMA = "trade int, stock string, at timestamp, price int"
BATCHES = [
    [(1, "ACME", "2024-05-01 10:00:00", 100), (2, "ACME", "2024-05-01 10:02:00", 130)],
    [(3, "ACME", "2024-05-01 10:01:00", 90)],  # arrives late: the step of trade 2 is no longer 30
]


def main(spark):
    """Run to the end of the input, printing each batch of changes."""
    result = (
        wp.over(replay(spark, SCHEMA, *BATCHES), key="trade")
        .partition_by("stock")
        .order_by("at")
        .select("trade", "price", step=wp.col("price") - wp.lag("price"))
        .emit_on_update()
    )
    result.start(main=show("steps"), trigger={"availableNow": True}).awaitTermination()


if __name__ == "__main__":
    main(session())
