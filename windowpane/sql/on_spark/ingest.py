"""Tables with a connector: a query of Spark reads what is new, and every batch of it is one chunk of the table.

Rows and the number of the batch are written in one transaction, so a batch that is repeated after a crash counts once. The next
flush takes the rows to the views, like rows that were inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.connectors.kafka_client import STARTUP
from windowpane.errors import MistakeError, SqlRunError
from windowpane.hidden_columns import MISREAD, ORIGIN, SPLIT, WHY_MISREAD
from windowpane.sql.bind.queries import QueryBinder
from windowpane.sql.catalog.entries import Catalog, TableInfo
from windowpane.sql.embedded.message_rows import MOST, Document, MessageReading, MessageRows, check_topic, has_changes, is_topic
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import VARCHAR, SqlType
from windowpane.sql.failures.malformed_rows import MalformedRows, TextRows, text_rows
from windowpane.sql.numerics.conversions import taken
from windowpane.sql.on_spark.pending_changes import PendingChanges
from windowpane.sql.parse.connector_options import MALFORMED, check_kafka, check_policy, known_connector
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
    """Refuse a connector that Spark does not have, or one without an option that it needs."""
    if not options:
        return
    if options.get("connector") == "kafka" and not any(name.startswith("kafka.") for name in options):
        check_kafka(options, place)
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
    return tuple(column.name for column in info.relation.visible if column.name not in info.generated)


class Ingest:
    def __init__(self, storage: Storage, catalog: Catalog, clock: Watermarks, pending: PendingChanges) -> None:
        self._storage, self._catalog, self._clock, self._pending = storage, catalog, clock, pending
        self._readings: dict[str, MessageReading] = {}

    def begin(self, info: TableInfo, spark: SparkSession) -> None:
        """Refuse a new table that its source cannot fill."""
        self._readings.pop(info.relation.name, None)
        if is_topic(info):
            check_topic(info)
            self._readings[info.relation.name] = MessageReading.of(info)
        self.rows(info, spark)

    def rows(self, info: TableInfo, spark: SparkSession) -> Any:
        """Return the streaming DataFrame that fills a table; of messages that change rows, the messages."""
        from windowpane.spark.sources.connectors import connector_rows, messages

        if has_changes(info):
            return messages(spark, info.options)
        options = {name: value for name, value in info.options.items() if name not in ("connector", MALFORMED)}
        types = info.relation.types
        columns = {name: types[name].name for name in given_columns(info)}
        return connector_rows(spark, info.options["connector"], options, columns)

    def take(self, name: str, batch: pa.Table, number: int) -> None:
        """Insert a batch into a table, unless it was inserted before: where rows cannot be read, without them."""
        info = self._catalog.entries[name]
        if not isinstance(info, TableInfo):
            raise MistakeError("a stream fills a table")
        if has_changes(info):
            self._once(name, number, lambda: self._change(info, batch))
            return
        splits = (SPLIT,) if SPLIT in batch.column_names and info.watermark is not None else ()
        rows = replace(arriving(info, batch.schema, splits), most=MalformedRows(self._storage).most(name))
        if has_misread(batch):
            self._take(info, batch, number, rows, is_lenient=True)
            return
        try:
            self._take(info, batch, number, rows)
        except (SqlRunError, duckdb.Error):
            self._take(info, batch, number, rows, is_lenient=True)

    def _take(self, info: TableInfo, batch: pa.Table, number: int, rows: TextRows, *, is_lenient: bool = False) -> None:
        self._once(info.relation.name, number, lambda: self._append(info, batch, rows, is_lenient=is_lenient))

    def _once(self, name: str, number: int, take: Callable[[], None]) -> None:
        """Take a batch of a table, unless it was taken before."""
        try:
            with self._storage.transaction():
                if number > self._pending.stream(name).batch:
                    take()
                    self._pending.took(name, number)
        except BaseException:
            self._clock.reload()
            raise

    def _append(self, info: TableInfo, batch: pa.Table, rows: TextRows, *, is_lenient: bool) -> None:
        with self._storage.trying() if is_lenient else nullcontext():
            arrived = self._storage.temporary_from(batch)
            if is_lenient:
                MalformedRows(self._storage).note(info.relation.name, rows.found(self._storage, arrived))
            query = rows.lenient(arrived) if is_lenient else rows.strict(arrived)
            self._writer(info).append((query, (*rows.casts, *rows.others)), info)

    def _writer(self, info: TableInfo) -> TableWriter:
        text = Text(info.text)
        return TableWriter(self._storage, self._clock, QueryBinder(self._catalog, text, self._storage.constant), text)

    def _reading(self, info: TableInfo) -> MessageReading:
        name = info.relation.name
        if name not in self._readings:
            self._readings[name] = MessageReading.of(info)
        return self._readings[name]

    def _change(self, info: TableInfo, batch: pa.Table) -> None:
        """Take messages that change rows, those of a partition in their order."""
        rows = MessageRows(self._storage, info, self._writer(info), self._reading(info))
        batch = batch.sort_by([(each, "ascending") for each in ("topic", "partition", "offset")])
        for start in range(0, batch.num_rows, MOST):
            part = batch.slice(start, MOST).combine_chunks()
            where = (part[each].to_pylist() for each in ("topic", "partition", "offset", "value", "key"))
            documents = [
                Document(f"{topic}, partition {partition}, offset {offset}", value, key)
                for topic, partition, offset, value, key in zip(*where, strict=True)
            ]
            rows.append(documents, partial(_about, part))


def _about(messages: pa.Table, what: str) -> pa.Array:
    if what == SPLIT:
        return pc.binary_join_element_wise(messages["topic"], messages["partition"].cast(pa.string()), "/").combine_chunks()
    column = messages[what].combine_chunks()
    return column if what in ("key", "timestamp") else column.cast(pa.string())


def arriving(info: TableInfo, arrived: pa.Schema, others: tuple[str, ...] = ()) -> TextRows:
    """Return how columns of a connector become values of a table."""
    types = info.relation.types
    given = [name for name in given_columns(info) if name in arrived.names]
    casts = {name: read_sql(name, arrived.field(name).type, types[name]) for name in given}
    return text_rows(info, casts, beside=frozenset(arrived.names) & {ORIGIN, MISREAD, WHY_MISREAD}, others=others)


def has_misread(batch: pa.Table) -> bool:
    return MISREAD in batch.column_names and batch[MISREAD].null_count < batch.num_rows


def read_sql(name: str, arrived: pa.DataType, kind: SqlType) -> str:
    """Return a column that arrived as the type of the table; bytes that are to be text are UTF-8."""
    is_bytes = pa.types.is_binary(arrived) or pa.types.is_large_binary(arrived)
    if is_bytes and kind == VARCHAR:
        return f"decode({quoted(name)})"
    return taken(quoted(name), _held(arrived), kind)


def _held(arrived: pa.DataType) -> str:
    if pa.types.is_list(arrived) or pa.types.is_large_list(arrived):
        return f"{_held(arrived.value_type)}[]"
    return f"DECIMAL({arrived.precision}, {arrived.scale})" if pa.types.is_decimal(arrived) else str(arrived).upper()
