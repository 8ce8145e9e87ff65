"""The change log of a view: what each batch of its query changed, in Parquet files that tasks write.

Layout: ``<number of the batch>/part-*.parquet``, one row for each part of the changes, an Arrow table as ``blob``. The rows of a
batch do not pass the driver on their way here. The folder of a batch appears whole, under a name that is written once: Spark
may run a batch again after a crash, with the same result, and the first folder stays. Views that read this one get the files
themselves, under a second name in their own folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowpane.state.compact import from_stream

_BLOBS = 1
"""How many parts are read at once. A part has the rows of one Arrow batch of Spark, 10,000 if nobody sets another number."""


class ChangeLog:
    """The change log in a folder."""

    def __init__(self, folder: Path) -> None:
        """Write to a folder, and read it; it may not be there yet."""
        self._folder = folder

    def write(self, rows: Any, number: int) -> None:
        """Run a batch on Spark and keep its changes.

        Raises:
            SqlRunError: a task failed.
        """
        from windowpane.spark.queries.batch_query import write_parquet

        draft, target = self._folder / f".{number:012}.draft", self._batch(number)
        write_parquet(rows, draft)
        if target.exists():
            shutil.rmtree(draft)
        else:
            draft.rename(target)

    def changes(self, number: int) -> Iterator[pa.Table]:
        """Yield the changes of a batch, part by part: one is in memory at a time."""
        for path in self._parts(number):
            yield from held_in(path)

    def share(self, number: int, folder: Path) -> Iterator[Path]:
        """Let the files of a batch stand in another folder, too, where they stay; yield them. It may be done again."""
        folder.mkdir(parents=True, exist_ok=True)
        for place, path in enumerate(self._parts(number)):
            target = folder / f"{self._folder.parent.name}-{number}-{place}.parquet"
            if not target.exists():
                draft = target.with_suffix(".draft")
                _link(path, draft)
                draft.rename(target)
            yield target

    def rows(self, written: Any, number: int) -> Any:
        """Return a batch that was written as a static DataFrame, with the columns that it had then."""
        from windowpane.spark.queries.batch_query import read_parquet

        return read_parquet(written, self._batch(number))

    def trim(self, number: int) -> None:
        """Forget batches up to a number."""
        for folder in self._folder.glob("[0-9]*"):
            if int(folder.name) <= number:
                shutil.rmtree(folder)

    def _batch(self, number: int) -> Path:
        return self._folder / f"{number:012}"

    def _parts(self, number: int) -> list[Path]:
        return sorted(self._batch(number).glob("part-*.parquet"))


def held_in(path: Path) -> Iterator[pa.Table]:
    """Yield the changes in a file of a change log, part by part: one is in memory at a time."""
    with pq.ParquetFile(path) as file:
        for part in file.iter_batches(batch_size=_BLOBS, columns=["blob"]):
            yield from_stream(part.column("blob")[0].as_py())


def _link(path: Path, target: Path) -> None:
    """Let a file have a second name, or, where a file system has none, a copy."""
    target.unlink(missing_ok=True)
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
