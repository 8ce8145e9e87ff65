"""Sessions whose gap depends on the row: gold customers may pause for half an hour, others for five minutes."""

from pyspark.sql import functions as F
from replay import session

import windowpane as wp

CLICKS = [
    ("ann", "gold", "2024-05-01 10:00:00", "/"),
    ("ann", "gold", "2024-05-01 10:20:00", "/cart"),
    ("bob", "free", "2024-05-01 10:00:00", "/"),
    ("bob", "free", "2024-05-01 10:03:00", "/help"),
    ("bob", "free", "2024-05-01 10:20:00", "/"),
]


def main(spark):
    """Print the sessions of a static DataFrame: bounded input, so every session ends."""
    clicks = spark.createDataFrame(CLICKS, "who string, tier string, at string, page string").selectExpr(
        "who", "tier", "page", "to_timestamp(at) AS at"
    )
    sessions = (
        wp.stream(clicks, event_time="at")
        .key_by("who")
        .window(wp.EventTimeSessionWindows.with_dynamic_gap(F.when(F.col("tier") == "gold", "30 minutes").otherwise("5 minutes")))
        .aggregate(clicks=wp.count(), pages=wp.collect_set("page"))
    )
    sessions.df.orderBy("who", "window_start").show(truncate=False)


if __name__ == "__main__":
    main(session())
