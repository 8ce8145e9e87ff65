"""What a message of JSON means does not depend on its neighbours: read at once or one by one, it is the same row."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from windowpane.connectors.kafka_values import Decoded, Decoder
from windowpane.connectors.typed_cells import TypedCells

INSTANT = pa.timestamp("us", "UTC")
OBJECT = pa.struct([("x", pa.int32()), ("t", INSTANT), ("d", pa.decimal128(10, 2)), ("day", pa.date32()), ("s", pa.string())])
NOTHING = dict.fromkeys(OBJECT.names)


def decoded(kind: pa.DataType, *documents: bytes, zone: str = "UTC") -> Decoded:
    cells = TypedCells(pa.schema([("c", kind)]), zone)
    return Decoder("orders", cells, "null", None)(documents, lambda number: (f"offset {number}", None))


VALUES: list[tuple[pa.DataType, str, Any]] = [
    (OBJECT, '{"t":"2024-01-01T00:00:00Z"}', {**NOTHING, "t": datetime(2024, 1, 1, tzinfo=UTC)}),
    (OBJECT, '{"d":1.5,"day":"2024-02-29"}', {**NOTHING, "d": Decimal("1.50"), "day": date(2024, 2, 29)}),
    (OBJECT, '{"s":1.50,"x":"5"}', {**NOTHING, "s": "1.50", "x": 5}),
    (OBJECT, '{"X":1}', NOTHING),
    (OBJECT, "{}", NOTHING),
    (OBJECT, "null", None),
    (pa.list_(OBJECT), '[null,{"x":1}]', [None, {**NOTHING, "x": 1}]),
    (pa.list_(INSTANT), '["2024-01-01T00:00:00Z",null]', [datetime(2024, 1, 1, tzinfo=UTC), None]),
    (pa.list_(pa.list_(pa.date32())), '[[],["2024-02-29"],null]', [[], [date(2024, 2, 29)], None]),
    (pa.map_(pa.string(), pa.decimal128(10, 2)), '{"a":0.1,"b":null}', [("a", Decimal("0.10")), ("b", None)]),
    (pa.map_(pa.string(), pa.list_(pa.int32())), '{"a":[1]}', [("a", [1])]),
    (pa.binary(), '"AP9hYg=="', b"\x00\xffab"),  # base64, as for Spark's reader, Flink's, and windowpane's own sink
    (pa.list_(pa.binary()), '["YQ==",null]', [b"a", None]),
    (pa.float64(), "NaN", math.nan),
    (pa.float64(), "-Infinity", -math.inf),
]


@pytest.mark.parametrize("neighbours", [(), (b"no JSON",)])
@pytest.mark.parametrize(("kind", "written", "value"), VALUES)
def test_a_value_is_the_same_beside_a_malformed_message(
    neighbours: tuple[bytes, ...], kind: pa.DataType, written: str, value: Any
) -> None:
    found = decoded(kind, b'{"c":null}', f'{{"c":{written}}}'.encode(), *neighbours)
    assert [each.value for each in found.met] == ["no JSON"] * len(neighbours)
    assert repr(found.rows["c"].to_pylist()).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") == repr(
        [None, value]
    )


MISFITS = [
    (OBJECT, '{"x":1.5}'),  # no fraction is cut off
    (OBJECT, '{"t":"never"}'),
    (pa.binary(), "5"),
    (OBJECT, "[]"),
    (pa.list_(pa.int32()), "[1,1.5]"),
    (pa.list_(pa.int32()), "{}"),
    (pa.map_(pa.string(), pa.int32()), '{"a":1.5}'),
    (pa.map_(pa.string(), pa.int32()), '[{"key":"a","value":1}]'),  # to Spark a map is an object
    (pa.date32(), "19000"),
    (pa.int32(), "NaN"),
]


@pytest.mark.parametrize("neighbours", [(), (b"no JSON",)])
@pytest.mark.parametrize(("kind", "written"), MISFITS)
def test_a_value_that_does_not_fit_is_null_and_told(neighbours: tuple[bytes, ...], kind: pa.DataType, written: str) -> None:
    found = decoded(kind, f'{{"c":{written}}}'.encode(), *neighbours)
    assert found.rows["c"].to_pylist() == [None]
    assert [(each.column, each.value) for each in found.met if each.column] == [("c", written)]


@pytest.mark.parametrize("neighbours", [(), (b"no JSON",)])
def test_names_are_spelled_as_columns_are(neighbours: tuple[bytes, ...]) -> None:
    """As for Spark's reader of JSON."""
    assert decoded(pa.string(), b'{"C":"a"}', *neighbours).rows["c"].to_pylist() == [None]


@pytest.mark.parametrize("neighbours", [(), (b"no JSON",)])
def test_times_within_values_are_in_the_zone_of_the_session(neighbours: tuple[bytes, ...]) -> None:
    found = decoded(OBJECT, b'{"c":{"t":"2024-01-01 00:00:00"}}', *neighbours, zone="America/New_York")
    assert found.rows["c"].to_pylist()[0]["t"] == datetime(2024, 1, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize("text", [b'"\xff"', b'"\\ud800"'])
def test_what_is_no_text_is_malformed(text: bytes) -> None:
    found = decoded(pa.string(), b'{"c":"a"}', b'{"c":' + text + b"}", b'{"c":"\\ud83d\\ude00"}')
    assert found.rows["c"].to_pylist() == ["a", "\U0001f600"]
    assert [each.position for each in found.met] == ["offset 1"]
