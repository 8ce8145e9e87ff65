"""Checkpoints that are copied, verified, or whose keys go to other buckets: offline, and into a new folder.

A new checkpoint goes on from the last batch that the old one has committed. It has the same offsets, commits, logs of sources and
notes of ours under the same numbers. What Spark writes down of paths and of the number of state partitions is written anew. State
of other buckets is written by Spark itself: a query without rows begins with it (``initialState``) in a checkpoint beside the
new one, and its partitions are taken, as the version that the last batch left.

Who may mutate: this module the new folder, nobody the old one. Recovery: a new folder that is not whole has no ``commits``, which
are written last; it is refused as one that is there already.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions as F

from windowpane.arrays.values import JsonValue, Value
from windowpane.connectors.object_stores import Location, is_remote, shown
from windowpane.errors import (
    InvalidSpecError,
    MissingCheckpointError,
    UncommittedBatchError,
    UnknownKeyError,
    UnmovableStateError,
    UnreadableDescriptionError,
)
from windowpane.planning.rescaling.buckets import holds, problems, rescaled
from windowpane.planning.rescaling.keys import Key
from windowpane.planning.rescaling.nodes import Places
from windowpane.spark.building.program import run_on_buckets
from windowpane.spark.internals.blob_state import SparkBlobStore
from windowpane.spark.internals.session import PARTITIONS, is_classic, jvm_of
from windowpane.spark.queries.starting import started
from windowpane.spark.session.checkpoints import (
    files_of,
    last_batches,
    names_in,
    only,
    read_text,
    refuse_a_second_query,
    write_line,
)
from windowpane.spark.session.settings import CHANGELOG, choose_settings
from windowpane.spark.stages.bounded import STATE, store_of
from windowpane.spark.stages.buckets import PINNED, bucket_ids
from windowpane.spark.stages.messages import PROBE
from windowpane.spark.stages.process import BucketProcessor
from windowpane.spark.stages.wire import Wire
from windowpane.state.memory import MemoryBlobStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST = 256
_OPERATOR = "transformWithState"
Move = Callable[[Sequence[MemoryBlobStore], int], list[MemoryBlobStore]]
"""Spreads the state of an operator over so many buckets."""
_PIECES = "target int, bucket int, name string, blob binary"


@contextmanager
def here(spark: SparkSession, old: str, new: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield the places of an old and a new checkpoint on this machine, for those that are on an object store.

    What is written to the new one is sent behind it, ``commits`` last.
    """
    with TemporaryDirectory(prefix="windowpane-checkpoint-") as folder:
        was, now = f"{folder}/old", f"{folder}/new"
        if is_remote(old):
            if Location(old).line("metadata") is None:
                raise MissingCheckpointError(shown(old))
            Location(old).give(was)
            _Checkpoint.of(spark, was).write_paths(was, None)
        to = None if new is None or not is_remote(new) else Location(new)
        if to is not None:
            to.check()
            if to.paths(may_be_empty=True):
                raise InvalidSpecError(f"{str(to)!r} is there already: name a new folder, and nothing is written over.")
        yield was if is_remote(old) else old, (new or "") if to is None else now
        if to is not None:
            for name in sorted(os.listdir(now), key=lambda each: each == "commits"):
                to.take(f"{now}/{name}", name)


def copy(spark: SparkSession, old: str, new: str, is_same_query: bool) -> None:
    """Copy a checkpoint; a copy that is not the same query gets an id of its own, and knows no sink."""
    found = _Checkpoint.of(spark, old)
    if not is_same_query and found.begun != found.committed:
        raise UncommittedBatchError(old, found.begun)
    found.check_new(new)
    for name in names_in(spark, old):
        if name != "commits":
            found.copy(name, new)
    found.write_paths(new, None)
    if not is_same_query:
        write_line(spark, f"{new}/metadata", json.dumps({"id": str(uuid4())}))
        found.remove(f"{new}/windowpane/sinks")
    found.copy("commits", new)


def rescale(spark: SparkSession, old: str, new: str, buckets: int, places_of: Places) -> None:
    """Write a checkpoint whose keys are spread over another number of buckets; rows of nodes of SQL go by ``places_of``."""
    _write_moved(spark, old, new, buckets, partial(rescaled, places_of=places_of))


