"""Systems that hold data elsewhere: Kafka's topics, tables of Delta and Iceberg, and rows that are made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from windowpane.arrays.values import Value
from windowpane.connectors.message_formats import Avro, Json, Protobuf
from windowpane.errors import InvalidSpecError
from windowpane.malformed import Policy
from windowpane.windowing.times import Duration, to_micros

if TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor
    from google.protobuf.message import Message as ProtobufMessage
    from pyspark.sql import DataFrame, SparkSession

Place = str | datetime | int | Mapping[str | int, Value]
"""Where reading begins or ends: ``"earliest"``, ``"latest"``, a time, or offsets by partition."""


def json(schema: object) -> Json:
    """Say that messages are JSON objects.

    Args:
        schema: the columns, a DDL string or StructType. A column that an object lacks is NULL; others of an object are left out.
            Instants are texts of ISO 8601, bytes are base64, as for Spark's reader and Flink's.

    Example:
        >>> wp.read_kafka(spark, "orders", servers="localhost:9092", value=wp.json("user string, at timestamp"))
    """
    return Json(schema)


def avro(schema: str | Mapping[str, Value] | None = None, *, registry: str | None = None, subject: str | None = None) -> Avro:
    """Say that messages are Avro records.

    Args:
        schema: the Avro schema of the columns, JSON or a mapping; left out, the latest of ``subject``.
        registry: the URL of a schema registry, ``https://user:password@host``, which is shown in no plan, log or error. Messages
            then say which schema they were written with, and are read as the one of the columns, by Avro's rules.
        subject: the subject that the columns are of, such as ``"orders-value"``.

    Raises:
        InvalidSpecError: the schema is no JSON.

    Example:
        >>> wp.read_kafka(spark, "orders", servers="localhost:9092", value=wp.avro(registry="http://localhost:8081", subject="o"))
    """
    try:
        parsed: Mapping[str, Value] | None = loads(schema) if isinstance(schema, str) else schema
    except ValueError as error:
        raise InvalidSpecError(f"wp.avro: the schema is no JSON: {error}.") from None
    return Avro(parsed, registry, subject)


def protobuf(message: str | type[ProtobufMessage], descriptors: bytes | str | None = None, *, registry: bool = False) -> Protobuf:
    """Say that messages are Protocol Buffers.

    Args:
        message: a generated class, or the full name of a type in ``descriptors``.
        descriptors: what ``protoc --descriptor_set_out --include_imports`` wrote: its bytes or its path.
        registry: whether messages begin with the header of a schema registry.

    Raises:
        InvalidSpecError: a name without descriptors.

    Example:
        >>> wp.read_kafka(spark, "orders", servers="localhost:9092", value=wp.protobuf("shop.Order", "orders.desc"))
    """
    if isinstance(message, str):
        if descriptors is None:
            raise InvalidSpecError(f"wp.protobuf({message!r}): a name needs descriptors=, or give the generated class.")
        return Protobuf(message, descriptors if isinstance(descriptors, bytes) else Path(descriptors).read_bytes(), registry)
    return Protobuf(message.DESCRIPTOR.full_name, _with_imports(message.DESCRIPTOR.file), registry)


def _with_imports(file: FileDescriptor) -> bytes:
    """Return a file of descriptors with all that it imports before it."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files: dict[str, bytes] = {}
    waiting = [file]
    while waiting:
        each = waiting.pop()
        files.pop(each.name, None)
        files[each.name] = each.serialized_pb
        waiting += each.dependencies
    made = FileDescriptorSet()
    for serialized in reversed(files.values()):
        made.file.add().ParseFromString(serialized)
    return bytes(made.SerializeToString())


