"""Files of changes: each is written once, and all views that read the relation share it.

Layout of a file: Parquet, one row for each part of the changes, an Arrow table as ``blob``. A view that reads them has the file
under a name in its own folder, a hard link; the file is removed when the last of them has removed its name.

The change log of a view is what each batch of its query changed, as tasks wrote it: ``<number of the batch>/part-*.parquet``, and
``_outcome.json``, the progress of the view behind the batch. These rows never pass through the driver, nor the JVM: a task writes
a file to the folder of the run, and its path is what Spark gets; those of the tasks that Spark counts are moved to the log. (A
Parquet file that Spark writes costs a batch 0.14 s more.) The folder of a batch appears whole, under a name that is written once:
Spark may run a batch again after a crash, with the same result, and the first folder stays. The outcome of the last batch that
was taken stays, since the next one begins with it, beside ``_taken``: a store that has not this batch is older than the log.

Changes of tables, and of views whose operators run on the driver, are in the store. The driver writes them, part by part, into
the folders of the readers, inside the transaction that takes the changes. A crash before its end leaves files that nothing names.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windowpane.errors import UnreadableStateError
from windowpane.state.compact import from_stream, to_stream

_BLOBS = 1
"""How many parts are read at once. A part that a task wrote has the rows of one Arrow batch of Spark, 10,000 unless the session
sets another number."""

_TOGETHER_ROWS, _TOGETHER_BYTES = 100_000, 16 * 2**20
"""So many changes are brought to the store together: a statement for each small part costs as much again."""

_SCHEMA = pa.schema([("blob", pa.binary())])

_OUTCOME, _TAKEN = "_outcome.json", "_taken"


@dataclass(frozen=True)
class ChangeLog:
    """The change log in a folder."""

    folder: Path

    def keep(self, number: int, outcome: str, files: Iterable[Path] = ()) -> None:
        """Keep a batch."""
        draft = self._draft(number)
        draft.mkdir(parents=True)
        for place, file in enumerate(files):
            file.rename(draft / f"part-{place:05}.parquet")
        (draft / _OUTCOME).write_text(outcome, encoding="utf-8")
        try:
            draft.rename(self._batch(number))
        except OSError:
            if not self._batch(number).exists():
                raise
            shutil.rmtree(draft)

    def numbers(self) -> list[int]:
        return sorted(int(path.parent.name) for path in self.folder.glob(f"[0-9]*/{_OUTCOME}"))

    def last(self) -> int:
        """Return the number of the last batch, -1 before the first."""
        return max(self.numbers(), default=-1)

    def taken(self) -> int:
        """Return the number of the last batch that the store has said to have, -1 if there is none."""
        return max((int(path.parent.name) for path in self.folder.glob(f"[0-9]*/{_TAKEN}")), default=-1)

    def outcome(self, number: int) -> str:
        """Return the outcome of a batch, as text."""
        path = self._batch(number) / _OUTCOME
        with readable(path):
            text = path.read_text(encoding="utf-8")
            json.loads(text)
        return text

    def changes(self, number: int) -> Iterator[pa.Table]:
        """Yield the changes of a batch, some parts together: so many are in memory at a time."""
        held: list[pa.Table] = []
        for part in chain.from_iterable(map(held_in, self._parts(number))):
            if held and (_is_enough(held) or not part.schema.equals(held[0].schema)):  # branches of a union may differ
                yield pa.concat_tables(held)
                held = []
            held.append(part)
        if held:
            yield pa.concat_tables(held)

    def share(self, number: int, folder: Path) -> Iterator[Path]:
        """Link the files of a batch that have changes into another folder, too, where they stay; yield them.

        It may be done again.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for place, path in enumerate(self._parts(number)):
            if not parquet_metadata(path).num_rows:
                continue
            target = folder / f"{self.folder.parent.name}-{number}-{place}.parquet"
            if not target.exists():
                _share(path, target)
            yield target

    def trim(self, number: int) -> None:
        """Remove the changes of batches up to a number, and the outcomes of all but the last of them."""
        for folder in self.folder.glob("[0-9]*"):
            if int(folder.name) < number:
                shutil.rmtree(folder)
        for draft in self.folder.glob(".*.draft"):
            if int(draft.name.split(".")[1]) <= number:
                shutil.rmtree(draft, ignore_errors=True)
        if self._batch(number).exists():
            (self._batch(number) / _TAKEN).touch()
        for path in self._parts(number):
            path.unlink()

    def _batch(self, number: int) -> Path:
        return self.folder / f"{number:012}"

    def _draft(self, number: int) -> Path:
        """Return where a run of a batch writes; another run of it may still be writing."""
        return self.folder / f".{number:012}.{uuid.uuid4().hex}.draft"

    def _parts(self, number: int) -> list[Path]:
        return sorted(self._batch(number).glob("part-*.parquet"))


