"""Sinks: what outputs are written to, and tables that are kept up to date with a changelog."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload
from uuid import uuid4

import pyarrow as pa

from windowpane.connectors.message_formats import Avro, Protobuf
from windowpane.connectors.object_stores import is_remote, shown
from windowpane.errors import InvalidSpecError
from windowpane.guidance import unknown_name
from windowpane.planning.sinks import BatchTrigger, DeltaTable, Files, Selectable, Sink, SinkFunction
from windowpane.state.pairs import NONE, Pair
from windowpane.windowing.times import Duration, to_micros

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = [
    "ChangeWriter",
    "DeltaTable",
    "Files",
    "RedisHashes",
    "Sink",
    "SinkFunction",
    "apply_changes",
    "delta",
    "iceberg",
    "kafka",
    "read_latest",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module 'windowpane.sinks' has no attribute {name!r}")
        raise unknown_name("windowpane.sinks", name, __all__, ["windowpane.sinks"])


def read_latest(spark: SparkSession, files: str | Files, key: str | Sequence[str] = ()) -> DataFrame:
    """Read what ``Files`` wrote, of each window the latest result alone: early and older ones are left out.

    Args:
        spark: the session.
        files: the path, or the ``Files``, given to ``start``; Parquet.
        key: the columns that identify a result within a window: those of ``key_by``, for ``top`` its ``rank``.

    Returns:
        A static DataFrame of the latest results. Of a changelog, windows that were deleted are left out, and
        ``_change_type`` with them. Results of discarding panes add up instead: read them as they are.

    Raises:
        InvalidSpecError: ``Files`` did not write there, or not as Parquet; or two queries wrote to one path.
        UnknownColumnError: results have no such key.

    Example:
        >>> wp.sinks.read_latest(spark, "out/hourly", key="origin").orderBy("window_start").show()
    """
    from windowpane.spark.sinks.paired import read_latest as read

    if isinstance(files, Files) and files.format != "parquet":
        raise InvalidSpecError(
            f"read_latest reads Parquet, and {files!r} is {files.format}: other files do not number their rows."
        )
    path = files.path if isinstance(files, Files) else files
    if is_remote(path):
        raise InvalidSpecError(
            f"read_latest({shown(path)!r}): Spark reads it, so give s3a:// and Spark the jar of its file system."
        )
    latest: DataFrame = read(spark, path, _names(key))
    return latest


@overload
def apply_changes(
    df: DataFrame,
    store: str,
    key: str | Sequence[str],
    *,
    table: str,
    checkpoint: str,
    trigger: BatchTrigger | None = None,
    options: Mapping[str, str] | None = None,
) -> StreamingQuery: ...


@overload
def apply_changes(
    df: DataFrame,
    store: str,
    key: str | Sequence[str],
    *,
    table: str,
    checkpoint: None = None,
    trigger: BatchTrigger | None = None,
    options: Mapping[str, str] | None = None,
) -> StreamingQuery | None: ...


def apply_changes(
    df: DataFrame,
    store: str,
    key: str | Sequence[str],
    *,
    table: str,
    checkpoint: str | None = None,
    trigger: BatchTrigger | None = None,
    options: Mapping[str, str] | None = None,
) -> StreamingQuery | None:
    """Keep a table of a store up to date with a changelog, exactly once.

    Args:
        df: a DataFrame, streaming or static; ``_change_type`` says what a row is (insert, update_preimage, update_postimage,
            delete), absent means that every row is an insert or replaces the row of its key.
        store: path of a DuckDB file, or a ``postgresql://`` URL.
        key: the columns that identify a row of the table.
        table: name of the table; it is created if it does not exist.
        checkpoint: checkpoint location of the streaming query. Batches are numbered by it; with a new one all rows are applied
            that it reads, whatever another one has applied.
        trigger: arguments of the streaming writer's ``trigger``, such as ``{"availableNow": True}``.
        options: passed to the streaming writer's ``options``.

    Returns:
        The started streaming query, ``None`` for a static DataFrame.

    Raises:
        InvalidSpecError: a checkpoint for a static DataFrame, which has no query; a store that is neither.
        UnknownColumnError: the DataFrame lacks a column of the key.
        AbsentRowError: a change takes back a row that the table does not have; nothing of its batch was written.
        ChangedViewSchemaError: the table has other columns; nothing was written.
        MisplacedStateError: the table lacks batches that the checkpoint has applied, or has later ones.
        RunningCheckpointError: a query with this checkpoint runs already.

    Example:
        >>> query = apply_changes(result.df, "views.duckdb", key=["sym", "id"], table="prices", checkpoint="ckpt")
    """
    from windowpane.spark.session.column_names import column_in

    write = ChangeWriter(store, tuple(column_in(df, name, "key of apply_changes") for name in _names(key)), table)
    if not df.isStreaming:
        if checkpoint is not None:
            raise InvalidSpecError(
                f"checkpoint={checkpoint!r} belongs to a query, and this DataFrame is static: it is applied at once. Leave the "
                "checkpoint out, or read the changes with spark.readStream."
            )
        write._of(df).rows(df.toArrow(), None)
        return None
    from windowpane.spark.queries.running import start_writing
    from windowpane.spark.sinks.paired import PairedSink, QueryId

    write = replace(write, read_query=partial(_named, uuid4().hex) if checkpoint is None else QueryId(checkpoint).read)
    query: StreamingQuery = start_writing(df, PairedSink(write, checkpoint), checkpoint, trigger, options=options or {})
    return query


def kafka(
    topic: str,
    *,
    servers: str,
    key: str | Sequence[str] = (),
    value: Literal["json", "text", "bytes"] | Avro | Protobuf = "json",
    guarantee: Literal["exactly_once", "at_least_once"] = "exactly_once",
    changes: Literal["append", "upsert", "debezium"] = "append",
    options: Mapping[str, object] | None = None,
    **more: object,
) -> SinkFunction:
    """Return a sink that writes rows as messages to a topic of Kafka, by the tasks that made them.

    Args:
        topic: the topic, which has to be there.
        servers: ``host:port``, several with commas.
        key: the columns of the key: one is written as it is, its text or its bytes; of several a JSON object. The partition is
            that of Kafka's own producers (murmur2), so others join with it; changes of a key keep their order.
        value: ``"json"``: an object a row. Instants are ISO 8601 in UTC; decimals, dates, and NaN are text; bytes are base64.
            ``"text"`` and ``"bytes"``: the one column that is not in the key. ``wp.avro(schema)``, ``wp.protobuf(...)``: a record
            with a field for each column; ``wp.avro(registry=, subject=)`` with the latest schema of the subject, and its number.
        guarantee: ``"exactly_once"``: each bucket of the query writes a batch in one transaction with its number, so readers
            of committed messages see each row once, whatever is killed; ``"at_least_once"`` writes a repeated batch again.
        changes: of rows with ``_change_type``: ``"append"`` writes every row, that column among the others; ``"upsert"`` the new
            row of each key, and a tombstone, a NULL value, for a deleted one; ``"debezium"`` ``before``, ``after`` and ``op``.
        options: of librdkafka, by their names. They appear in no plan, log or error.
        more: such options, too, as arguments.

    Returns:
        A sink for ``start``.

    Raises:
        InvalidSpecError: an argument that cannot be; or when the query runs and a row is none of the schema.
        UnknownTopicError: when the query runs and there is no such topic; nothing was written.
        UnknownColumnError: when the query runs and rows have no such key.
        MessageError: a message is too large, or not authorised, or has no key for an upsert.
        FencedWriterError: another query writes under the same transactional id.
        ConnectorError: Kafka does not answer.
        MisplacedStateError: the topic was made anew, or belongs to another checkpoint.

    Example:
        >>> totals.start(main=wp.sinks.kafka("totals", servers="localhost:9092", key="user"), checkpoint="ckpt")
    """
    from windowpane.connectors.kafka_client import Connection
    from windowpane.connectors.kafka_writing import CHANGES, FORMATS, GUARANTEES, MessageFormat
    from windowpane.connectors.record_formats import number_of, resolved
    from windowpane.spark.sinks.kafka import KafkaSink, KafkaTransactions

    schema = None
    if isinstance(value, Avro):
        if value.registry is not None and (value.schema is not None or value.subject is None):
            raise InvalidSpecError("sinks.kafka: with a registry records have the latest schema of subject=: leave schema out.")
        value, schema = resolved(value), number_of(value)
    if isinstance(value, Protobuf) and value.with_header:
        raise InvalidSpecError("sinks.kafka: wp.protobuf(..., registry=True) is read alone; without it messages have no header.")
    for role, given, known in (("value", value, FORMATS), ("guarantee", guarantee, GUARANTEES), ("changes", changes, CHANGES)):
        if given not in known and not isinstance(given, Avro | Protobuf):
            raise InvalidSpecError(f"sinks.kafka: {role}={given!r} is not one of {', '.join(map(repr, known))}.")
    names = _names(key)
    if changes != "append" and not names:
        raise InvalidSpecError(f"sinks.kafka: changes={changes!r} needs key=, the columns that say which row a message replaces.")
    if changes == "debezium" and value != "json":
        raise InvalidSpecError(f"sinks.kafka: changes='debezium' is JSON, and value={value!r} is not.")
    kind = KafkaTransactions if guarantee == "exactly_once" else KafkaSink
    form = MessageFormat(names, value, changes, schema=schema)
    return kind(Connection(servers, {**(options or {}), **more}), topic, form)


def delta(
    uri: str,
    *,
    key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] = (),
    evolve: bool = False,
    storage: Mapping[str, str] | None = None,
    compact_every: int | None = None,
) -> SinkFunction:
    """Return a sink that keeps rows in a Delta table, exactly once and without a jar.

    Without a key tasks write files, and one commit names them. With a key one task merges the batch: of a changelog the last row
    of each key stays, or the row is deleted. A commit holds the number of its batch, so a repeated one changes nothing.

    Args:
        uri: a folder, or ``s3://...`` and others that deltalake reads; the table is made where there is none.
        key: the columns that identify a row, to merge by.
        partition_by: the columns that a table which is made here is partitioned by.
        evolve: whether columns that the table lacks are added; none is dropped, and no type changed.
        storage: options of the object store, of deltalake's ``storage_options``; they appear in no plan, log or error.
        compact_every: after so many batches small files are made large ones.

    Returns:
        A sink for ``start``.

    Raises:
        InvalidSpecError: an argument that cannot be.
        TableSchemaError: when the query runs and the table has other columns; nothing was written.
        UnknownColumnError: when the query runs and rows have no such key.
        ConnectorError: the table cannot be read or written.
        MisplacedStateError: the table does not have the batches of the checkpoint, or has later ones.

    Example:
        >>> totals.start(main=wp.sinks.delta("tables/totals", key="user"), checkpoint="ckpt")
    """
    from windowpane.connectors.delta import Table
    from windowpane.spark.sinks.tables import TableSink

    if compact_every is not None and compact_every < 1:
        raise InvalidSpecError(f"sinks.delta: compact_every={compact_every}: it is a number of batches.")
    return TableSink(Table(uri, _names(partition_by), evolve, storage or {}), _names(key or ()), compact_every)


def iceberg(
    table: str,
    *,
    catalog: str | Mapping[str, str],
    key: str | Sequence[str] | None = None,
    evolve: bool = False,
) -> SinkFunction:
    """Return a sink that keeps rows in an Iceberg table, exactly once and without a jar.

    Without a key tasks write files, and one snapshot names them. With a key one task merges the batch, as a delete and an append
    of one transaction. A commit holds the number of its batch, so a repeated one changes nothing.

    Args:
        table: its name with its namespace, ``"db.totals"``; it is made where there is none.
        catalog: the name of a catalog that pyiceberg is configured with, or its properties; they appear in no plan, log or error.
        key: the columns that identify a row, to merge by.
        evolve: whether columns that the table lacks are added; none is dropped, and no type changed.

    Returns:
        A sink for ``start``.

    Raises:
        InvalidSpecError: an argument that cannot be.
        TableSchemaError: when the query runs and the table has other columns; nothing was written.
        UnknownColumnError: when the query runs and rows have no such key.
        ConnectorError: the catalog does not answer, or other writers overtook every commit.
        MisplacedStateError: the table does not have the batches of the checkpoint, or has later ones.

    Example:
        >>> totals.start(main=wp.sinks.iceberg("db.totals", catalog="prod", key="user"), checkpoint="ckpt")
    """
    from windowpane.connectors.iceberg import Table
    from windowpane.spark.sinks.tables import TableSink

    return TableSink(Table(table, catalog, evolve), _names(key or ()))


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _named(name: str, df: DataFrame) -> str:
    """Return the name of a query whose checkpoint nobody starts again."""
    return name


@dataclass(frozen=True)
class RedisHashes(Selectable):
    """A sink that keeps the newest row of each key as a Redis hash, which a model or a service reads online.

    The hash of a row is named ``prefix`` and the values of the key, with colons between, ``card:42``, and its fields are the
    columns. In a name NULL is ``%null``, ``%`` is ``%25``, and a colon within one of several values is ``%3A``.
    Tasks write, in pipelines. The server itself leaves a hash alone whose ``version`` is greater than that of the row, so a batch
    that is repeated, or overlaps another writer, changes nothing; but a hash that was deleted has no version, and a writer behind
    may bring it back. Of a changelog, rows of ``update_preimage`` are passed over and a ``delete`` removes the hash. Numbers are
    fields as text, booleans ``true`` and ``false``, times ISO 8601, lists and structs JSON; NULL is no field; ``version`` is an
    integer, of timestamps the microseconds since 1970.

    Args:
        url: ``redis://user:password@host:6379/0``, ``rediss://...`` or ``unix://path``.
        key: the columns that identify a row.
        prefix: what names of hashes begin with.
        version: the column that says which row of a key is newer: a timestamp or an integer up to 2**53.
        ttl: after which time without a write a hash expires, such as ``"31 days"``; ``None`` for never.
        read_query: returns the id of the query of a batch; ``start`` gives it. The server then keeps the number of its last
            batch in the hash ``windowpane:`` and the prefix, and lost hashes are found by it.

    Raises:
        UnknownColumnError: a batch has no such key or version.
        StoreError: the server cannot be reached, or a row has no version.
        MisplacedStateError: the server was emptied, or restored from an older copy; where ``start`` has the query.

    Needs ``pip install 'windowpane[redis]'``. Source of the rule: online stores of Chronon and Feast, which keep the latest row.

    Example:
        >>> online = features.emit("changed", on_empty="delete")
        >>> online.start(main=RedisHashes("redis://localhost", key="card", prefix="card:"), checkpoint="ckpt")
    """

    url: str
    key: str | Sequence[str]
    prefix: str = ""
    version: str = "as_of"
    ttl: Duration | None = None
    read_query: Callable[[DataFrame], str] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self._names:
            raise InvalidSpecError("RedisHashes without a key: the key says which hash a row is.")
        if self.ttl is not None and self._live_milliseconds < 1:
            raise InvalidSpecError(f"ttl={self.ttl!r}: a hash lives for at least a millisecond.")

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """The columns of key and version, by their role."""
        return {"key of RedisHashes": self._names, "version of RedisHashes": (self.version,)}

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write one batch; its number does not matter."""
        from windowpane.spark.session.column_names import columns_needed
        from windowpane.spark.stages.project import mapped_in_arrow  # both bring much, and every worker imports this module
        from windowpane.stores.redis import SCHEMA, HashWriter

        *key, version = columns_needed(df.columns, self.needs, df.sparkSession)
        write = HashWriter(self.url, tuple(key), self.prefix, version, self._live_milliseconds)
        mapped_in_arrow(df, write.__call__, SCHEMA).write.format("noop").mode("append").save()

    def for_query(self, read: Callable[[DataFrame], str]) -> RedisHashes:
        """Return the same for one query."""
        return replace(self, read_query=read)

    @property
    def taker(self) -> str:
        """The hashes, as an error names them; without a password."""
        return f"hashes {self.prefix!r} of Redis at {self.url.rpartition('@')[2]!r}"

    @property
    def way_out(self) -> str:
        """What to do where hashes and checkpoint do not belong together."""
        return (
            "Restore a copy of the server that belongs to the checkpoint, or start with a new checkpoint, which writes every key "
            "anew. Where all hashes were removed on purpose, and keys come again by themselves, use another prefix."
        )

    def taken(self, dataframe: DataFrame) -> int:
        """Return the number of the last batch of the query that the server has."""
        from windowpane.stores.redis import last_batch

        return last_batch(self.url, self.prefix, self._query(dataframe))

    def take(self, dataframe: DataFrame, number: int, pair: Pair, settled: int) -> None:
        """Write one batch beside a checkpoint, then its number; see ``NumberedSink``."""
        from windowpane.stores.redis import keep_batch

        pair.has_begun(self.taken(dataframe), settled, number)
        self(dataframe, number)
        keep_batch(self.url, self.prefix, self._query(dataframe), number)

    def _query(self, dataframe: DataFrame) -> str:
        return "" if self.read_query is None else self.read_query(dataframe)

    @property
    def _names(self) -> tuple[str, ...]:
        return _names(self.key)

    @property
    def _live_milliseconds(self) -> int:
        return 0 if self.ttl is None else to_micros(self.ttl) // 1_000


