"""Changes that wait for the next flush: rows that no flush has taken, and changes of rows that one has taken.

Rows of a table without a primary key are numbered as they are inserted, so its new rows are those behind a number, and are not
copied. Changes of its other rows, and all changes of a table with a primary key, wait in a table of their own.

Layout: ``windowpane.counters`` has for each table with numbered rows the last number, and the last one that a flush has taken.
It is held in memory, and written once a transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from windowpane.sql.values.text_values import text_literal


class _Statements(Protocol):
    def run(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one and return the rows of its result."""

    def is_empty(self, relation: str) -> bool:
        """Whether a relation has no rows."""


@dataclass(frozen=True)
class _Numbers:
    """The last number of a table's rows, and the last that a flush has taken."""

    last: int = 0
    flushed: int = 0


class Waiting:
    def __init__(self, storage: _Statements) -> None:
        self._storage = storage
        self._held: dict[str, _Numbers] | None = None
        self._stored: dict[str, _Numbers] = {}
        self._without_changes: set[str] = set()
        self._thinned: set[str] = set()

    def _loaded(self) -> dict[str, _Numbers]:
        if self._held is None:
            rows = self._storage.run("SELECT name, value, flushed FROM windowpane.counters")
            self._held = {name: _Numbers(last, flushed) for name, last, flushed in rows if not name.startswith("/")}
            self._stored = dict(self._held)
            self._thinned = {name for name, numbers in self._held.items() if numbers.flushed < numbers.last}
        return self._held

    def last_number(self, table: str) -> int:
        return self._loaded().get(table, _Numbers()).last

    def number(self, table: str, count: int) -> None:
        """Take that many numbers behind the last."""
        numbers = self._loaded().get(table, _Numbers())
        self._loaded()[table] = replace(numbers, last=numbers.last + count)

    def flushed(self, table: str) -> int:
        return self._loaded().get(table, _Numbers()).flushed

    def has_new_rows(self, table: str, rows: str) -> bool:
        """Whether rows were inserted since the last flush and are still stored; ``rows`` is read only if some may be deleted."""
        has_inserted = self.flushed(table) < self.last_number(table)
        return has_inserted and not (table in self._thinned and self._storage.is_empty(rows))

    def add_changes(self, table: str) -> None:
        """Note that rows of a table were changed, or that changes were written to its table of changes."""
        self._without_changes.discard(table)
        self._thinned.add(table)

    def has_changes(self, table: str, place: str) -> bool:
        if table not in self._without_changes and self._storage.is_empty(place):
            self._without_changes.add(table)
        return table not in self._without_changes

    def end(self, table: str, place: str) -> None:
        if self.has_changes(table, place):
            self._storage.run(f"DELETE FROM {place}")
            self._without_changes.add(table)
        if self.flushed(table) < self.last_number(table):
            self._loaded()[table] = replace(self._loaded()[table], flushed=self.last_number(table))
        self._thinned.discard(table)

    def drop(self, table: str) -> None:
        self.save()
        self._storage.run("DELETE FROM windowpane.counters WHERE name = ?", [table])
        self.forget()

    def save(self) -> None:
        changed = {} if self._held is None else {k: v for k, v in self._held.items() if self._stored.get(k) != v}
        known = {text_literal(name): numbers for name, numbers in changed.items() if name in self._stored}
        fresh = {text_literal(name): numbers for name, numbers in changed.items() if name not in self._stored}
        if known:
            last = " ".join(f"WHEN {name} THEN {numbers.last}" for name, numbers in known.items())
            flushed = " ".join(f"WHEN {name} THEN {numbers.flushed}" for name, numbers in known.items())
            values = f"value = CASE name {last} END, flushed = CASE name {flushed} END"
            self._storage.run(f"UPDATE windowpane.counters SET {values} WHERE name IN ({', '.join(known)})")
        if fresh:
            rows = ", ".join(f"({name}, {numbers.last}, {numbers.flushed})" for name, numbers in fresh.items())
            self._storage.run(f"INSERT INTO windowpane.counters VALUES {rows}")
        self._stored |= changed

    def forget(self) -> None:
        self._held = None
        self._stored = {}
        self._without_changes.clear()
        self._thinned.clear()
