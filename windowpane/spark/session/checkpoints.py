"""Checkpoints: the query that owns one, how far it has come, and files of one line, in a checkpoint or beside data.

A classic session writes such a file with Hadoop's client, in a few milliseconds; on Spark Connect, which has none, Spark itself
does: a folder with one file. What a crash leaves half written is empty, and counts as absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from windowpane.errors import ChangedPlanError, NotAFolderError, RunningCheckpointError, UnreachableCheckpointError
from windowpane.spark.internals.session import is_classic, jvm_of
from windowpane.spark.session.reasons import SPARK_ERRORS, reason
from windowpane.state.pairs import NONE

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

_STOPS_THE_FIRST = "spark.sql.streaming.stopActiveRunOnRestart"  # Spark's setting, which is true by default
_EARLIER = "earlier_outputs"


def only(path: str) -> str:
    """Return a path as the pattern that it alone matches: Spark takes what it reads for a pattern."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def read_line(spark: SparkSession, place: str) -> str | None:
    """Return the line of a file, ``None`` if it is not there, or empty."""
    if not is_classic(spark):
        try:
            row = spark.read.text([only(place)] * 2).first()  # of one path that is not there Spark logs a stack trace
        except PySparkException:
            return None
        return None if row is None else str(row[0])
    return read_text(spark, place).strip() or None


def read_text(spark: SparkSession, place: str) -> str:
    """Return what a file says, nothing if it is not there; on classic sessions."""
    files, path = files_of(spark, place)
    # Of a file its own name is listed; of a folder, which Spark Connect has written, that of the file in it.
    names = [name for name in _names(files, path) if name == path.getName() or not name.startswith(("_", "."))]
    if not names:
        return ""
    stream = files.open(path if names[0] == path.getName() else jvm_of(spark).org.apache.hadoop.fs.Path(path, names[0]))
    try:
        return str(jvm_of(spark).org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def write_line(spark: SparkSession, place: str, line: str) -> None:
    if not is_classic(spark):
        spark.createDataFrame([(line,)], "value string").coalesce(1).write.mode("overwrite").text(place)
        return
    files, path = files_of(spark, place)
    files.delete(path, True)
    stream = files.create(path)
    stream.write(bytearray(line.encode()))
    stream.close()


def names_in(spark: SparkSession, folder: str) -> list[str]:
    if is_classic(spark):
        return _names(*files_of(spark, folder))
    try:
        found = spark.read.format("binaryFile").load([only(folder)] * 2).select("path").distinct().collect()
    except PySparkException:
        return []
    return [str(row[0]).rpartition("/")[2] for row in found]


def _names(files: JavaObject, folder: JavaObject) -> list[str]:
    return [str(each.getPath().getName()) for each in files.listStatus(folder)] if files.exists(folder) else []


def files_of(spark: SparkSession, folder: str) -> tuple[JavaObject, JavaObject]:
    path = jvm_of(spark).org.apache.hadoop.fs.Path(folder)
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), path


def check_reached(spark: SparkSession, checkpoint: str) -> None:
    """Refuse a checkpoint that is a file, or on a file system that Spark does not have or reach; of classic sessions.

    Raises:
        NotAFolderError: there is a file.
        UnreachableCheckpointError: saying what Spark needs.
    """
    try:
        check_folder(spark, checkpoint, "checkpoint")
    except SPARK_ERRORS as error:
        raise UnreachableCheckpointError(checkpoint, reason(error)) from None


def check_folder(spark: SparkSession, folder: str, role: str) -> None:
    """Refuse a folder that is a file, or below one; of classic sessions.

    Raises:
        NotAFolderError: with the file.
    """
    if not is_classic(spark):
        return
    files, path = files_of(spark, folder)
    while path is not None and not files.exists(path):
        path = path.getParent()
    if path is not None and files.getFileStatus(path).isFile():
        raise NotAFolderError(role, folder, str(path.toUri().getPath()))


def holds_batches(spark: SparkSession, path: str) -> bool:
    """Whether ``Files`` wrote to a folder, or to one that a pattern matches."""
    batches = f"{path}/query*=*/batch*=*"
    try:
        return bool(spark.read.text([batches, batches]).schema)  # of one path that does not exist Spark logs a stack trace
    except PySparkException:
        return False


def query_id(spark: SparkSession, checkpoint: str) -> str:
    """Return the id of the query that owns a checkpoint; it stays the same over restarts."""
    return str(json.loads(spark.read.text(f"{only(checkpoint)}/metadata").collect()[0][0])["id"])


def last_batches(spark: SparkSession, checkpoint: str) -> tuple[int, int]:
    """Return the numbers of the last batch that Spark has committed, and of the last one that it has begun.

    They differ while a batch runs, and where a crash or a failure has ended it.
    """
    committed, begun = (
        max((int(name) for name in names_in(spark, f"{checkpoint}/{log}") if name.isdecimal()), default=NONE)
        for log in ("commits", "offsets")
    )
    return committed, begun


def has_begun(spark: SparkSession, checkpoint: str) -> bool:
    return last_batches(spark, checkpoint)[0] != NONE


def mark_of(spark: SparkSession, checkpoint: str, name: str) -> str | None:
    """Return what a file of ours beside Spark's own in a checkpoint says, ``None`` if there is none."""
    return read_line(spark, f"{checkpoint}/windowpane/{name}")


def set_mark(spark: SparkSession, checkpoint: str, name: str, text: str) -> None:
    write_line(spark, f"{checkpoint}/windowpane/{name}", text)


def compare_earlier_outputs(spark: SparkSession, checkpoint: str, names: Sequence[str]) -> None:
    """Compare the outputs of earlier operators that are computed beside the others with those of the query's first start."""
    now = ", ".join(names) or "none"
    was = mark_of(spark, checkpoint, _EARLIER)
    if was not in (None, now) and has_begun(spark, checkpoint):
        raise ChangedPlanError({"sinks of earlier operators": (was, now)})
    if was != now:
        set_mark(spark, checkpoint, _EARLIER, now)


def refuse_a_second_query(spark: SparkSession, checkpoint: str) -> None:
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
