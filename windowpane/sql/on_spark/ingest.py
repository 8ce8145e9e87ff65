"""Tables with a connector: a query of Spark reads what is new, and every batch of it is one chunk of the table.

Rows and the number of the batch are written in one transaction, so a batch that is repeated after a crash counts once. The next
flush takes the rows to the views, like rows that were inserted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from windowpane.errors import MistakeError, SqlRunError
from windowpane.hidden_columns import MISREAD, ORIGIN
from windowpane.sql.bind.queries import QueryBinder
from windowpane.sql.catalog.entries import Catalog, TableInfo
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.failures.malformed_rows import MalformedRows, TextRows, text_rows
from windowpane.sql.on_spark.pending_changes import PendingChanges
from windowpane.sql.parse.connector_options import MALFORMED, STARTUP, check_kafka, check_policy, known_connector
from windowpane.sql.parse.positions import Place, Text
from windowpane.sql.streaming.clock import Watermarks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEEDED = {
    "parquet": ("path",),
    "json": ("path",),
    "csv": ("path",),
    "delta": (),
    "rate": (),
    "socket": ("host", "port"),
    "kafka": ("kafka.bootstrap.servers",),
}
"""The connectors of Spark, and the options that each needs; all other options are given to Spark as written."""

_ENDLESS = ("rate", "socket", "kafka")
"""Connectors whose rows may arrive faster than they are taken."""

_NOT_REPLAYABLE = ("socket",)
"""Connectors that cannot read the same rows again."""


def check_options(options: Mapping[str, str], place: Place) -> None:
    """Refuse a connector that Spark does not have, or one without an option that it needs.

    Raises:
        SqlError: naming it.
    """
    if not options:
        return
    if options.get("connector") == "kafka" and not any(name.startswith("kafka.") for name in options):
        check_kafka(options, place, formats=("plain",))
    known_connector(options, {**_NEEDED, "kafka": ()}, place)
    check_policy(options, place)


def with_connector(tables: Iterable[TableInfo]) -> list[TableInfo]:
    return [table for table in tables if "connector" in table.options]


def is_endless(table: TableInfo) -> bool:
    """Whether rows of a table with a connector may arrive faster than they are taken."""
    return table.options["connector"] in _ENDLESS


def is_replayable(table: TableInfo) -> bool:
    """Whether the source of a table can read the same rows again; else every session begins anew with it."""
    return table.options["connector"] not in _NOT_REPLAYABLE


def begins_anew(table: TableInfo) -> bool:
    """Whether another query of the source of a table begins with the rows of now, and lacks those that the first one had."""
    options = {name: value.lower() for name, value in table.options.items()}
    starts = options.get("startingOffsets", options.get(STARTUP, ""))
    return options["connector"] in ("rate", *_NOT_REPLAYABLE) or starts == "latest"


def given_columns(info: TableInfo) -> tuple[str, ...]:
    """Return the columns that the connector fills."""
    return tuple(column.name for column in info.relation.visible if column.name not in info.generated)


class Ingest:
    """Fills tables from Spark's sources."""

    def __init__(self, storage: Storage, catalog: Catalog, clock: Watermarks, pending: PendingChanges) -> None:
        self._storage, self._catalog, self._clock, self._pending = storage, catalog, clock, pending

    def rows(self, info: TableInfo, spark: SparkSession) -> Any:
        """Return the streaming DataFrame that fills a table.

        Raises:
            SqlRunError: Spark refuses it.
        """
        from windowpane.spark.sources.connectors import connector_rows

        options = {name: value for name, value in info.options.items() if name not in ("connector", MALFORMED)}
        return connector_rows(spark, info.options["connector"], options, given_columns(info))

    def take(self, name: str, batch: pa.Table, number: int) -> None:
        """Insert a batch into a table, unless it was inserted before: where rows cannot be read, without them."""
        info = self._catalog.entries[name]
        if not isinstance(info, TableInfo):
            raise MistakeError("a stream fills a table")
        rows = arriving(info, batch.schema)
        if has_misread(batch):
            self._take(info, batch, number, rows, is_lenient=True)
            return
        try:
            self._take(info, batch, number, rows)
        except (SqlRunError, duckdb.Error):
            self._take(info, batch, number, rows, is_lenient=True)

    def _take(self, info: TableInfo, batch: pa.Table, number: int, rows: TextRows, *, is_lenient: bool = False) -> None:
        name = info.relation.name
        try:
            with self._storage.transaction(), self._storage.trying() if is_lenient else nullcontext():
                if number > self._pending.stream(name).batch:
                    self._append(info, self._storage.temporary_from(batch), rows, is_lenient=is_lenient)
                    self._pending.took(name, number)
        except BaseException:
            self._clock.reload()
            raise

    def _append(self, info: TableInfo, arrived: str, rows: TextRows, *, is_lenient: bool) -> None:
        text = Text(info.text)
        binder = QueryBinder(self._catalog, text, self._storage.constant)
        if is_lenient:
            MalformedRows(self._storage).note(info.relation.name, rows.found(self._storage, arrived))
        query = rows.lenient(arrived) if is_lenient else rows.strict(arrived)
        TableWriter(self._storage, self._clock, binder, text).append((query, tuple(rows.casts)), info)


def arriving(info: TableInfo, arrived: pa.Schema, others: tuple[str, ...] = ()) -> TextRows:
    """Return how columns of a connector become values of a table.

    Args:
        info: the table.
        arrived: the columns that have arrived.
        others: further columns, which are passed on.
    """
    types = {column.name: column.type.duckdb for column in info.relation.columns}
    given = [name for name in given_columns(info) if name in arrived.names]
    casts = {name: read_sql(name, arrived.field(name).type, types[name]) for name in given}
    return text_rows(info, casts, beside=frozenset(arrived.names) & {ORIGIN, MISREAD}, others=others)


def has_misread(batch: pa.Table) -> bool:
    """Whether a batch has documents that are no rows."""
    return MISREAD in batch.column_names and batch[MISREAD].null_count < batch.num_rows


def read_sql(name: str, arrived: pa.DataType, kind: str) -> str:
    """Return a column that arrived as the type of the table; bytes that are to be text are UTF-8."""
    is_bytes = pa.types.is_binary(arrived) or pa.types.is_large_binary(arrived)
    return f"decode({quoted(name)})" if is_bytes and kind == "VARCHAR" else f"CAST({quoted(name)} AS {kind})"
