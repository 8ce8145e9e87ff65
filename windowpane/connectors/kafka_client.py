"""A connection to Kafka: how clients are made from options, what there is to read, and errors with names.

Options are those of librdkafka, by their names. A connection shows its servers and nothing else, so no plan, log or error has a
password. Clients are made where they are used: a connection is pickled, a client cannot be.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from windowpane.errors import ConnectorError, InvalidSpecError, MissingExtraError, UnknownTopicError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError

T = TypeVar("T")

Offsets = dict[str, dict[str, int]]
"""By topic and partition the offset of the next message to read: as Spark's own source writes them into a checkpoint."""

PATIENCE = 30.0  # Seconds that a request may take before it is an error; a batch that fails is run again from the checkpoint
_OURS = (
    "bootstrap.servers",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "partitioner",
    "transactional.id",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "isolation.level",
)
_USUAL = (
    *("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password", "sasl.oauthbearer.config"),
    *("sasl.kerberos.service.name", "sasl.kerberos.principal", "sasl.kerberos.keytab", "ssl.ca.location", "ssl.ca.pem"),
    *("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem", "ssl.key.password"),
    *("ssl.keystore.location", "ssl.keystore.password", "ssl.endpoint.identification.algorithm", "message.max.bytes"),
    *("fetch.message.max.bytes", "max.partition.fetch.bytes", "fetch.max.bytes", "receive.message.max.bytes", "linger.ms"),
    *("compression.type", "compression.codec", "acks", "batch.size", "client.id", "client.rack", "session.timeout.ms"),
    *("transaction.timeout.ms", "message.timeout.ms", "request.timeout.ms", "socket.timeout.ms", "broker.address.family"),
)
"""Options of librdkafka that are set most often, which one that it does not know may be meant for."""
_UNREACHABLE = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "REQUEST_TIMED_OUT")
_PASSING = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "_WAIT_COORD", "LEADER_NOT_AVAILABLE")
_UNKNOWN = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")


