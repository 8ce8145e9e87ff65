"""Sinks: the options they are made from, and the delivery of the changes in their outboxes.

Layout: ``windowpane.sinks`` holds an id for each sink. Stores number the batches of a sink by it, and its Parquet files are named
by it: a sink of another state file begins at batch 1 as well. Sinks made before there were ids are known by their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from windowpane.errors import SqlNameError, SqlTypeError
from windowpane.sql.catalog.entries import SinkInfo
from windowpane.sql.catalog.relations import Relation
from windowpane.sql.embedded.outbox import Outbox
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.types import INTERVAL
from windowpane.sql.parse.connector_options import check_local, known_connector, refuse_other_options
from windowpane.sql.parse.positions import Place
from windowpane.stores import Batch, open_store

CONNECTORS: Mapping[str, tuple[str, ...]] = {
    "postgres": ("url", "table"),
    "duckdb": ("path", "table"),
    "parquet": ("path",),
    "blackhole": (),
}
"""The options that each connector needs."""


def check_options(name: str, options: Mapping[str, str], relation: Relation, place: Place) -> None:
    """Refuse options that a sink cannot be made from.

    Raises:
        SqlError: an unknown connector, an option that is missing or unknown, or a type that the connector lacks.
    """
    connector = known_connector(options, CONNECTORS, place, sink=name)
    refuse_other_options(options, ("primary_key", *CONNECTORS[connector]), place)
    if "path" in options and connector in ("parquet", "duckdb"):
        check_local(options["path"], place)
    if connector == "parquet":
        for each in relation.columns:
            if INTERVAL in (each.type, each.type.element):
                message = (
                    f"column {each.name!r} is an interval, which Parquet has no type for. Cast it to text in the sink's query."
                )
                raise SqlTypeError(message, place.line, place.column)
    for column in _key(options, relation):
        if column not in [each.name for each in relation.columns]:
            raise SqlNameError(f"primary_key of sink {name!r} names {column!r}, which is no column.", place.line, place.column)


def _key(options: Mapping[str, str], relation: Relation) -> tuple[str, ...]:
    if "primary_key" in options:
        return tuple(name.strip() for name in options["primary_key"].split(","))
    return relation.key


class Delivery:
    """Brings the changes of a relation to the store of a sink."""

    def __init__(self, storage: Storage, sink: SinkInfo, relation: Relation) -> None:
        """Deliver the changes of ``relation``."""
        self._storage, self._sink = storage, sink
        self.outbox = Outbox(storage, sink.name, relation)

    def create(self) -> None:
        """Begin with an empty outbox, and an id of its own."""
        self.outbox.create()
        self._storage.run("INSERT INTO windowpane.sinks VALUES (?, ?)", [self._sink.name, uuid4().hex])

    def drop(self) -> None:
        """Remove the outbox, and the id."""
        self.outbox.drop()
        self._storage.run("DELETE FROM windowpane.sinks WHERE name = ?", [self._sink.name])

    def _id(self) -> str | None:
        found = self._storage.run("SELECT id FROM windowpane.sinks WHERE name = ?", [self._sink.name])
        return str(found[0][0]) if found else None

    def deliver(self) -> None:
        """Apply every waiting batch to the store, oldest first."""
        for number in self.outbox.numbers():
            self._write(self.outbox.batch(number), number)
            with self._storage.transaction():
                self.outbox.delivered(number)

    def _write(self, changes: pa.Table, number: int) -> None:
        options = self._sink.options
        if options["connector"] == "blackhole":
            return
        own = self._id()
        if options["connector"] == "parquet":
            folder = Path(options["path"])
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{number:012}" if own is None else f"{number:012}-{own}"
            draft = folder / f".{name}.draft"
            pq.write_table(changes, draft)
            draft.rename(folder / f"{name}.parquet")
            return
        store = open_store(options.get("url") or options["path"])
        try:
            source = self._sink.name if own is None else f"sink {own}"
            store.apply(Batch(options["table"], _key(options, self.outbox.relation), changes, number, source))
        finally:
            store.close()
