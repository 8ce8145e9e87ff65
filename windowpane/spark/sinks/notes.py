"""Numbers on a file system that Spark writes: how far a sink is, where a checkpoint began with it, Spark's own of batches.

Layout of a number that is kept: two files of one line, ``<place>-0`` and ``<place>-1``. A number is written to the one that its
last bit names, so what a crash leaves half written stands beside the number before, which stays. The name of the place begins
with an underscore where it lies among data: Spark's readers pass such names over.

A classic session writes with Hadoop's client, in a few milliseconds; on Spark Connect, which has none, Spark itself does: a
folder with one file.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException

from windowpane.spark.internals.session import is_classic
from windowpane.spark.session.checkpoints import only
from windowpane.state.pairs import NONE

_SLOTS = (0, 1)


def kept_number(spark: Any, place: str) -> int:
    """Return the greatest number kept at a place, ``NONE`` if there is none."""
    line = _line if is_classic(spark) else _line_by_spark
    found = [line(spark, f"{place}-{slot}") for slot in _SLOTS]
    return max((int(each) for each in found if each.isdecimal()), default=NONE)


def keep_number(spark: Any, place: str, number: int) -> None:
    """Keep a number, one more than the one before, or the same."""
    slot = f"{place}-{number % len(_SLOTS)}"
    if not is_classic(spark):
        spark.createDataFrame([(str(number),)], "value string").coalesce(1).write.mode("overwrite").text(slot)
        return
    files, path = _files(spark, slot)
    files.delete(path, True)
    stream = files.create(path)
    stream.write(bytearray(str(number).encode()))
    stream.close()


def last_batches(spark: Any, checkpoint: str) -> tuple[int, int]:
    """Return the numbers of the last batch that Spark has committed, and of the last one that it has begun.

    They differ while a batch runs, and where a crash or a failure has ended it.
    """
    committed, begun = (
        max((int(name) for name in _files_in(spark, f"{checkpoint}/{log}") if name.isdecimal()), default=NONE)
        for log in ("commits", "offsets")
    )
    return committed, begun


def _files_in(spark: Any, folder: str) -> list[str]:
    if is_classic(spark):
        return _names(*_files(spark, folder))
    try:
        found = spark.read.format("binaryFile").load([only(folder)] * 2).select("path").distinct().collect()
    except AnalysisException:
        return []
    return [str(row[0]).rpartition("/")[2] for row in found]


def _names(files: Any, folder: Any) -> list[str]:
    return [str(each.getPath().getName()) for each in files.listStatus(folder)] if files.exists(folder) else []


def _files(spark: Any, folder: str) -> tuple[Any, Any]:
    path = spark._jvm.org.apache.hadoop.fs.Path(folder)
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), path


def _line(spark: Any, slot: str) -> str:
    files, path = _files(spark, slot)
    # Of a file its own name is listed; of a folder, which Spark Connect has written, that of the file in it.
    held = [name for name in _names(files, path) if name == path.getName() or not name.startswith(("_", "."))]
    if not held:
        return ""
    stream = files.open(path if held[0] == path.getName() else spark._jvm.org.apache.hadoop.fs.Path(path, held[0]))
    try:
        return str(spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")).strip()
    finally:
        stream.close()


def _line_by_spark(spark: Any, slot: str) -> str:
    try:
        row = spark.read.text([only(slot)] * 2).first()  # of one path that is not there Spark logs a stack trace
    except AnalysisException:  # it is not there
        return ""
    return "" if row is None else str(row[0])
