"""Packed tables come back as they were, and take less room than they had."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.errors import UnknownStateFormatError
from windowpane.state.packed_tables import pack_table, unpack_table

numbers = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(10**15, 10**15 + 300)), max_size=5)


@given(numbers, st.sampled_from([0, 1]))
def test_integers_come_back_as_they_were(values, offset):
    column = pa.array(values, pa.int64()).slice(offset)
    table = pa.table({"n": pa.chunked_array([column, column]), "m": pa.chunked_array([column, column])})
    assert unpack_table(pack_table(table)).equals(table)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.uint64(), pa.float64(), pa.decimal128(24, 2)])
def test_columns_of_every_kind_come_back_as_they_were(kind):
    table = pa.table({"n": pa.array([100, None, 101]).cast(kind), "s": ["a", "", None], "b": [b"\0", None, b""]})
    assert unpack_table(pack_table(table)).equals(table)


def test_tables_without_rows_or_columns_come_back():
    for table in (pa.table({}), pa.table({"n": pa.array([], pa.int64())})):
        assert unpack_table(pack_table(table)).equals(table)


def test_times_that_lie_close_together_take_a_quarter_of_their_room():
    table = pa.table({"t": pa.array([1_700_000_000_000_000 + 977 * n % 60_000 for n in range(10_000)])})
    assert len(pack_table(table)) < table.nbytes / 3.5


def test_another_blob_is_refused():
    with pytest.raises(UnknownStateFormatError):
        unpack_table(b"no blob of ours")
