"""Who holds state that is looked into: the checkpoint of a query, or a harness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from windowpane.engines.batch.header import BucketHeader
from windowpane.inspect.buckets import Bucket


class Committed(NamedTuple):
    """A batch: its number, when it was planned and committed in milliseconds, and its watermark, likewise."""

    batch: int
    planned: int
    committed: int
    watermark: int


class Holder(Protocol):
    """Holds what a query was left with by its batches."""

    @property
    def location(self) -> str:
        """Where it is, for people."""

    @property
    def query_id(self) -> str:
        """The id of the query, the same over restarts."""

    def last_batch(self) -> int:
        """Return the number of the last batch that is committed, -1 for none."""

    def batches(self, most: int) -> Sequence[Committed]:
        """Return the last committed batches, the oldest first."""

    def next_watermark(self, batch: int) -> int:
        """Return the watermark of the batch after a committed one in milliseconds, 0 where buckets know it."""

    def operators(self) -> Sequence[int]:
        """Return the numbers of the operators."""

    def programs(self, operator: int, batch: int) -> Iterator[Bucket]:
        """Yield what each program of an operator has in each bucket, as a committed batch left it."""

    def headers(self, operator: int, batch: int) -> Iterator[BucketHeader]:
        """Yield the headers of these, which are read without what else they hold."""

    def changes(self) -> Sequence[Mapping[str, Any]]:
        """Return what restarts have changed: batch, time, parts."""


@runtime_checkable
class Holds(Protocol):
    """Something that programs run in, and that can be looked into."""

    def holder(self) -> Holder:
        """Return what it holds now."""


class WithoutBatches:
    """What holders have alike that know their state of now alone, as if it were that of a batch 0."""

    def last_batch(self) -> int:
        return 0

    def batches(self, most: int) -> Sequence[Committed]:
        return []

    def next_watermark(self, batch: int) -> int:
        return 0

    def headers(self, operator: int, batch: int) -> Iterator[BucketHeader]:
        return iter(())

    def changes(self) -> Sequence[Mapping[str, Any]]:
        return []
