"""Sources of systems that hold data elsewhere: Kafka's topics, tables of Delta and Iceberg, and rows that are made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from windowpane.connectors.message_formats import Json
from windowpane.errors import InvalidSpecError
from windowpane.malformed import Policy
from windowpane.windowing.times import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Place = str | datetime | int | Mapping[Any, Any]
"""Where reading begins or ends: ``"earliest"``, ``"latest"``, a time, or offsets by partition."""


def json(schema: object) -> Json:
    """Say that messages are JSON objects.

    Args:
        schema: the columns, a DDL string or StructType. A column that an object lacks is NULL; others of an object are left out.

    Example:
        >>> wp.read_kafka(spark, "orders", servers="localhost:9092", value=wp.json("user string, at timestamp"))
    """
    return Json(schema)


def read_kafka(
    spark: SparkSession,
    topics: Any,
    *,
    servers: str,
    value: Json | Literal["text", "bytes"] = "bytes",
    key: Json | Literal["text", "bytes"] = "bytes",
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
    options: Mapping[str, object] | None = None,
    **more: Any,
) -> DataFrame:
    """Read topics of Kafka, without a jar: tasks read messages, and Arrow makes columns of them where rows are encoded.

    Spark keeps the offsets in the checkpoint. Only messages of committed transactions are read. New partitions are found.

    Args:
        spark: the session.
        topics: a name, a list of names, or ``re.compile("orders-.*")`` for every topic whose whole name matches.
        servers: ``host:port``, several with commas.
        value: what messages hold: ``wp.json(schema)``, whose columns rows have then, or ``"text"`` or ``"bytes"`` in ``value``.
        key: the same of keys, in the column ``key`` of ``include``; of JSON a struct.
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
        options: of librdkafka, by their names: ``{"security.protocol": "SASL_SSL", "sasl.password": ...}``. They appear in no
            plan, log or error.
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

    Source of the rule: Spark's Kafka source for offsets, Flink's for watermarks of partitions and idleness.

    Example:
        >>> orders = wp.read_kafka(spark, "orders", servers="localhost:9092", value=wp.json("user string, at timestamp"),
        ...                        event_time="at", delay="10 seconds", idle="1 minute")
        >>> wp.stream(orders).key_by("user").window(wp.TumblingEventTimeWindows.of("1 minute")).aggregate(n=wp.count())
    """
    from windowpane.connectors.kafka_client import Connection, Topics
    from windowpane.spark.sources.kafka import Read

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
    )
    found: DataFrame = read.rows(spark, streaming=streaming)
    return found
