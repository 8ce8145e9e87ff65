"""Late joiners, by the worked examples of the rule."""

from __future__ import annotations

from windowpane.kernels.sessions.live_sessions import join_in_order

OPEN, LATE = False, True


def kept(*elements: tuple[int, int, bool]) -> list[bool]:
    starts, ends, late = zip(*elements, strict=True)
    answer: list[bool] = join_in_order([0] * len(elements), starts, ends, late).tolist()
    return answer


def test_two_late_elements_do_not_save_each_other():
    assert kept((0, 5, LATE), (3, 8, LATE)) == [False, False]


def test_a_late_element_joins_earlier_ones_and_not_later_ones():
    assert kept((10, 15, OPEN), (5, 10, LATE)) == [True, True]
    assert kept((5, 10, LATE), (10, 15, OPEN)) == [False, True]


def test_a_late_element_may_join_by_way_of_another():
    assert kept((10, 15, OPEN), (6, 11, LATE), (2, 7, LATE)) == [True, True, True]
    assert kept((10, 15, OPEN), (2, 7, LATE), (6, 11, LATE)) == [True, False, True]


def test_an_element_that_joins_two_sessions_makes_them_one():
    assert kept((0, 5, OPEN), (10, 15, OPEN), (5, 10, LATE), (3, 4, LATE), (15, 16, LATE), (17, 18, LATE)) == [
        True,
        True,
        True,
        True,
        True,
        False,
    ]


def test_islands_are_apart():
    assert join_in_order([0, 1], [0, 0], [5, 5], [OPEN, LATE]).tolist() == [True, False]
