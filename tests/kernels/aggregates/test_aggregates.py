"""Every columnar aggregate gives what its bound aggregate does, however rows are cut and in whatever order the parts merge."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.examples import examples
from windowpane.aggregates.moments import welford
from windowpane.engines.common.arrival import numbered
from windowpane.errors import AggregateOverflowError
from windowpane.kernels.aggregates.protocol import columnar_form
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.segments import Segments
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates.definition import definitions

NAN, INF = math.nan, math.inf

integers = st.sampled_from([0, 1, 2, 3, -1, 2**31, -(2**63), 2**63 - 1, 2**53 + 1])
doubles = st.sampled_from([0.0, -0.0, 0.1, 0.2, 1.5, -3.0, 1e15, NAN, INF, -INF])
texts = st.sampled_from(["", "a", "b", "aa", "é", "z"])
narrow = st.sampled_from([Decimal("0.00"), Decimal("1.25"), Decimal("-99.99"), Decimal("3.10")])
wide = st.sampled_from([Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal("9" * 38), Decimal(1), Decimal(0)])
intervals = st.sampled_from([timedelta(0), timedelta(microseconds=1), timedelta(days=-3), timedelta(seconds=5)])

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): integers,
    pa.int16(): st.integers(-3, 3),
    pa.float64(): doubles,
    pa.float32(): st.sampled_from([0.0, -0.0, 0.5, 2.25, NAN, -INF]),
    pa.decimal128(5, 2): narrow,
    pa.decimal128(38, 0): wide,
    pa.string(): texts,
    pa.binary(): texts.map(str.encode),
    pa.bool_(): st.booleans(),
    pa.date32(): st.sampled_from([date(2020, 1, 1), date(1969, 12, 31)]),
    pa.timestamp("us", tz="UTC"): st.sampled_from([datetime(2020, 1, 1, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC)]),
    pa.duration("us"): intervals,
    pa.list_(pa.float64()): st.lists(st.none() | doubles, max_size=2),
    pa.struct([("x", pa.int64()), ("y", pa.string())]): st.fixed_dictionaries({"x": st.none() | integers, "y": texts}),
    pa.map_(pa.string(), pa.int64()): st.lists(st.tuples(texts, integers), max_size=2, unique_by=lambda entry: entry[0]),
}
EVERY = tuple(VALUES)
ORDERABLE = tuple(kind for kind in EVERY if not pa.types.is_map(kind))
NUMBERS = tuple(kind for kind in EVERY if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
AMOUNTS = (*NUMBERS, pa.duration("us"))
TEXTS = (pa.string(), pa.binary())

CALLS: list[tuple[Aggregate, tuple[pa.DataType, ...]]] = [
    (wp.count("v"), EVERY),
    (wp.count_distinct("v"), EVERY),
    (wp.count_distinct("v", "w"), EVERY),
    (wp.sum("v"), AMOUNTS),
    (wp.avg("v"), AMOUNTS),
    (wp.min("v"), ORDERABLE),
    (wp.max("v"), ORDERABLE),
    (wp.var_pop("v"), NUMBERS),
    (wp.var_samp("v"), NUMBERS),
    (wp.stddev_pop("v"), NUMBERS),
    (wp.stddev_samp("v"), NUMBERS),
    (wp.first("v"), EVERY),
    (wp.first("v", ignore_nulls=True), EVERY),
    (wp.last("v"), EVERY),
    (wp.last("v", ignore_nulls=True), EVERY),
    (wp.any_value("v"), EVERY),
    (wp.arg_min("w", "v"), ORDERABLE),
    (wp.arg_max("w", "v"), ORDERABLE),
    (wp.arg_max("v", "w"), EVERY),
    (wp.bool_and("v"), (pa.bool_(),)),
    (wp.bool_or("v"), (pa.bool_(),)),
    (wp.collect_list("v"), EVERY),
    (wp.collect_set("v"), EVERY),
    (wp.string_agg("v", "; "), TEXTS),
    (wp.median("v"), AMOUNTS),
    (wp.quantile("v", 0.9), AMOUNTS),
    (wp.mode("v"), EVERY),
    (wp.approx_count_distinct("v"), EVERY),
    (wp.approx_quantile("v", 0.5), ORDERABLE),
    (wp.first_n("v", 2), EVERY),
    (wp.last_n("v", 2), EVERY),
    (wp.top_n("v", 2, by="w"), EVERY),
]

Row = tuple[str | None, Any, int | None]


@st.composite
def tables(draw: st.DrawFn, kind: pa.DataType) -> tuple[list[Row], list[int], list[int]]:
    """Return rows (group, v, w), where to cut them, and the order in which the parts merge."""
    row = st.tuples(st.sampled_from(["a", "b", None]), st.none() | VALUES[kind], st.none() | st.integers(0, 3))
    rows = draw(st.lists(row, min_size=1, max_size=12))
    cuts = sorted(draw(st.sets(st.integers(1, len(rows)), max_size=3)) | {len(rows)})
    return rows, cuts, draw(st.permutations(range(len(cuts))))


def folded(call: Aggregate, kind: pa.DataType, rows: list[Row], cuts: list[int], order: Sequence[int]) -> dict[Any, Any]:
    """Return the results by group: parts folded one by one, then merged in some order, the first two before the rest."""
    types = pa.schema([("v", kind), ("w", pa.int64())])
    fold = GroupedFold.of([("out", call, call.arguments)], types)
    assert fold is not None
    columns = [pa.array([row[at] for row in rows], each) for at, each in enumerate((pa.string(), kind, pa.int64()))]
    table = numbered(pa.table(columns, names=["k", "v", "w"]), first=5)
    starts = [0, *cuts[:-1]]
    parts = [fold.fold(table.slice(start, end - start), ["k"]) for start, end in zip(starts, cuts, strict=True)]
    shuffled = [parts[at] for at in order]
    merged = fold.merge([fold.merge(shuffled[:2], ["k"]), *shuffled[2:]], ["k"])
    assert set(merged.column_names) == {"k", *fold.columns}
    (result,) = fold.finish(merged)
    assert result.type == call.bind([types.field(slot).type for slot in call.arguments]).result_type
    return dict(zip(merged["k"].to_pylist(), result.to_pylist(), strict=True))


def folded_by_segment(call: Aggregate, kind: pa.DataType, rows: list[Row], cuts: list[int]) -> dict[Any, Any]:
    """Return the results by group: parts folded one by one, then merged, where the rows of each group are known."""
    types = pa.schema([("v", kind), ("w", pa.int64())])
    fold = GroupedFold.of([("out", call, call.arguments)], types)
    assert fold is not None
    columns = [pa.array([row[at] for row in rows], each) for at, each in enumerate((pa.string(), kind, pa.int64()))]
    table = numbered(pa.table(columns, names=["k", "v", "w"]), first=5)
    groups: list[Any] = []
    parts = []
    for start, end in zip([0, *cuts[:-1]], cuts, strict=True):
        found, segments = by_group(rows[start:end])
        parts.append(fold.fold_segments(table.slice(start, end - start), segments))
        groups += found
    found, segments = by_group([(group, None, None) for group in groups])
    merged = fold.merge_segments(pa.concat_tables(parts), segments)
    assert set(merged.column_names) == set(fold.columns)
    (result,) = fold.finish(merged)
    return dict(zip(found, result.to_pylist(), strict=True))


def by_group(rows: list[Row]) -> tuple[list[Any], Segments]:
    members: dict[Any, list[int]] = {}
    for number, (group, _, _) in enumerate(rows):
        members.setdefault(group, []).append(number)
    return list(members), Segments.of(pa.array(list(members.values()), pa.list_(pa.int64())))


def expected(call: Aggregate, kind: pa.DataType, rows: list[Row]) -> dict[Any, Any]:
    types = {"v": kind, "w": pa.int64()}
    values = pa.array([row[1] for row in rows], kind).to_pylist()
    bound = call.bind([types[slot] for slot in call.arguments])
    held: dict[Any, Any] = {}
    for (group, _, w), v in zip(rows, values, strict=True):
        row = {"v": v, "w": w}
        held[group] = bound.add(held.get(group, bound.create_accumulator()), *(row[slot] for slot in call.arguments))
    return {group: bound.get_result(accumulator) for group, accumulator in held.items()}


def plain(value: Any) -> Any:
    """Return a value that compares NaN as equal to itself."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def close(got: Any, wanted: Any) -> bool:
    if plain(got) == plain(wanted):
        return True
    return isinstance(got, float) and isinstance(wanted, float) and math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize(("call", "kinds"), CALLS, ids=repr)
