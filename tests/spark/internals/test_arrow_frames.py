"""Frames of what lies in Arrow pass PySpark's conversion untouched, at any depth of a type."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import _create_converter_from_pandas

from windowpane.spark.internals.worker import frame_of
from windowpane.spark.stages.types import spark_schema

_INSTANT = pa.timestamp("us", "UTC")
_NOON = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
_COLUMNS = {
    "texts": pa.array([["x", None], None, []], pa.list_(pa.string())),
    "lists": pa.array([[[1], None, []], [], None], pa.list_(pa.list_(pa.int64()))),
    "instants": pa.array([[_NOON, None], [None], None], pa.list_(_INSTANT)),
    "bytes": pa.array([b"\0", None, b""], pa.binary()),
    "decimals": pa.array([[Decimal("1.50")], None, []], pa.list_(pa.decimal128(12, 2))),
    "structs": pa.array(
        [{"at": _NOON, "seen": ["a"]}, None, {"at": None, "seen": None}],
        pa.struct([("at", _INSTANT), ("seen", pa.list_(pa.string()))]),
    ),
}


@pytest.mark.parametrize("name", _COLUMNS)
def test_a_column_is_not_converted_value_by_value(name: str) -> None:
    table = pa.table({name: _COLUMNS[name]})
    kind = spark_schema(table.schema)[name].dataType
    frame = frame_of(table)
    converted = _create_converter_from_pandas(kind, timezone="Europe/Berlin")(frame[name])
    given = pa.Array.from_pandas(converted, type=table.schema.field(name).type)
    assert given.equals(_COLUMNS[name])
    assert [buffer and buffer.address for buffer in given.buffers()] == [
        buffer and buffer.address for buffer in _COLUMNS[name].buffers()
    ]
