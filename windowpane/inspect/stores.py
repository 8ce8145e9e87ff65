"""What the views of a SQL session hold that runs them itself: state in tables and blobs of its DuckDB store.

A store that a session of this process has open is read by that session, under its lock. Another is opened to be read only, which
DuckDB refuses while a process writes it. What operators keep is said by the plans of a session, and by a table of the store.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import duckdb
import pyarrow as pa

from windowpane.errors import InvalidSpecError, UnreadableStateError
from windowpane.inspect.buckets import Bucket
from windowpane.inspect.holders import WithoutBatches
from windowpane.inspect.nodes import node_bucket
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.session import Session, storage_of
from windowpane.sql.streaming.kept import KeptTable
from windowpane.state.listing import Listed
from windowpane.state.memory import MemoryBlobStore


class _Reads(Protocol):
    """What asks a store."""

    def arrow(self, sql: str) -> pa.Table:
        """Return the result of a query."""


@dataclass(frozen=True)
class _File:
    """A store that is only read, and open for the length of a query alone: a session may want it."""

    path: str

    def arrow(self, sql: str) -> pa.Table:
        """Return the result of a query.

        Raises:
            UnreadableStateError: another process has the file open, or it is no store.
        """
        try:
            with duckdb.connect(self.path, read_only=True) as connection:
                return connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            hint = "where a session has it open, wp.inspect(session) shows what it holds"
            raise UnreadableStateError(
                f"{self.path} cannot be read as a store of SQL: {hint}. {str(error).splitlines()[0]}"
            ) from error


@dataclass(frozen=True)
class InStore:
    """The tables of a node are tables of a store, whose names begin with an owner's.

    Bytes are those that the rows have in memory: DuckDB packs the rows of a table together with those of others.
    """

    store: _Reads
    owner: str

    def _rows(self, table: KeptTable) -> pa.Table:
        return self.store.arrow(f"SELECT * FROM windowpane_state.{quoted(f'{self.owner}/{table.name}')}")

    def listed(self, table: KeptTable) -> Listed | None:
        rows = self._rows(table)
        return Listed("table of the store", 0, rows.nbytes, rows.num_rows) if rows.num_rows else None

    def parts(self, table: KeptTable) -> Iterator[tuple[int, pa.Table]]:
        rows = self._rows(table)
        if rows.num_rows:
            yield rows.nbytes, rows


class Store(WithoutBatches):
    """The views of a store: one operator a view, whose nodes with state are its buckets."""

    query_id = "a store"

    def __init__(self, store: Session | str) -> None:
        """Read which views there are.

        Raises:
            UnreadableStateError: another process has the file open, or it is no store.
            InvalidSpecError: its views run on Spark.
        """
        storage = None if isinstance(store, str) else storage_of(store)
        self._store: _Reads = _File(str(store)) if storage is None else storage
        self.location = str(store) if storage is None else storage.path
        found = self._store.arrow("SELECT view, kept FROM windowpane.kept ORDER BY view").to_pylist()
        self._kept = [(each["view"], json.loads(each["kept"])) for each in found]
        streams = self._store.arrow("SELECT name, folder FROM windowpane.streams ORDER BY name").to_pylist()
        if streams and not self._kept:
            places = ", ".join(f"{each['name']}: {self.location}.streams/{each['folder']}/checkpoint" for each in streams)
            raise InvalidSpecError(f"the views of {self.location} run on Spark; look into the checkpoint of one. {places}.")

    def operators(self) -> Sequence[int]:
        """Return a number for each view, in the order of their names."""
        return range(len(self._kept))

    def programs(self, operator: int, batch: int) -> Iterator[Bucket]:
        view, nodes = self._kept[operator]
        marks = self._store.arrow("SELECT relation, value FROM windowpane.watermarks").to_pylist()
        clock = {each["relation"]: each["value"] for each in marks if each["value"] is not None}
        for number, node in enumerate(nodes):
            owner, kept = node["owner"], {"clock": clock, **{name: part for name, part in node.items() if name != "owner"}}
            yield node_bucket(operator, number, kept, self._blobs(owner), InStore(self._store, owner), f"{view}, ")

    def _blobs(self, owner: str) -> MemoryBlobStore:
        blobs = MemoryBlobStore()
        text = owner.replace("'", "''")
        for row in self._store.arrow(f"SELECT key, blob FROM windowpane.blobs WHERE owner = '{text}'").to_pylist():
            blobs.put(row["key"], bytes(row["blob"]))
        return blobs
