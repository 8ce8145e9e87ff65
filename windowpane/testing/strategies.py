"""Hypothesis strategies: streams whose rows arrive in disorder, and some of them late."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeVar

from hypothesis import strategies as st

V = TypeVar("V")

Arrivals = list[list[tuple[int, V]]]
"""Batches of (event time, value), in order of arrival."""


@st.composite
def disordered(
    draw: st.DrawFn,
    values: st.SearchStrategy[V],
    *,
    span: int,
    max_delay: int,
    late: bool = False,
    max_rows: int = 30,
) -> Arrivals[V]:
    """Return batches of rows that are at most ``max_delay`` behind the largest event time before them.

    A watermark that stays so far behind drops none of them. With ``late`` some rows are further behind.

    Args:
        draw: what hypothesis draws by.
        values: the values of rows.
        span: event times lie in ``[0, span)``, in whatever unit the program counts.
        max_delay: how far rows are behind, in the same unit.
        late: whether some are further behind.
        max_rows: how many rows there are at most.

    Example:
        >>> @given(disordered(st.integers(), span=100, max_delay=10))
        ... def test_no_row_is_late(batches): ...
    """
    delays = st.integers(0, max_delay)
    if late:
        delays = st.one_of(delays, st.integers(max_delay + 1, max_delay + span))
    rows = draw(st.lists(st.tuples(st.integers(0, span - 1), delays, values), max_size=max_rows))
    arrived = [(time, value) for time, _, value in sorted(rows, key=lambda row: row[0] + row[1])]
    cuts = sorted(draw(st.lists(st.integers(0, len(arrived)), max_size=4)))
    bounds = [0, *cuts, len(arrived)]
    return [arrived[start:end] for start, end in pairwise(bounds)]
