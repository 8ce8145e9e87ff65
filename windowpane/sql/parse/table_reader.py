"""Reads CREATE TABLE and CREATE SOURCE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windowpane.connectors.kafka_client import INCLUDE
from windowpane.sql.dml.conflicts import IGNORE, OVERWRITE, Keep, OnConflict
from windowpane.sql.expressions.types import BYTEA, COLLATIONS, TIMESTAMPTZ, UNKNOWN, VARCHAR, SqlType, named
from windowpane.sql.parse.cursor import Cursor
from windowpane.sql.parse.dialect import Token
from windowpane.sql.parse.statements import ColumnSpec, CreateTable, WatermarkSpec

_AFTER_TYPE = (",", ")", "PRIMARY KEY", "NOT", "NULL", "DEFAULT", "AS", "UNIQUE", "REFERENCES", "CHECK", "METADATA", "COMMENT")
_INSTEAD_ON_A_COLUMN = {
    "METADATA": "Declare a column; one of Kafka's rows has the columns of Spark, as in timestamp timestamptz and key bytea.",
    "COMMENT": "Write it behind --.",
}
_AFTER_EXPRESSION = (",", ")", "PRIMARY KEY", "NOT")


@dataclass
class _Items:
    columns: list[ColumnSpec] = field(default_factory=list)
    key: tuple[str, ...] = ()
    watermark: WatermarkSpec | None = None


def read_table(cursor: Cursor) -> CreateTable:
    is_source = cursor.take("SOURCE")
    if not is_source:
        cursor.expect("TABLE")
    guarded = cursor.take("IF", "NOT", "EXISTS")
    name, items = cursor.name(), _Items()
    head = cursor.text_before()
    if cursor.take("("):
        head = cursor.text_before()
        _items(cursor, items)
    append_only = cursor.take("APPEND", "ONLY")
    included = _included(cursor, items)
    options = cursor.options()
    if options:
        options |= {**included, **cursor.format_options()}
    append_only = append_only or cursor.take("APPEND", "ONLY") or is_source
    conflict = _conflict(cursor)
    small, options = take_small(cursor, options or cursor.options())
    definition, query = cursor.text, None
    if cursor.peek() == "AS":
        definition = cursor.text_before()
        cursor.skip()
        query = cursor.parse_until("ON CONFLICT")
        definition = f"{definition} {cursor.text_after()}".strip()
    conflict = conflict or _conflict(cursor) or (IGNORE if append_only else OVERWRITE)
    if cursor.peek() in ("FORMAT", "INCLUDE"):
        raise cursor.unsupported(f"{cursor.peek()} here", "Write INCLUDE before WITH (connector = ...), and FORMAT behind it.")
    if cursor.peek() == "LIKE":
        raise cursor.unsupported("LIKE in CREATE TABLE", "Write the columns.")
    if query is None and not items.columns and options.get("connector") != "parquet":
        raise cursor.syntax_error(f"table {name!r} has no columns. Write them behind its name; only Parquet tells its own.")
    spec = tuple(items.columns)
    return CreateTable(
        *cursor.written,
        name,
        spec,
        items.key,
        items.watermark,
        append_only,
        is_source,
        guarded,
        options,
        query,
        _checked(conflict, append_only, cursor),
        definition,
        small,
        head,
    )


_INCLUDED = {"key": BYTEA, "partition": VARCHAR, "offset": VARCHAR, "timestamp": TIMESTAMPTZ}
"""What INCLUDE adds of a message, and its type, as in RisingWave."""


def _included(cursor: Cursor, items: _Items) -> dict[str, str]:
    """Read ``INCLUDE what [AS column]``, add the columns, and return the options that say what they are."""
    options = {}
    while cursor.take("INCLUDE"):
        what = cursor.name()
        if what not in _INCLUDED:
            raise cursor.unsupported(f"INCLUDE {what}", f"There is {', '.join(_INCLUDED)}.")
        column = cursor.name() if cursor.take("AS") else f"_rw_kafka_{what}"
        items.columns.append(ColumnSpec(column, _INCLUDED[what], False, None, None))
        options[f"{INCLUDE}{column}"] = what
    return options


def take_small(cursor: Cursor, options: Mapping[str, str]) -> tuple[bool, dict[str, str]]:
    """Return whether options of WITH declare a relation small, and the other options."""
    small = options.get("small", "false").lower()
    if small not in ("true", "false"):
        raise cursor.unsupported(f"small = {small!r}", "It is 'true' or 'false'.")
    return small == "true", {name: value for name, value in options.items() if name != "small"}


_POLICIES = {
    ("OVERWRITE",): Keep.NEW,
    ("DO", "UPDATE", "FULL"): Keep.NEW,
    ("DO", "UPDATE", "IF", "NOT", "NULL"): Keep.FILLED,
    ("IGNORE",): Keep.OLD,
    ("DO", "NOTHING"): Keep.OLD,
}


def _conflict(cursor: Cursor) -> OnConflict | None:
    if not cursor.take("ON", "CONFLICT"):
        return None
    keep = next((keep for words, keep in _POLICIES.items() if cursor.take(*words)), None)
    if keep is None:
        instead = "OVERWRITE (DO UPDATE FULL), DO UPDATE IF NOT NULL and IGNORE (DO NOTHING) are."
        raise cursor.unsupported(f"ON CONFLICT {cursor.peek()} on a table", instead)
    if not cursor.take("WITH", "VERSION", "COLUMN"):
        return OnConflict(keep)
    if keep is Keep.OLD:
        raise cursor.unsupported("a version column with IGNORE", "The first row of a key stays, whatever its version.")
    return OnConflict(keep, cursor.names())


def _checked(conflict: OnConflict, append_only: bool, cursor: Cursor) -> OnConflict:
    if append_only and conflict.keep is not Keep.OLD:
        raise cursor.unsupported(
            f"ON CONFLICT {conflict.keep.value.upper()} on a table that is APPEND ONLY",
            "Its rows stay: the first of a key is kept (ON CONFLICT IGNORE). Leave APPEND ONLY out.",
        )
    return conflict


def _items(cursor: Cursor, items: _Items) -> None:
    while True:
        if cursor.take("PRIMARY KEY"):
            _set_key(cursor, items, cursor.names())
        elif cursor.take("WATERMARK", "FOR"):
            _watermark(cursor, items)
        else:
            _column(cursor, items)
        if cursor.take(")") or cursor.take(",", ")"):
            return
        cursor.expect(",")


def _watermark(cursor: Cursor, items: _Items) -> None:
    place = cursor.place
    if items.watermark is not None:
        raise cursor.unsupported("a second watermark", "A table has one.")
    column = cursor.name()
    cursor.expect("AS")
    items.watermark = WatermarkSpec(column, cursor.parse_until(",", ")", "WITH TTL"), place)
    if cursor.peek() == "WITH":
        instead = "Rows stay in a table until they are deleted; a view with a condition on now() lets them go."
        raise cursor.unsupported("WATERMARK ... WITH TTL", instead)


def _column(cursor: Cursor, items: _Items) -> None:
    name = cursor.name()
    if any(column.name == name for column in items.columns):
        raise cursor.syntax_error(f"column {name!r} is declared twice.")
    kind = UNKNOWN if cursor.peek() == "AS" else read_type(cursor, cursor.until(*_AFTER_TYPE))
    not_null, default, generated = False, None, None
    while cursor.peek() not in (",", ")", ""):
        if cursor.take("PRIMARY KEY"):
            _set_key(cursor, items, (name,))
        elif cursor.take("NOT", "NULL"):
            not_null = True
        elif cursor.take("NULL"):
            not_null = False
        elif cursor.take("DEFAULT"):
            default = cursor.parse_until(*_AFTER_EXPRESSION)
        elif cursor.take("AS"):
            generated = cursor.parse_until(*_AFTER_EXPRESSION)
        else:
            instead = _INSTEAD_ON_A_COLUMN.get(cursor.peek(), "PRIMARY KEY, NOT NULL, DEFAULT and AS expression are.")
            raise cursor.unsupported(f"{cursor.peek()} on a column", instead)
    items.columns.append(ColumnSpec(name, kind, not_null, default, generated))


def _set_key(cursor: Cursor, items: _Items, key: tuple[str, ...]) -> None:
    if items.key:
        raise cursor.syntax_error("a table has one primary key.")
    items.key = key
    cursor.take("NOT", "ENFORCED")


def _collated(cursor: Cursor, tokens: list[Token], names: list[str]) -> SqlType:
    """Return the type of a text with a collation: all texts are ordered by code point."""
    kind, name = read_type(cursor, tokens), " ".join(names)
    if kind != VARCHAR or name not in COLLATIONS:
        raise cursor.unsupported(f"COLLATE {name} of {kind}", f"Texts have the collations {', '.join(COLLATIONS)}.")
    return kind


def read_type(cursor: Cursor, tokens: list[Token]) -> SqlType:
    words = [token.text.lower() for token in tokens]
    if "collate" in words:
        return _collated(cursor, tokens[: words.index("collate")], [token.text for token in tokens[words.index("collate") + 1 :]])
    opening = words.index("(") if "(" in words else len(words)
    closing = words.index(")") if ")" in words else len(words)
    arguments = tuple(int(word) for word in words[opening + 1 : closing] if word.isdigit())
    rest = _array_in_words([word for index, word in enumerate(words) if index < opening or index > closing])
    arrays = "".join("[]" for word in rest if word == "[")
    name = " ".join(word for word in rest if word not in ("[", "]")) + arrays
    found = named(name, arguments)
    if found is None:
        length = f"({', '.join(map(str, arguments))})" if arguments else ""
        shown = name.removesuffix(arrays) + length + arrays or "of this column"
        raise cursor.unsupported(f"the type {shown!r}", _instead_of_type(words[0] if words else "", arguments))
    return found


def _array_in_words(words: list[str]) -> list[str]:
    """Return a type with ``[]`` where it says ``ARRAY<int>``, as Flink and Spark do, or ``int ARRAY``, as standard SQL does."""
    if words[:2] == ["array", "<"] and words[-1].strip(">") == "":
        inner = words[2:-1] + [">"] * (len(words[-1]) - 1)
        return [*_array_in_words(inner), "[", "]"]
    if len(words) > 1 and words[-1] == "array":
        return [*words[:-1], "[", "]"]
    return words


_TEXTS = ("varchar", "char", "character", "bpchar", "string", "text", "binary", "varbinary")
_COMPOUND = ("row", "struct", "map", "multiset")


def _instead_of_type(word: str, arguments: tuple[int, ...]) -> str:
    if word in _TEXTS and arguments:
        return f"Leave the length out: write {'bytea' if 'binary' in word else 'varchar'}."
    if word in _COMPOUND:
        return "Give each field a column, or declare jsonb, whose fields are value -> 'field' and value ->> 'field'."
    return "Numbers, text without a length, bytea, dates, times, intervals, jsonb and arrays are."
