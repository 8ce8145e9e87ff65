"""Files of object stores as a DataFrame: tasks read them by pyarrow, and offsets say which have been read.

Layout of an offset: ``new``, the files of its batch; ``seen``, in base64 the codes of all files up to it, which also those are
that were deleted since. So a file is read once, whatever its time says; one that is written over is not read again.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

import pyarrow as pa

from windowpane.arrays.values import JsonValue
from windowpane.connectors.object_stores import Location
from windowpane.errors import InvalidSpecError
from windowpane.spark.sources.planned import PlannedStream, ReadLimit, limits, planned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PART = "paths array<string>"
_TASKS = 16
_CODE = 10  # bytes of the code of a path
_MOST, _GLOB = "maxfilespertrigger", "pathglobfilter"


@dataclass(frozen=True)
class RemoteFiles:
    """The files that are read: those of a place whose names a pattern matches."""

    location: Location
    glob: str | None = None
    most: int | None = None  # so many files a batch

    @classmethod
    def of(cls, path: str, options: Mapping[str, str]) -> RemoteFiles:
        """Return the files of a place that is there; options of Spark's file source, by lower-case name."""
        others = options.keys() - {_MOST, _GLOB}
        if others:
            raise InvalidSpecError(
                f"read_in_arrow of an object store has no option {min(others)!r}; it has maxFilesPerTrigger and pathGlobFilter."
            )
        most = int(options[_MOST]) if _MOST in options else None
        if most is not None and (most < 1 or limits is None):
            raise InvalidSpecError(f"maxFilesPerTrigger={most}: of an object store it is at least 1, and needs Spark 4.2.")
        found = cls(Location(path), options.get(_GLOB), most)
        found.location.paths()
        return found

    def listed(self) -> list[str]:
        paths = self.location.paths(may_be_empty=True)
        return [each for each in paths if self.glob is None or fnmatchcase(each.rpartition("/")[2], self.glob)]

    def origin(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """Return the DataFrame of what tasks are to read."""
        if streaming:
            return planned(spark, _PART, partial(FileStream, self))
        return spark.createDataFrame(_parts(self.listed()), _PART)


class FileStream(PlannedStream):
    """The files of a place, and which have been read; runs beside the driver."""

    def __init__(self, files: RemoteFiles) -> None:
        self._files = files
        self._last: dict[str, JsonValue] = {"seen": "", "new": []}

    def initialOffset(self) -> dict[str, JsonValue]:  # noqa: N802
        return {"seen": "", "new": []}

    def ends(self) -> list[str]:
        return self._files.listed()

    def latestOffset(self, start: dict[str, JsonValue] | None = None, limit: ReadLimit | None = None) -> dict[str, JsonValue]:  # noqa: N802
        start = self._last if start is None else start
        seen, listed = _codes(start), self.ends() if self._target is None else self._target
        new = [path for path in listed if _code(path) not in seen][: self._files.most]
        if not new:
            return start
        codes = sorted(seen.union(map(_code, new)))
        self._last = {"seen": b64encode(b"".join(codes)).decode(), "new": new}
        return self._last

    def parts(self, start: dict[str, JsonValue], end: dict[str, JsonValue]) -> list[tuple[list[str]]]:
        self._last = end  # before Spark 4.2 the checkpoint alone says where a run begins
        seen = _codes(start)
        return _parts([path for path in end["new"] if _code(path) not in seen])


@dataclass(frozen=True)
class RemoteReader:
    """Reads the files that it is given; runs in tasks."""

    location: Location
    read: Callable[[str, bytes], Iterable[pa.Table]]  # makes tables of an address and a content

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        for batch in batches:
            for paths in batch["paths"].to_pylist():
                for path in paths:
                    yield self.read(self.location.address(path), self.location.read(path))


def _code(path: str) -> bytes:
    return blake2b(path.encode(), digest_size=_CODE).digest()


def _codes(offset: Mapping[str, JsonValue]) -> set[bytes]:
    held = b64decode(offset["seen"])
    return {held[at : at + _CODE] for at in range(0, len(held), _CODE)}


def _parts(paths: list[str]) -> list[tuple[list[str]]]:
    return [(paths[number::_TASKS],) for number in range(min(_TASKS, len(paths)))]
