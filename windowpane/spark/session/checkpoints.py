"""The query that owns a checkpoint: its id, and that it does not run already."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pyspark.errors import PySparkException

from windowpane.errors import ChangedPlanError, RunningCheckpointError

_STOPS_THE_FIRST = "spark.sql.streaming.stopActiveRunOnRestart"
"""Spark's setting, which is true by default."""


_EARLIER = "earlier_outputs"


def only(path: str) -> str:
    """Return a path as the pattern that it alone matches: Spark takes what it reads for a pattern."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def exists(spark: Any, folder: str) -> bool:
    path = only(folder)
    try:
        return bool(spark.read.text([path, path]).schema)  # of one path that does not exist Spark logs a stack trace
    except PySparkException:
        return False


def holds_batches(spark: Any, path: str) -> bool:
    """Whether ``Files`` wrote to a folder, or to one that a pattern matches."""
    batches = f"{path}/query*=*/batch*=*"
    try:
        return bool(spark.read.text([batches, batches]).schema)  # of one path that does not exist Spark logs a stack trace
    except PySparkException:
        return False


def query_id(spark: Any, checkpoint: str) -> str:
    """Return the id of the query that owns a checkpoint; it stays the same over restarts."""
    return str(json.loads(spark.read.text(f"{only(checkpoint)}/metadata").first()[0])["id"])


def has_begun(spark: Any, checkpoint: str) -> bool:
    commits = f"{only(checkpoint)}/commits/[0-9]*"
    try:
        return spark.read.text(commits).first() is not None
    except PySparkException:
        return False


def mark_of(spark: Any, checkpoint: str, name: str) -> str | None:
    """Return what a file of ours beside Spark's own in a checkpoint says, ``None`` if there is none."""
    folder = f"{only(checkpoint)}/windowpane/{name}"
    try:
        row = spark.read.text([folder, folder]).first()  # of one path that is not there Spark logs a stack trace
    except PySparkException:
        return None
    return None if row is None else str(row[0])


def set_mark(spark: Any, checkpoint: str, name: str, text: str) -> None:
    spark.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(f"{checkpoint}/windowpane/{name}")


def compare_earlier_outputs(spark: Any, checkpoint: str, names: Sequence[str]) -> None:
    """Compare the outputs of earlier operators that are computed beside the others with those of the query's first start."""
    now = ", ".join(names) or "none"
    was = mark_of(spark, checkpoint, _EARLIER)
    if was not in (None, now) and has_begun(spark, checkpoint):
        raise ChangedPlanError({"sinks of earlier operators": (was, now)})
    if was != now:
        set_mark(spark, checkpoint, _EARLIER, now)


def refuse_a_second_query(spark: Any, checkpoint: str) -> None:
    """Refuse a checkpoint whose query runs in this session: Spark would stop that query in the middle of a batch.

    Where the user has set ``stopActiveRunOnRestart`` to true, it is what they want.
    """
    running = {str(query.id): query for query in spark.streams.active}
    if not running or spark.conf.get(_STOPS_THE_FIRST, None) == "true":
        return
    try:
        found = running.get(query_id(spark, checkpoint))
    except PySparkException:
        return  # there is no such checkpoint yet
    if found is not None:
        raise RunningCheckpointError(checkpoint, found.name, str(found.id))
