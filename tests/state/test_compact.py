"""Compact tables come back as they went, whatever their values and types, and take fewer bytes where values are small."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.state.compact import SMALL, from_stream, to_stream
from windowpane.testing.sizes import given_sizes

INT64 = st.integers(-(2**63), 2**63 - 1)
ANY = st.lists(INT64, min_size=64)
NEAR = st.integers(-(2**40), 2**40).flatmap(lambda base: st.lists(st.integers(base, base + 70_000), min_size=64))
KINDS = [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("us"), pa.timestamp("us", "Europe/Berlin")]


def or_null(lists: st.SearchStrategy[list[int]]) -> st.SearchStrategy[list[int | None]]:
    missing = st.sets(st.integers(0, 70))
    return st.builds(lambda values, at: [None if n in at else each for n, each in enumerate(values)], lists, missing)


@settings(deadline=None)
@given(ANY | NEAR | st.one_of(*map(or_null, (ANY, NEAR))), st.sampled_from(KINDS), st.booleans())
def test_any_integers_come_back(values: list[int | None], kind: pa.DataType, are_few: bool) -> None:
    table = pa.table({"x": pa.array(values, pa.int64()).cast(kind), "text": [str(value) for value in values]})
    with given_sizes({SMALL: 1 << 13 if are_few else 1}):
        assert from_stream(to_stream(table)).equals(table, check_metadata=True)


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 1000])
def test_any_number_of_rows_and_chunks(rows: int) -> None:
    table = pa.table({"n": pa.array(range(rows), pa.int64())})
    chunked = pa.concat_tables([table, table.slice(0, rows // 2)])
    assert from_stream(to_stream(chunked)).to_pydict() == chunked.to_pydict()


@pytest.mark.parametrize(("step", "width"), [(0, 1), (1, 2), (65, 4), (2**32, 8)])
def test_small_distances_take_few_bytes(step: int, width: int) -> None:
    table = pa.table({"n": pa.array([2**50 + step * i for i in range(10_000)], pa.int64())})
    assert len(to_stream(table)) == pytest.approx(width * 10_000, abs=1_000)
    assert from_stream(to_stream(table)) == table


def test_a_plain_stream_reads_as_it_is() -> None:
    table = pa.table({"n": pa.array(range(100), pa.int64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert from_stream(sink.getvalue()) == table