@settings(max_examples=examples(30), deadline=None, print_blob=True)
@given(st.data())
def test_an_aggregate_equals_the_bound_one(call: Aggregate, kinds: Sequence[pa.DataType], data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(kinds))
    rows, cuts, order = data.draw(tables(kind))
    try:
        wanted = expected(call, kind, rows)
    except AggregateOverflowError:
        with pytest.raises(AggregateOverflowError):
            folded(call, kind, rows, cuts, order)
        with pytest.raises(AggregateOverflowError):
            folded_by_segment(call, kind, rows, cuts)
        return
    for got in (folded(call, kind, rows, cuts, order), folded_by_segment(call, kind, rows, cuts)):
        assert got.keys() == wanted.keys()
        for group, value in wanted.items():
            assert close(got[group], value), (group, got[group], value)


def test_every_built_in_aggregate_is_covered() -> None:
    of_times = {"increase", "rate"}  # they take an instant beside the value: tests/aggregates/test_counters.py
    assert {call.name for call, _ in CALLS} == {each.name for each in definitions() if each.is_built_in} - of_times


@pytest.mark.parametrize(("call", "kinds"), CALLS, ids=repr)
def test_the_definition_says_which_are_ordered(call: Aggregate, kinds: Sequence[pa.DataType]) -> None:
    types = {"v": kinds[0], "w": pa.int64()}
    form = columnar_form(call, "p_", call.arguments, [types[slot] for slot in call.arguments])
    assert form is not None
    assert form.is_ordered == call.definition.ordered


