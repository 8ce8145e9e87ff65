"""The change log of a view: what each batch of its query changed, in Parquet files that tasks write.

Layout: ``<number of the batch>/part-*.parquet``, one row for each part of the changes, an Arrow table as ``blob``. The rows of a
batch do not pass the driver on their way here. The folder of a batch appears whole, under a name that is written once: Spark
may run a batch again after a crash, with the same result, and the first folder stays.
"""

from __future__ import annotations

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
        for path in sorted(self._batch(number).glob("part-*.parquet")):
            with pq.ParquetFile(path) as file:
                for part in file.iter_batches(batch_size=_BLOBS, columns=["blob"]):
                    yield from_stream(part.column("blob")[0].as_py())

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
