"""Keys as bytes, whole columns at once: what ``encode_key`` and ``decode_key`` say of each value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.examples import examples
from verify.sizes import given_sizes
from windowpane.engines.nested_keys import reading, writing
from windowpane.engines.nested_keys.reading import decoded_keys
from windowpane.engines.nested_keys.writing import coded_keys, encoded_keys, hashable_key
from windowpane.engines.program import Program
from windowpane.engines.protocol import Clock
from windowpane.engines.row.reference import ReferenceEngine
from windowpane.errors import UnreadableStateError, UnrepresentableValueError, present
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import combiner_of, make_engine
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.sizes import Size
from windowpane.state.codec import decode_key, encode_key
from windowpane.state.memory import MemoryBlobStore

UTC = dt.UTC
LENGTHS = st.sampled_from([0, 1, 3, 254, 255, 256, 300])
DOUBLES = [0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 5e-324]
SCALARS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.one_of(st.floats(width=32), st.sampled_from(DOUBLES[:-1])),
    pa.float64(): st.one_of(st.floats(), st.sampled_from(DOUBLES)),
    pa.string(): st.one_of(st.text(max_size=5), LENGTHS.map("é".__mul__), LENGTHS.map("a".__mul__)),
    pa.large_string(): st.text(max_size=5),
    pa.binary(): st.one_of(st.binary(max_size=5), LENGTHS.map(b"N".__mul__)),
    pa.large_binary(): st.binary(max_size=5),
    pa.bool_(): st.booleans(),
    pa.date32(): st.one_of(st.dates(), st.sampled_from([dt.date(1970, 1, 1), dt.date.min, dt.date.max])),
    pa.timestamp("us"): st.one_of(st.datetimes(), st.sampled_from([dt.datetime.min, dt.datetime.max])),
    pa.timestamp("us", tz="UTC"): st.datetimes().map(lambda each: each.replace(tzinfo=UTC)),
    pa.duration("us"): st.timedeltas(dt.timedelta(days=-100_000_000), dt.timedelta(days=100_000_000)),
    pa.decimal128(12, 2): st.decimals(-9_999_999_999, 9_999_999_999, places=2),
    pa.decimal128(38, 0): st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    pa.decimal128(38, 38): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda digits: Decimal((int(digits < 0), _digits(digits), -38))
    ),
    pa.decimal128(20, 10): st.integers(-99, 99).map(lambda number: Decimal(number) * 1000),
}
"""The types of keys that are written and read at once, with values of each, those at its ends among them."""

ONE_BY_ONE: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.timestamp("us", tz="Europe/Berlin"): st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(9999, 1, 1)).map(
        lambda each: each.replace(tzinfo=UTC)
    ),
    pa.timestamp("ms"): st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1)).map(lambda each: each.replace(microsecond=0)),
    pa.time64("us"): st.times(),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.decimal256(50, 3): st.integers(-(10**40), 10**40).map(Decimal),
}
"""Types that are not."""

NAMES = st.lists(st.sampled_from(["a", "b", "city", "", "é", "a" * 300, "longer"]), min_size=1, max_size=4, unique=True)


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


def typed(scalars: dict[pa.DataType, st.SearchStrategy[Any]]) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    """Return types of keys, nested ones too, each with its values."""
    leaves = st.sampled_from(list(scalars)).map(lambda kind: (kind, st.one_of(st.none(), scalars[kind])))
    return st.recursive(leaves, lambda inner: st.one_of(inner.map(arrays), st.builds(structs, NAMES, st.data(), st.just(inner))))


def arrays(of: tuple[pa.DataType, st.SearchStrategy[Any]]) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    kind, values = of
    return pa.list_(kind), st.one_of(st.none(), st.lists(values, max_size=4))


def structs(names: list[str], data: Any, inner: Any) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    fields = {name: data.draw(inner) for name in names}
    kinds = pa.struct([(name, kind) for name, (kind, _) in fields.items()])
    return kinds, st.one_of(st.none(), st.fixed_dictionaries({name: values for name, (_, values) in fields.items()}))


def columns(of: st.SearchStrategy[Any]) -> st.SearchStrategy[pa.ChunkedArray]:
    """Return columns of keys, some in pieces of larger arrays."""

    def made(typed: Any) -> st.SearchStrategy[pa.ChunkedArray]:
        kind, values = typed
        lists = st.lists(values, max_size=12).map(lambda found: pa.array(found, kind))
        return st.tuples(lists, st.integers(0, 3), st.booleans()).map(
            lambda drawn: pa.chunked_array([drawn[0].slice(drawn[1]), *[drawn[0]] * drawn[2]], kind)
        )

    return of.flatmap(made)


def spelled(values: list[Any]) -> list[bytes]:
    return [encode_key(value) for value in values]


@settings(max_examples=examples(1_000), deadline=None, print_blob=True)
@given(columns(typed(SCALARS)))
def test_columns_are_written_and_read_as_their_values_are(column):
    note(str(column.type))
    encoded = encoded_keys("k", column)
    assert encoded.type == pa.binary()
    assert encoded.to_pylist() == spelled(column.to_pylist())
    decoded = decoded_keys(pa.chunked_array([encoded.slice(1)]), column.type)
    assert decoded.type == column.type
    decoded.validate(full=True)
    expected = pa.array([decode_key(each) for each in encoded.slice(1).to_pylist()], column.type)
    assert repr(decoded.to_pylist()) == repr(expected.to_pylist())


@settings(max_examples=examples(300), deadline=None, print_blob=True)
@given(columns(typed(SCALARS | ONE_BY_ONE)))
def test_so_are_those_with_values_that_have_no_form(column):
    encoded = encoded_keys("k", column)
    assert encoded.to_pylist() == spelled(column.to_pylist())
    assert spelled(decoded_keys(pa.chunked_array([encoded]), column.type).to_pylist()) == encoded.to_pylist()


EVERY = pa.struct([(f"f{number}", kind) for number, kind in enumerate(SCALARS)])
INNER = pa.struct([("every", EVERY), ("all", pa.list_(EVERY))])


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.fixed_dictionaries({f"f{number}": st.one_of(st.none(), each) for number, each in enumerate(SCALARS.values())}))
)
def test_no_value_of_these_types_is_written_or_read_alone(rows):
    def alone(*_: Any) -> Any:
        raise AssertionError("a value was written or read alone")

    column = pa.chunked_array([pa.array([{"every": row, "all": [row, None]} for row in rows], INNER)])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writing, "python_keys", alone)
        patched.setattr(reading, "decode_key", alone)
        decoded = decoded_keys(pa.chunked_array([encoded_keys("k", column)]), INNER)
    assert spelled(decoded.to_pylist()) == spelled(column.to_pylist())


def test_what_lies_under_a_null_is_not_seen():
    inner = pa.array(np.array([2**62, 5]), pa.timestamp("us"))
    struct = pa.StructArray.from_arrays([inner, pa.array(["a", "b"])], ["t", "s"], mask=pa.array([True, False]))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), inner, mask=pa.array([True, False]))
    instant = dt.datetime(1970, 1, 1, microsecond=5)
    assert encoded_keys("k", pa.chunked_array([struct])).to_pylist() == spelled([None, {"t": instant, "s": "b"}])
    assert encoded_keys("k", pa.chunked_array([lists])).to_pylist() == spelled([None, [instant]])


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.date32()], ids=str)
def test_times_that_python_does_not_know_are_refused_by_name(kind):
    far = pa.array([0, 2**31 - 1] if kind == pa.date32() else [0, 2**62], pa.int32() if kind == pa.date32() else pa.int64())
    struct = pa.StructArray.from_arrays([far.cast(kind)], ["t"])
    for column in (far.cast(kind), struct):
        with pytest.raises(UnrepresentableValueError, match="'place'"):
            encoded_keys("place", pa.chunked_array([column]))


def test_long_arrays_and_empty_structs_are_keys_too():
    for values, kind in (([list(range(1_000)), None], pa.list_(pa.int64())), ([{}, None], pa.struct([]))):
        encoded = encoded_keys("k", pa.chunked_array([pa.array(values, kind)]))
        assert encoded.to_pylist() == spelled(values)
        assert decoded_keys(pa.chunked_array([encoded]), kind).to_pylist() == values


PAIR = pa.struct([("a", pa.string()), ("n", pa.int32())])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        encode_key({"a": "x", "n": 1})[:-1],
        encode_key({"a": "x", "n": 1}) + b"N",
        b"{\x02s\x01a" + b"s\xff" + b"\xff" * 8,
    ],
)
def test_bytes_that_are_no_key_are_refused(data):
    whole = encode_key({"a": "y", "n": 2})
    for found in ([data], [whole, data], [data, whole]):
        with pytest.raises(UnreadableStateError):
            decoded_keys(pa.chunked_array([pa.array(found, pa.binary())]), PAIR)


def test_keys_that_a_type_does_not_spell_so_are_read_all_the_same():
    found = pa.chunked_array([pa.array(spelled([{"a": "x", "n": 1}, {"n": 3}]), pa.binary())])
    assert decoded_keys(found, PAIR).to_pylist() == [{"a": "x", "n": 1}, {"a": None, "n": 3}]


ALWAYS_CODED: dict[Size[Any], Any] = {writing._FEWEST_ROWS: 1, writing._SAMPLE: 1, writing._MANY: 1.1}


@settings(max_examples=examples(500), deadline=None, print_blob=True)
@given(columns(st.builds(structs, NAMES, st.data(), st.just(typed(SCALARS)))), st.sampled_from([1, 40]))
def test_keys_that_repeat_are_written_once_each(column, places):
    with given_sizes({**ALWAYS_CODED, writing._PLACES_A_ROW: places}):
        coded = coded_keys("k", column)
    assert coded.to_pylist() == spelled(column.to_pylist())
    if pa.types.is_dictionary(coded.type):
        coded.validate(full=True)
        assert len(set(coded.dictionary.to_pylist())) == len(coded.dictionary)


def test_structs_that_repeat_are_coded_and_no_other_keys():
    place = pa.struct([("city", pa.string()), ("x", pa.float64())])
    found = [{"city": f"city {each % 90}", "x": each % 3 - 0.0} if each % 7 else None for each in range(20_000)]
    coded = coded_keys("k", pa.chunked_array([pa.array(found[:9_000], place), pa.array(found[9_000:], place)]))
    assert coded.type == pa.dictionary(pa.int32(), pa.binary())
    assert (len(coded.dictionary), coded.to_pylist()) == (91, spelled(found))
    few, new = found[:100], [{"city": f"city {each}", "x": 0.5} for each in range(20_000)]
    for keys, kind in ((few, place), (new, place), ([[each % 3] for each in range(20_000)], pa.list_(pa.int64()))):
        plain = coded_keys("k", pa.chunked_array([pa.array(keys, kind)]))
        assert plain.type == pa.binary()
        assert plain.to_pylist() == spelled(keys)


def test_plain_keys_have_one_spelling():
    column = pa.chunked_array([[0.0, -0.0, None]])
    assert [str(each) for each in hashable_key("k", column).to_pylist()] == ["0.0", "0.0", "None"]
    assert hashable_key("k", pa.chunked_array([["a"]])).to_pylist() == ["a"]
    assert hashable_key("k", pa.chunked_array([[["a"]]])).to_pylist() == spelled([["a"]])


# --- programs on such keys ----------------------------------------------------------------------------

PLACE = pa.struct([("city", pa.string()), ("at", pa.struct([("floor", pa.int32()), ("x", pa.float64())]))])
COLUMNS = pa.schema([("place", PLACE), ("tags", pa.list_(pa.string())), ("v", pa.int64())])
PLACES = [
    None,
    {"city": None, "at": None},
    {"city": "a", "at": {"floor": 1, "x": -0.0}},
    {"city": "a", "at": {"floor": 1, "x": 0.0}},
]
TAGS = [None, [], ["a"], ["a", None]]


def program(trigger: Any = None) -> Program:
    function = FunctionPlan("aggregate", aggregates=(("n", wp.count()), ("s", wp.sum("v"))))
    keys = ("place", "tags")
    plan = WindowPlan(keys, wp.TumblingEventTimeWindows.of(10), function, trigger, event_time="t")
    of_keys = pa.schema([COLUMNS.field(name) for name in keys])
    types = InputTypes(COLUMNS, of_keys, keys, pa.timestamp("us", tz="UTC"), {"n": (), "s": ("v",)}, None)
    return compile_program(plan, types, COLUMNS.names)


def rows(count: int, first: int) -> pa.Table:
    numbers = range(count)
    columns = [
        pa.array([PLACES[number % 4] for number in numbers], COLUMNS.field("place").type),
        pa.array([TAGS[number // 4 % 4] for number in numbers], COLUMNS.field("tags").type),
        pa.array(numbers, pa.int64()),
        pa.array([first + number % 20 for number in numbers], pa.int64()),
        pa.array(np.zeros(count, np.int32)),
        pa.array(np.arange(count)),
    ]
    return pa.table(columns, names=[*COLUMNS.names, TIME, PARTITION, POSITION])


@pytest.mark.parametrize("early", [False, True])
def test_rows_by_coded_keys_fold_as_by_their_bytes(early):
    built = program(wp.EachBatch() if early else None)
    combine = present(combiner_of(built), "rows fold by slice and key")
    assert built.engine == ("panes" if early else "slices")
    found = []
    for sizes in ({}, ALWAYS_CODED):
        with given_sizes(sizes):
            folded = combine(rows(200, 0))
        assert not any(pa.types.is_dictionary(kind) for kind in folded.schema.types)
        found.append(sorted(folded.to_pylist(), key=repr))
    assert found[0] == found[1]
    assert len(found[0]) == 2 * 12


def test_nested_keys_go_on_after_a_restart():
    """The engine that is chosen, opened anew from its bytes at every batch, beside the reference without restarts."""
    built = program()
    assert built.engine == "slices"
    store, beside, reference = MemoryBlobStore(), MemoryBlobStore(), ReferenceEngine(built)
    found = 0
    for batch in range(4):
        clock = Clock(batch * 10 - 1, 0)
        opened = MemoryBlobStore()
        opened.restore(store.snapshot())
        store = opened
        got = make_engine(built).run(store, [rows(200, batch * 10)], clock)
        expected = reference.run(beside, [rows(200, batch * 10)], clock)
        tables = [sorted(repr(row) for _, table in out.tables for row in table.to_pylist()) for out in (got, expected)]
        assert tables[0] == tables[1]
        found += len(tables[0])
    assert found == 3 * 12  # three windows have fired, with three places each under four tags
