"""ToOperatorRows: columns as Spark hands them over -> as engines take them, at any depth of a type.

- Every zone is UTC. Two instants of one wall time, at the end of summer time, are equal to Python in any other zone; and state
  written under one session time zone must mean the same under another.
- Every field may be null. A null struct has nulls in its fields, and Arrow casts no such field that is declared ``not null``.
"""

from __future__ import annotations

import pyarrow as pa


def arriving(table: pa.Table) -> pa.Table:
    """Return a table with the types of ``arriving_type``; the values stay as they are."""
    schema = arriving_schema(table.schema)
    return table if schema.equals(table.schema) else table.cast(schema)


def arriving_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema of nullable columns, the types those of ``arriving_type``."""
    return pa.schema([_arriving_field(field) for field in schema])


def arriving_type(kind: pa.DataType) -> pa.DataType:
    """Return a type with UTC for every zone, and nullable fields."""
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
