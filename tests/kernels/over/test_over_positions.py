"""Layout, positions, picks, sums and means on sorted rows, by hand."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.examples import seeds
from windowpane.kernels.over.frames import Layout
from windowpane.kernels.over.picks import NOWHERE, at_offset, first, last, nth, taken
from windowpane.kernels.over.running import segment_scan
from windowpane.kernels.over.sums import (
    counts,
    decimal_means,
    decimal_sums,
    doubles_of,
    exact_sum,
    float_sums,
    halves,
    integer_means,
    overflowing,
    running,
    sums,
    widths,
)
from windowpane.kernels.over.window import cume_dist, ntile, percent_rank

YES, NO = True, False
LAYOUT = Layout(np.array([YES, NO, NO, NO, YES]), np.array([YES, NO, YES, YES, YES]))
"""A segment of rows 0 to 3, of which 0 and 1 are peers, and one of row 4."""


def test_a_layout_by_hand() -> None:
    assert LAYOUT.size == 5
    assert LAYOUT.segment_firsts.tolist() == [0, 4]
    assert LAYOUT.segment_ends.tolist() == [4, 5]
    assert LAYOUT.segment.tolist() == [0, 0, 0, 0, 1]
    assert LAYOUT.first.tolist() == [0, 0, 0, 0, 4]
    assert LAYOUT.end.tolist() == [4, 4, 4, 4, 5]
    assert LAYOUT.group.tolist() == [0, 0, 1, 2, 3]
    assert LAYOUT.peer_first.tolist() == [0, 0, 2, 3, 4]
    assert LAYOUT.peer_end.tolist() == [2, 2, 3, 4, 5]


def test_ranks_of_peers() -> None:
    assert percent_rank(LAYOUT).tolist() == [0, 0, 2 / 3, 1, 0]
    assert cume_dist(LAYOUT).tolist() == [0.5, 0.5, 0.75, 1, 1]


@pytest.mark.parametrize(("buckets", "expected"), [(1, [1, 1, 1, 1, 1]), (3, [1, 1, 2, 3, 1]), (9, [1, 2, 3, 4, 1])])
def test_the_first_buckets_are_the_larger_ones(buckets: int, expected: list[int]) -> None:
    assert ntile(LAYOUT, buckets).tolist() == expected


SPANS = [(np.array([0, 1, 4]), np.array([2, 1, 5])), (np.array([3, 3, 5]), np.array([4, 4, 5]))]
"""Rows 0, 1 and 3; row 3 alone; row 4 alone."""


def test_picks_over_two_spans() -> None:
    assert [first(SPANS).tolist(), last(SPANS).tolist(), nth(SPANS, 1).tolist()] == [[0, 3, 4], [3, 3, 4], [1, NOWHERE, NOWHERE]]
    counted = np.array([NO, YES, YES, YES, NO])
    assert [first(SPANS, counted).tolist(), last(SPANS, counted).tolist()] == [[1, 3, NOWHERE], [3, 3, NOWHERE]]
    assert taken(pa.array(["a", "b"]), np.array([1, NOWHERE])).to_pylist() == ["b", None]


def test_rows_at_an_offset_stay_in_their_segment() -> None:
    assert at_offset(LAYOUT, 0).tolist() == [0, 1, 2, 3, 4]
    assert at_offset(LAYOUT, 2).tolist() == [2, 3, NOWHERE, NOWHERE, NOWHERE]
    assert at_offset(LAYOUT, -1).tolist() == [NOWHERE, 0, 1, 2, NOWHERE]
    assert at_offset(LAYOUT, -1, np.array([YES, NO, NO, YES, YES])).tolist() == [NOWHERE, 0, 0, 0, NOWHERE]


def test_sums_and_counts_over_two_spans() -> None:
    values = np.array([1, 10, 100, 1000, 5])
    assert widths(SPANS).tolist() == [3, 1, 1]
    assert counts(np.array([YES, NO, YES, YES, NO]), SPANS).tolist() == [2, 1, 0]
    assert sums(running(values), SPANS).tolist() == [1011, 1000, 5]
    assert float_sums(values / 2, SPANS).tolist() == [505.5, 500, 2.5]
    assert overflowing(values, SPANS) == []


def test_a_sum_that_does_not_fit_is_told_exactly_and_one_that_passes_through_is_none() -> None:
    most = 2**63 - 1
    values = np.array([most, most, -most])
    spans = [(np.array([0, 0, 0]), np.array([1, 2, 3]))]
    assert overflowing(values, spans) == [(1, 2 * most)]
    assert sums(running(values), spans).tolist()[2] == most
    assert [exact_sum(*pair) for pair in zip(*halves(values), strict=True)] == values.tolist()


def test_means_are_rounded_once() -> None:
    draw = random.Random(7)
    totals = [*[draw.randint(-(2**66), 2**66) for _ in range(200)], 2**53 + 1, -1, 0]
    numbers = [*[draw.randint(1, 9) for _ in range(200)], 1, 3, 0]
    high, low = (np.array(half) for half in zip(*[(total >> 32, total & (2**32 - 1)) for total in totals], strict=True))
    expected = [float(Fraction(total, number)) if number else None for total, number in zip(totals, numbers, strict=True)]
    assert integer_means(high, low, np.array(numbers)).to_pylist() == expected


def test_decimals_are_summed_beyond_64_bits_and_their_means_rounded_half_up() -> None:
    total = 3 * 10**18 * 7
    high, low = np.array([total >> 32, -1]), np.array([total & (2**32 - 1), 2**32 - 5])
    kind = pa.decimal128(28, 2)
    assert decimal_sums(high, low, np.array([YES, YES]), kind).to_pylist() == [Decimal(total).scaleb(-2), Decimal("-0.05")]
    assert decimal_sums(high, low, np.array([NO, YES]), kind).to_pylist() == [None, Decimal("-0.05")]
    means = decimal_means(np.array([0, 0]), np.array([5, 5]), np.array([2, 0]), 2, pa.decimal128(16, 2), "avg('m')")
    assert means.to_pylist() == [Decimal("0.03"), None]


def test_decimals_become_the_nearest_doubles() -> None:
    column = pa.array([Decimal("0.1"), None, Decimal("123456789012345678.9")], pa.decimal128(20, 1))
    assert doubles_of(column).tolist() == [0.1, 0.0, 123456789012345678.9]
    assert doubles_of(pa.array([2**53 + 1, None])).tolist() == [float(2**53), 0.0]
    few_digits = [Decimal("0.07"), None, Decimal("1234567890123.41")]
    assert doubles_of(pa.array(few_digits, pa.decimal128(15, 2))).tolist() == [0.07, 0.0, 1234567890123.41]


@pytest.mark.parametrize("seed", seeds(20))
def test_a_scan_begins_anew_in_every_segment(seed: int) -> None:
    draw = random.Random(seed)
    lengths = [draw.choice([1, 2, 5, 63, 64, 65, 100]) for _ in range(draw.randint(1, 6))]
    starts = np.concatenate([np.arange(length) == 0 for length in lengths])
    values = np.array([draw.randint(-99, 99) for _ in starts])
    expected, held = [], 0
    for start, value in zip(starts.tolist(), values.tolist(), strict=True):
        held = value if start else max(held, value)
        expected.append(held)
    assert segment_scan(np.maximum, values, Layout(starts, starts)).tolist() == expected
