"""Windows merged together have the contents they have one by one."""

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.engines.slices.merging import merged_windows
from windowpane.windowing.windows import TimeWindow


class Slices:
    """Slices of length 1, each a table that names itself; counts the rows that merges read."""

    def __init__(self, present: set[int]) -> None:
        self.present = present
        self.read = 0

    def between(self, start: int, end: int) -> list[pa.Table]:
        return [pa.table({"slice": [at]}) for at in range(start, end) if at in self.present]

    def merge(self, tables: Sequence[pa.Table]) -> pa.Table:
        merged = pa.concat_tables(tables)
        self.read += len(tables)
        return merged


@st.composite
def families(draw: st.DrawFn) -> list[TimeWindow]:
    """Sliding or cumulating windows, some of them missing."""
    count, size, slide = draw(st.integers(1, 80)), draw(st.integers(1, 30)), draw(st.integers(1, 12))
    if draw(st.booleans()):
        windows = [TimeWindow(n * slide, n * slide + size) for n in range(count)]
    else:
        windows = [TimeWindow(n // size * size, n + 1) for n in range(count)]
    kept = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return [window for window, keep in zip(windows, kept, strict=True) if keep]


@settings(deadline=None)
@given(families(), st.sets(st.integers(0, 200)))
def test_each_slice_is_in_its_windows_once(windows: list[TimeWindow], present: set[int]) -> None:
    held = [w for w in windows if any(at in present for at in range(w.start, w.end))]
    slices = Slices(present)
    found = [table["slice"].to_pylist() for table in merged_windows(held, slices.between, slices.merge)]
    assert [Counter(each) for each in found] == [Counter(at for at in range(w.start, w.end) if at in present) for w in held]


@pytest.mark.parametrize(("size", "bound"), [(60, 200), (600, 800)])
def test_ten_windows_read_their_slices_about_once(size: int, bound: int) -> None:
    windows, slices = [TimeWindow(n, n + size) for n in range(10)], Slices(set(range(1000)))
    assert len(list(merged_windows(windows, slices.between, slices.merge))) == 10
    assert slices.read < bound, "one by one they would read 10 times their size"
