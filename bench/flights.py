"""The flights of 2013 from New York as rows (k, price, ts): key is airport and carrier, price the delay, time the schedule.

They come in the order in which they really departed, so their disorder is real: up to a day behind.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.demo.flights import in_order_of_departure, raw_flights

FLIGHTS, KEYS = 336_776, 35
DELAY_SECONDS = 2 * 86_400
"""So late no flight departs."""
_EARLIEST = 100
"""No flight leaves more minutes ahead of its schedule; delays are counted from there."""


@cache
def _columns() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    flights = in_order_of_departure(raw_flights())
    names = pc.binary_join_element_wise(flights["origin"], flights["carrier"], " ").combine_chunks()
    keys = names.dictionary_encode().indices.to_numpy().astype(np.int64)
    delays = pc.add(pc.fill_null(flights["dep_delay"], 0), _EARLIEST).to_numpy()
    return keys, delays, flights["scheduled"].cast(pa.int64()).to_numpy()


def columns(first: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return keys, prices and times of flights ``first`` to ``last - 1``."""
    keys, prices, times = _columns()
    return keys[first:last], prices[first:last], times[first:last]
