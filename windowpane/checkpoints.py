"""Checkpoints of streaming queries, offline: copy, verify, rescale, forget. Nothing is written into an old checkpoint.

Each function needs a classic Spark session, the active one if none is given, and is there as ``windowpane checkpoint ...``, too.
A place may be on an object store, ``s3://``, ``gs://`` or ``abfss://``, from which a query starts once it is copied to a disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowpane.arrays import Unsigned
from windowpane.arrays.values import Value
from windowpane.errors import SparkGoneError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def copy(old: str, new: str, *, same_query: bool = False, spark: SparkSession | None = None) -> None:
    """Copy a checkpoint, with the absolute paths in it as they are at the new place.

    Args:
        old: the checkpoint location; no query may run from it.
        new: a folder that is not there.
        same_query: ``False``: the copy is another query, which branches off here and begins with sinks anew. ``True``: it goes
            on in the place of the old one, under the same id, so that sinks take no batch twice; start one of the two alone.
        spark: the session.

    Raises:
        UncommittedBatchError: a batch has begun and is not committed, and the copy is another query.
        InvalidSpecError: there is no such checkpoint, the new folder is there, or the session is one of Spark Connect.
        RunningCheckpointError: a query of this session runs from it.

    Example:
        >>> wp.checkpoints.copy("ckpt", "backup/ckpt", same_query=True)
    """
    from windowpane.spark.queries import moving

    with SparkGoneError.instead(), moving.here(_session(spark), old, new) as (was, now):
        moving.copy(_session(spark), was, now, same_query)


def verify(checkpoint: str, *, spark: SparkSession | None = None) -> list[str]:
    """Read the state of a checkpoint as a whole, and return what is wrong with it, a line each.

    Every blob has to decode and be of a known format, every key to be in its bucket; what a bucket counts, it has to hold.

    Args:
        checkpoint: the checkpoint location.
        spark: the session.

    Raises:
        InvalidSpecError: there is no such checkpoint, or the session is one of Spark Connect.

    Example:
        >>> assert not wp.checkpoints.verify("ckpt")
    """
    from windowpane.spark.queries import moving

    with SparkGoneError.instead(), moving.here(_session(spark), checkpoint) as (place, _):
        return moving.verify(_session(spark), place, _places_of_nodes)


def rescale(old: str, new: str, buckets: int, *, spark: SparkSession | None = None) -> None:
    """Write a checkpoint that goes on where the old one is, with its keys spread over another number of buckets.

    Offsets, timers, watermark and the query's id stay, and so do all results: start one of the two alone. So many tasks work on a
    query at a time as there are buckets.

    Args:
        old: the checkpoint location; no query may run from it.
        new: a folder that is not there.
        buckets: how many, 1 to 256.
        spark: the session.

    Raises:
        UnmovableStateError: an operator is not one of windowpane's, or its state belongs to no key.
        UnreadableDescriptionError: a part of the program is code that is not found by its name.
        InvalidSpecError: there is no such checkpoint, the new folder is there, the number is none of these, or the session is one
            of Spark Connect.
        RunningCheckpointError: a query of this session runs from it.

    Example:
        >>> wp.checkpoints.rescale("ckpt", "ckpt-16", 16)
    """
    from windowpane.spark.queries import moving

    with SparkGoneError.instead(), moving.here(_session(spark), old, new) as (was, now):
        moving.rescale(_session(spark), was, now, buckets, _places_of_nodes)


def forget(old: str, new: str, *key: Value, spark: SparkSession | None = None) -> None:
    """Write a checkpoint that goes on where the old one is, without the state of a key: a person's right to be deleted.

    The results that were written before, and the source, are not touched. Rows of the key that come later begin anew.

    Args:
        old: the checkpoint location; no query may run from it.
        new: a folder that is not there.
        key: the values of the parts of the key, in their order.
        spark: the session.

    Raises:
        UnknownKeyError: no operator holds such a key.
        UnmovableStateError: the state of an operator belongs to no key: rows of all of them are together in it.
        InvalidSpecError: as of ``rescale``.

    Example:
        >>> wp.checkpoints.forget("ckpt", "ckpt-without", "JFK")
    """
    from windowpane.spark.queries import moving

    with SparkGoneError.instead(), moving.here(_session(spark), old, new) as (was, now):
        moving.forget(_session(spark), was, now, key)


def _places_of_nodes(rows: pa.Table, spread: Mapping[str, Any]) -> Unsigned:
    """Return where rows of nodes of SQL belong: all of SQL is loaded on tasks that have some, and nowhere else."""
    from windowpane.sql.on_spark.places import places_of

    return places_of(rows, spread)


def _session(spark: SparkSession | None) -> SparkSession:
    from windowpane.spark.internals.session import local_session

    return local_session() if spark is None else spark
