"""Sinks: the options they are made from, and the delivery of the changes in their outboxes.

Layout: ``windowpane.sinks`` holds for each sink an id and the last batch that was delivered. Stores number the batches of a sink
by its id, and its Parquet files are named by it: a sink of another state file begins at batch 1 as well. Beside the files,
``.<id>.last`` holds the number of the last one. Both sides are compared before a batch is written, and in the first flush of a
session (``pairs``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from windowpane.connectors.object_stores import Location, is_remote, shown
from windowpane.errors import NotAFolderError, SqlNameError, SqlTypeError
from windowpane.sql.catalog.entries import SinkInfo
from windowpane.sql.catalog.relations import Relation
from windowpane.sql.embedded import connector_sinks
from windowpane.sql.embedded.outbox import Outbox
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.types import INTERVAL
from windowpane.sql.parse.connector_options import check_local, known_connector, refuse_other_options
from windowpane.sql.parse.positions import Place
from windowpane.state.pairs import NONE, Pair
from windowpane.stores import Batch, check_address, open_store

CONNECTORS: Mapping[str, tuple[str, ...]] = {
    "postgres": ("url", "table"),
    "duckdb": ("path", "table"),
    "parquet": ("path",),
    "blackhole": (),
    **connector_sinks.NEEDED,
}
"""The options that each connector needs."""


def check_options(name: str, options: Mapping[str, str], relation: Relation, place: Place) -> None:
    """Refuse options that a sink cannot be made from."""
    connector = known_connector(options, CONNECTORS, place, sink=name)
    refuse_other_options(options, ("primary_key", *CONNECTORS[connector], *connector_sinks.KNOWN.get(connector, ())), place)
    if connector in connector_sinks.NEEDED:
        connector_sinks.check(name, options, _key(options, relation), place)
    if connector == "parquet" and is_remote(options["path"]):
        Location(options["path"]).check()
    elif "path" in options and connector in ("parquet", "duckdb"):
        check_local(options["path"], place)
    if connector == "duckdb":
        check_address(options["path"])
    if connector in ("parquet", *connector_sinks.TABLES):
        for each in relation.columns:
            if INTERVAL in (each.type, each.type.element):
                shown = "Parquet" if connector == "parquet" else connector
                message = (
                    f"column {each.name!r} is an interval, which {shown} has no type for. Cast it to text in the sink's query."
                )
                raise place.error(SqlTypeError, message)
    for column in _key(options, relation):
        if column not in [each.name for each in relation.columns]:
            raise place.error(SqlNameError, f"primary_key of sink {name!r} names {column!r}, which is no column.")


def _key(options: Mapping[str, str], relation: Relation) -> tuple[str, ...]:
    if "primary_key" in options:
        return tuple(name.strip() for name in options["primary_key"].split(","))
    return relation.key


class Delivery:
    """Brings the changes of a relation to the store of a sink."""

    def __init__(self, storage: Storage, sink: SinkInfo, relation: Relation) -> None:
        self._storage, self._sink, self._is_compared = storage, sink, False
        self.outbox = Outbox(storage, sink.name, relation)

    def create(self) -> None:
        """Begin with an empty outbox, and an id of its own."""
        own = uuid4().hex
        if self._is_kept:
            self._taken(own)
        self.outbox.create()
        self._storage.run("INSERT INTO windowpane.sinks VALUES (?, ?, ?)", [self._sink.name, own, NONE])

    def drop(self) -> None:
        self.outbox.drop()
        self._storage.run("DELETE FROM windowpane.sinks WHERE name = ?", [self._sink.name])

    def deliver(self) -> None:
        """Apply every waiting batch to the store, oldest first.

        Raises:
            MisplacedStateError: the store of the sink is not where the session left it.
        """
        numbers, (own, settled) = self.outbox.numbers(), self._place()
        if self._is_kept and not self._is_compared:
            self._pair.has_begun(self._taken(own), settled, numbers[0] if numbers else settled)
            self._is_compared = True
        for number in numbers:
            self._write(self.outbox.batch(number), own, number, settled)
            with self._storage.transaction():
                self.outbox.delivered(number)
                self._storage.run("UPDATE windowpane.sinks SET last = ? WHERE name = ?", [number, self._sink.name])
            settled = number

    def _place(self) -> tuple[str, int]:
        ((own, last),) = self._storage.run("SELECT id, last FROM windowpane.sinks WHERE name = ?", [self._sink.name])
        return str(own), int(last)

    @property
    def _is_kept(self) -> bool:
        """Whether the store of the sink lasts beyond a batch."""
        return self._sink.options["connector"] != "blackhole"

    @property
    def _pair(self) -> Pair:
        given = self._sink.options
        named = next(given[name] for name in ("url", "path", "topic", "location", "table.name") if name in given)
        where = shown(named).rpartition("@")[2]
        return Pair(
            f"sink {self._sink.name!r} of session {self._storage.path!r}",
            f"{self._sink.options['connector']} store {where!r}",
            f"Put copies of both back that belong together; or DROP SINK {self._sink.name}, remove what it has written, and "
            "create it again: it begins with all rows.",
        )

    def _taken(self, own: str) -> int:
        options = self._sink.options
        if options["connector"] == "parquet":
            if is_remote(options["path"]):
                return int(Location(options["path"]).line(f".{own}.last") or NONE)
            NotAFolderError.refuse(f"sink {self._sink.name!r}:", Path(options["path"]))
            last = Path(options["path"]) / f".{own}.last"
            return int(last.read_text()) if last.exists() else NONE
        if (target := self._target()) is not None:
            return target.taken(f"sink-{own}")
        if "path" in options and not Path(options["path"]).exists():
            return NONE  # opening it would make it
        store = open_store(options.get("url") or options["path"])
        try:
            return store.taken(f"sink {own}")
        finally:
            store.close()

    def _write(self, changes: pa.Table, own: str, number: int, settled: int) -> None:
        options = self._sink.options
        if options["connector"] == "blackhole":
            return
        if options["connector"] == "parquet":
            self._write_file(changes, own, number, settled)
            return
        if (target := self._target()) is not None:
            if not self._pair.has_begun(target.taken(f"sink-{own}"), settled, number):
                target.write(changes, f"sink-{own}", number)
            return
        store = open_store(options.get("url") or options["path"])
        try:
            pair, key = self._pair if self._is_kept else None, _key(options, self.outbox.relation)
            store.apply(Batch(options["table"], key, changes, number, f"sink {own}", pair=pair, settled=settled))
        finally:
            store.close()

    def _target(self) -> connector_sinks.Target | None:
        options = self._sink.options
        if options["connector"] not in connector_sinks.NEEDED:
            return None
        return connector_sinks.target(options, _key(options, self.outbox.relation))

    def _write_file(self, changes: pa.Table, own: str, number: int, settled: int) -> None:
        """Write a file, and behind it its number; the one before stays where a crash falls between."""
        self._pair.has_begun(self._taken(own), settled, number)
        folder, name = Path(self._sink.options["path"]), f"{number:012}-{own}"
        if is_remote(self._sink.options["path"]):
            content = pa.BufferOutputStream()
            pq.write_table(changes, content)
            location = Location(self._sink.options["path"])
            location.write(f"{name}.parquet", content.getvalue())
            location.write(f".{own}.last", str(number).encode())
            return
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{name}.draft"
        pq.write_table(changes, draft)
        draft.rename(folder / f"{name}.parquet")
        draft.write_text(str(number))
        draft.rename(folder / f".{own}.last")
