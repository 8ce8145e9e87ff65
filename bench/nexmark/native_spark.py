"""The queries that native Spark runs as a whole, of streams of the entities, each with the output mode that it needs.

It refuses the others, or runs a part: no exact DISTINCT on streams, no join of changing groups, no numbering but by windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bench.nexmark.queries import DELAY_SECONDS, QUERIES, RANKS, channel_ids

_DELAY = f"{DELAY_SECONDS} seconds"


class Program(NamedTuple):
    """A query on native Spark.

    Args:
        of: makes its results of the streams of the entities.
        mode: the output mode.
    """

    of: Callable[[Mapping[str, Any]], Any]
    mode: str = "append"


def _same_text(name: str) -> Program:
    """Return the program that runs the query as it is written."""

    def results(entities: Mapping[str, Any]) -> Any:
        query = QUERIES[name]
        for entity in query.reads:
            entities[entity].createOrReplaceTempView(entity)
        return entities[query.reads[0]].sparkSession.sql(query.sql)

    return Program(results)


def _registered_sellers(entities: Mapping[str, Any]) -> Any:
    from pyspark.sql import functions as F

    window = F.window("date_time", "10 seconds").alias("w")
    persons, auctions = (entities[name].withWatermark("date_time", _DELAY) for name in ("person", "auction"))
    registered = persons.groupBy("id", "name", window).count().select("id", "name", "w")
    sellers = auctions.groupBy(F.col("seller").alias("id"), window).count().select("id", "w")
    return registered.join(sellers, ["id", "w"]).select("id", "name", F.col("w.start").alias("window_start"))


def _sessions(entities: Mapping[str, Any]) -> Any:
    from pyspark.sql import functions as F

    bids = entities["bid"].withWatermark("date_time", _DELAY)
    groups = bids.groupBy("bidder", F.session_window("date_time", "10 seconds").alias("w")).count()
    return groups.select("bidder", F.col("count").alias("n"), F.expr("w.start AS window_start"), F.expr("w.end AS window_end"))


def _channel_ids(entities: Mapping[str, Any]) -> Any:
    """Spark's ``regexp_extract`` gives an empty text where nothing matches."""
    entities["bid"].createOrReplaceTempView("bid")
    number = "nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')"
    return entities["bid"].sparkSession.sql(channel_ids(number))


def _by_auction_and_day(entities: Mapping[str, Any]) -> Any:
    from pyspark.sql import functions as F

    groups = entities["bid"].groupBy("auction", F.date_format("date_time", "yyyy-MM-dd").alias("bid_day"))
    counts = [F.count(F.lit(1)), *(F.expr(f"count(*) FILTER (WHERE {where})") for where in RANKS.values())]
    return groups.agg(*counts, F.min("price"), F.max("price"), F.avg("price"), F.sum("price"))


PROGRAMS = {
    **{name: _same_text(name) for name in ("q0", "q1", "q2", "q3", "q14", "q20", "q22", "q23")},
    "q21": Program(_channel_ids),
    "q8": Program(_registered_sellers),
    "q11": Program(_sessions),
    "q17": Program(_by_auction_and_day, "update"),
}
