"""The queries that have windows, ranks or joins by time, in windowpane's Python, of streams of the entities.

The others are Spark's own (q0, q1, q2, q22), or join tables that grow for ever (q3, q20, q23): what native Spark runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

import windowpane as wp
from bench.nexmark.queries import DELAY_SECONDS, RANKS

_TEN = wp.TumblingEventTimeWindows.of("10 seconds")
_HOPS = wp.SlidingEventTimeWindows.of("10 seconds", "2 seconds")
_TWO = wp.TumblingEventTimeWindows.of("2 seconds")
_DAY = wp.TumblingEventTimeWindows.of("1 day")


def _stream(entities: Mapping[str, Any], entity: str) -> wp.Stream:
    return wp.stream(entities[entity], event_time="date_time", watermark=f"{DELAY_SECONDS} seconds")


def _hottest(entities: Mapping[str, Any]) -> Any:
    counted = _stream(entities, "bid").key_by("auction").window(_HOPS).aggregate(num=wp.count())
    hops = counted.select("auction", "num", hop=wp.col("window_start"), closed=wp.col("window_end"))
    together = wp.stream(hops.df, event_time="closed", name="hottest").key_by("hop").window(_TWO)
    return together.apply_in_arrow(_with_most, "auction long, num long").select("auction", "num", window_start=wp.col("hop"))


def _with_most(counted: pa.Table) -> pa.Table:
    """Return the rows of a window with its largest count."""
    rows = counted.filter(pc.equal(counted["num"], pc.max(counted["num"])))
    return rows.select(["hop", "window_start", "window_end", "auction", "num"])


def _highest(entities: Mapping[str, Any]) -> Any:
    bids = _stream(entities, "bid")
    most = bids.window_all(_TEN).aggregate(most=wp.max("price"))
    near = wp.join(bids, wp.stream(most.df, event_time="window_end")).on(("price", "most")).within("0 seconds", "10 seconds")
    return near.select("auction", "price", "bidder", "date_time", "extra")


def _registered_sellers(entities: Mapping[str, Any]) -> Any:
    persons, auctions = _stream(entities, "person"), _stream(entities, "auction")
    return wp.join(persons, auctions).on(("id", "seller")).window(_TEN).how("semi").select("id", "name", "window_start")


def _sessions(entities: Mapping[str, Any]) -> Any:
    sessions = wp.EventTimeSessionWindows.with_gap("10 seconds")
    counted = _stream(entities, "bid").key_by("bidder").window(sessions).aggregate(n=wp.count())
    return counted.select("bidder", "n", "window_start", "window_end")


def _bids_of_auctions(entities: Mapping[str, Any]) -> wp.WindowedStream:
    """Return the bids of each auction as a session that ends when the auction has expired, whenever its first bid was."""
    auctions, bids = _stream(entities, "auction"), _stream(entities, "bid")
    near = wp.join(auctions, bids).on(("id", "auction")).within("0 seconds", wp.left("expires"))
    columns = ("id", "item_name", "seller", "category", "expires", "bidder", "price")
    pairs = near.select(*columns, bid_time=wp.right("date_time"))
    left = wp.EventTimeSessionWindows.with_dynamic_gap(F.expr("expires - bid_time + INTERVAL '0.001' SECOND"))
    return wp.stream(pairs.df, event_time="bid_time", name="auctions").key_by("id").window(left)


def _means_of_winning(entities: Mapping[str, Any]) -> Any:
    winning = _bids_of_auctions(entities).aggregate(category=wp.first("category"), highest=wp.max("price"))
    by_category = wp.stream(winning.df, event_time="window_end", name="means").key_by("category")
    return _kept_right(by_category, wp.GlobalWindows.create()).aggregate(mean=wp.avg("highest")).select("category", "mean")


def _winning_bids(entities: Mapping[str, Any]) -> Any:
    """Of bids of one price the earliest one wins, of one time that of the smaller bidder."""
    names = ("item_name", "seller", "category", "bidder", "price", "bid_time")
    best = wp.arg_max(F.struct(*names), F.struct("price", -F.unix_micros("bid_time"), -F.col("bidder")))
    fields = {name: F.col(f"bid.{name}") for name in names}
    return _bids_of_auctions(entities).aggregate(bid=best).select("id", **fields, place=F.lit(1))


def _kept_right(keyed: wp.KeyedStream, assigner: wp.WindowAssigner) -> wp.WindowedStream:
    """Return windows whose results are a changelog, which each batch brings up to date."""
    return keyed.window(assigner).trigger(wp.EachBatch()).accumulation("retracting")


def _of_days(entities: Mapping[str, Any], aggregates: Mapping[str, Any], *keys: str) -> Any:
    days = _kept_right(_stream(entities, "bid").key_by(*keys or [F.lit("all").alias("of")]), _DAY)
    bid_day = F.date_format("window_start", "yyyy-MM-dd")
    columns = {name: wp.col(name) for name in aggregates}
    return days.aggregate(**aggregates).select(*keys, bid_day=bid_day, **columns)


def _bids_by_price() -> dict[str, Any]:
    return {"total_bids": wp.count(), **{f"{name}_bids": wp.count(_where(rank, "1")) for name, rank in RANKS.items()}}


def _distinct() -> dict[str, Any]:
    found = {}
    for column in ("bidder", "auction"):
        found[f"total_{column}s"] = wp.count_distinct(column)
        found |= {f"{name}_{column}s": wp.count_distinct(_where(rank, column)) for name, rank in RANKS.items()}
    return found


def _where(condition: str, value: str) -> Any:
    return F.expr(f"CASE WHEN {condition} THEN {value} END")


def _prices() -> dict[str, Any]:
    return {f"{name}_price": of("price") for name, of in {"min": wp.min, "max": wp.max, "avg": wp.avg, "sum": wp.sum}.items()}


def _last_bids(entities: Mapping[str, Any]) -> Any:
    names = ("price", "channel", "url", "date_time", "extra")
    for_ever = _kept_right(_stream(entities, "bid").key_by("auction", "bidder"), wp.GlobalWindows.create())
    last = for_ever.aggregate(bid=wp.arg_max(F.struct(*names), F.struct("date_time", "price")))
    return last.select("auction", "bidder", **{name: F.col(f"bid.{name}") for name in names})


def _highest_bids(entities: Mapping[str, Any]) -> Any:
    bids = wp.over(entities["bid"], key=("auction", "bidder", "date_time", "extra")).partition_by("auction")
    ordered = bids.order_by(wp.col("price").desc(), "date_time", "bidder")
    return ordered.select("*", place=wp.row_number()).emit_on_update().where(wp.col("place") <= 10)


PROGRAMS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "q4": _means_of_winning,
    "q5": _hottest,
    "q7": _highest,
    "q8": _registered_sellers,
    "q9": _winning_bids,
    "q11": _sessions,
    "q15": lambda entities: _of_days(entities, _bids_by_price() | _distinct()),
    "q16": lambda entities: _of_days(entities, _bids_by_price() | _distinct(), "channel"),
    "q17": lambda entities: _of_days(entities, _bids_by_price() | _prices(), "auction"),
    "q18": _last_bids,
    "q19": _highest_bids,
}
"""Each makes its results, which ``start`` runs, of the streams of the entities."""

CLOSING = frozenset({"q4", "q5", "q7", "q8", "q9", "q11"})
"""Those whose results come when the watermark has passed them; the others keep them right with each batch."""
