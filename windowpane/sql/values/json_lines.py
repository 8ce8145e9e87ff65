"""Files of JSON, an object a line, read at once by Arrow, which refuses a value that it would have to change.

DuckDB's reader finds types by looking, and what is read of a number is a double: long numbers lose digits, the text of a number
or of a UUID is written anew. Arrow is told the types, and parses numbers exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.values import JsonValue
from windowpane.connectors.typed_cells import parsed_lines
from windowpane.sql.expressions.types import DIGITS, SqlType

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
    parsed, beginning = {name: _parsed(kind) for name, kind in types.items()}, _beginning(content)
    if not content or None in parsed.values() or beginning is None:
        return None
    names = [_spelling(name, beginning) for name in types]
    try:
        found = parsed_lines(content, pa.schema(zip(names, parsed.values(), strict=True)))
    except (pa.ArrowException, OSError, ValueError):
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


def _beginning(content: bytes) -> list[dict[str, JsonValue]] | None:
    """Return the objects of the first lines, ``None`` where one is none."""
    try:
        found = [json.loads(line) for line in content[:_SAMPLE].split(b"\n")[:-1] if line.strip()]
    except ValueError:
        return None
    return found if all(isinstance(each, dict) for each in found) else None


def _spelling(name: str, beginning: Sequence[dict[str, JsonValue]]) -> str:
    """Return how the first objects write the name of a column."""
    found = name
    for document in beginning:
        if name not in document:
            found = next((each for each in document if each.lower() == name.lower()), found)
    return found


def _is_spelled_otherwise(name: str, content: bytes) -> bool:
    """Whether an object may have a column by its name in other case: the value is there, and was not seen."""
    of_any_case = re.compile(b'"(' + re.escape(json.dumps(name, ensure_ascii=False)[1:-1]).encode() + rb')"\s*:', re.IGNORECASE)
    return any(each.group(1) != name.encode() for each in of_any_case.finditer(content))
