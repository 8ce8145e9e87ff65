"""Encoded: the rows of a source -> the blobs that an operator reads, by the shortest way there is."""

from __future__ import annotations

import dataclasses
from typing import Any

from pyspark.sql import types as T

from windowpane.engines.program import TIME
from windowpane.spark.sources.source import Source
from windowpane.spark.stages import encode
from windowpane.spark.stages.key_hashes import KEY_HASH
from windowpane.spark.stages.project import Projection, is_hashed_by_spark
from windowpane.spark.stages.spark_hash import is_hashed_alike
from windowpane.spark.stages.types import arrow_schema


def encode_source(source: Source, rows: Any, projection: Projection, keys: T.StructType, encoder: encode.Encoder) -> Any:
    """Return the rows of a source as ``encode.SCHEMA``.

    Args:
        source: the source.
        rows: its rows as a DataFrame of what the projection selects.
        projection: the columns that the operator needs.
        keys: the key columns.
        encoder: encodes them.
    """
    if source.made is None or way_through_spark(source, projection, keys) is not None:
        return rows.mapInArrow(encoder, encode.SCHEMA)
    columns = _columns(projection)
    encoder = dataclasses.replace(encoder, hashes_keys=is_hashed_by_spark(keys))
    return source.made.encoded(encoder, columns, source.spark_watermark)


def _columns(projection: Projection) -> tuple[str, ...]:
    """Return the columns of the source that the operator needs, without an event time that only its clock reads."""
    return tuple(name for name in projection.columns if name not in (TIME, KEY_HASH))


def way_through_spark(source: Source, projection: Projection, keys: T.StructType) -> str | None:
    """Return why rows that are made in Python have to go through Spark, ``None`` if they do not."""
    if projection.computed:
        return f"Spark computes {projection.computed[0]}"
    if is_hashed_by_spark(keys):
        for field in arrow_schema(keys, "keys"):
            if not is_hashed_alike(field.type):
                return f"Spark hashes key {field.name!r} of type {field.type}"
    needed = _columns(projection)
    if source.event_time is not None:
        needed = tuple(dict.fromkeys((*needed, source.event_time)))
    return None if source.made is None else source.made.refusal(needed)


def rows_line(source: Source, projection: Projection, keys: T.StructType) -> str:
    """Return the line of ``explain`` about how rows come, with its line break; nothing for a plain DataFrame."""
    if source.made is None:
        return ""
    reason = way_through_spark(source, projection, keys)
    if source.made.sample is not None:
        said = "files read by Arrow, where they are encoded" if reason is None else f"files read by Spark: {reason}"
        return f"\n  rows            {said}"
    said = "encoded where they are made" if reason is None else f"to Spark and back: {reason}"
    return f"\n  rows            made in Python, {said}"
