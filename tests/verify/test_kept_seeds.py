"""Seeds of random programs that failed once."""

from __future__ import annotations

import pytest

from verify.fuzz import changes, over, windowed


@pytest.mark.parametrize("seed", [pytest.param(511_011_409, id="rows in a gap where a window begins at the least instant")])
def test_a_windowed_program_that_failed_once_passes(seed: int) -> None:
    assert windowed.run(seed).differences == []


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(521_008_958, id="a RANGE frame behind the row, in a later page"),
        pytest.param(914_005_131, id="a running call over rows of which a sweep dropped some in the middle"),
    ],
)
def test_an_over_program_that_failed_once_passes(seed: int) -> None:
    outcome = over.run(seed, "columnar")
    assert (outcome.engine, outcome.differences) == ("columnar", [])


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(855, id="a cut by hand, and a change behind it"),
        pytest.param(2463, id="a rank that is added where nothing was numbered before"),
        pytest.param(2476, id="windows with a stagger"),
    ],
)
def test_a_changed_program_that_failed_once_passes(seed: int) -> None:
    assert changes.run(seed).differences == []