def _write_moved(spark: SparkSession, old: str, new: str, buckets: int, move: Move) -> None:
    if not 1 <= buckets <= _MOST:
        raise InvalidSpecError(f"buckets={buckets}: say a number from 1 to {_MOST}.")
    found = _Checkpoint.of(spark, old)
    found.check_new(new)
    found.check_operators()
    found.check_state(buckets, move)
    for name in names_in(spark, old):
        if name not in ("commits", "offsets", "state"):
            found.copy(name, new)
    for number in range(max(found.committed - 1, 0), found.begun + 1):  # a start compares with the batch before, too
        head, *lines = read_text(spark, f"{old}/offsets/{number}").split("\n")
        spark_part = json.loads(lines[0])
        spark_part["conf"] |= {name: str(buckets) for name in (PARTITIONS, PINNED) if name in spark_part["conf"]}
        write_line(spark, f"{new}/offsets/{number}", "\n".join([head, json.dumps(spark_part), *lines[1:]]))
    for operator in found.operators:
        for name in ("_metadata", "_stateSchema"):
            found.copy(f"state/{operator}/{name}", new)
        found.write_state(operator, new, buckets, move)
    found.write_paths(new, buckets)
    found.copy(f"commits/{found.committed}", new)


def forget(spark: SparkSession, old: str, new: str, key: Key) -> None:
    """Write a checkpoint without the state of a key."""
    found = _Checkpoint.of(spark, old)
    found.check_operators()
    held = [found.blobs(each).groupBy("bucket").applyInArrow(_holds(key), "is_held boolean") for each in found.operators]
    if not any(rows.filter("is_held").take(1) for rows in held):
        raise UnknownKeyError(key)
    _write_moved(spark, old, new, found.partitions(found.operators[0]), partial(rescaled, forgets=key))


def verify(spark: SparkSession, checkpoint: str, places_of: Places) -> list[str]:
    """Return what is wrong with the state of a checkpoint, as text; nothing where all is well."""
    found = _Checkpoint.of(spark, checkpoint)
    said = []
    for operator in found.operators:
        count = found.partitions(operator)
        schema = "said string"
        rows = found.blobs(operator).groupBy("bucket").applyInArrow(_problems_in(count, places_of), schema)
        said += [f"operator {operator}: {row[0]}" for row in rows.collect()]
    return said


