"""Outboxes: changes of a relation wait there, in the transaction that made them, until a store has taken them.

Layout: ``windowpane_state."outbox/<name>"`` holds changed rows with their ``_change_type`` and the number of their batch. A batch
leaves the outbox after the store has committed it; a crash between the two delivers it again, and the store, which knows the
number, changes nothing. So every change arrives exactly once.
"""

from __future__ import annotations

import pyarrow as pa

from windowpane.sql.catalog.relations import Relation
from windowpane.sql.embedded.storage import Storage, as_part
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.streaming.deltas import Delta, with_words
from windowpane.windowing.outputs import CHANGE_TYPE, INSERT

_NUMBER = "windowpane_batch"


class Outbox:
    def __init__(self, storage: Storage, name: str, relation: Relation) -> None:
        self._storage, self.relation = storage, relation
        self._table = f"windowpane_state.{quoted('outbox/' + as_part(name))}"

    def create(self) -> None:
        columns = ", ".join(f"{quoted(column.name)} {column.type.duckdb}" for column in self.relation.columns)
        self._storage.run(f"CREATE TABLE {self._table} ({columns}, _change_type VARCHAR, {_NUMBER} BIGINT)")

    def drop(self) -> None:
        self._storage.run(f"DROP TABLE {self._table}")

    def clear(self) -> None:
        self._storage.run(f"DELETE FROM {self._table}")

    def put(self, changes: Delta, number: int) -> None:
        """Let a batch with each row once wait."""
        if changes.inserts:
            self._insert(changes.relation, f"'{INSERT}'", number)
            return
        with self._storage.reading(with_words(self._storage.arrow(f"SELECT * FROM {changes}"), self.relation.key)) as rows:
            self._insert(rows, CHANGE_TYPE, number)

    def put_all(self, number: int) -> None:
        """Let all rows that the relation has wait as one batch."""
        self._insert(self.relation.storage, f"'{INSERT}'", number)

    def _insert(self, rows: str, word: str, number: int) -> None:
        names = ", ".join(quoted(column.name) for column in self.relation.columns)
        target = f"{self._table} ({names}, {CHANGE_TYPE}, {_NUMBER})"
        self._storage.run(f"INSERT INTO {target} SELECT {names}, {word}, {number} FROM {rows}")

    def numbers(self) -> list[int]:
        return [int(row[0]) for row in self._storage.run(f"SELECT DISTINCT {_NUMBER} FROM {self._table} ORDER BY 1")]

    def batch(self, number: int) -> pa.Table:
        return self._storage.arrow(f"SELECT * EXCLUDE ({_NUMBER}) FROM {self._table} WHERE {_NUMBER} = {number}")

    def delivered(self, number: int) -> None:
        self._storage.run(f"DELETE FROM {self._table} WHERE {_NUMBER} = {number}")


def next_batch(storage: Storage, above: int = 0) -> int:
    """Return the number of the next batch, higher than any before it, and than ``above``."""
    last = int(storage.value("SELECT coalesce(max(value), 0) FROM windowpane.counters WHERE name = '/batch'"))
    number = max(last, above) + 1
    storage.run("DELETE FROM windowpane.counters WHERE name = '/batch'")
    storage.run("INSERT INTO windowpane.counters (name, value) VALUES ('/batch', ?)", [number])
    return number
