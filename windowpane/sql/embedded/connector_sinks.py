"""Sinks of other systems, by RisingWave's own options: Kafka, Delta and Iceberg. This process writes them, batch by batch.

A batch has its number in the same transaction or commit as its rows, under the name of the sink, so one that is delivered again
after a crash is there once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from windowpane.connectors import delta, iceberg
from windowpane.connectors.kafka_client import PROPERTIES, SERVERS, TopicOptions, Topics
from windowpane.connectors.kafka_writing import BucketWriter, MessageFormat, last_batch
from windowpane.connectors.tables import plain_type
from windowpane.errors import SqlNameError, SqlRunError, UnsupportedSqlError
from windowpane.sql.parse.connector_options import ENCODE, FORMAT, KEY_ENCODE
from windowpane.sql.parse.positions import Place
from windowpane.windowing.outputs import CHANGE_TYPE, INSERT

TABLES = ("deltalake", "iceberg")
NEEDED: Mapping[str, tuple[str, ...]] = {
    "kafka": ("topic", SERVERS),
    "deltalake": ("location", "type"),
    "iceberg": ("table.name", "type"),
}
"""The options that each connector needs."""
KNOWN: Mapping[str, tuple[str, ...]] = {
    "blackhole": ("type", "force_append_only"),
    "kafka": (PROPERTIES, FORMAT, ENCODE, KEY_ENCODE, "type", "force_append_only"),
    "deltalake": ("s3.", "gcs.", "azure.", "force_append_only"),
    "iceberg": ("database.name", "catalog.", "warehouse.path", "s3.", "create_table_if_not_exists", "force_append_only"),
}
"""Those that it takes beside them; what ends with a point is the beginning of many."""
_CHANGES = {"plain": "append", "upsert": "upsert", "debezium": "debezium"}
_TYPES = ("append-only", "upsert", "debezium")
"""What RisingWave calls the kinds of a sink; of a topic they are its formats, which need not be said beside them."""


class Target(Protocol):
    def taken(self, name: str) -> int:
        """Return the number of the last batch that it has of a sink."""

    def write(self, changes: pa.Table, name: str, number: int) -> None:
        """Write a batch of changes, unless it has it."""


class KafkaTarget:
    def __init__(self, options: Mapping[str, str], key: tuple[str, ...]) -> None:
        self._connection, self._topic = TopicOptions(options).connection, options["topic"]
        changes = _CHANGES[_format(options)]
        as_object = options.get(KEY_ENCODE, "json").lower() == "json" and changes != "append"
        self._format = MessageFormat(key, "json", changes, as_object)
        self._is_forced = options.get("force_append_only", "false").lower() == "true"

    def taken(self, name: str) -> int:
        with self._connection.consumer(f"windowpane.{name}.0") as consumer:
            self._connection.partitions(consumer, Topics((self._topic,)))
            return last_batch(self._connection, consumer, self._topic)

    def write(self, changes: pa.Table, name: str, number: int) -> None:
        if self._format.changes == "append":
            changes = appended(changes, f"topic {self._topic!r}", self._is_forced)
        writer = BucketWriter(self._connection, self._topic, self._format, number, f"windowpane.{name}", int, writes_empty=True)
        for _ in writer(changes.to_batches()):
            continue


class TableTarget:
    def __init__(self, options: Mapping[str, str], key: tuple[str, ...]) -> None:
        self._table = _delta(options) if options["connector"] == "deltalake" else _iceberg(options)
        self._key = key if options["type"] == "upsert" else ()
        self._is_forced = options.get("force_append_only", "false").lower() == "true"

    def taken(self, name: str) -> int:
        return self._table.taken(name)

    def write(self, changes: pa.Table, name: str, number: int) -> None:
        rows = pa.schema([each.with_type(plain_type(each.type)) for each in changes.schema if each.name != CHANGE_TYPE])
        changes = changes if self._key else appended(changes, str(self._table), self._is_forced)
        if isinstance(self._table, iceberg.Table):
            self._table.prepared(rows)
            self._table.merge(changes.to_batches(), self._key, name, number)
            return
        there = self._table.prepared(rows, feed=bool(self._key))
        if self._key:
            self._table.merge(changes.to_batches(), self._key, name, number)
            return
        writer = delta.FileWriter(self._table.uri, self._table.storage, rows, tuple(there.metadata().partition_columns), "part")
        files = [each for batch in writer(changes.to_batches()) for each in batch.to_pylist()]
        self._table.append(there, files, name, number)


def appended(changes: pa.Table, target: str, is_forced: bool) -> pa.Table:
    """Return the rows of inserts, for a target that rows are only appended to.

    Raises:
        SqlRunError: there are other changes, and they may not be left out.
    """
    kinds = changes[CHANGE_TYPE].to_pylist()
    others = sorted({kind for kind in kinds if kind != INSERT})
    if others and not is_forced:
        raise SqlRunError(
            f"rows of the sink were changed ({', '.join(others)}), and {target} is appended to. Say FORMAT UPSERT, or "
            "type = 'upsert', with a primary_key; or force_append_only = 'true', which writes "
            "new rows and forgets what they replace."
        )
    taken = pa.array([kind in (INSERT, "update_postimage") for kind in kinds], pa.bool_())
    return changes.filter(taken).drop_columns([CHANGE_TYPE])


def _delta(options: Mapping[str, str]) -> delta.Table:
    names = {"s3.access.key": "aws_access_key_id", "s3.secret.key": "aws_secret_access_key", "s3.endpoint": "aws_endpoint_url",
             "s3.region": "aws_region"}  # fmt: skip
    storage = {names.get(name, name): value for name, value in options.items() if name.startswith(("s3.", "gcs.", "azure."))}
    return delta.Table(options["location"].replace("s3a://", "s3://", 1), storage=storage)


def _iceberg(options: Mapping[str, str]) -> iceberg.Table:
    names = {"catalog.type": "type", "catalog.uri": "uri", "warehouse.path": "warehouse", "catalog.name": "name",
             "s3.access.key": "s3.access-key-id", "s3.secret.key": "s3.secret-access-key"}  # fmt: skip
    given = {names.get(name, name.removeprefix("catalog.")): value for name, value in options.items()
             if name.startswith(("catalog.", "warehouse.", "s3."))}  # fmt: skip
    table = options["table.name"] if "database.name" not in options else f"{options['database.name']}.{options['table.name']}"
    catalog = given["name"] if given.keys() == {"name"} else given
    return iceberg.Table(table, catalog)


def target(options: Mapping[str, str], key: tuple[str, ...]) -> Target:
    return KafkaTarget(options, key) if options["connector"] == "kafka" else TableTarget(options, key)


def _format(options: Mapping[str, str]) -> str:
    """Return the format of the messages of a topic: the one that is said, else that of the sink's type."""
    said = options.get("type", "append-only").lower()
    return options.get(FORMAT, "plain" if said == "append-only" else said).lower()


def check(name: str, options: Mapping[str, str], key: tuple[str, ...], place: Place) -> None:
    """Refuse options that a sink of these connectors cannot be made from."""
    if options["connector"] == "kafka":
        values = {FORMAT: tuple(_CHANGES), ENCODE: ("json",), KEY_ENCODE: ("json", "text"), "type": _TYPES}
        needs_key = _format(options) != "plain"
    else:
        values, needs_key = {"type": ("append-only", "upsert")}, options["type"] == "upsert"
    for option, known in values.items():
        if options.get(option, known[0]).lower() not in known:
            message = f"{option} = {options[option]!r} of sink {name!r} is not supported. There is {', '.join(map(repr, known))}."
            raise place.error(UnsupportedSqlError, message)
    if options["connector"] == "kafka" and "type" in options and _format(options) != _format({"type": options["type"]}):
        message = f"type = {options['type']!r} of sink {name!r} is not FORMAT {options[FORMAT].upper()}. Say one of them."
        raise place.error(UnsupportedSqlError, message)
    if needs_key and not key:
        raise place.error(SqlNameError, f"sink {name!r} needs primary_key, the columns that say which row is replaced.")
