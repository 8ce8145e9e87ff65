"""Messages of Kafka on their way into a table, whoever has read them: a session without Spark, or a query of Spark.

A message of FORMAT PLAIN is a row. Of UPSERT it is the row of its key, and without a value that row is deleted; of DEBEZIUM it
says what a row became, ``after``, and by ``op`` whether it was deleted. Of one key the messages of a chunk count in their order,
since all are in one partition: a deletion removes what was before it, and of the rows behind it those stay that the table's rule
for conflicts leaves. Records of Avro and Protocol Buffers are read as documents of JSON, ``connectors.json_records``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windowpane.connectors.json_records import fields_of, json_reader, record_format
from windowpane.connectors.kafka_client import SERVERS, TopicOptions
from windowpane.errors import SqlRunError
from windowpane.hidden_columns import ORIGIN, SPLIT
from windowpane.malformed import NO_VALUE, Cells, MalformedRow, in_any_case, json_cells, json_object, json_text, shortened
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.embedded.file_sources import cast_of_text, nested_columns
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.failures.malformed_rows import MalformedRows, found_in, text_rows
from windowpane.sql.parse.connector_options import ENCODE, FORMAT, IDLE, meant
from windowpane.sql.streaming.deltas import WEIGHT, Delta, same

MOST = 500_000  # So many messages of a topic are one chunk; the next flush takes further ones
_HEADER = b"\0"  # What a record begins with whose schema a registry knows


@dataclass(frozen=True)
class Document:
    """One message: where it is, what is there to read, and what key it has."""

    origin: str
    value: bytes | None
    key: bytes | None


@dataclass(frozen=True)
class MessageReading:
    """How records are read as documents of JSON; both ``None`` where messages are no records."""

    value: Callable[[bytes], bytes] | None = None
    key: Callable[[bytes], bytes] | None = None

    @classmethod
    def of(cls, info: TableInfo) -> MessageReading:
        """Return how the messages of a table are read.

        Raises:
            InvalidSpecError: their schema is not there, or none.
            ConnectorError: a registry does not answer.
            SqlRunError: the schema lacks a column of the table.
        """
        value = record_format(info.options)
        if value is None:
            return cls()
        form = info.options.get(FORMAT, "plain").lower()
        _check_fields(info, fields_of(value, of_changes=form == "debezium"))
        names_keys = form == "upsert" and not all(name in included_of(info) for name in info.relation.key)
        key = record_format(info.options, "key") if names_keys else None
        return cls(json_reader(value), None if key is None else json_reader(key))

    def as_json(self, document: Document) -> Document:
        """Return a record as a document of JSON."""
        value, key = document.value, document.key
        if value is not None and self.value is not None:
            value = self.value(value)
        if key is not None and self.key is not None and key[:1] == _HEADER:
            key = self.key(key)
        return Document(document.origin, value, key)


def _check_fields(info: TableInfo, fields: Sequence[str] | None) -> None:
    known = {each.lower() for each in fields or ()}
    others = {*included_of(info), *info.generated}
    for column in info.relation.visible:
        if fields is not None and column.name not in others and column.name.lower() not in known:
            raise SqlRunError(
                f"column {column.name!r} of {info.relation.name!r}: the schema of its messages has no such field"
                f".{meant(column.name, fields)} It has {', '.join(fields)}."
            )


def included_of(info: TableInfo) -> dict[str, str]:
    """Return the columns of INCLUDE, and what of a message each is."""
    return TopicOptions(info.options).included


def is_topic(info: TableInfo) -> bool:
    """Whether a table is filled by Kafka, in RisingWave's words."""
    return info.options.get("connector") == "kafka" and SERVERS in info.options


def has_changes(info: TableInfo) -> bool:
    """Whether the messages of a topic replace and delete rows."""
    return is_topic(info) and info.options.get(FORMAT, "plain").lower() != "plain"


def check_topic(info: TableInfo) -> None:
    """Refuse a table whose columns or key its messages cannot fill."""
    name, form = info.relation.name, info.options.get(FORMAT, "plain").lower()
    if form != "plain" and (info.relation.append_only or info.has_row_id):
        raise SqlRunError(f"FORMAT {form.upper()} of {name!r} changes rows: CREATE TABLE it with a PRIMARY KEY.")
    if IDLE in info.options and info.watermark is None:
        raise SqlRunError(f"{IDLE} of {name!r} says how long a watermark waits, and there is none: WATERMARK FOR column AS ...")
    included = included_of(info)
    rest = [each.name for each in info.relation.visible if each.name not in included]
    if info.options.get(ENCODE, "json").lower() == "bytes" and len(rest) != 1:
        raise SqlRunError(f"ENCODE BYTES: a message is one column, and {name!r} has {', '.join(rest) or 'none'}.")