def _is_enough(tables: Sequence[pa.Table]) -> bool:
    rows: int = sum(table.num_rows for table in tables)
    size: int = sum(table.nbytes for table in tables)
    return rows >= _TOGETHER_ROWS or size >= _TOGETHER_BYTES


@dataclass(frozen=True)
class ToFiles:
    """Writes changes on the tasks of a batch."""

    exchange: Any

    def __call__(self, changes: Iterable[pa.Table]) -> Iterator[bytes]:
        """Write changes to a file, a row group a table, and yield its path; nothing where there are no changes."""
        path = self.exchange.new_file()
        if _write(changes, path):
            yield os.fsencode(path)


def write_shared(changes: Iterable[pa.Table], readers: Sequence[Path]) -> bool:
    """Write changes to a file, a row group a part, that has a name for each of its readers; say whether there are any.

    A file that has such a name is replaced: it is left over from a transaction that was rolled back.

    Args:
        changes: the parts, none without rows; one is in memory at a time.
        readers: the names.
    """
    for path in readers:
        path.parent.mkdir(parents=True, exist_ok=True)
    is_written = _write(changes, readers[0])
    for path in readers[1:] if is_written else ():
        _share(readers[0], path)
    return is_written


def _write(changes: Iterable[pa.Table], path: Path) -> bool:
    """Write changes to a file, which appears whole, and say whether there are any."""
    parts = iter(changes)
    first = next(parts, None)
    if first is None:
        return False
    draft = path.with_suffix(".draft")
    with pq.ParquetWriter(draft, _SCHEMA, compression="lz4", use_dictionary=False, write_statistics=False) as file:
        for part in chain([first], parts):
            file.write_batch(pa.record_batch([pa.array([to_stream(part).to_pybytes()], pa.binary())], schema=_SCHEMA))
    draft.rename(path)
    return True


def held_in(path: Path, group: int | None = None) -> Iterator[pa.Table]:
    """Yield the changes in a file, or in one of its row groups, part by part: one is in memory at a time."""
    with readable(path), pq.ParquetFile(path) as file:
        groups = None if group is None else [group]
        for part in file.iter_batches(batch_size=_BLOBS, row_groups=groups, columns=["blob"]):
            yield from_stream(part.column("blob")[0].as_py())


def parquet_metadata(path: Path) -> Any:
    """Return the metadata of a Parquet file."""
    with readable(path):
        return pq.read_metadata(path)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise an error with the way out where a file of change logs and inboxes cannot be read."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise UnreadableStateError(
            f"file {str(path)!r} cannot be read: {error}. It holds changes of a view, and is damaged or was removed. Restore the "
            "store and the folder beside it from copies that belong together, or DROP the view and CREATE it anew."
        ) from error


def _share(path: Path, target: Path) -> None:
    """Give a file a second name, or make a copy where the file system has no links; it appears whole."""
    draft = target.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    try:
        os.link(path, draft)
    except OSError:
        shutil.copyfile(path, draft)
    draft.rename(target)
