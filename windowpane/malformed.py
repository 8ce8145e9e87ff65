"""Malformed rows: rows of a source that cannot be read, by one rule for every format and every source.

A document that is no row of its format (a line that is no JSON, a message that is no object) is malformed as a whole; a cell
whose text does not fit the type of its column is malformed in that column. What becomes of such a row is one of ``POLICIES``:

- ``null``: a document is left out, a cell is NULL, as in RisingWave (``src/connector/src/parser``); a row without a value for its
  key, or for another column that needs one, is left out, too;
- ``drop``: the row is left out;
- ``fail``: the first one is an error.

Whatever the policy, each is counted and kept as data: source, position, column, value, reason. The rows around it are taken.

A reader of a format cuts what it read into ``Cells``: the text of each column by row. What knows the types of the columns (DuckDB
for SQL, Arrow for DataFrames) then tells texts that fit from those that do not.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, NoReturn, get_args

import pyarrow as pa

from windowpane.arrays.values import JsonValue, Row
from windowpane.hidden_columns import ORIGIN

Policy = Literal["null", "drop", "fail"]
POLICIES: Final[tuple[str, ...]] = get_args(Policy)
"""What may become of a malformed row."""

MALFORMED_COUNT, MALFORMED_ROWS = "malformed", "malformed_rows"
"""Behind the counters of each operator: how many rows its sources could not read, and some of them."""

MOST_SHOWN = 100
"""So many malformed rows of a source are shown one by one; all are counted."""

_WIDEST = 200
NO_VALUE: Final = "it has no value: a tombstone deletes its key, and a row needs values"
"""Why a message of Kafka without a value is no row."""


@dataclass(frozen=True)
class Message:
    """A message of Kafka in which a row was malformed; its timestamp is in microseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None = None
    key: bytes | None = None


@dataclass(frozen=True)
class MalformedRow:
    """A row that cannot be read.

    Attributes:
        source: the name of the source.
        position: where in it: ``path, line 3``, or topic, partition and offset; ``""`` where the source has none.
        column: the column whose value does not fit; ``None`` where the whole row cannot be read.
        value: the text that was read.
        reason: what is wrong with it.
        message: the message of Kafka that it was in; ``None`` for other sources.
    """

    source: str
    position: str
    column: str | None
    value: str | None
    reason: str
    message: Message | None = None

    def __str__(self) -> str:
        column = "" if self.column is None else f"column {self.column!r}"
        return f"{', '.join(filter(None, (self.source, self.position, column)))}: {self.value!r}: {self.reason}"


@dataclass(frozen=True)
class Misread:
    """A document that is no row of its format.

    Attributes:
        position: where it is.
        value: its text.
        reason: why it is none.
        row: the number of the row that was made of it all the same; ``None`` where none was.
    """

    position: str
    value: str
    reason: str
    row: int | None = None


@dataclass(frozen=True)
class Cells:
    """The texts of rows, by column, and the documents beside them that are no rows.

    Attributes:
        columns: by name, the text of each row; ``None`` for NULL.
        positions: of each row.
        misread: the documents that are no rows.
        absent: columns that no row can have.
    """

    columns: Mapping[str, Sequence[str | None]]
    positions: Sequence[str]
    misread: Sequence[Misread]
    absent: Sequence[str] = ()

    def table(self, policy: str) -> pa.Table:
        """Return the texts as an Arrow table, with the position of each row in ``ORIGIN``."""
        texts = {name: pa.array(cells, pa.string()) for name, cells in {**self.columns, ORIGIN: self.positions}.items()}
        odd = {each.row for each in self.misread} - {None}
        if policy == "null" or not odd:
            return pa.table(texts)
        return pa.table(texts).filter(pa.array([number not in odd for number in range(len(self.positions))]))


_TEXTS = ("source", "position", "column", "value", "reason")
_OF_MESSAGES = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "key": pa.binary(),
}
ROWS: Final = pa.schema([*((name, pa.string()) for name in _TEXTS), *_OF_MESSAGES.items()])
"""Malformed rows as an Arrow table: what is wrong, and the message of Kafka that it was in, NULL for other sources."""


def rows_table(rows: Sequence[MalformedRow]) -> pa.Table:
    """Return malformed rows as a table of ``ROWS``."""
    texts = [pa.array([getattr(row, name) for row in rows], pa.string()) for name in _TEXTS]
    messages = [[getattr(row.message, name, None) for row in rows] for name in _OF_MESSAGES]
    return pa.table([*texts, *map(pa.array, messages, _OF_MESSAGES.values())], schema=ROWS)


def shown_row(row: Row) -> dict[str, JsonValue]:
    """Return a row of such a table as counters show it: without its message."""
    return {name: row[name] for name in _TEXTS}


