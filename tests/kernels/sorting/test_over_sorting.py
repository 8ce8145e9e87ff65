"""Rows in the order of their partitions, beside Python's sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windowpane.kernels.over.sorting import order_in_partitions

FEW, WIDE = st.integers(0, 2), st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(st.tuples(FEW, st.one_of(FEW, WIDE), FEW)))
def test_rows_are_sorted_by_partition_and_columns_and_equal_ones_are_found(rows: list[tuple[int, int, int]]) -> None:
    """Wide columns do not fit into a word beside the partition: the other way to sort."""
    partitions, *columns = (np.array([row[place] for row in rows], np.int64) for place in range(3))
    order, ties = order_in_partitions(partitions, columns)
    assert order.tolist() == sorted(range(len(rows)), key=rows.__getitem__)
    assert ties.tolist() == [place for place, row in enumerate(sorted(rows)) if rows.count(row) > 1]