@dataclass(frozen=True)
class MessageRows:
    """Brings messages into a table."""

    storage: Storage
    info: TableInfo
    writer: TableWriter
    reading: MessageReading

    def append(self, documents: Sequence[Document], about: Callable[[str], pa.Array]) -> None:
        """Take messages, of which ``about`` gives the columns of INCLUDE: of one key in their order."""
        included = included_of(self.info)
        columns = {name: about(what) for name, what in included.items()}
        if self.info.watermark is not None:
            columns[SPLIT] = about(SPLIT)
        form = self.info.options.get(FORMAT, "plain").lower()
        if self.info.options.get(ENCODE, "json").lower() == "bytes":
            (column,) = [each.name for each in self.info.relation.visible if each.name not in included]
            rows = pa.table({column: pa.array([each.value for each in documents], pa.binary()), **columns})
            self.writer.append((f"SELECT * FROM {self.storage.temporary_from(rows)}", (column, *columns)), self.info)
            return
        found: list[MalformedRow] = []
        if self.reading.value is not None:
            documents, columns = self._as_json(documents, columns, found)
        if form == "plain":
            self._take(documents, columns, found)
        else:
            self._take_changes(documents, columns, found, is_debezium=form == "debezium")

    def _as_json(
        self, documents: Sequence[Document], columns: Mapping[str, pa.Array], found: list[MalformedRow]
    ) -> tuple[list[Document], dict[str, pa.Array]]:
        """Return records as documents of JSON, without those that are none, which are noted in ``found``."""
        taken, read = list[int](), list[Document]()
        for number, each in enumerate(documents):
            try:
                read.append(self.reading.as_json(each))
                taken.append(number)
            except ValueError as error:
                found.append(self._malformed(each, str(error)))
        return read, {name: column.take(pa.array(taken, pa.int64())) for name, column in columns.items()}

    def _malformed(self, document: Document, reason: str) -> MalformedRow:
        shown = shortened((document.value or document.key or b"").decode("utf-8", "backslashreplace"))
        return MalformedRow(self.info.relation.name, document.origin, None, shown, reason.split("\n")[0])

    def _take_changes(
        self, documents: Sequence[Document], columns: Mapping[str, pa.Array], found: list[MalformedRow], *, is_debezium: bool
    ) -> None:
        """Take the rows away whose keys are deleted, and bring in the rows that came behind that, or of keys that were not."""
        keys = self.info.relation.key
        of_messages = not is_debezium and all(name in columns for name in keys)
        deleted, kept = dict[Any, None](), dict[Any, list[tuple[int, bytes]]]()
        for number, each in enumerate(documents):
            try:
                events = _debezium(each, keys) if is_debezium else _upsert(each, None if of_messages else keys)
            except ValueError as error:
                found.append(self._malformed(each, str(error)))
                continue
            for key, row in events:
                if row is None:
                    deleted[key] = None
                    kept.pop(key, None)
                else:
                    kept.setdefault(key, []).append((number, row))
        if deleted:
            self._delete([(key,) if of_messages else key for key in deleted], keys, is_text=not of_messages)
        in_order = sorted(each for rows in kept.values() for each in rows)
        rows = [Document(documents[number].origin, row, None) for number, row in in_order]
        numbers = pa.array([number for number, _ in in_order], pa.int64())
        self._take(rows, {name: column.take(numbers) for name, column in columns.items()}, found)

    def _delete(self, keys: Sequence[tuple[Any, ...]], names: Sequence[str], *, is_text: bool) -> None:
        types = {each.name: each.type for each in self.info.relation.visible}
        arrived = self.storage.temporary_from(
            pa.table({name: pa.array(column) for name, column in zip(names, zip(*keys, strict=True), strict=True)})
        )
        texts = [f"CAST({quoted(name)} AS JSON) ->> '$' AS {quoted(name)}" for name in names]
        read = [f"TRY({cast_of_text(name, types[name], False)}) AS {quoted(name)}" for name in names]
        gone = f"(SELECT {', '.join(read)} FROM (SELECT {', '.join(texts)} FROM {arrived}))" if is_text else arrived
        with self.storage.trying():
            old = f"SELECT s.*, -1 AS {quoted(WEIGHT)} FROM {self.info.relation.storage} AS s SEMI JOIN {gone} AS n"
            old = self.storage.temporary(f"{old} ON {same('s', 'n', names)}")
        self.writer.apply(Delta(old), self.info)

    def _take(self, documents: Sequence[Document], columns: Mapping[str, pa.Array], malformed: Sequence[MalformedRow]) -> None:
        """Insert the rows of documents, beside which are the columns of INCLUDE, and note what is malformed."""
        info, storage = self.info, self.storage
        types = {each.name: each.type for each in info.relation.visible if each.name not in {*columns, *info.generated}}
        nested = nested_columns(types)
        given = [(str(number), each.value) for number, each in enumerate(documents) if each.value is not None]
        cells = json_cells(given, list(types), nested)
        numbers = [int(each) for each in cells.positions]
        misread: list[tuple[str, str | None, str]] = [
            (documents[int(each.position)].origin, each.value, each.reason) for each in cells.misread
        ]
        misread += [(each.origin, None, NO_VALUE) for each in documents if each.value is None]
        found = [*malformed, *(MalformedRow(info.relation.name, at, None, value, reason) for at, value, reason in misread)]
        casts = {name: cast_of_text(name, kind, name in nested) for name, kind in types.items()}
        most = MalformedRows(storage).most(info.relation.name)
        rows = text_rows(info, casts, beside={ORIGIN}, others=tuple(columns), most=most)
        noted, taken = found_in(found, most), pa.array(numbers, pa.int64())
        rows.refuse(noted)
        table = Cells(cells.columns, [documents[number].origin for number in numbers], ()).table(rows.policy)
        for name, column in columns.items():
            table = table.append_column(name, column.take(taken))
        arrived = storage.temporary_from(table)
        with storage.trying():
            noted = noted.and_more(rows.found(storage, arrived), most)
            self.writer.append((rows.lenient(arrived), (*casts, *columns)), info)
        MalformedRows(storage).note(info.relation.name, noted)


