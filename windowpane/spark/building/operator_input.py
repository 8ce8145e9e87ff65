"""What an operator reads: the rows of a source, or those that leave the operator before; and how they come to be encoded."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.combiner import Combiner
from windowpane.engines.program import Upstream
from windowpane.errors import present
from windowpane.hidden_columns import PASSED, TIME
from windowpane.spark.session.settings import Buckets
from windowpane.spark.sources.source import Source
from windowpane.spark.stages import encode
from windowpane.spark.stages.blobs import Decoder
from windowpane.spark.stages.next_watermark import NextWatermark
from windowpane.spark.stages.project import Projection, encoded, mapped_in_arrow
from windowpane.spark.stages.wire import COUNTER_ROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class OperatorInput(Protocol):
    def encoded(self, before: DataFrame | None) -> DataFrame:
        """Return a DataFrame of ``encode.SCHEMA``; ``before`` is what left the operator before, if there is one."""

    @property
    def explanation(self) -> str:
        """The line of ``explain`` about how rows come, with its line break; empty where there is nothing to say."""


@dataclass(frozen=True)
class SourceRows:
    """The rows of a source, which take the shortest way there is: those that Python makes need not go through Spark."""

    source: Source
    dataframe: DataFrame
    projection: Projection
    encoder: encode.Encoder

    @classmethod
    def of(
        cls,
        source: Source,
        dataframe: DataFrame,
        projection: Projection,
        keys: tuple[str, ...],
        kept: Container[str],
        **options: Any,
    ) -> SourceRows:
        """Return the rows of a source; of the projected columns those that are ``kept`` reach the operator."""
        return cls(source, dataframe, projection, encoder_of(source, keys, projection.columns, kept, **options))

    def encoded(self, before: DataFrame | None = None) -> DataFrame:
        made = self.source.made
        watermark = self.source.spark_watermark
        if made is not None and self.way_through_spark() is None:
            return made.encoded(self.encoder, self._columns(), watermark)
        encoder = dataclasses.replace(self.encoder, tells_time=watermark is not None)
        return encoded(self.dataframe, encoder, watermark)

    def _columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.projection.columns if name != TIME)

    def way_through_spark(self) -> str | None:
        """Return why rows that are made in Python have to go through Spark, ``None`` if they do not."""
        watermark = self.source.watermark
        if watermark is not None and watermark.punctuation is not None:
            return f"Spark watches column {watermark.punctuation!r}"
        if self.projection.computed:
            return f"Spark computes {self.projection.computed[0]}"
        needed = self._columns()
        if self.source.event_time is not None:
            needed = tuple(dict.fromkeys((*needed, self.source.event_time)))
        return None if self.source.made is None else self.source.made.refusal(needed)

    @property
    def explanation(self) -> str:
        if self.source.made is None:
            left = self.source.left
            return "" if left is None else f"\n  rows            files read by Spark: {left.reason}"
        reason = self.way_through_spark()
        if self.source.made.sample is not None:
            text = f"files read{self.source.made.filtered} by Arrow, where they are encoded"
            return f"\n  rows            {text if reason is None else f'files read by Spark: {reason}'}"
        text = "encoded where they are made" if reason is None else f"to Spark and back: {reason}"
        return f"\n  rows            made in Python, {text}"


@dataclass(frozen=True)
class PassedRows:
    arrow: pa.Schema
    spark: T.StructType
    encoder: encode.Encoder

    def encoded(self, before: DataFrame | None) -> DataFrame:
        carried = T.StructType([*self.spark.fields, T.StructField(PASSED, T.BinaryType(), True)])
        tagged = present(before, "there is an operator before").filter(F.col("output") != COUNTER_ROW).select("output", "blob")
        rows = tagged.mapInArrow(Decoder(self.arrow, passes=True).__call__, carried)
        return mapped_in_arrow(rows, self.encoder, encode.SCHEMA)

    @property
    def explanation(self) -> str:
        return ""


@dataclass(frozen=True)
class BothSides:
    left: SourceRows  # the rows of the left side
    # the rows of the right side, whose keys have the types of the left ones, so that equal keys meet in one bucket
    right: SourceRows

    def encoded(self, before: DataFrame | None = None) -> DataFrame:
        return self.left.encoded().union(self.right.encoded())

    @property
    def explanation(self) -> str:
        return self.left.explanation + self.right.explanation


def add_clock(projection: Projection, source: Source) -> None:
    """Select what the watermark is made of beside rows, and their event time unless they carry it already."""
    own, names = source.own_watermark, source.rows.columns
    has_time = TIME in projection.columns
    for name in (source.heartbeat, None if own is None else own.source):
        if name is not None and (not has_time or name in names):
            projection.add(name, "input", "")
    if source.event_time is None or (has_time and source.event_time not in names):
        return
    if source.is_window_end:
        projection.add(source.event_time, "input", "")
    else:
        projection.add_event_time(source.event_time)


def sides_of(reads: OperatorInput) -> tuple[SourceRows, ...]:
    found = (reads.left, reads.right) if isinstance(reads, BothSides) else (reads,)
    return tuple(each for each in found if isinstance(each, SourceRows))


def detour(reads: OperatorInput) -> str | None:
    """Return why rows that may be malformed go through Spark, ``None`` where they do not."""
    for side in sides_of(reads):
        if side.source.made is not None and side.source.made.reading is not None:
            return side.way_through_spark()
    return None


def buckets_of(source: Source, is_side: bool) -> Buckets:
    is_sized = not is_side and source.made is None
    return Buckets.of(source.dataframe.sparkSession, source.is_streaming, source.dataframe if is_sized else None)


def next_watermark_for(combiner: Combiner | None, source: Source) -> NextWatermark | None:
    """Return what tells tasks which rows may be late, ``None`` where they need not know: static rows have none that is late."""
    if combiner is None or combiner.punctual is None or not source.is_streaming:
        return None
    strategy = None if source.own_watermark is not None else source.watermark
    return NextWatermark(uuid4().hex, None if strategy is None else strategy.delay)


def encoder_of(
    source: Source,
    keys: tuple[str, ...],
    columns: Iterable[str],
    kept: Container[str],
    *,
    combiner: Combiner | None = None,
    next_watermark: NextWatermark | None = None,
    side: str | None = None,
    is_first: bool = True,
) -> encode.Encoder:
    """Return what encodes rows for an operator; of the columns those that are ``kept`` reach it."""
    follows_watermark = not is_first and source.stream_watermark is not None
    return encode.Encoder(
        keys=keys,
        event_time=source.event_time,
        window_end=source.is_window_end,
        heartbeat=source.heartbeat if is_first else None,
        dropped=tuple(name for name in columns if name not in kept),
        partitions=buckets_of(source, is_side=side is not None).number,
        combiner=combiner,
        next_watermark=next_watermark,
        own_watermark=None if follows_watermark else source.stream_watermark,
        follows_watermark=follows_watermark or source.follows_watermark,
        side=side,
        calls_all=source.is_streaming and source.kind is Upstream.WINDOW,
    )
