"""Between Spark's types and Arrow's, and Arrow's as Spark hands columns over -> as engines take them, at any depth of a type.

- Every zone is UTC. Two instants of one wall time, at the end of summer time, are equal to Python in any other zone; and state
  written under one session time zone must mean the same under another.
- Every field may be null. A null struct has nulls in its fields, and Arrow casts no such field that is declared ``not null``.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError, UnsupportedTypeError
from windowpane.spark.internals.session import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark 4.3 needs the zone of timestamps, earlier versions take UTC.
_IN_UTC: dict[str, Value] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

_BINARY = "UTF8_BINARY"
_MICROSECONDS = 6
_NO_ARROW = ("interval year to month", "interval", "interval year", "interval month", "void array")
"""Types of columns that PySpark's workers cannot read, although the driver would find a type of Arrow's for them."""


def arrow_schema(schema: T.StructType, role: str) -> pa.Schema:
    """Return a Spark schema as an Arrow schema, every column nullable."""
    return pa.schema([pa.field(field.name, _arrow_type(field, role)) for field in schema.fields])


def _arrow_type(field: T.StructField, role: str) -> pa.DataType:
    refusal = (
        f"{role}: column {field.name!r} is {field.dataType.simpleString()}, which cannot pass through Arrow. Cast it before "
        "the window (an interval to a number of months, say), or leave it out with select."
    )
    if field.dataType.typeName() in _NO_ARROW:
        raise UnsupportedTypeError(refusal)
    if _has_nanoseconds(field.dataType):
        raise UnsupportedTypeError(
            f"{role}: column {field.name!r} is {field.dataType.simpleString()}, whose nanoseconds Python's times do not have: "
            "cast it to time(6)."
        )
    try:
        return arriving_type(to_arrow_type(field.dataType, **_IN_UTC))
    except Exception as error:
        raise UnsupportedTypeError(refusal) from error


def _has_nanoseconds(kind: T.DataType) -> bool:
    """Whether a type, at any depth, has nanoseconds: Python's times would cut them, and take different ones for equal."""
    if isinstance(kind, T.ArrayType):
        return _has_nanoseconds(kind.elementType)
    if isinstance(kind, T.MapType):
        return _has_nanoseconds(kind.keyType) or _has_nanoseconds(kind.valueType)
    if isinstance(kind, T.StructType):
        return any(_has_nanoseconds(field.dataType) for field in kind.fields)
    return kind.typeName() == "time" and getattr(kind, "precision", _MICROSECONDS) > _MICROSECONDS


def spark_schema(schema: pa.Schema, known: T.StructType | None = None) -> T.StructType:
    """Return an Arrow schema as a Spark schema, every column nullable."""
    types = {} if known is None else {field.name: field.dataType for field in known.fields}
    found = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return T.StructType([T.StructField(field.name, types.get(field.name, field.dataType), True) for field in found.fields])


def declared_schema(spark: SparkSession, schema: object, what: str) -> T.StructType:
    """Return a schema given by a user as DDL text or StructType."""
    if isinstance(schema, T.StructType):
        return schema
    if isinstance(schema, str):
        try:
            return _parsed(spark, schema)
        except Exception as error:
            raise InvalidSpecError(f"the schema of {what} is not understood: {schema!r} ({error}).") from error
    raise InvalidSpecError(f"the schema of {what} must be a DDL string or a StructType, but is {schema!r}.")


def _parsed(spark: SparkSession, ddl: str) -> T.StructType:
    """Return the columns of a DDL text; Spark Connect parses with the session at hand, as there may be several."""
    if not is_classic(spark):
        found: T.StructType = spark.createDataFrame([], ddl).schema
        return found
    parsed = T.StructType.fromDDL(ddl)
    return parsed if isinstance(parsed, T.StructType) else T.StructType([T.StructField("value", parsed)])


def window_bound_type(event_time: T.DataType | None) -> pa.DataType:
    """Return the type of window bounds: that of the event time, as in Spark's own ``window``."""
    return TIMESTAMP_NTZ if isinstance(event_time, T.TimestampNTZType) else TIMESTAMP


def foreign_collation(kind: T.DataType) -> str | None:
    """Return a collation, at any depth of a type, under which texts of different bytes may be equal."""
    if isinstance(kind, T.StringType):
        collation = str(getattr(kind, "collation", _BINARY))
        return None if collation == _BINARY else collation
    if isinstance(kind, T.ArrayType):
        return foreign_collation(kind.elementType)
    if isinstance(kind, T.MapType):
        return foreign_collation(kind.keyType) or foreign_collation(kind.valueType)
    inner = kind.fields if isinstance(kind, T.StructType) else []
    return next((found for field in inner if (found := foreign_collation(field.dataType))), None)


def arriving(table: pa.Table) -> pa.Table:
    schema = arriving_schema(table.schema)
    return table if schema.equals(table.schema) else table.cast(schema)


def arriving_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_arriving_field(field) for field in schema])


def arriving_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_map(kind):
        return pa.map_(arriving_type(kind.key_type), _arriving_field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_arriving_field(kind.value_field))
    if pa.types.is_struct(kind):
        return pa.struct([_arriving_field(field) for field in kind])
    return kind


def _arriving_field(field: pa.Field) -> pa.Field:
    return field.with_type(arriving_type(field.type)).with_nullable(True)