def read_kafka(
    spark: SparkSession,
    topics: object,
    *,
    servers: str,
    value: Json | Avro | Protobuf | Literal["text", "bytes"] = "bytes",
    key: Json | Avro | Protobuf | Literal["text", "bytes"] = "bytes",
    event_time: str | None = None,
    delay: Duration | None = None,
    idle: Duration | None = None,
    include: str | Sequence[str] = (),
    starting: Place = "earliest",
    ending: Place = "latest",
    streaming: bool = True,
    max_rows_per_batch: int | None = None,
    missing: Literal["fail", "continue"] = "fail",
    malformed: Policy = "fail",
    group: str | None = None,
    through: Literal["arrow", "spark"] = "arrow",
    options: Mapping[str, object] | None = None,
    **more: object,
) -> DataFrame:
    """Read topics of Kafka, without a jar: tasks read messages, and Arrow makes columns of them where rows are encoded.

    Spark keeps the offsets in the checkpoint. Only messages of committed transactions are read. New partitions are found.

    Args:
        spark: the session.
        topics: a name, a list of names, or ``re.compile("orders-.*")`` for every topic whose whole name matches.
        servers: ``host:port``, several with commas.
        value: what messages hold: ``wp.json(schema)``, ``wp.avro(...)`` or ``wp.protobuf(...)``, whose columns rows have then; or
            ``"text"`` or ``"bytes"``, in the column ``value``.
        key: the same of keys, in the column ``key`` of ``include``; of records a struct.
        event_time: the event time that ``wp.stream`` and others take; Kafka's ``timestamp`` where only ``delay`` is given.
        delay: how far rows of one partition may come behind its latest; the watermark is the least over partitions, so a slow
            one loses no row. For windowpane's operators; Spark's own take ``df.withWatermark``.
        idle: the watermark does not wait for a partition that was silent for so long.
        include: columns beside those of the value: ``key``, ``topic``, ``partition``, ``offset``, ``timestamp``, ``headers``.
        starting: where a new query begins: ``"earliest"``, ``"latest"``, a time, or offsets by partition, ``{0: 17}``, of several
            topics ``{"orders": {0: 17}}``; -2 and -1 are the first and the last. A checkpoint goes on where it was.
        ending: where a bounded read ends, likewise; the offset is that behind the last message.
        streaming: whether to wait for new messages; else the DataFrame is static, and its offsets are fixed now.
        max_rows_per_batch: about how many messages a batch takes, of all partitions by what they have left; needs Spark 4.2.
        missing: what becomes of messages that Kafka deleted before they were read: ``"fail"`` stops the query with the offsets;
            ``"continue"`` passes them over, logged and counted as malformed.
        malformed: as for ``wp.read_in_arrow``: ``"fail"``, ``"null"`` or ``"drop"``; a message without a value, or without an
            event time where there is one, is malformed, too. They are the output ``malformed`` of ``start``.
        group: a consumer group that is told the offsets of each batch, for tools that watch its lag; nothing is read from it.
        through: ``"arrow"``: tasks read by librdkafka. ``"spark"``: Spark's own connector reads, where its jar is there, and
            passes messages on as bytes; they become columns in the same way, with the same watermarks.
        options: of librdkafka, by their names: ``{"security.protocol": "SASL_SSL", "sasl.password": ...}``. They appear in no
            plan, log or error. With ``through="spark"`` those of Kafka's Java client, which Spark gets as options of its own.
        more: such options, too, as arguments.

    Returns:
        A DataFrame, for ``wp.stream``, ``wp.over`` and others, which read it in Python without a hop, and for Spark.

    Raises:
        InvalidSpecError: an argument that cannot be.
        UnknownTopicError: there is no such topic.
        ConnectorError: Kafka does not answer, or refuses the credentials.
        MissingOffsetsError: when the query runs and messages are gone, with ``missing="fail"``.
        MalformedRowError: when the query runs and a message cannot be read, with ``malformed="fail"``.
        MissingExtraError: confluent-kafka is not installed: ``pip install 'windowpane[kafka]'``.
        MissingJarError: with ``through="spark"``, Spark has no connector.

    Source of the rule: Spark's Kafka source for offsets, Flink's for watermarks of partitions and idleness.

    Example:
        >>> orders = wp.read_kafka(spark, "orders", servers="localhost:9092", value=wp.json("user string, at timestamp"),
        ...                        event_time="at", delay="10 seconds", idle="1 minute")
        >>> wp.stream(orders).key_by("user").window(wp.TumblingEventTimeWindows.of("1 minute")).aggregate(n=wp.count())
    """
    from windowpane.connectors.kafka_client import Connection, Topics
    from windowpane.spark.sources.kafka import Read

    if through not in ("arrow", "spark"):
        raise InvalidSpecError(f"read_kafka(through={through!r}): it is 'arrow' or 'spark'.")
    if missing not in ("fail", "continue"):
        raise InvalidSpecError(f"missing={missing!r}: it is 'fail' or 'continue'.")
    included = (include,) if isinstance(include, str) else tuple(include)
    if delay is not None and event_time is None:
        event_time = "timestamp"
        included = included if event_time in included else (*included, event_time)
    read = Read(
        Connection(servers, {**(options or {}), **more}),
        Topics.of(topics),
        value,
        key,
        included,
        starting,
        ending,
        max_rows_per_batch,
        missing == "continue",
        malformed,
        group,
        event_time,
        delay,
        idle,
        through == "spark",
    )
    found: DataFrame = read.rows(spark, streaming=streaming)
    return found


