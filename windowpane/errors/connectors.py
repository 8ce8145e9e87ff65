"""Errors of connectors: systems that hold data elsewhere. None of them shows a secret."""

from __future__ import annotations

from collections.abc import Mapping

from windowpane.errors.base import WindowpaneError


class ConnectorError(WindowpaneError):
    """A system cannot be reached, or refuses what it is asked for."""

    def __init__(self, system: str, reason: str) -> None:
        super().__init__(f"{system}: {reason}")
        self.system, self.reason = system, reason


class UnknownTopicError(ConnectorError, LookupError, page="how-to/kafka.md"):
    """A topic that Kafka does not have, or does not show to this user."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(
            f"Kafka at {servers}",
            f"there is no topic {topic!r}, or this user may not see it. Create it, or mend the name; a query continues from its "
            "checkpoint.",
        )
        self.topic = topic


class UnreachablePathError(ConnectorError, LookupError, page="how-to/object-stores.md"):
    """An address of an object store that has nothing, or that the store does not give."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            path,
            f"{reason}. Mend the address, the credentials of the environment (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL "
            "and the like), or make what is missing. A query that runs continues from its checkpoint",
        )
        self.path = path


class MissingOffsetsError(WindowpaneError, page="how-to/kafka.md"):
    """Messages that a query has still to read are no longer in Kafka: they were deleted by age or size, or the topic was."""

    def __init__(self, topic: str, partition: int, wanted: int, first: int, last: int) -> None:
        there = f"has {first} to {last - 1} there" if last > first else "has none there"
        super().__init__(
            f"partition {partition} of topic {topic!r} was to be read from offset {wanted} on, and Kafka {there}: messages were "
            "deleted before they were read, or the topic was made anew. Nothing was skipped. missing='continue' goes on with "
            "what there is, and counts it; or start with a new checkpoint."
        )
        self.topic, self.partition, self.wanted, self.first, self.last = topic, partition, wanted, first, last


class MessageError(WindowpaneError):
    """A message that Kafka does not take: it is too large, not authorised, or has no key where one is needed."""

    def __init__(self, topic: str, key: object, size: int, reason: str) -> None:
        super().__init__(
            f"a message of {size} bytes with key {key!r} was not written to topic {topic!r}: {reason}. Nothing of its batch is "
            "committed by this writer; mend the cause and start from the same checkpoint."
        )
        self.topic, self.key, self.size, self.reason = topic, key, size, reason


class FencedWriterError(WindowpaneError, page="how-to/kafka.md"):
    """Another writer with the same transactional id has begun since, so that this one may write no more."""

    def __init__(self, writer: str) -> None:
        super().__init__(
            f"another process writes as {writer!r}, and Kafka has fenced this one: two queries run from copies of one "
            "checkpoint, or a task was started twice. Nothing that this one had not committed was written. Stop one of the two."
        )
        self.writer = writer


class TableSchemaError(WindowpaneError, TypeError, page="how-to/delta-and-iceberg.md"):
    """A table has other columns than the rows that are to be written to it."""

    def __init__(self, table: str, differences: Mapping[str, tuple[str | None, str | None]]) -> None:
        lines = [f"  {name}: table {was or 'absent'}, rows {now or 'absent'}" for name, (was, now) in differences.items()]
        super().__init__(
            f"{table} has other columns than the rows:\n"
            + "\n".join(lines)
            + "\nNothing was written. evolve=True adds columns that "
            "the table lacks; types are never changed and columns never dropped: cast or select the rows."
        )
        self.differences = dict(differences)


class TableChangesError(WindowpaneError, page="how-to/delta-and-iceberg.md"):
    """A table was changed in a way that is no sequence of changes of its rows, so a reader of its changes cannot go on."""

    def __init__(self, table: str, what: str, way_out: str) -> None:
        super().__init__(f"{table}: {what}. {way_out}")