def shortened(text: str) -> str:
    """Return a value as it is shown."""
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


# --- JSON ----------------------------------------------------------------------------------------------


class _Number(str):
    """A number as it is written, so that no digit is lost."""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no value of JSON")


_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_no_constant)
_OF_SCALARS = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_no_constant)
"""Three times as fast, for objects in which a number need not be told from a text: neither is written as JSON again."""
_TEXTS_ONLY = frozenset({str, type(None)})
_SCALARS = _TEXTS_ONLY | {bool}
_OF_SPARK = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_Number)


def json_cells(
    documents: Iterable[tuple[str, bytes]], columns: Sequence[str], as_json: Collection[str] = (), *, of_spark: bool = False
) -> Cells:
    """Return the cells of JSON documents, each of which is a row, an object.

    Names match whatever their case, one of the very spelling first; a column that an object lacks is NULL.

    Args:
        documents: the position of each, and its bytes.
        columns: the names of the columns.
        as_json: those of them whose cells are JSON; a text of the others is without its quotes.
        of_spark: as for Spark's and Arrow's readers a name has one spelling, and NaN and Infinity are numbers.
    """
    folds = {name: name if of_spark else name.lower() for name in columns}
    decoder = _OF_SPARK if of_spark else _DECODER if as_json else _OF_SCALARS
    rows: list[list[JsonValue]] = []
    positions: list[str] = []
    misread: list[Misread] = []
    for position, document in documents:
        found = json_object(document, decoder)
        if decoder is _OF_SCALARS and isinstance(found, dict) and not _SCALARS.issuperset(map(type, found.values())):
            found = json_object(document)
        if isinstance(found, str):
            misread.append(Misread(position, shortened(document.decode("utf-8", "replace")), found))
            continue
        positions.append(position)
        if of_spark or folds.keys() <= found.keys():
            rows.append([found.get(name) for name in folds])
        else:
            folded = in_any_case(found)
            rows.append([folded.get(name, folded.get(fold)) for name, fold in folds.items()])
    values = zip(*rows, strict=True) if rows else [()] * len(folds)
    texts = {name: _json_column(column, name in as_json) for name, column in zip(folds, values, strict=True)}
    return Cells(texts, positions, misread)


