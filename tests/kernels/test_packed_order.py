"""Stable orders by packed words, beside numpy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.kernels.packed_order import fit_together, lexical_order, order_with_ties, stable_order

WIDE = st.integers(-(1 << 63), (1 << 63) - 1)
NUMBERS = st.one_of(st.lists(st.integers(-3, 3)), st.lists(WIDE), st.lists(st.one_of(st.integers(0, 2), WIDE)))


@given(NUMBERS)
def test_numbers_are_sorted_and_equal_ones_stay_in_order(numbers: list[int]) -> None:
    given_numbers = np.array(numbers, np.int64)
    assert stable_order(given_numbers).tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


@pytest.mark.parametrize("span", [1 << 10, 1 << 40, 1 << 50, 1 << 62])
def test_many_numbers_of_any_width(span: int) -> None:
    numbers = np.random.default_rng(span).integers(-span, span, 5_000)
    numbers[::7] = numbers[0]
    assert (stable_order(numbers) == np.argsort(numbers, kind="stable")).all()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 2), WIDE)))
def test_rows_are_sorted_by_columns(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[place] for row in rows], np.int64) for place in range(3)]
    assert lexical_order(columns).tolist() == sorted(range(len(rows)), key=rows.__getitem__)


@given(
    st.lists(st.tuples(st.sampled_from([-(1 << 63), 0, (1 << 63) - 1]), st.one_of(st.integers(0, 1), WIDE), st.integers(0, 1)))
)
def test_ties_of_wide_columns_are_sorted_by_the_next(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[place] for row in rows], np.int64) for place in range(3)]
    assert lexical_order(columns).tolist() == sorted(range(len(rows)), key=rows.__getitem__)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.one_of(st.integers(0, 1), WIDE))))
def test_equal_rows_are_found_among_sorted_ones(rows: list[tuple[int, int, int]]) -> None:
    order, ties = order_with_ties([np.array([row[place] for row in rows], np.int64) for place in range(3)])
    assert ties.tolist() == [place for place, row in enumerate(sorted(rows)) if rows.count(row) > 1]
    assert [rows[row] for row in order] == sorted(rows)


def test_columns_fit_into_a_word_beside_the_place_of_the_row() -> None:
    narrow, wide = np.array([5, 6, 5]), np.array([-(1 << 62), 0, (1 << 62) - 1])
    assert fit_together([narrow, narrow])
    assert not fit_together([narrow, wide])
    assert fit_together([narrow[:0]])


def test_unsigned_words_keep_their_order() -> None:
    words = np.array([1 << 63, 0, (1 << 64) - 1, 5, 1 << 63], np.uint64)
    assert stable_order(words).tolist() == [1, 3, 0, 4, 2]


def test_thousands_of_columns_of_which_rows_tie_in_some() -> None:
    """Long texts, each more than once, beside short ones: words of 8 bytes, and zeros behind the end of a text."""
    lengths = [4_000, 2, 4_000, 3_999, 2, 0, 4_000]
    columns = [np.array([(1 << 62) + place if place < length else 0 for length in lengths], np.uint64) for place in range(4_001)]
    assert lexical_order(columns).tolist() == [5, 1, 4, 3, 0, 2, 6]
