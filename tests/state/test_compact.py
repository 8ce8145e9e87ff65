"""Compact tables are read as they were written, whatever their values and types, and take fewer bytes where values are small."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.sizes import given_sizes
from windowpane.state.compact import MANY_TEXTS, SMALL, from_stream, to_stream

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


WORDS = st.lists(st.sampled_from(["a", "b", "ž" * 9, "", None]) | st.text(max_size=3), max_size=12)
NUMBERS = st.lists(INT64 | st.integers(0, 300) | st.none(), max_size=12)


_WHOLE = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 300), st.none())


def structs_of(times: st.SearchStrategy, texts: st.SearchStrategy) -> st.SearchStrategy:
    return st.fixed_dictionaries({"t": times, "n": _WHOLE, "s": texts})


STRUCT = pa.struct([("t", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[list[object]]]] = [
    (pa.list_(pa.string()), st.lists(WORDS)),
    (pa.list_(pa.string()), st.lists(WORDS | st.none())),
    (pa.list_(pa.int64()), st.lists(NUMBERS)),
    (pa.list_(pa.int64()), st.lists(st.none() | NUMBERS)),
    (pa.list_(pa.field("element", pa.string(), nullable=False)), st.lists(st.lists(st.sampled_from(["a", "b"]), max_size=9))),
    (pa.list_(pa.field("element", pa.int64(), nullable=False)), st.lists(st.lists(st.integers(0, 300), max_size=9))),
    (pa.list_(pa.list_(pa.int64())), st.lists(st.lists(NUMBERS, max_size=2))),
    (pa.list_(pa.float64()), st.lists(st.lists(st.floats(allow_nan=False), max_size=3))),
    (pa.list_(STRUCT), st.lists(st.one_of(st.none(), st.lists(structs_of(_WHOLE, st.sampled_from("ab")), max_size=3)))),
    (pa.list_(STRUCT), st.lists(st.lists(structs_of(st.integers(2**40, 2**40 + 9), st.just("a")), max_size=3))),
    (pa.list_(STRUCT), st.lists(st.lists(st.one_of(st.none(), structs_of(_WHOLE, st.none())), max_size=3))),
]


@settings(deadline=None)
@given(st.data(), st.sampled_from(COLUMNS), st.integers(0, 9), st.booleans())
def test_any_lists_come_back_whole_sliced_and_in_chunks(data: st.DataObject, column, begin: int, are_few: bool) -> None:
    kind, values = column
    table = pa.table({"x": pa.array(data.draw(values), kind)})
    with given_sizes({MANY_TEXTS: 1 << 12 if are_few else 2}):
        for each in (table, table.slice(begin), pa.concat_tables([table, table.slice(begin)])):
            for structs in (False, True):
                found = from_stream(to_stream(each, lists=True, structs=structs))
                assert (found.schema, found.to_pydict()) == (each.schema, each.to_pydict())


def test_structs_in_lists_take_few_bytes() -> None:
    numbers = pa.array(range(30_000))
    structs = pa.StructArray.from_arrays([pa.array([2**50 + n % 200 for n in range(30_000)]), numbers], ["t", "n"])
    table = pa.table({"l": pa.ListArray.from_arrays(pa.array(range(0, 30_001, 10), pa.int32()), structs)})
    stream = to_stream(table, structs=True)
    assert len(stream) < 30_000 * 3 + 3_000 * 4 + 10_000
    assert from_stream(stream).equals(table)


def test_lists_take_few_bytes_coded_already_or_not() -> None:
    words = pa.array([f"{number % 100:030}" for number in range(30_000)])
    offsets = pa.array(range(0, 30_001, 10), pa.int32())
    numbers = pa.ListArray.from_arrays(offsets, pa.array([2**50 + number % 200 for number in range(30_000)]))
    plain = pa.table({"l": pa.ListArray.from_arrays(offsets, words), "n": numbers})
    coded = pa.table({"l": pa.ListArray.from_arrays(offsets, words.dictionary_encode()), "n": numbers})
    for table in (plain, coded, coded.slice(7, 2000)):
        stream = to_stream(table, lists=True)
        assert len(stream) < 30_000 * 2 + 3_000 * 8 + 10_000
        assert from_stream(stream).equals(plain.slice(7, 2000) if table.num_rows == 2000 else plain)
    differing = pa.table({"l": pa.ListArray.from_arrays(offsets, pa.array([f"{number:030}" for number in range(30_000)]))})
    assert len(to_stream(differing, lists=True)) == pytest.approx(len(to_stream(differing)), abs=500)
