"""Compact tables come back as they went, whatever their values and types, and take fewer bytes where values are small."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.state.compact import from_stream, to_stream

INT64 = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(-(2**40), 2**40).flatmap(lambda base: st.lists(st.integers(base, base + 70_000) | st.none(), min_size=64))
KINDS = [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("us"), pa.timestamp("us", "Europe/Berlin")]


@settings(deadline=None)
@given(st.lists(INT64 | st.none(), min_size=64) | NEAR, st.sampled_from(KINDS))
def test_any_integers_come_back(values: list[int | None], kind: pa.DataType) -> None:
    table = pa.table({"x": pa.array(values, pa.int64()).cast(kind), "text": [str(value) for value in values]})
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
