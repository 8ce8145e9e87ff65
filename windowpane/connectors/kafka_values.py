"""Messages decoded into the columns of their format, ``message_formats``.

A message that is none of its format is malformed: see ``windowpane.malformed`` for the rule. So is one without a value (a
tombstone), which has no row to be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.values import Row
from windowpane.connectors.typed_cells import MISFITS, TypedCells
from windowpane.malformed import NO_VALUE, Cells, MalformedRow, Message, Misread, json_cells, shortened

Place = tuple[str, Message | None]
"""Where a document is, as text, and the message that it is."""


def _malformed(source: str, place: Place, column: str | None, value: str | None, reason: str) -> MalformedRow:
    return MalformedRow(source, place[0], column, value, reason, place[1])


@dataclass(frozen=True)
class Decoded:
    rows: pa.Table  # the columns, a row for each message that is one
    kept: pa.Array | None  # which messages those are, ``None`` for all
    met: list[MalformedRow]  # malformed messages and cells


@dataclass(frozen=True)
class Decoder:
    source: str  # what malformed rows name as their source
    cells: TypedCells
    policy: str  # one of ``malformed.POLICIES``; ``fail`` keeps what ``null`` does, and the first malformed one is an error
    needed: str | None  # the column without which a row is of no use

    def __call__(self, documents: Sequence[bytes | None], place: Callable[[int], Place]) -> Decoded:
        """Return the rows of documents; ``place`` says where one is."""
        table = self._at_once(documents)
        if table is not None and (self.needed is None or not table[self.needed].null_count):
            return Decoded(table, None, [])
        return self._one_by_one(documents, place)

    def _at_once(self, documents: Sequence[bytes | None]) -> pa.Table | None:
        """Return the rows of objects, one a line; ``None`` where there may be something else."""
        if not documents:
            return self.cells.schema.empty_table()
        try:
            content = b"\n".join(documents)  # type: ignore[arg-type]  # None is none
        except TypeError:
            return None
        ends = len(documents) - 1
        are_objects = content[:1] == b"{" and content[-1:] == b"}" and content.count(b"}\n{") == ends
        if not are_objects or content.count(b"\n") != ends:
            return None
        try:
            table = self.cells.json_lines(pa.py_buffer(content))
        except (pa.ArrowException, OSError, ValueError):
            return None
        return table if table.num_rows == len(documents) else None

    def _one_by_one(self, documents: Sequence[bytes | None], place: Callable[[int], Place]) -> Decoded:
        cells = self._texts(documents)
        numbers = [int(each) for each in cells.positions]
        texts = pa.table({name: pa.array(column, pa.string()) for name, column in cells.columns.items()})
        met = [_malformed(self.source, place(int(each.position)), None, each.value, each.reason) for each in cells.misread]
        columns, lost = [], np.zeros(len(numbers), np.bool_)
        for field in self.cells.schema:
            column, misfits = self.cells.fitted(texts[field.name], field)
            for row, reason in misfits:
                value = shortened(texts[field.name][row].as_py())
                met.append(_malformed(self.source, place(numbers[row]), field.name, value, reason))
                lost[row] |= self.policy == "drop" or field.name == self.needed
            if field.name == self.needed:
                absent = np.asarray(pc.is_null(column)) & ~lost
                for row in np.flatnonzero(absent).tolist():
                    met.append(_malformed(self.source, place(numbers[row]), field.name, None, "a row needs an event time"))
                lost |= absent
            columns.append(column)
        is_row = np.zeros(len(documents), np.bool_)
        is_row[np.asarray(numbers, np.int64)[~lost]] = True
        return Decoded(pa.table(columns, schema=self.cells.schema).filter(pa.array(~lost)), pa.array(is_row), met)

    def _texts(self, documents: Sequence[bytes | None]) -> Cells:
        names, nested = self.cells.schema.names, self.cells.nested
        given = ((str(number), each) for number, each in enumerate(documents) if each is not None)
        found = json_cells(given, names, nested, of_spark=True)
        tombstones = [Misread(str(number), "", NO_VALUE) for number, each in enumerate(documents) if each is None]
        return Cells(found.columns, found.positions, [*found.misread, *tombstones])


@dataclass(frozen=True)
class RecordDecoder:
    """The same for formats whose messages are read one by one, as records of types of their own."""

    source: str
    schema: pa.Schema
    read: Callable[[bytes], Row]  # raises ``ValueError`` where a message is no record
    needed: str | None

    def __call__(self, documents: Sequence[bytes | None], place: Callable[[int], Place]) -> Decoded:
        found = [NO_VALUE if document is None else self._tried(document) for document in documents]
        try:
            rows = self._table([each for each in found if not isinstance(each, str)])
        except MISFITS:  # Decimals of a writer with more places, say
            found = [each if isinstance(each, str) else self._fitting(each) for each in found]
            rows = self._table([each for each in found if not isinstance(each, str)])
        met = []
        for number, (each, document) in enumerate(zip(found, documents, strict=True)):
            if isinstance(each, str):
                shown = shortened((document or b"").decode("utf-8", "backslashreplace"))
                met.append(_malformed(self.source, place(number), None, shown, each))
        return Decoded(rows, pa.array([not isinstance(each, str) for each in found]) if met else None, met)

    def _table(self, rows: Sequence[Row]) -> pa.Table:
        columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in self.schema]
        return pa.table(columns, schema=self.schema)

    def _fitting(self, row: Row) -> Row | str:
        for field in self.schema:
            try:
                pa.array([row.get(field.name)], field.type)
            except MISFITS as error:
                return f"{field.name!r} is no {field.type}: {str(error).split(chr(10))[0]}"
        return row

    def _tried(self, document: bytes) -> Row | str:
        try:
            row = self.read(document)
        except ValueError as error:
            return str(error).split("\n")[0]
        return "a row needs an event time" if self.needed is not None and row.get(self.needed) is None else row
