"""Rows that functions return, as columns of the declared types: nothing of a value is cut off without a word."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from windowpane.engines.rows import output_table
from windowpane.errors import OutputSchemaError

WHOLE = {
    "int": pa.int32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "interval": pa.duration("us"),
    "array": pa.list_(pa.int64()),
    "days": pa.list_(pa.date32()),
    "texts": pa.list_(pa.string()),
    "struct": pa.struct([("name", pa.string()), ("n", pa.int8())]),
    "map": pa.map_(pa.string(), pa.int16()),
    "nested": pa.list_(pa.struct([("n", pa.list_(pa.int32()))])),
}


def column(kind: pa.DataType, *values: object) -> list[object]:
    rows = [({"x": value}, "a", None) for value in values]
    found: list[object] = output_table("main", pa.schema([("x", kind)]), rows)["x"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", 1.5),
        ("int", -0.5),
        ("int", np.float32(1.5)),
        ("int", Decimal("2.25")),
        ("timestamp", 1.5),
        ("date", 1.5),
        ("interval", 1.5),
        ("array", [1, None, 2.5]),
        ("struct", {"name": "a", "n": 1.5}),
        ("map", {"a": 1, "b": 1.5}),
        ("map", [("a", 1.5)]),
        ("nested", [{"n": [1]}, None, {"n": [2, 0.5]}]),
    ],
)
def test_a_fraction_is_refused_where_the_schema_has_whole_numbers(kind: str, value: object) -> None:
    with pytest.raises(OutputSchemaError, match=r"column 'x' is .*, which holds whole numbers, and .* has a fraction.*key 'a'"):
        column(WHOLE[kind], None, value)


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("date", dt.datetime(2024, 1, 2, 3), "holds dates, and .* has a time of day"),
        ("days", [dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC)], "holds dates, and .* has a time of day"),
        ("texts", "abc", "holds lists, and 'abc' is none"),
        ("array", b"abc", "holds lists, and b'abc' is none"),
        ("struct", {"name": "a", "N": 1}, "has no field 'N'"),
        ("nested", [{"n": [1], "m": 2}], "has no field 'm'"),
    ],
)
def test_what_arrow_would_change_without_a_word_is_refused(kind: str, value: object, reason: str) -> None:
    with pytest.raises(OutputSchemaError, match=f"column 'x' is .*, which {reason}"):
        column(WHOLE[kind], None, value)


@pytest.mark.parametrize("kind", ["array", "struct", "map", "nested"])
@pytest.mark.parametrize("value", [1.5, 1, "x", {1}, dt.date(2024, 1, 2)], ids=str)
def test_a_value_of_another_shape_is_refused(kind: str, value: object) -> None:
    if (kind, value) != ("array", {1}):
        with pytest.raises(OutputSchemaError, match="column 'x' is"):
            column(WHOLE[kind], None, value)


def test_whole_numbers_of_any_type_and_fractions_in_types_that_hold_them_pass() -> None:
    assert column(pa.int32(), 1, 2.0, Decimal("3"), np.float64(4), None) == [1, 2, 3, 4, None]
    assert column(pa.float64(), 1, 1.5, None) == [1.0, 1.5, None]
    assert column(pa.decimal128(10, 2), Decimal("1.25")) == [Decimal("1.25")]
    assert column(pa.date32(), dt.date(2024, 1, 2), dt.datetime(2024, 1, 2), None) == [dt.date(2024, 1, 2)] * 2 + [None]
    assert column(WHOLE["array"], np.array([1, 2]), (3,)) == [[1, 2], [3]]
    assert column(WHOLE["array"], [1, 2.0, None], [], None) == [[1, 2, None], [], None]
    assert column(WHOLE["struct"], {"name": "a", "n": 1}, {}, None) == [{"name": "a", "n": 1}, {"name": None, "n": None}, None]
    assert column(WHOLE["map"], {"a": 1}, [("b", None)], None) == [[("a", 1)], [("b", None)], None]
