"""Sinks: the changes of a relation wait in an outbox, in the transaction that made them, until a store has taken them.

Layout: ``windowpane_state."outbox/<sink>"`` holds changed rows with their ``_change_type`` and the number of their batch. A batch
leaves the outbox after the store has committed it; a crash between the two delivers it again, and the store, which knows the
number, changes nothing. So every change arrives exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windowpane.errors import SqlNameError
from windowpane.sql.catalog import SinkInfo
from windowpane.sql.connector_options import known_connector, refuse_other_options
from windowpane.sql.expr import quoted
from windowpane.sql.places import Place
from windowpane.sql.relations import Relation
from windowpane.sql.storage import Storage
from windowpane.stores import Batch, open_store

CONNECTORS: Mapping[str, tuple[str, ...]] = {
    "postgres": ("url", "table"),
    "duckdb": ("path", "table"),
    "parquet": ("path",),
    "blackhole": (),
}
"""The options that each connector needs."""

_NUMBER = "windowpane_batch"


def check_options(name: str, options: Mapping[str, str], relation: Relation, place: Place) -> None:
    """Refuse options that a sink cannot be made from.

    Raises:
        SqlError: an unknown connector, or an option that is missing or unknown.
    """
    connector = known_connector(options, CONNECTORS, place, sink=name)
    refuse_other_options(options, ("primary_key", *CONNECTORS[connector]), place)
    for column in _key(options, relation):
        if column not in [each.name for each in relation.columns]:
            raise SqlNameError(f"primary_key of sink {name!r} names {column!r}, which is no column.", place.line, place.column)


def _key(options: Mapping[str, str], relation: Relation) -> tuple[str, ...]:
    if "primary_key" in options:
        return tuple(name.strip() for name in options["primary_key"].split(","))
    return relation.key


class Outbox:
    """The changes that wait for one sink."""

    def __init__(self, storage: Storage, sink: SinkInfo, relation: Relation) -> None:
        """Deliver the changes of ``relation`` to where ``sink`` says."""
        self._storage, self._sink, self._relation = storage, sink, relation
        self._table = f"windowpane_state.{quoted('outbox/' + sink.name)}"

    def create(self) -> None:
        """Make room for changes that wait."""
        columns = ", ".join(f"{quoted(column.name)} {column.type.duckdb}" for column in self._relation.columns)
        self._storage.run(f"CREATE TABLE {self._table} ({columns}, _change_type VARCHAR, {_NUMBER} BIGINT)")

    def drop(self) -> None:
        """Remove what waits."""
        self._storage.run(f"DROP TABLE {self._table}")

    def put(self, changes: pa.Table, number: int) -> None:
        """Let the changes of a batch wait."""
        names = ", ".join(map(quoted, changes.column_names))
        rows = self._storage.temporary_from(changes)
        self._storage.run(f"INSERT INTO {self._table} ({names}, {_NUMBER}) SELECT {names}, {number} FROM {rows}")

    def deliver(self) -> None:
        """Hand every waiting batch to the store, oldest first."""
        numbers = self._storage.run(f"SELECT DISTINCT {_NUMBER} FROM {self._table} ORDER BY 1")
        for (number,) in numbers:
            changes = self._storage.arrow(f"SELECT * EXCLUDE ({_NUMBER}) FROM {self._table} WHERE {_NUMBER} = {number}")
            self._write(changes, int(number))
            with self._storage.transaction():
                self._storage.run(f"DELETE FROM {self._table} WHERE {_NUMBER} = {number}")

    def _write(self, changes: pa.Table, number: int) -> None:
        options = self._sink.options
        if options["connector"] == "blackhole":
            return
        if options["connector"] == "parquet":
            folder = Path(options["path"])
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(changes, folder / f"{number:012}.parquet")
            return
        store = open_store(options.get("url") or options["path"])
        try:
            store.apply(Batch(options["table"], _key(options, self._relation), changes, number, self._sink.name))
        finally:
            store.close()
