"""increase and rate of counters: values by hand, resets as in PromQL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from windowpane import aggregates as agg
from windowpane.errors import AggregateTypeError
from windowpane.windowing.aggregates import Aggregate

AT = pa.timestamp("us", "UTC")


def of(aggregate: Aggregate, samples: Sequence[tuple[Any, int | None]], kind: pa.DataType | None = None) -> Any:
    bound = aggregate.bind([kind or pa.int64(), AT])
    parts = [bound.create_accumulator(), bound.create_accumulator()]
    for number, (value, second) in enumerate(samples):
        at = None if second is None else datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
        parts[number % 2] = bound.add(parts[number % 2], value, at)
    return bound.get_result(bound.merge(*parts))


def test_a_counter_that_begins_anew() -> None:
    samples = [(5, 0), (15, 10), (3, 20), (8, 30), (1, 40)]  # 10, then 3 after a reset, 5, then 1 after another
    assert of(agg.increase("v", "t"), samples) == 19.0
    assert of(agg.rate("v", "t"), samples) == 19.0 / 40
    assert of(agg.rate("v", "t"), samples[::-1]) == 19.0 / 40  # by time, not by arrival


def test_large_whole_numbers_grow_exactly() -> None:
    """A double holds no odd number of this size; the restart at 4 adds all of it."""
    large = 2**60 + 1
    assert of(agg.increase("v", "t"), [(large, 0), (large + 2, 1)]) == 2.0
    assert of(agg.increase("v", "t"), [(large, 0), (large + 2, 1), (4, 2), (5, 4)]) == 7.0
    cents = [(Decimal("90071992547409930.01"), 0), (Decimal("90071992547409930.26"), 1)]
    assert of(agg.increase("v", "t"), cents, pa.decimal128(20, 2)) == 0.25


@pytest.mark.parametrize(
    ("samples", "grown"),
    [
        ([(0.0, 0), (1.7e308, 1), (0.0, 2), (1.7e308, 3)], math.inf),
        ([(-1.7e308, 0), (1.7e308, 1)], math.inf),
        ([(1.0, 0), (math.inf, 1), (2.0, 2)], math.inf),
    ],
)
def test_what_is_beyond_doubles_is_infinite(samples: list[tuple[float, int]], grown: float) -> None:
    assert of(agg.increase("v", "t"), samples, pa.float64()) == grown


@pytest.mark.parametrize("samples", [[], [(5, 0)], [(5, 0), (None, 9)], [(5, 0), (9, None)], [(5, 0), (7, 0)]])
def test_without_two_times_there_is_no_rate(samples: list[tuple[Any, Any]]) -> None:
    assert of(agg.rate("v", "t"), samples) is None
    assert of(agg.increase("v", "t"), samples) is None


def test_it_takes_numbers_and_timestamps() -> None:
    with pytest.raises(AggregateTypeError, match="a number, and a timestamp"):
        agg.rate("v", "t").bind([pa.string(), AT])
    with pytest.raises(AggregateTypeError, match="a number, and a timestamp"):
        agg.rate("v", "t").bind([pa.int64(), pa.int64()])
