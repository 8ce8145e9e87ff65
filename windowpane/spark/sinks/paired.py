"""Sinks of a query beside its checkpoint: each keeps the number of the last batch that it has taken, and both are compared.

A checkpoint keeps, below ``windowpane/sinks``, the first batch that it gave to each sink; Spark's own logs there say which were
committed since. The number is written before the batch, so a sink that lost everything is not taken for a new one. The rule is
in ``pairs``.

Layout of a number: two files of one line, ``<place>-0`` and ``<place>-1``. A number is written to that which its last bit names,
so what a crash leaves half written stands beside the number before, which stays. The name of the place begins with an underscore
where it lies among data: Spark's readers pass such names over.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.errors import InvalidSpecError
from windowpane.planning.sinks import DeltaTable, Files, NumberedSink
from windowpane.spark.internals.session import is_classic
from windowpane.spark.session.checkpoints import last_batches, names_in, query_id, read_line, write_line
from windowpane.spark.session.column_names import column_in
from windowpane.spark.stages.project import quoted
from windowpane.state.pairs import NONE, Pair
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, UPDATE_PREIMAGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SLOTS = (0, 1)


def kept_number(spark: SparkSession, place: str) -> int:
    """Return the greatest number kept at a place, ``NONE`` if there is none."""
    found = [read_line(spark, f"{place}-{slot}") for slot in _SLOTS]
    return max((int(each) for each in found if each is not None and each.isdecimal()), default=NONE)


def keep_number(spark: SparkSession, place: str, number: int) -> None:
    """Keep a number, one more than the one before, or the same."""
    write_line(spark, f"{place}-{number % len(_SLOTS)}", str(number))


class QueryId:
    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = checkpoint
        self._id: str | None = None

    def read(self, dataframe: DataFrame) -> str:
        if self._id is None:
            self._id = query_id(dataframe.sparkSession, self._checkpoint)
        return self._id


@dataclass
class PairedSink:
    sink: NumberedSink  # the sink
    checkpoint: str | None  # the location; ``None`` where nobody goes on from it
    first: int | None = None  # the first batch that the checkpoint gave to the sink, once it is known

    @cached_property
    def pair(self) -> Pair:
        giver = "the query" if self.checkpoint is None else f"checkpoint {self.checkpoint!r}"
        return Pair(giver, self.sink.taker, self.sink.way_out)

    def compare(self, rows: DataFrame) -> None:
        """Compare both before the query starts, with a DataFrame of its session.

        On Spark Connect stores may be out of reach here, and the first batch does.
        """
        spark = rows.sparkSession
        if self.checkpoint is None or not (is_classic(spark) or isinstance(self.sink, FolderWriter)):
            return
        first = kept_number(spark, self._note)
        if first != NONE:
            committed, begun = last_batches(spark, self.checkpoint)
            self.pair.has_begun(self.sink.taken(rows), committed if committed >= first else NONE, begun)

    def __call__(self, dataframe: DataFrame, number: int) -> None:
        self.sink.take(dataframe, number, self.pair, self.settled(dataframe, number))

    def settled(self, dataframe: DataFrame, number: int) -> int:
        """Return the batch before one that the sink must have, ``NONE`` for the first that it is given."""
        if self.first is None:
            self.first = self._first(dataframe, number)
        return number - 1 if number > self.first else NONE

    def _first(self, dataframe: DataFrame, number: int) -> int:
        """Return the first batch that the checkpoint gave to the sink; this one, where it knows no other and the sink is new."""
        spark = dataframe.sparkSession
        noted = NONE if self.checkpoint is None else kept_number(spark, self._note)
        if noted != NONE:
            return noted
        taken = self.sink.taken(dataframe)
        self.pair.has_begun(taken, NONE if taken == NONE else number - 1, number)
        first = number if taken == NONE else 0
        if self.checkpoint is not None:
            keep_number(spark, self._note, first)
        return first

    @property
    def _note(self) -> str:
        name = hashlib.sha256(self.sink.taker.encode()).hexdigest()[:16]
        return f"{self.checkpoint}/windowpane/sinks/{name}"


@dataclass(frozen=True)
class FolderWriter(ABC):
    sink: Files | DeltaTable
    query: QueryId

    @property
    def taker(self) -> str:
        return f"folder {self.sink.path!r}"

    @property
    def way_out(self) -> str:
        return (
            "Put copies back that belong together, or start with a new checkpoint and a new folder. Where all of its files were "
            "taken away on purpose, write to another folder."
        )

    def taken(self, dataframe: DataFrame) -> int:
        return kept_number(dataframe.sparkSession, self._number(dataframe))

    def take(self, dataframe: DataFrame, number: int, pair: Pair, settled: int) -> None:
        pair.has_begun(self.taken(dataframe), settled, number)
        self.write(dataframe, number)
        self.keep(dataframe, number)

    def skip(self, dataframe: DataFrame, number: int, pair: Pair, settled: int) -> None:
        pair.has_begun(self.taken(dataframe), settled, number)
        self.keep(dataframe, number)

    def keep(self, dataframe: DataFrame, number: int) -> None:
        keep_number(dataframe.sparkSession, self._number(dataframe), number)

    @abstractmethod
    def write(self, dataframe: DataFrame, number: int) -> None:
        """Write one batch, over whatever an interrupted attempt left."""

    @abstractmethod
    def takes_empty(self, dataframe: DataFrame, number: int) -> bool:
        """Whether a batch without rows is written all the same, as the first one of a run."""

    @abstractmethod
    def _number(self, dataframe: DataFrame) -> str:
        """Return the place of the number."""


@dataclass(frozen=True)
class FilesWriter(FolderWriter):
    sink: Files
    folders: tuple[str, str]

    def write(self, dataframe: DataFrame, number: int) -> None:
        options = self.sink.options
        dataframe.write.mode("overwrite").format(self.sink.format).options(**options).save(self._batch(dataframe, number))

    def takes_empty(self, dataframe: DataFrame, number: int) -> bool:
        """Whether a run that did not commit the batch has written rows of it."""
        return bool(names_in(dataframe.sparkSession, self._batch(dataframe, number)))

    def _batch(self, dataframe: DataFrame, number: int) -> str:
        return f"{self.sink.path}/{self._batch_folder(dataframe, number)}"

    def _batch_folder(self, dataframe: DataFrame, number: int) -> str:
        return f"{self._query_folder(dataframe)}/{self.folders[1]}={number}"

    def _number(self, dataframe: DataFrame) -> str:
        return f"{self.sink.path}/{self._query_folder(dataframe)}/_windowpane"

    def _query_folder(self, dataframe: DataFrame) -> str:
        return f"{self.folders[0]}={self.query.read(dataframe)}"


@dataclass(frozen=True)
class DeltaWriter(FolderWriter):
    """Appends each batch to a Delta table under the query's id and the batch's number, which Delta takes once."""

    def write(self, dataframe: DataFrame, number: int) -> None:
        once = {"txnAppId": self.query.read(dataframe), "txnVersion": str(number)}
        dataframe.write.mode("append").format("delta").options(**self.sink.options, **once).save(self.sink.path)

    def takes_empty(self, dataframe: DataFrame, number: int) -> bool:
        return self.taken(dataframe) == NONE

    def _number(self, dataframe: DataFrame) -> str:
        return f"{self.sink.path}/_windowpane/{self.query.read(dataframe)}"


# Reading back what ``Files`` wrote.

_BATCH = re.compile(r"batch(_\d+)?")  # The last column of what ``Files`` wrote
_LATEST = "latest"


def read_latest(spark: SparkSession, path: str, key: Sequence[str]) -> DataFrame:
    """Return the last result of each key and window as a static DataFrame.

    Order: that of batches, then of the files of a batch and of the rows in a file. All results of a key and window are emitted
    by one bucket, so those of one batch are in one task's files, in the order in which they fired.
    """
    found = spark.read.parquet(path)
    batch = found.columns[-1]
    if not _BATCH.fullmatch(batch):
        raise InvalidSpecError(f"{path!r} has no folders of batches: wp.Files writes them, in start(main=...).")
    query = f"query{batch.removeprefix('batch')}"
    queries = [row[0] for row in found.select(query).distinct().limit(2).collect()] if query in found.columns else []
    if len(queries) > 1:
        raise InvalidSpecError(
            f"two queries wrote to {path!r}, {' and '.join(sorted(queries))}, and which of their batches came later is not "
            "known: read one of them, path + '/query=...', or give each checkpoint a folder of its own."
        )
    rows = found.drop(query, batch)
    names, spelled = rows.columns, [column_in(rows, name, "key of read_latest") for name in key]
    windows = [name for name in (WINDOW_START, WINDOW_END) if name in names]
    if not (key or windows):
        raise InvalidSpecError(f"{path!r} has no windows: name the columns that a result replaces another by, with key=.")
    if CHANGE_TYPE in names:
        found = found.filter(F.col(CHANGE_TYPE) != UPDATE_PREIMAGE)
    place = F.struct(F.col(batch).cast("long"), "_metadata.file_name", "_metadata.row_index")
    row = F.struct(*[F.col(quoted(name)) for name in names])
    grouped = found.groupBy(*[F.col(quoted(name)).alias(f"by_{n}") for n, name in enumerate((*spelled, *windows))])
    latest = grouped.agg(F.max_by(row, place).alias(_LATEST)).select(f"{_LATEST}.*")
    return latest.filter(F.col(CHANGE_TYPE) != DELETE).drop(CHANGE_TYPE) if CHANGE_TYPE in names else latest
