"""Files of JSON, an object a line, read at once by Arrow, which refuses a value that it would have to change.

DuckDB's reader finds types by looking, and what is read of a number is a double: long numbers lose digits, the text of a number
or of a UUID is written anew. Arrow is told the types, and parses numbers exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.sql.expressions.types import DIGITS, SqlType

_BLOCK = 8 << 20
_SAMPLE = 1 << 16
_EXACT = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double": pa.float64(),
}
_TEXTS = ("varchar", "date", "time", "timestamp", "timestamptz", "interval", "bytea")


def read_lines(content: bytes, types: Mapping[str, SqlType]) -> pa.Table | None:
    """Return the columns of the objects: numbers and booleans in their types, others as they are written.

    Names match whatever their case, one of the very spelling first. ``None`` where a line is no such object, or may be one of
    which only reading it alone tells.
    """
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    parsed = {name: _parsed(kind) for name, kind in types.items()}
    names = [each for each in (_spelling(name, content) for name in types) if each is not None]
    if not content or None in parsed.values() or len(names) < len(types):
        return None
    options = ParseOptions(
        explicit_schema=pa.schema(zip(names, parsed.values(), strict=True)), unexpected_field_behavior="ignore"
    )
    try:
        str(content, "utf-8")
        found = read_json(pa.BufferReader(content), ReadOptions(block_size=_BLOCK), options)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None
    for name in names:
        column = found[name]
        if pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py():
            return None
        if column.null_count and _is_spelled_otherwise(name, content):
            return None
    return found.select(names).rename_columns(list(types))


def _parsed(kind: SqlType) -> pa.DataType | None:
    """Return the type that Arrow parses, the text of what JSON has no value of; ``None`` for what Arrow does not parse."""
    if kind.element is not None:
        element = _parsed(kind.element)
        return None if element is None else pa.list_(element)
    if kind.name == "numeric":
        return pa.decimal128(DIGITS, kind.scale)
    return pa.string() if kind.name in _TEXTS else _EXACT.get(kind.name)


def _spelling(name: str, content: bytes) -> str | None:
    """Return how the first lines write the name of a column, ``None`` where they are no objects."""
    found = name
    for line in content[:_SAMPLE].split(b"\n")[:-1]:
        try:
            document = json.loads(line) if line.strip() else {}
        except ValueError:
            return None
        if not isinstance(document, dict):
            return None
        if name not in document:
            found = next((each for each in document if each.lower() == name.lower()), found)
    return found


def _is_spelled_otherwise(name: str, content: bytes) -> bool:
    """Whether an object may have a column by its name in other case: the value is there, and was not seen."""
    of_any_case = re.compile(b'"(' + re.escape(json.dumps(name, ensure_ascii=False)[1:-1]).encode() + rb')"\s*:', re.IGNORECASE)
    return any(each.group(1) != name.encode() for each in of_any_case.finditer(content))
