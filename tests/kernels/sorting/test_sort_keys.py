"""Keys by which rows of state lie: partitions are hashed, whatever values they have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windowpane.kernels.sorting.sort_keys import _hashes

ENDS = pa.array([2**63 - 1, -(2**63) + 1, 0, None, 2**63 - 1], pa.int64())


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns")])
def test_instants_that_python_does_not_have_are_partitions(kind: pa.DataType) -> None:
    """As infinity of SQL is one."""
    hashes, numbers = _hashes([ENDS.cast(kind)], len(ENDS))
    found = [bytes(hashes[number]) for number in numbers]
    assert found[0] == found[4]
    assert len(set(found)) == 4


def test_dates_beside_those_that_python_has_are_hashed_as_before() -> None:
    dates = pa.array([2**31 - 1, 19_000], pa.int32()).cast(pa.date32())
    hashes, numbers = _hashes([dates], 2)
    alone, _ = _hashes([dates.slice(1)], 1)
    assert bytes(hashes[numbers[1]]) == bytes(alone[0])
    assert bytes(hashes[numbers[0]]) != bytes(alone[0])
