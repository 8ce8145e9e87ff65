"""Malformed rows of sources, in SQL: found, left out or made NULL, counted and listed; ``windowpane.malformed`` has the rule.

Rows arrive as texts. They are read with the types of the table first; where one does not fit, each cell in ``TRY``.

State: ``windowpane.malformed``, one row for each malformed cell or document, in the transaction that takes the rows around it,
with the view that read it, where rows of the source are not stored. A source has at most ``MOST_SHOWN``; further ones are counted
together in a row without position. They are deleted with the source or the view.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from windowpane.errors import MalformedRowError
from windowpane.hidden_columns import MISREAD, ORIGIN, WHY_MISREAD
from windowpane.malformed import MOST_SHOWN, MalformedRow, shortened, why_no_object
from windowpane.sql.catalog.entries import ROW_ID, TableInfo
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.failures.trying import computed, why_it_fails
from windowpane.sql.parse.connector_options import MALFORMED
from windowpane.sql.values.text_values import text_literal

MALFORMED_COLUMNS = 'source varchar, "position" varchar, "column" varchar, "value" varchar, reason varchar'
"""The columns of malformed rows in a sink."""
_EVERY = 1_000_000  # So many malformed rows of a batch are kept where a sink takes them

_REQUIRED = "the column is NOT NULL"


@dataclass(frozen=True)
class Found:
    """The malformed rows of a batch."""

    shown: tuple[MalformedRow, ...] = ()
    count: int = 0

    def and_more(self, other: Found, most: int = MOST_SHOWN) -> Found:
        return Found((*self.shown, *other.shown)[:most], self.count + other.count)


def text_rows(
    info: TableInfo,
    casts: Mapping[str, str],
    *,
    beside: Collection[str] = (),
    others: tuple[str, ...] = (),
    most: int = MOST_SHOWN,
) -> TextRows:
    """Return how the texts of a source become values of a table."""
    required = {column.name for column in info.relation.visible if column.not_null}
    policy = info.options.get(MALFORMED, "null")
    return TextRows(info.relation.name, casts, required, info.relation.key, policy, beside, others, most)


@dataclass(frozen=True)
class TextRows:
    """How the texts of a source become values of a table.

    Args:
        casts: by column, the SQL that reads its text.
        keys: columns whose text must fit.
        beside: those of the columns ``ORIGIN``, ``MISREAD`` and ``WHY_MISREAD`` that rows have.
        others: further columns, which are passed on.
        most: how many malformed rows are returned one by one, of each kind and column.
    """

    source: str
    casts: Mapping[str, str]
    required: Collection[str] = ()
    keys: Collection[str] = ()
    policy: str = "null"
    beside: Collection[str] = ()
    others: tuple[str, ...] = ()
    most: int = MOST_SHOWN

    def strict(self, rows: str) -> str:
        """Return the query of the values; a text that does not fit is an error of it."""
        items = [f"{sql} AS {quoted(name)}" for name, sql in self.casts.items()]
        return f"SELECT {', '.join([*items, *map(quoted, self.others)])} FROM {rows}"

    def lenient(self, rows: str) -> str:
        """Return the query of the values where some texts do not fit; run it inside ``Storage.trying``."""
        items = [f"TRY({sql}) AS {quoted(name)}" for name, sql in self.casts.items()]
        lost = [f"TRY({self.casts[name]}) IS NULL" for name in self.casts if name in self.required]
        lost += [self._is_misfit(name) for name in self.casts if self.policy == "drop" or name in self.keys]
        if MISREAD in self.beside:
            lost.append(f"{quoted(MISREAD)} IS NOT NULL")
        where = f" WHERE NOT ({' OR '.join(f'({each})' for each in lost)})" if lost else ""
        return f"SELECT {', '.join([*items, *map(quoted, self.others)])} FROM {rows}{where}"

    def found(self, storage: Storage, rows: str, within: str = "") -> Found:
        """Return the malformed rows among some; run it inside ``Storage.trying``.

        Args:
            storage: has them.
            rows: their name.
            within: what ``ORIGIN`` begins with, which is not in the rows.

        Raises:
            MalformedRowError: there is one, and the policy is to fail.
        """
        found, place = Found(), f"{text_literal(within)} || {quoted(ORIGIN)}" if ORIGIN in self.beside else "''"
        if MISREAD in self.beside:
            misread = self._select(storage, rows, place, None, MISREAD, f"{quoted(MISREAD)} IS NOT NULL")
            found = found.and_more(misread, self.most)
        is_row = f"{quoted(MISREAD)} IS NULL AND " if MISREAD in self.beside else ""
        for name in self.casts:
            found = found.and_more(self._select(storage, rows, place, name, name, is_row + self._is_misfit(name)), self.most)
            if name in self.required:
                absent = self._select(storage, rows, place, name, name, f"{is_row}{quoted(name)} IS NULL")
                found = found.and_more(absent, self.most)
        self.refuse(found)
        return found

    def refuse(self, found: Found) -> None:
        """Raise the first of malformed rows, if the policy is to fail."""
        if self.policy == "fail" and found.shown:
            raise MalformedRowError(found.shown[0])

    def _is_misfit(self, name: str) -> str:
        return f"{quoted(name)} IS NOT NULL AND TRY([{self.casts[name]}]) IS NULL"

    def _select(self, storage: Storage, rows: str, place: str, column: str | None, shown: str, where: str) -> Found:
        why = quoted(WHY_MISREAD) if column is None and WHY_MISREAD in self.beside else "NULL"
        items = f"CAST({place} AS VARCHAR), {_text(shown)}, {why}, count(*) OVER ()"
        listed = storage.run(f"SELECT {items} FROM {rows} WHERE {where} LIMIT {self.most}")
        each = tuple(
            MalformedRow(self.source, position or "", column, value and shortened(value), why or self._reason(column, value))
            for position, value, why, _ in listed
        )
        return Found(each, int(listed[0][3]) if listed else 0)

    def _reason(self, column: str | None, value: str | None) -> str:
        if column is None:
            return why_no_object((value or "").encode())
        return _REQUIRED if value is None else _said(quoted(column), self.casts[column], value)


def _text(name: str) -> str:
    """Return the text of a column, which may have arrived as bytes."""
    return f"CASE WHEN typeof({quoted(name)}) = 'BLOB' THEN {quoted(name)}::BLOB::VARCHAR ELSE {quoted(name)}::VARCHAR END"


def _said(column: str, cast: str, value: str) -> str:
    said = why_it_fails(f"{computed(cast)} FROM (SELECT {text_literal(value)} AS {column})")
    return "it does not fit" if said is None else said.rstrip(".")


class MalformedRows:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def note(self, source: str, found: Found, reader: str | None = None) -> None:
        """Count malformed rows of a source, in the transaction that takes the rows around them.

        Sinks of malformed rows get those of rows that are stored, each once; other views may read the same rows.

        Args:
            source: the source.
            found: its malformed rows.
            reader: the view that reads the source itself, ``None`` where the rows are stored.
        """
        if not found.count:
            return
        where, whose = "WHERE source = ? AND reader IS NOT DISTINCT FROM ?", [source, reader]
        if reader is None:
            for (relation,) in self._storage.run("SELECT relation FROM windowpane.malformed_to WHERE source = ?", [source]):
                self._insert(relation, found)
        held = int(self._storage.run(f"SELECT count(*) FROM windowpane.malformed {where}", whose)[0][0])
        shown = found.shown[: max(0, MOST_SHOWN - held)]
        insert = "INSERT INTO windowpane.malformed VALUES (?, ?, ?, ?, ?, ?, ?, now())"
        for row in shown:
            self._storage.run(insert, [*whose, row.position, row.column, row.value, row.reason, 1])
        further = found.count - len(shown)
        if not further:
            return
        if self._storage.run(f"SELECT 1 FROM windowpane.malformed {where} AND position IS NULL", whose):
            add = f"UPDATE windowpane.malformed SET count = count + ? {where} AND position IS NULL"
            self._storage.run(add, [further, *whose])
        else:
            self._storage.run(insert, [*whose, None, None, None, "further malformed rows", further])

    def send(self, source: str, relation: str) -> None:
        self._storage.run("INSERT INTO windowpane.malformed_to VALUES (?, ?)", [source, relation])

    def most(self, source: str) -> int:
        """Return how many of a batch are asked for one by one: all, where a table takes them."""
        return _EVERY if self._storage.run("SELECT 1 FROM windowpane.malformed_to WHERE source = ?", [source]) else MOST_SHOWN

    def _insert(self, relation: str, found: Found) -> None:
        columns = {
            name: [getattr(row, name) for row in found.shown] for name in ("source", "position", "column", "value", "reason")
        }
        rows = pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
        last = self._storage.waiting.last_number(relation)
        numbered = f"SELECT *, {last} + row_number() OVER () FROM {self._storage.temporary_from(rows)}"
        self._storage.run(f"INSERT INTO main.{quoted(relation)} ({', '.join(map(quoted, columns))}, {quoted(ROW_ID)}) {numbered}")
        self._storage.waiting.number(relation, len(found.shown))

    def drop(self, name: str) -> None:
        """Forget those of a source, or those that a view has read; and of a table, that it takes any."""
        self._storage.run("DELETE FROM windowpane.malformed_to WHERE relation = ?", [name])
        self._storage.run("DELETE FROM windowpane.malformed WHERE source = ? OR reader = ?", [name, name])


NOTHING: Final = Found()
"""No malformed row."""


def found_in(rows: Sequence[MalformedRow], most: int = MOST_SHOWN) -> Found:
    return Found(tuple(rows[:most]), len(rows))
