"""A sketch of doubles gives what one of Python values gives, and merges with those that were stored as such."""

from __future__ import annotations

import math
import random
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasketches import kll_doubles_sketch

import windowpane as wp
from windowpane.aggregates.sketches.quantiles import QuantileSketch
from windowpane.kernels.aggregates.protocol import SegmentAggregate, columnar_form
from windowpane.kernels.segments import Segments

SHARES = (0.0, 0.3, 0.5, 1.0)
DRAWN = {
    "small": (pa.int64(), lambda drawn: drawn.randint(-40, 40)),
    "short": (pa.int16(), lambda drawn: drawn.randint(-(2**15), 2**15 - 1)),
    "greater than doubles hold": (pa.int64(), lambda drawn: 2**62 + drawn.randint(0, 40)),
    "double": (pa.float64(), lambda drawn: drawn.choice([0.0, -0.0, math.inf, -math.inf, drawn.random(), 1e300])),
    "float": (pa.float32(), lambda drawn: drawn.choice([0.0, 0.1, -7.25, 3e38])),
    "NaN": (pa.float64(), lambda drawn: drawn.choice([0.5, 1.5, math.nan])),
}


def expected(values: list[Any], q: float) -> Any:
    """Return the smallest value whose rank is at least ``q``; NaN is the largest, and there is one zero."""
    known = sorted((value + 0 for value in values if value is not None), key=lambda value: (math.isnan(value), value))
    return known[max(math.ceil(q * len(known)) - 1, 0)] if known else None


def partials_of(form: SegmentAggregate, groups: list[list[Any]], kind: pa.DataType) -> pa.Table:
    offsets = np.cumsum([0, *map(len, groups)])
    rows = pa.table({"v": pa.array([value for group in groups for value in group], kind)})
    return pa.table(dict(form.fold(pa.table(dict(form.lift(rows))), Segments(np.arange(len(rows)), offsets))))


def partials_of_values(aggregate: Any, groups: list[list[Any]], kind: pa.DataType) -> pa.Table:
    """Return partials as they were stored before: sketches of Python values."""
    bound = aggregate.bind([kind])
    return pa.table({"pb": [reduce(bound.add, group, bound.create_accumulator()).to_bytes() for group in groups]})


@pytest.mark.parametrize("q", SHARES)
@pytest.mark.parametrize("name", DRAWN)
def test_few_values_have_their_exact_quantile_whatever_they_merge_with(name: str, q: float) -> None:
    kind, value = DRAWN[name]
    drawn = random.Random(f"{name} {q}")
    aggregate = wp.approx_quantile("v", q)
    form = columnar_form(aggregate, "p", ("v",), [kind])
    assert isinstance(form, SegmentAggregate)
    groups = [[None if drawn.random() < 0.1 else value(drawn) for _ in range(drawn.randint(1, 30))] for _ in range(40)]
    groups = [*groups, [None], [None, None]]
    groups = [pa.array(group, kind).to_pylist() for group in groups]
    anew, stored = partials_of(form, groups, kind), partials_of_values(aggregate, groups, kind)
    assert form.finish(stored).equals(form.finish(anew)) or name == "NaN"
    assert [str(each) for each in form.finish(anew).to_pylist()] == [str(expected(group, q)) for group in groups]
    # Three groups, the first of new and of stored partials, the second of new ones alone, the last of one alone.
    together = pa.concat_tables([anew, stored])
    members = [[0, 1, len(groups) + 2, 3, len(groups) + 4], [5, 6, 40, 7], [41]]
    merged = form.merge(together, Segments(np.concatenate(members), np.cumsum([0, *map(len, members)])))
    values = [[value for place in places for value in groups[place % len(groups)]] for places in members]
    found = form.finish(pa.table(dict(merged))).to_pylist()
    assert [str(each) for each in found] == [str(expected(group, q)) for group in values]


def test_many_values_keep_their_rank_when_sketches_of_both_kinds_merge() -> None:
    aggregate = wp.approx_quantile("v", 0.25, accuracy=200)
    form = columnar_form(aggregate, "p", ("v",), [pa.int64()])
    assert isinstance(form, SegmentAggregate)
    parts = [list(range(start, 40_000, 4)) for start in range(4)]
    anew, stored = partials_of(form, parts[:2], pa.int64()), partials_of_values(aggregate, parts[2:], pa.int64())
    both = Segments(np.arange(4), np.array([0, 4]))
    (found,) = form.finish(pa.table(dict(form.merge(pa.concat_tables([anew, stored]), both)))).to_pylist()
    # 1 / 200 is the error that one in a hundred results exceeds; five times that is never seen.
    assert abs(found / 40_000 - 0.25) < 5 / 200
    assert isinstance(found, int)


@pytest.mark.parametrize("size", [0, 1, 2, 10, 700, 100_000])
def test_a_sketch_of_doubles_is_rewritten_value_by_value(size: int) -> None:
    doubles = kll_doubles_sketch(300)
    doubles.update(np.random.default_rng(5).permutation(size).astype(float))
    values = QuantileSketch.from_doubles(bytes(doubles.serialize()), int).kll
    assert (values.n, values.num_retained, values.is_empty()) == (doubles.n, doubles.num_retained, doubles.is_empty())
    if size:
        shares = np.linspace(0, 1, 50).tolist()
        assert values.get_quantiles(shares, True) == doubles.get_quantiles(shares, True)
        assert (values.get_min_value(), values.get_max_value()) == (0, size - 1)
        assert {type(values.get_quantile(share, True)) for share in shares} == {int}