def test_types_that_spark_does_not_have_are_left_to_the_bound_aggregates() -> None:
    assert GroupedFold.of([("out", wp.sum("v"), ("v",))], pa.schema([("v", pa.uint64())])) is None


def test_a_variance_of_equal_values_is_exactly_zero() -> None:
    rows: list[Row] = [("a", 0.1, None)] * 7
    assert folded(wp.var_pop("v"), pa.float64(), rows, [3, 5, 7], [2, 0, 1]) == {"a": 0.0}


def test_a_variance_far_from_zero_keeps_its_digits() -> None:
    """Sums of squares would lose all of them: Chan, Golub and LeVeque (1979)."""
    rows: list[Row] = [("a", 1e9 + each, None) for each in (4.0, 7.0, 13.0, 16.0)]
    assert folded(wp.var_samp("v"), pa.float64(), rows, [2, 4], [1, 0]) == {"a": 30.0}


def test_a_variance_of_decimals_is_that_of_the_nearest_doubles() -> None:
    """The doubles nearest to these two are 1/64 apart, so each is 1/128 from their mean."""
    rows: list[Row] = [("a", Decimal(value), None) for value in ("54084803500158.91", "54084803500158.92")]
    assert folded(wp.var_pop("v"), pa.decimal128(17, 2), rows, [1, 2], [0, 1]) == {"a": (1 / 128) ** 2}


@pytest.mark.parametrize("seed", range(60))
def test_a_variance_beyond_the_range_of_doubles_depends_on_the_values_alone(seed: int) -> None:
    """NaN if a value is NaN or infinite, infinity if only a square is too large: by exact fractions, whatever the order."""
    draw = Random(seed)
    pools: list[list[float | None]] = [[1e154, -1e154, 3.0], [1e200, 1e308, -1.7e308], [math.inf, 1.0], [math.nan, 1e200]]
    pool = draw.choice([*pools, [1e200, None]])
    rows: list[Row] = [("a", draw.choice(pool), None) for _ in range(draw.randint(1, 6))]
    cuts = sorted(draw.randint(0, len(rows)) for _ in range(2))
    wanted = _exact_variance([value for _, value, _ in rows if value is not None])
    half = len(rows) // 2
    bound = wp.var_pop("v").bind([pa.float64()])
    parts: list[Any] = [bound.create_accumulator(), bound.create_accumulator()]
    for at, (_, value, _) in enumerate(rows):
        parts[at >= half] = bound.add(parts[at >= half], value)
    found = [
        folded(wp.var_pop("v"), pa.float64(), rows, [*cuts, len(rows)], draw.sample(range(3), 3))["a"],
        folded_by_segment(wp.var_pop("v"), pa.float64(), rows, [*cuts, len(rows)])["a"],
        expected(wp.var_pop("v"), pa.float64(), rows)["a"],
        bound.get_result(bound.merge(*parts)),
    ]
    assert list(map(plain, found)) == [plain(wanted)] * 4 or all(close(each, wanted) for each in found), found


def _exact_variance(values: list[float]) -> float | None:
    if not all(map(math.isfinite, values)):
        return math.nan
    if not values:
        return None
    mean = sum(map(Fraction, values)) / len(values)
    squares = sum((Fraction(value) - mean) ** 2 for value in values)
    return math.inf if squares > Fraction(sys.float_info.max) else float(squares) / len(values)


def test_a_variance_of_a_step_beyond_the_range_of_doubles_is_that_of_the_bound_aggregate() -> None:
    draw = Random(7)
    bound = wp.var_pop("v").bind([pa.float64()])
    accumulators = [bound.create_accumulator() for _ in range(40)]
    counts, means, m2 = np.zeros(40), np.zeros(40), np.zeros(40)
    for _ in range(5):
        values = [draw.choice([1e154, 1e200, -1.7e308, 1e308, math.inf, math.nan, 0.1, 1.0]) for _ in accumulators]
        accumulators = [bound.add(held, value) for held, value in zip(accumulators, values, strict=True)]
        counts += 1.0
        means, m2 = welford(counts, means, m2, np.array(values))
        assert list(map(repr, zip(means.tolist(), m2.tolist(), strict=True))) == [repr((mean, m)) for _, mean, m in accumulators]