@dataclass
class _Checkpoint:
    spark: SparkSession
    path: str
    committed: int  # the last batch that was
    begun: int

    @classmethod
    def of(cls, spark: SparkSession, path: str) -> _Checkpoint:
        if not is_classic(spark):
            raise InvalidSpecError("checkpoints are copied and rescaled with a classic Spark session: Connect reaches no files.")
        refuse_a_second_query(spark, path)
        committed, begun = last_batches(spark, path)
        if committed < 0:
            raise InvalidSpecError(f"{path!r} is no checkpoint that has committed a batch.")
        choose_settings(spark)
        return cls(spark, path, committed, max(begun, committed))

    @cached_property
    def operators(self) -> list[int]:
        return sorted(int(name) for name in names_in(self.spark, f"{self.path}/state") if name.isdecimal())

    def metadata(self, operator: int) -> dict[str, JsonValue]:
        """Return what Spark has written down of an operator last."""
        folder = f"{self.path}/state/{operator}/_metadata/v2"
        newest = max(int(name) for name in names_in(self.spark, folder) if name.isdecimal())
        found: dict[str, JsonValue] = json.loads(read_text(self.spark, f"{folder}/{newest}").split("\n")[1])
        return found

    def partitions(self, operator: int) -> int:
        return int(self.metadata(operator)["stateStoreInfo"][0]["numPartitions"])

    def check_operators(self) -> None:
        for operator in self.operators:
            if not names_in(self.spark, f"{self.path}/state/{operator}/_metadata/v2"):
                raise UnmovableStateError(f"operator {operator} is one of Spark's own, such as dropDuplicates or a join")
            name = self.metadata(operator)["operatorInfo"]["operatorName"]
            if not name.startswith(_OPERATOR):
                raise UnmovableStateError(f"operator {operator} is not one of windowpane's, but {name}")

    def check_state(self, buckets: int, move: Move) -> None:
        """Refuse state that cannot be moved before anything is written."""
        for operator in self.operators:
            said = self.blobs(operator).groupBy("bucket").applyInArrow(_refused(buckets, move), "reason string")
            for row in said.take(1):
                raise UnmovableStateError(row[0])

    def check_new(self, new: str) -> None:
        if names_in(self.spark, new):
            raise InvalidSpecError(f"{new!r} is there already: name a new folder, and nothing is written over.")

    # State.

    def blobs(self, operator: int) -> DataFrame:
        """Return the blobs of all buckets as the last committed batch left them: bucket, name, blob."""
        uri = files_of(self.spark, self.path)[1].toUri()
        if uri.getRawPath() != uri.getPath():
            raise InvalidSpecError(
                f"{self.path!r}: Spark's reader of state finds no folder whose path a URI escapes, such as one with a space. "
                "Copy the checkpoint to another name first, with wp.checkpoints.copy(..., same_query=True)."
            )
        state = self.spark.read.format("statestore").option("stateVarName", SparkBlobStore.DECLARED[0])
        rows = state.option("operatorId", operator).option("batchId", self.committed).load(self.path)
        return rows.selectExpr("key.bucket", "user_map_key.name", "user_map_value.blob")

    def write_state(self, operator: int, new: str, buckets: int, move: Move) -> None:
        spark, beside = self.spark, f"{new}/windowpane/moving/{operator}"
        spread = self.blobs(operator).groupBy("bucket").applyInArrow(_spread(buckets, move), _PIECES)
        together = spread.groupBy("target").applyInArrow(_together(buckets, move), STATE)
        conf = json.loads(read_text(spark, f"{self.path}/offsets/{self.committed}").split("\n")[1])["conf"]
        stores = {name: value for name, value in conf.items() if ".stateStore." in name}
        with _settings(spark, {**stores, PARTITIONS: str(buckets), CHANGELOG: "false"}):
            write_line(spark, f"{beside}/in/row", "1")
            text = spark.readStream.text(f"{only(beside)}/in")
            rows = text.select(F.lit(0).alias("bucket"), F.lit(PROBE).alias("blob"), F.timestamp_seconds(F.lit(0)).alias("at"))
            written = json.loads(self.metadata(operator)["operatorPropertiesJson"])["timeMode"]
            mode = {"NoTime": "None"}.get(written, written)  # Spark's metadata has another word than its API
            processor = BucketProcessor(_no_engine, Wire(), mode)
            begun = run_on_buckets(rows.withWatermark("at", "0 seconds"), processor, together)
            writer = begun.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
            query = started(writer.option("checkpointLocation", f"{beside}/checkpoint").start, spark)
            query.awaitTermination()
        version = self.committed + 1
        for number in range(buckets):
            place = f"{beside}/checkpoint/state/0/{number}"
            self._move(place, f"{new}/state/{operator}/{number}")
            self._move(f"{new}/state/{operator}/{number}/1.zip", f"{new}/state/{operator}/{number}/{version}.zip")
        self.remove(f"{new}/windowpane/moving")

    # Files.

    def copy(self, name: str, new: str) -> None:
        """Copy a file or folder by its name in the checkpoint."""
        files, source = files_of(self.spark, f"{self.path}/{name}")
        others, target = files_of(self.spark, f"{new}/{name}")
        others.mkdirs(target.getParent())
        conf = self.spark._jsparkSession.sessionState().newHadoopConf()
        jvm_of(self.spark).org.apache.hadoop.fs.FileUtil.copy(files, source, others, target, False, conf)

    def _move(self, place: str, target: str) -> None:
        files, source = files_of(self.spark, place)
        files.mkdirs(files_of(self.spark, target)[1].getParent())
        if not files.rename(source, files_of(self.spark, target)[1]):
            raise UnmovableStateError(f"{place} is not there: Spark's state store is laid out as this windowpane does not know")

    def remove(self, place: str) -> None:
        files, path = files_of(self.spark, place)
        files.delete(path, True)

    def write_paths(self, new: str, buckets: int | None) -> None:
        """Write where schemas of state lie now, and over how many partitions it is spread, ``None`` for as before."""
        files, path = files_of(self.spark, new)
        root = str(files.makeQualified(path).toString())
        for operator in self.operators:
            folder = f"{new}/state/{operator}/_metadata/v2"
            for name in names_in(self.spark, folder):
                if name.isdecimal():
                    head, text = read_text(self.spark, f"{folder}/{name}").split("\n")[:2]
                    known = json.loads(text)
                    for store in known["stateStoreInfo"]:
                        schemas = store.get("stateSchemaFilePaths", ())
                        store["stateSchemaFilePaths"] = [f"{root}/state/{place.rpartition('/state/')[2]}" for place in schemas]
                        store["numPartitions"] = buckets or store["numPartitions"]
                    write_line(self.spark, f"{folder}/{name}", f"{head}\n{json.dumps(known)}")


