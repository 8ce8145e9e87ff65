"""A checkpoint of Spark's as files: its batches, its operators, and the blobs of each bucket, read without Spark.

Layout, Spark's own: ``metadata`` has the id of the query; ``offsets/N`` what batch N was planned with, ``commits/N`` that it is
committed. ``state/<operator>/<partition>`` has, for version V, the state behind batch V - 1: snapshots ``V.zip``, which name
files of ``SSTs/``, and ``V.changelog`` with the changes of one batch. Version V is its last snapshot and the logs that follow it.

Nothing is ever written. A running query adds files, and removes those of versions long past: a version that is committed is read
whole, or not at all. Every bucket has a partition of its own, so all keys of its map begin alike.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyarrow import fs

from windowpane.connectors.object_stores import Location, is_remote, shown
from windowpane.engines.batch.header import BucketHeader
from windowpane.errors import MissingCheckpointError, MistakeError, UnreadableStateError
from windowpane.inspect.buckets import Bucket, buckets_of, headers_of
from windowpane.inspect.change_logs import ChangeLog
from windowpane.inspect.holders import Committed
from windowpane.inspect.sorted_tables import SortedTable
from windowpane.state.listing import nodes_in

_CODEC = "spark.sql.streaming.stateStore.compression.codec"
_ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
_CHECKSUMS = "spark.sql.streaming.stateStore.rowChecksum.enabled"
_MAP = "blobs"
_VALUE_HEAD = 17  # of a value: version, which columns are NULL, place and length of the one column


def _opened(location: str) -> tuple[fs.FileSystem, str]:
    if is_remote(location):
        place = Location(location)
        place.check()
        return place.files, place.root
    is_uri = "://" in location or location.startswith("file:")
    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(location) if is_uri else (fs.LocalFileSystem(), location)
    return found[0], found[1].rstrip("/")


class Checkpoint:
    """The files of a checkpoint location: a path, or the URI of a file system that Arrow knows."""

    def __init__(self, location: str) -> None:
        """Find it.

        Raises:
            MissingCheckpointError: there is none.
        """
        self.location = shown(location)
        self._files, self._root = _opened(location)
        self._tables: dict[str, SortedTable] = {}
        if self._files.get_file_info(f"{self._root}/metadata").type != fs.FileType.File:
            raise MissingCheckpointError(self.location)

    @cached_property
    def query_id(self) -> str:
        """The id of the query, the same over restarts."""
        return str(json.loads(self.text("metadata"))["id"])

    def text(self, path: str) -> str:
        """Return a file as text, none where it is not there; of a folder, as Spark Connect writes ours, that of its file."""
        info = self._files.get_file_info(f"{self._root}/{path}")
        if info.type == fs.FileType.Directory:
            parts = [name for name in self.names(path) if not name.startswith(("_", "."))]
            return self.text(f"{path}/{parts[0]}") if parts else ""
        try:
            with self._open(path) as file:
                return bytes(file.read()).decode()
        except FileNotFoundError:  # also one that the query has removed just now
            return ""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, none where it is not there."""
        found = self._files.get_file_info(fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True))
        return [info.base_name for info in found]

    def last_batch(self) -> int:
        return max((int(name) for name in self.names("commits") if name.isdecimal()), default=-1)

    def batches(self, most: int) -> list[Committed]:
        numbers = sorted(int(name) for name in self.names("commits") if name.isdecimal())[-most:]
        found = []
        for number in numbers:
            plan = self.plan_of(number)
            if not plan["batchTimestampMs"]:
                continue  # the query has removed it just now
            info = self._files.get_file_info(f"{self._root}/commits/{number}")
            time = int((info.mtime_ns or 0) // 1_000_000)
            found.append(Committed(number, int(plan["batchTimestampMs"]), time, int(plan["batchWatermarkMs"])))
        return found

    def plan_of(self, batch: int) -> dict[str, Any]:
        """Return what a batch was planned with: clocks in milliseconds, and the settings that a checkpoint keeps."""
        lines = self.text(f"offsets/{batch}").split("\n")
        plan: dict[str, Any] = json.loads(lines[1]) if len(lines) > 1 else {"batchTimestampMs": 0, "batchWatermarkMs": 0}
        return plan

    def next_watermark(self, batch: int) -> int:
        text = self.text(f"commits/{batch}")
        return int(json.loads(text[text.index("{") :])["nextBatchWatermarkMs"]) if "{" in text else 0

    def operators(self) -> list[int]:
        """Return the numbers of the operators whose state is ours."""
        found = []
        for number in sorted(int(name) for name in self.names("state") if name.isdecimal()):
            versions = sorted((name for name in self.names(f"state/{number}/_metadata/v2") if name.isdecimal()), key=int)
            about = self.text(f"state/{number}/_metadata/v2/{versions[-1]}").split("\n") if versions else [""]
            if len(about) > 1 and json.loads(about[1])["operatorInfo"]["operatorName"].startswith("transformWithState"):
                found.append(number)
        return found

    def programs(self, operator: int, batch: int) -> Iterator[Bucket]:
        for blobs in self.buckets(operator, batch):
            blobs.open()
            found = list(buckets_of(operator, blobs.number, blobs))
            if not found and nodes_in(blobs):
                from windowpane.inspect.nodes import buckets_of_nodes  # with all of SQL, which programs do not need

                found = list(buckets_of_nodes(operator, blobs.number, blobs))
            yield from found

    def headers(self, operator: int, batch: int) -> Iterator[BucketHeader]:
        """Yield the headers of these: each batch writes them, so the newest log has them, and no other is opened."""
        for blobs in self.buckets(operator, batch):
            yield from headers_of(blobs)

    def changes(self) -> list[dict[str, Any]]:
        try:
            entries: list[dict[str, Any]] = json.loads(self.text("windowpane/programs") or "[]")
        except ValueError:  # a start that was killed has not written it whole
            return []
        return [{"batch": each["batch"], "time": each["time"], "parts": each["parts"]} for each in entries]

    def buckets(self, operator: int, batch: int) -> list[BucketBlobs]:
        settings = self.plan_of(batch).get("conf", {})
        if settings.get(_ENCODING, "unsaferow") != "unsaferow" or settings.get(_CHECKSUMS, "false") != "false":
            raise UnreadableStateError(
                f"the state of {self.location} is written with {_ENCODING} = {settings.get(_ENCODING)} and {_CHECKSUMS} = "
                f"{settings.get(_CHECKSUMS)}: 'unsaferow' without checksums, Spark's default, is read here"
            )
        partitions = sorted(int(name) for name in self.names(f"state/{operator}") if name.isdecimal())
        return [self._bucket(operator, partition, batch + 1, settings.get(_CODEC, "lz4")) for partition in partitions]

    def _bucket(self, operator: int, partition: int, version: int, codec: str) -> BucketBlobs:
        folder = f"state/{operator}/{partition}"
        versions = [(name, *name.partition(".")[::2]) for name in self.names(folder)]
        named = [(int(number.partition("_")[0]), kind, name) for name, number, kind in versions if number[:1].isdecimal()]
        zips = {number: name for number, kind, name in named if kind == "zip" and number <= version}
        if len({each[:2] for each in named}) < len(named):
            raise UnreadableStateError(f"{self.location}/{folder} has two files of one version, and does not say which one holds")
        snapshot = max(zips, default=0)
        logs = {number: name for number, kind, name in named if kind == "changelog" and snapshot < number <= version}
        if len(logs) < version - snapshot:
            raise UnreadableStateError(f"{self.location}/{folder} has no version {version}: the checkpoint is incomplete")
        changed = [partial(self._log, f"{folder}/{logs[each]}", codec) for each in sorted(logs)[::-1]]
        return BucketBlobs(partition, partial(self._snapshot, folder, zips.get(snapshot)), changed)

    def _log(self, path: str, codec: str) -> ChangeLog:
        return ChangeLog(self._open(path, is_hopped=True), codec, path.rpartition("/")[2])

    def _snapshot(self, folder: str, name: str | None) -> tuple[list[SortedTable], int | None]:
        if name is None:
            return [], None
        with self._open(f"{folder}/{name}") as file, zipfile.ZipFile(file) as archive:
            about = json.loads(archive.read("metadata").decode().split("\n", 1)[1])
        paths = [f"{folder}/SSTs/{each['dfsSstFileName']}" for each in about["sstFiles"]]
        for path in paths:
            if path not in self._tables:
                self._tables[path] = SortedTable(self._open(path), path)
        return [self._tables[path] for path in paths], about.get("columnFamilyMapping", {}).get(_MAP)

    def _open(self, path: str, is_hopped: bool = False) -> pa.NativeFile:
        """Open a file; one in a remote store that many small parts are read of is brought here as a whole."""
        full = f"{self._root}/{path}"
        if isinstance(self._files, fs.LocalFileSystem):
            return pa.OSFile(full)
        file = self._files.open_input_file(full)
        return pa.BufferReader(file.read_buffer()) if is_hopped else file


@dataclass
class BucketBlobs:
    """The blobs of a bucket by name: a store that is only read. Changes come first, the newest in front.

    Args:
        number: the number of the bucket.
        open_snapshot: opens the tables of the snapshot, and returns them with the number of the map in them.
        open_logs: opens each log that follows it, the newest in front.
    """

    number: int
    open_snapshot: Callable[[], tuple[list[SortedTable], int | None]]
    open_logs: Sequence[Callable[[], ChangeLog]]

    def open(self) -> None:
        """Open all files: those that are open are read, though a query that runs removes them."""
        self._snapshot, self._opened = self.open_snapshot(), [each() for each in self.open_logs]

    @cached_property
    def _snapshot(self) -> tuple[list[SortedTable], int | None]:
        return self.open_snapshot()

    @cached_property
    def _opened(self) -> list[ChangeLog]:
        return []

    @property
    def _logs(self) -> Iterator[ChangeLog]:
        for place, opens in enumerate(self.open_logs):
            if place == len(self._opened):
                self._opened.append(opens())
            yield self._opened[place]

    def get(self, key: str) -> bytes | None:
        if self._prefix is None:
            return None
        full = self._prefix + _name_row(key)
        for log in self._logs:
            if full in log.changes:
                return _blob(log.value(full))
        entries = [entry for table in self._snapshot[0] if (entry := table.get(full)) is not None]
        return _blob(max(entries).value) if entries else None

    def prefetch(self, keys: Sequence[str]) -> None:
        """Nothing is far away."""

    def put(self, key: str, blob: bytes) -> None:
        """Refuse: nothing is written here."""
        raise MistakeError(f"{key!r} of a checkpoint that is only looked at is not written ({len(blob)} bytes)")

    def remove(self, key: str) -> None:
        """Refuse, likewise."""
        raise MistakeError(f"{key!r} of a checkpoint that is only looked at is not removed")

    @cached_property
    def _prefix(self) -> bytes | None:
        """What all keys begin with: the number of the map, and the bucket; found where some key of the map is."""
        return next(self._prefixes(), None)

    def _prefixes(self) -> Iterator[bytes]:
        for log in self._logs:
            for key in log.changes:
                end = 6 + int.from_bytes(key[2:6], "little")
                if _is_name_row(key[end:]):
                    yield key[:end]
        tables, family = self._snapshot
        if family is not None:
            low = family.to_bytes(2, "little")
            for table in tables:
                for key, _ in table.scan(low):
                    if key.startswith(low):
                        yield key[: 6 + int.from_bytes(key[2:6], "little")]
                    break


def _name_row(name: str) -> bytes:
    """Return how Spark writes the key of a map of texts: rows in rows, each with its NULLs, and place and length of its text."""
    text = name.encode()
    padded = text + bytes(-len(text) % 8)
    inner = bytes(8) + len(text).to_bytes(4, "little") + (16).to_bytes(4, "little") + padded
    return bytes(9) + len(inner).to_bytes(4, "little") + (16).to_bytes(4, "little") + inner


def _is_name_row(row: bytes) -> bool:
    return len(row) > 33 and row[:9] == bytes(9) and row[13:17] == row[29:33] == (16).to_bytes(4, "little")


def _blob(value: bytes | None) -> bytes | None:
    return None if value is None else value[_VALUE_HEAD:][: int.from_bytes(value[9:13], "little")]