@dataclass(frozen=True)
class Connection:
    servers: str  # ``host:port``, several with commas
    options: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)  # of librdkafka, secrets among them

    def __post_init__(self) -> None:
        MissingExtraError.unless("kafka", "confluent_kafka")
        for name in self.options:
            if name in _OURS:
                raise InvalidSpecError(
                    f"option {name!r} of Kafka is set by windowpane, since it decides what is read or written."
                )

    def settings(self, **more: object) -> dict[str, object]:
        named = {name.replace("_", "."): value for name, value in more.items()}
        ours = {name: value for name, value in named.items() if name in _OURS or name not in self.options}
        return {"bootstrap.servers": self.servers, "log_level": 2, "error_cb": _ignored, **self.options, **ours}

    @contextmanager
    def consumer(self, group: str = "windowpane", settings: Mapping[str, object] = MappingProxyType({})) -> Iterator[Consumer]:
        """Yield a consumer that sees committed transactions only, and commits nothing by itself."""
        from confluent_kafka import Consumer

        given = {"isolation_level": "read_committed", "enable_auto_commit": False, "auto_offset_reset": "error", **settings}
        with self.named():
            consumer = Consumer(self.settings(group_id=group, **given))
        try:
            with self.named():
                yield consumer
        finally:
            consumer.close()

    @contextmanager
    def named(self) -> Iterator[None]:
        """Give errors of the client their names."""
        from confluent_kafka import KafkaException

        try:
            yield
        except KafkaException as error:
            raise self.error(error.args[0]) from None

    def asked(self, request: Callable[..., T], *given: object, **named: object) -> T:
        """Return the answer to a request, which is sent again while brokers change places or begin, as long as ``PATIENCE``."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return request(*given, **named)
            except KafkaException as error:
                found = error.args[0]
                may_pass = found.retriable() or found.name() in _PASSING
                if not may_pass or found.fatal() or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def error(self, error: KafkaError, topic: str | None = None) -> Exception:
        if topic is not None and error.name() in _UNKNOWN:
            return UnknownTopicError(self.servers, topic)
        reason = f"{error.str()} ({error.name()})"
        if error.name() == "_INVALID_ARG" and '"' in reason:
            close = get_close_matches(error.str().split('"')[1], _USUAL, n=1)
            reason += f". Did you mean {close[0]!r}?" if close else ""
        if error.name() in _UNREACHABLE:
            reason = f"it does not answer ({error.name()}): {error.str()}. The query goes on from its checkpoint when it does"
        elif "AUTH" in error.name():
            reason = f"the credentials are refused ({error.name()}): {error.str()}"
        return ConnectorError(f"Kafka at {self.servers}", reason)

    def partitions(self, consumer: Consumer, topics: Topics) -> dict[str, list[int]]:
        """Return the partitions of each topic.

        Raises:
            UnknownTopicError: a topic that is named is not there.
        """
        named = {topic: self.asked(consumer.list_topics, topic, timeout=PATIENCE).topics for topic in topics.names}
        if topics.pattern is not None:
            every = self.asked(consumer.list_topics, timeout=PATIENCE).topics
            found = {name: every for name in every if re.fullmatch(topics.pattern, name)}
        else:
            found = named
        partitions = {}
        for name, known in found.items():
            if name not in known or known[name].error is not None or not known[name].partitions:
                raise UnknownTopicError(self.servers, name)
            partitions[name] = sorted(known[name].partitions)
        return partitions

    def bounds(self, consumer: Consumer, topics: Topics) -> dict[str, dict[str, tuple[int, int]]]:
        """Return by topic and partition the offset of the first message, and that behind the last one that is committed."""
        return {
            topic: {str(number): self.bounds_of(consumer, topic, number) for number in numbers}
            for topic, numbers in self.partitions(consumer, topics).items()
        }

    def bounds_of(self, consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
        from confluent_kafka import TopicPartition

        asked = TopicPartition(topic, partition)
        found: tuple[int, int] = self.asked(consumer.get_watermark_offsets, asked, timeout=PATIENCE, cached=False)
        return found

    def at_time(self, consumer: Consumer, topics: Topics, milliseconds: int) -> Offsets:
        """Return the offset of the first message of each partition at a time or after it; the end where there is none."""
        from confluent_kafka import TopicPartition

        bounds = self.bounds(consumer, topics)
        asked = [TopicPartition(topic, int(number), milliseconds) for topic, numbers in bounds.items() for number in numbers]
        found: Offsets = {}
        for each in self.asked(consumer.offsets_for_times, asked, timeout=PATIENCE):
            if each.error is not None:
                raise self.error(each.error, each.topic)
            end = bounds[each.topic][str(each.partition)][1]
            found.setdefault(each.topic, {})[str(each.partition)] = each.offset if each.offset >= 0 else end
        return found


@dataclass(frozen=True)
class Topics:
    names: tuple[str, ...] = ()  # the topics
    pattern: str | None = None  # a regular expression that whole names of topics match, in place of names

    @classmethod
    def of(cls, given: object) -> Topics:
        """Return what ``topics`` of ``read_kafka`` says: a name, several, or a pattern of ``re.compile``."""
        if isinstance(given, re.Pattern):
            return cls(pattern=given.pattern)
        names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else ()
        if not names or not all(isinstance(name, str) and name for name in names):
            raise InvalidSpecError(f"topics={given!r}: it is the name of a topic, a list of names, or re.compile('orders-.*').")
        return cls(names)

    @property
    def is_one(self) -> bool:
        return len(self.names) == 1

    def __str__(self) -> str:
        return ", ".join(self.names) if self.pattern is None else f"/{self.pattern}/"


PROPERTIES = "properties."
"""What options of the client begin with, in RisingWave's words."""
SERVERS = f"{PROPERTIES}bootstrap.server"
STARTUP, MILLIS = "scan.startup.mode", "scan.startup.timestamp.millis"
"""The options that say where a new source begins."""
INCLUDE = "include."
"""What options begin with that say what of a message a column is."""


@dataclass(frozen=True)
class TopicOptions:
    """A topic as the options of ``WITH (...)`` name it, in RisingWave's words."""

    options: Mapping[str, str]

    @property
    def connection(self) -> Connection:
        given = {name.removeprefix(PROPERTIES): value for name, value in self.options.items() if name.startswith(PROPERTIES)}
        others = {name: value for name, value in given.items() if name not in ("bootstrap.server", "group.id")}
        return Connection(self.options[SERVERS], others)

    @property
    def topics(self) -> Topics:
        return Topics(tuple(name.strip() for name in self.options["topic"].split(",")))

    @property
    def group(self) -> str | None:
        return self.options.get(f"{PROPERTIES}group.id")

    @property
    def starting(self) -> str | int:
        """``earliest``, ``latest``, or milliseconds since 1970."""
        mode = self.options.get(STARTUP, "earliest").lower()
        return int(self.options[MILLIS]) if mode == "timestamp" else mode

    @property
    def included(self) -> dict[str, str]:
        """The columns of INCLUDE, and what of a message each is."""
        return {name.removeprefix(INCLUDE): what for name, what in self.options.items() if name.startswith(INCLUDE)}


def _ignored(error: object) -> None:
    """Take an error that is not of one request: librdkafka connects again by itself, and requests fail by names of their own."""