def _no_engine() -> Value:
    """Return the engine of a query that only writes the state it begins with."""
    return None


@contextmanager
def _settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


# On tasks.


def _table(columns: Sequence[tuple[str, pa.DataType]], rows: Sequence[tuple[Value, ...]]) -> pa.Table:
    # A bucket may have no row left: what it knew of its run alone is not moved.
    values = [pa.array([row[place] for row in rows], kind) for place, (_, kind) in enumerate(columns)]
    return pa.table(values, pa.schema(columns))


def _spread(buckets: int, move: Move) -> Callable[[pa.Table], pa.Table]:
    """Return the function for ``applyInArrow`` that parts the state of a bucket by the buckets that its keys go to."""

    def spread(blobs: pa.Table) -> pa.Table:
        number = blobs["bucket"][0].as_py()
        stores = move([store_of(blobs)], buckets)
        rows = [(target, number, name, store.get(name)) for target, store in enumerate(stores) for name in store]
        columns = [("target", pa.int32()), ("bucket", pa.int32()), ("name", pa.string()), ("blob", pa.binary())]
        return _table(columns, rows)

    return spread


def _together(buckets: int, move: Move) -> Callable[[pa.Table], pa.Table]:
    """Return the function for ``applyInArrow`` that makes the state of a bucket of its pieces, by the buckets they come from."""

    def together(pieces: pa.Table) -> pa.Table:
        sources = pieces["bucket"].to_numpy()
        stores = [store_of(pieces.filter(pa.array(sources == source))) for source in sorted(set(sources.tolist()))]
        (store,) = move(stores, 1)
        number = bucket_ids(buckets)[pieces["target"][0].as_py()]
        rows = [(number, name, store.get(name)) for name in store]
        return _table([("bucket", pa.int32()), ("name", pa.string()), ("blob", pa.binary())], rows)

    return together


def _refused(buckets: int, move: Move) -> Callable[[pa.Table], pa.Table]:
    """Return the function for ``applyInArrow`` that says why the state of a bucket cannot be moved; no row where it can."""

    def refused(blobs: pa.Table) -> pa.Table:
        try:
            move([store_of(blobs)], buckets)
        except UnmovableStateError as error:
            return pa.table({"reason": [error.reason]})
        except UnreadableDescriptionError as error:
            return pa.table({"reason": [str(error).removesuffix(".")]})
        return pa.table({"reason": pa.array([], pa.string())})

    return refused


def _holds(key: Key) -> Callable[[pa.Table], pa.Table]:
    def look(blobs: pa.Table) -> pa.Table:
        try:
            return pa.table({"is_held": [holds(store_of(blobs), key)]})
        except (UnmovableStateError, UnreadableDescriptionError):  # ``check_state`` says why
            return pa.table({"is_held": [True]})

    return look


def _problems_in(count: int, places_of: Places) -> Callable[[pa.Table], pa.Table]:
    def look(blobs: pa.Table) -> pa.Table:
        number = bucket_ids(count).index(blobs["bucket"][0].as_py())
        return pa.table({"said": pa.array(problems(store_of(blobs), number, count, places_of), pa.string())})

    return look