def in_any_case(found: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the fields of an object by their names, and by these in small letters where no field has that very name."""
    return {**{name.lower(): value for name, value in found.items()}, **found}


def _json_column(values: Sequence[JsonValue], as_json: bool) -> list[str | None]:
    if as_json:
        return [None if value is None else json_text(value) for value in values]
    if _TEXTS_ONLY.issuperset(map(type, values)):
        return list(values)
    return [json_cell(value) for value in values]


def json_documents(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Cut a file of JSON into documents: one a line, or the elements of one array; each with its position in the file.

    An object may be written on several lines.
    """
    if content.lstrip()[:1] == b"[":
        yield from _elements(content)
        return
    lines = content.split(b"\n")
    number = 0
    while number < len(lines):
        first, number = number, number + 1
        document = lines[first]
        if not document.strip():
            continue
        if document.lstrip()[:1] == b"{" and document.rstrip()[-1:] != b"}":
            end = _end_of_object(lines, first)
            if end is not None:
                document, number = b"\n".join(lines[first : end + 1]), end + 1
        yield f"line {first + 1}", document


def _end_of_object(lines: Sequence[bytes], first: int) -> int | None:
    """Return the last line of an object that is written on several, ``None`` where there is none before the next one begins."""
    is_alone, depth = lines[first].strip() == b"{", _depth(lines[first])
    for at in range(first + 1, len(lines)):
        if lines[at].lstrip()[:1] == b"{" and _depth(lines[at]) <= depth:
            return None
        if is_alone and lines[at].rstrip() == b"}":
            return at
        if lines[at].rstrip()[-1:] == b"}" and isinstance(json_object(b"\n".join(lines[first : at + 1])), dict):
            return at
    return None


def _depth(line: bytes) -> int:
    return len(line) - len(line.lstrip())


def _elements(content: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        elements = _DECODER.decode(content.decode("utf-8"))
    except (UnicodeDecodeError, ValueError):
        yield "line 1", content
        return
    for number, element in enumerate(elements, start=1):
        yield f"element {number}", json_text(element).encode("utf-8")


def json_object(document: bytes, decoder: json.JSONDecoder = _DECODER) -> dict[str, JsonValue] | str:
    """Return the object that a document is, or why it is none."""
    try:
        found = decoder.decode(document.decode().removeprefix("\ufeff").strip())
        if b"\\ud" in document or b"\\uD" in document:
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return f"it is no text: half a surrogate pair, \\u{ord(error.object[error.start]):04x}"
    except UnicodeDecodeError as error:
        return f"it is not UTF-8: {error.reason} at byte {error.start}"
    except json.JSONDecodeError as error:
        return f"it is no JSON: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"
    return found if isinstance(found, dict) else "it is JSON, but no object"


def why_no_object(document: bytes) -> str:
    """Return why a document is no row of JSON; where it is one for this decoder, that another could not read it."""
    found = json_object(document)
    return found if isinstance(found, str) else "it cannot be read as a row"


def json_value(text: str) -> object:
    """Return the value of a cell that is JSON, numbers as they are written."""
    return _OF_SPARK.decode(text)


def json_cell(value: object) -> str | None:
    """Return the text of a value: that of a text, or JSON."""
    return value if value is None or isinstance(value, str) else json_text(value)


def json_text(value: object) -> str:
    """Return a value as JSON, numbers as they were written."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{json_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


# --- CSV -----------------------------------------------------------------------------------------------

_DELIMITERS = (",", ";", "\t", "|")


def csv_delimiter(content: bytes, columns: Sequence[str]) -> str:
    """Return the delimiter by which the heading of a CSV file has most of the columns."""
    heading = content.partition(b"\n")[0].decode("utf-8-sig", "replace").rstrip("\r")
    return max(_DELIMITERS, key=lambda each: len(_places(next(csv.reader([heading], delimiter=each), []), columns)))


def csv_cells(
    content: bytes, columns: Sequence[str], delimiter: str, *, heading: bool = True, null: str = "", any_case: bool = True
) -> Cells:
    """Return the cells of a CSV file; a row with too few fields is NULL in the others, of one with too many the rest is left out.

    Args:
        content: the file.
        columns: the names of the columns.
        delimiter: the separator of fields.
        heading: whether the first line names the columns; without it fields are in the order of ``columns``.
        null: the text of NULL.
        any_case: whether names in the heading match whatever their case.
    """
    texts: dict[str, list[str | None]] = {name: [] for name in columns}
    positions: list[str] = []
    misread: list[Misread] = []
    places, width = {name: place for place, name in enumerate(columns)}, len(columns)
    for record in _records(content, delimiter):
        if heading:
            found = _places(record.fields, columns)
            places = found if any_case else {name: at for name, at in found.items() if record.fields[at] == name}
            heading, width = False, len(record.fields)
            continue
        if not record.fields and not record.reason:
            continue
        position, is_whole = f"line {record.line}", len(record.fields) == width
        if record.reason or not is_whole:
            reason = record.reason or f"it has {len(record.fields)} fields for {width} columns"
            misread.append(Misread(position, shortened(record.text), reason, None if record.reason else len(positions)))
        if record.reason:
            continue
        positions.append(position)
        for name, cells in texts.items():
            place = places.get(name)
            value = record.fields[place] if place is not None and place < len(record.fields) else null
            cells.append(None if value == null else value)
    return Cells(texts, positions, misread, [name for name in columns if name not in places])


@dataclass(frozen=True)
class _Record:
    line: int
    text: str
    fields: Sequence[str] = ()
    reason: str = ""


def _records(content: bytes, delimiter: str) -> Iterator[_Record]:
    """Yield the records of a file; behind one that is none the next line is read anew."""
    lines = list(io.StringIO(content.decode("utf-8-sig", "surrogateescape"), newline=""))
    at = 0
    while at < len(lines):
        reader, before = csv.reader(islice(lines, at, None), delimiter=delimiter, strict=True), 0
        try:
            for fields in reader:
                text = "".join(lines[at + before : at + reader.line_num]).rstrip("\r\n")
                yield _checked(_Record(at + before + 1, text, fields))
                before = reader.line_num
            return
        except csv.Error as error:
            at += before + 1
            yield _Record(at, _shown(lines[at - 1].rstrip("\r\n")), reason=f"it is no row of CSV: {error}")


def _checked(record: _Record) -> _Record:
    """Return a record, or why it is none, where its bytes are no text."""
    if record.text.isascii():
        return record
    try:
        record.text.encode("utf-8")
    except UnicodeEncodeError as error:
        return _Record(record.line, _shown(record.text), reason=f"it is not UTF-8, from its character {error.start + 1} on")
    return record


def _shown(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _places(heading: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """Return where in the heading columns are; one of the very spelling comes first."""
    exact = {name: place for place, name in enumerate(heading)}
    folded = {name.strip().lower(): place for place, name in enumerate(heading)}
    found = {name: exact.get(name, folded.get(name.lower())) for name in columns}
    return {name: place for name, place in found.items() if place is not None}