@dataclass(frozen=True)
class ChangeWriter(Selectable):
    """A sink ``(DataFrame, batch_id)`` that applies changes to a table of a store; a repeated batch changes nothing.

    Use it wherever a sink function is expected, as in ``result.start(main=ChangeWriter("views.duckdb", ("id",), "prices"))``.

    Batches are numbered by query, that is by checkpoint. On Spark Connect ``foreachBatch`` does not say which that is: there
    ``start`` or ``apply_changes`` has to start the query.

    Args:
        store: path of a DuckDB file, or a ``postgresql://`` URL.
        key: the columns that identify a row of the table.
        table: name of the table.
        read_query: returns the id of the query of a batch where the session does not know it; ``start`` gives it.
        by_tasks: whether the tasks that made the changes bring them to PostgreSQL, which ``start`` says of its outputs: those of
            one key are in one task, in their order. Else, and for DuckDB, the driver brings them.
    """

    store: str
    key: tuple[str, ...]
    table: str
    read_query: Callable[[DataFrame], str] | None = field(default=None, repr=False, compare=False)
    by_tasks: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if is_remote(self.store):
            raise InvalidSpecError(
                f"store={shown(self.store)!r}: a file of DuckDB is changed in place, and an object store takes whole files. "
                "Keep it on a disk, or write to sinks.delta, sinks.iceberg or Files there."
            )
        if "://" in self.store or self.store.startswith(":memory:") or not self.store:
            from windowpane.stores import check_address  # a module that every worker would import

            check_address(self.store)

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """The columns of the key, by their role."""
        return {"key of ChangeWriter": self.key}

    def for_query(self, read: Callable[[DataFrame], str]) -> ChangeWriter:
        """Return the same for the output of one query."""
        return replace(self, read_query=read, by_tasks=True)

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Apply one batch; the table must have the one before it.

        Raises:
            InvalidSpecError: on Spark Connect, nobody says which query the batch is of.
            MisplacedStateError: the table does not have the batch before, or has later ones.
        """
        query = self._query(df)
        pair = None if query is None else Pair(f"query {query!r}", self.taker, self.way_out)
        self._of(df)._apply(df.toArrow(), batch_id, self._source(query), pair, batch_id - 1)

    @property
    def taker(self) -> str:
        """The table, as an error names it; without a password."""
        return f"table {self.table!r} of store {self.store.rpartition('@')[2]!r}"

    @property
    def way_out(self) -> str:
        """What to do where table and checkpoint do not belong together."""
        return (
            "Put copies back that belong together, or start with a new checkpoint and a new table. To begin in the middle of a "
            "stream, give the table to start(...) or apply_changes(...) under a name that the checkpoint does not know."
        )

    def taken(self, dataframe: DataFrame) -> int:
        """Return the number of the last batch of the query that the table has."""
        from windowpane.stores import is_server, open_store

        if not is_server(self.store) and not Path(self.store).exists():
            return NONE  # opening it would make it
        target = open_store(self.store)
        try:
            return target.taken(self._source(self._query(dataframe)))
        finally:
            target.close()

    def take(self, dataframe: DataFrame, number: int, pair: Pair, settled: int) -> None:
        """Apply one batch beside a checkpoint; see ``NumberedSink``."""
        from windowpane.stores import Batch, is_server

        if self.by_tasks and is_server(self.store):
            from windowpane.spark.sinks.staged import bring

            write, source = self._of(dataframe), self._source(self._query(dataframe))
            columns = pa.table({name: pa.nulls(0) for name in dataframe.columns})
            bring(dataframe, self.store, Batch(self.table, write.key, columns, number, source, pair=pair, settled=settled))
            return
        self._of(dataframe)._apply(dataframe.toArrow(), number, self._source(self._query(dataframe)), pair, settled)

    def _of(self, df: DataFrame) -> ChangeWriter:
        from windowpane.spark.session.column_names import column_named

        return replace(self, key=tuple(column_named(df, name) or name for name in self.key))

    def _query(self, df: DataFrame) -> str | None:
        from windowpane.spark.internals.session import is_classic, query_of_batch

        if self.read_query is not None:
            return self.read_query(df)
        query = query_of_batch(df.sparkSession)
        if query is None and not is_classic(df.sparkSession):
            raise InvalidSpecError(
                f"{self!r} in foreachBatch does not know its query on Spark Connect, and numbers batches by it: those of a query "
                "with a new checkpoint would be taken for batches of another one, and dropped. Write apply_changes(df, ..., "
                "checkpoint='...') or result.start(main=ChangeWriter(...), checkpoint='...')."
            )
        return query

    def _source(self, query: str | None) -> str:
        """Return the name that the store counts the batches of a query by."""
        return self.table if query is None else f"{self.table} (query {query})"

    def rows(self, changes: pa.Table, batch_id: int | None) -> None:
        """Apply the changes of an Arrow table; without a number they count as new.

        Args:
            changes: the table.
            batch_id: its number; it rises from batch to batch.
        """
        if batch_id is None:
            self._apply(changes, time.time_ns(), f"{self.table} (one by one)")
        else:
            self._apply(changes, batch_id, self._source(None))

    def _apply(self, changes: pa.Table, number: int, source: str, pair: Pair | None = None, settled: int = NONE) -> None:
        from windowpane.stores import Batch, open_store  # they bring DuckDB, and every worker imports this module

        target = open_store(self.store)
        try:
            target.apply(Batch(self.table, self.key, changes, number, source, pair=pair, settled=settled))
        finally:
            target.close()