Event = tuple[Any, bytes | None]
"""The key of a row, and the row, ``None`` where it is deleted."""


def _upsert(document: Document, keys: Sequence[str] | None) -> Iterable[Event]:
    """Return the change of a message of FORMAT UPSERT; ``keys`` are read from its key, which is the key itself for ``None``."""
    if document.key is None:
        raise ValueError("it has no key, and FORMAT UPSERT needs one")
    if keys is None:
        return [(document.key, document.value)]
    found = _object(document.key) if len(keys) > 1 or document.key[:1] == b"{" else {keys[0]: _scalar(document.key)}
    return [(_key_of(found, keys), document.value)]


def _debezium(document: Document, keys: Sequence[str]) -> Iterable[Event]:
    """Return the changes of a message of FORMAT DEBEZIUM; a tombstone behind a deleted row says nothing new."""
    if document.value is None:
        return []
    found = _object(document.value)
    found = found.get("payload") or found
    before, after, kind = found.get("before"), found.get("after"), found.get("op")
    if kind not in ("c", "r", "u", "d") or (after is None) != (kind == "d"):
        raise ValueError("it is no change of Debezium's: before, after and op")
    if kind == "d":
        return [(_key_of(before, keys), None)]
    row = json_text(after).encode()
    old = [] if not isinstance(before, dict) or _key_of(before, keys) == _key_of(after, keys) else [(_key_of(before, keys), None)]
    return [*old, (_key_of(after, keys), row)]


def _object(document: bytes) -> dict[str, Any]:
    found = json_object(document)
    if isinstance(found, str):
        raise ValueError(found)
    return found


def _scalar(document: bytes) -> Any:
    """Return a key of one column: a text of JSON, or else what is written."""
    text = document.decode("utf-8")
    return json.loads(text) if text[:1] == text[-1:] == '"' and len(text) > 1 else text


def _key_of(row: Any, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a key as JSON; names match as those of columns do."""
    folded = in_any_case(row) if isinstance(row, dict) else {}
    found = [folded.get(name, folded.get(name.lower())) for name in keys]
    if any(value is None for value in found):
        raise ValueError(f"it has no value of the key ({', '.join(keys)})")
    return tuple(map(json_text, found))
