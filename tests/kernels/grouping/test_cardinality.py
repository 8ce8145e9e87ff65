import numpy as np
import pytest

from windowpane.kernels.grouping.coded_groups import expected_groups


@pytest.mark.parametrize("groups", [10, 1_000, 50_000, 1_000_000])
def test_the_number_of_groups_of_many_rows_follows_from_a_sample(groups):
    draw = np.random.default_rng(groups)
    rows = draw.integers(0, groups, 400_000)
    sampled = rows[:: len(rows) // 32_768]
    found = expected_groups(len(sampled), len(np.unique(sampled)), len(rows))
    assert found == pytest.approx(len(np.unique(rows)), rel=0.2)


def test_a_sample_without_two_of_a_group_says_that_every_row_is_one():
    assert expected_groups(100, 100, 1_000) == 1_000


def test_a_sample_of_one_group_says_that_there_is_one():
    assert expected_groups(100, 1, 1_000) == pytest.approx(1)