def read_delta(
    spark: SparkSession,
    uri: str,
    *,
    changes: bool = False,
    starting: int | datetime | Literal["latest"] | None = None,
    storage: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read a Delta table without a jar: as it is now, or its changes as a stream, in tasks and in Arrow.

    Args:
        spark: the session.
        uri: a folder, or ``s3://...`` and others that deltalake reads.
        changes: whether to read a stream of changes, with ``_change_type`` (insert, update_preimage, update_postimage, delete),
            which ``wp.over`` takes as its changelog. It needs the table's change data feed where rows are changed; a table that
            is only appended to needs none. Versions are the offsets.
        starting: where a new stream begins: with the changes of a version, those after a time, or ``"latest"``; left out, with
            all rows as inserts, and then what changes.
        storage: options of the object store, of deltalake's ``storage_options``; they appear in no plan, log or error.

    Returns:
        A DataFrame, static, or streaming with ``changes=True``.

    Raises:
        ConnectorError: there is no such table, or it cannot be read.
        TableChangesError: when the query runs and changes are not known: rows were changed without a feed, or its files are gone.
        InvalidSpecError: ``starting`` is none of these.

    Example:
        >>> totals = wp.read_delta(spark, "tables/totals", changes=True)
        >>> wp.over(totals, key="user").partition_by("country").order_by("total").select(place=wp.rank()).emit_on_update()
    """
    from windowpane.connectors.delta import Table
    from windowpane.spark.sources.tables import table_rows

    found: DataFrame = table_rows(spark, Table(uri, storage=storage or {}), changes, starting, "fail")
    return found


def read_iceberg(
    spark: SparkSession,
    table: str,
    *,
    catalog: str | Mapping[str, str],
    changes: bool = False,
    starting: int | Literal["latest"] | None = None,
    overwrites: Literal["fail", "skip"] = "fail",
) -> DataFrame:
    """Read an Iceberg table without a jar: as it is now, or what is appended to it as a stream, in tasks and in Arrow.

    Args:
        spark: the session.
        table: its name with its namespace, ``"db.totals"``.
        catalog: the name of a catalog that pyiceberg is configured with, or its properties; they appear in no plan, log or error.
        changes: whether to read a stream of what is appended, each row an insert in ``_change_type``. Snapshots are the offsets.
        starting: where a new stream begins: behind a snapshot, by its id, or the ``"latest"``; left out, with all rows, and
            then what is appended.
        overwrites: what becomes of a snapshot that took rows away: ``"fail"`` stops the query with its id, ``"skip"`` passes it
            over with all that it brought.

    Returns:
        A DataFrame, static, or streaming with ``changes=True``.

    Raises:
        ConnectorError: there is no such table, or the catalog does not answer.
        TableChangesError: when the query runs and a snapshot took rows away, or snapshots were expired before they were read.
        InvalidSpecError: ``starting`` or ``overwrites`` is none of these.

    Example:
        >>> wp.read_iceberg(spark, "db.orders", catalog="prod", changes=True)
    """
    from windowpane.connectors.iceberg import Table
    from windowpane.spark.sources.tables import table_rows

    if overwrites not in ("fail", "skip"):
        raise InvalidSpecError(f"overwrites={overwrites!r}: it is 'fail' or 'skip'.")
    found: DataFrame = table_rows(spark, Table(table, catalog), changes, starting, overwrites)
    return found


def generate(
    spark: SparkSession,
    *,
    rows: int | None = None,
    rows_per_batch: int = 1_000,
    keys: int = 10,
    skew: float = 0.0,
    every: Duration = "1 second",
    disorder: Duration = 0,
    late: float = 0.0,
    lateness: Duration = 0,
    idle: tuple[Duration, Duration] | None = None,
    start: str | datetime = "2024-01-01T00:00:00+00:00",
    partitions: int = 1,
    seed: int = 0,
    streaming: bool = True,
) -> DataFrame:
    """Make up rows for tests, examples and benchmarks: the same rows for the same arguments, on any version and any cluster.

    Args:
        spark: the session, classic or Connect (from Spark 4.1).
        rows: how many rows there are; left out, a stream does not end.
        rows_per_batch: how many rows a batch of a stream has. Before Spark 4.2 a run with ``availableNow`` takes one batch.
        keys: how many keys there are: ``k0``, ``k1``, ...
        skew: the exponent of Zipf's law that keys are drawn by: 0 draws all alike, with 1 the first is twice as frequent as the
            second.
        every: event time between two rows.
        disorder: rows are put back in event time by up to this, at random.
        late: the share of rows that are put back further, from 0 to 1; ``lateness`` says by how much.
        lateness: by how much those are put back.
        idle: two durations, ``("1 hour", "10 minutes")``: after so much event time with rows comes so much without.
        start: the event time of the first row; in UTC where it has no zone.
        partitions: row n is of partition n modulo these, for watermarks per source.
        seed: another seed gives other rows.
        streaming: whether the DataFrame is a stream; a static one needs ``rows``.

    Returns:
        A DataFrame of ``key string``, ``at timestamp``, ``value bigint`` (0 to 999), ``number bigint`` and ``partition int``.

    Raises:
        InvalidSpecError: an argument that cannot be.
        InvalidDurationError: a duration that is none.

    Example:
        >>> rows = wp.generate(spark, rows=10_000, keys=100, skew=1.0, disorder="5 seconds", late=0.01, lateness="1 minute")
        >>> wp.stream(rows, event_time="at", watermark="5 seconds").key_by("key")
    """
    from windowpane.connectors.generated import Generated
    from windowpane.spark.sources.generated import generated

    if not streaming and rows is None:
        raise InvalidSpecError("generate(streaming=False) needs rows=, how many there are.")
    if rows is not None and rows < 0:
        raise InvalidSpecError(f"generate(rows={rows}): it cannot be negative.")
    if rows_per_batch < 1:
        raise InvalidSpecError(f"generate(rows_per_batch={rows_per_batch}): a batch has at least one row.")
    try:
        at = datetime.fromisoformat(start) if isinstance(start, str) else start
    except ValueError:
        raise InvalidSpecError(f"generate(start={start!r}): it is a time of ISO 8601, '2024-01-01', or a datetime.") from None
    if idle is not None and (isinstance(idle, str) or len(idle) != 2):
        raise InvalidSpecError(f"generate(idle={idle!r}): it is two durations, ('1 hour', '10 minutes'): with rows, and without.")
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    first = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    active, silent = (0, 0) if idle is None else (to_micros(each) for each in idle)
    made = Generated(
        keys, skew, to_micros(every), to_micros(disorder), late, to_micros(lateness), active, silent, first, partitions, seed
    )
    found: DataFrame = generated(spark, made, rows, rows_per_batch, streaming)
    return found
