"""Keys as one text each: to group by, to show, and to be asked for by; two keys never have the same."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.columns import flat

_NULL = "NULL"
_PART = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^,]*?)\s*,')


def key_texts(columns: Sequence[pa.ChunkedArray | pa.Array], rows: int) -> pa.Array:
    """Return keys as text: the value of one column, and those of several with a comma between.

    NULL is ``NULL``. A text ``NULL``, one that begins with quotes, or of several columns one with a comma, is in JSON's quotes.
    """
    if not columns:
        return pa.array([""] * rows, pa.string())
    texts = [_quoted(texts_of(column), len(columns) > 1).fill_null(_NULL) for column in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, ", ")


def texts_of(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    values = flat(column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())


def _quoted(texts: pa.Array, several: bool) -> pa.Array:
    doubtful = pc.or_(pc.equal(texts, _NULL), pc.starts_with(texts, '"'))
    if several:
        doubtful = pc.or_(doubtful, pc.match_substring(texts, ","))
    if not pc.any(doubtful).as_py():
        return texts
    pairs = zip(texts.to_pylist(), doubtful.to_pylist(), strict=True)
    return pa.array([json.dumps(text, ensure_ascii=False) if quoted else text for text, quoted in pairs], pa.string())


def key_of_values(values: Sequence[Any]) -> str:
    """Return a key of Python values as the same text."""
    return str(key_texts([pa.array([value], pa.string() if value is None else None) for value in values], 1)[0].as_py())


def value_of_text(text: str) -> str | None:
    """Return what the text of a key of one column, or of one of its columns, stands for."""
    if text == _NULL:
        return None
    with suppress(ValueError):
        return str(json.loads(text)) if text.startswith('"') else text
    return text


def values_of_text(text: str) -> tuple[str | None, ...]:
    """Return what the text of a key of several columns stands for."""
    return tuple(value_of_text(part) for part in _PART.findall(f"{text},"))
