"""Change sets: the changes and watermarks that a flush sends to one view, as a file that a streaming file source reads.

Layout of a file ``<number>.parquet``: one row a part, with its ``relation`` (empty for the watermarks) and a ``blob``, an Arrow
table: base relations with their watermarks as SQL, or no columns and the tags ``file``, which names a file of changes, ``group``,
a row group of it, and ``ids``, the name there of each stored column of the relation. Tasks read these files; they share the
parts of a large change set. The names of the files are metadata of the change set. They are names in the
folder ``received`` beside the inbox, so that a store may be moved.

Spark's file source orders files by age. The name and the age of the file of a change set are made of its number, so Spark takes
change sets in the order of their numbers. A file appears whole, and its name is written once: writing it again changes nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windowpane.engines.common.tagged import tag, tagged
from windowpane.sql.on_spark.change_log import held_in, parquet_metadata
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.state.compact import to_stream

SCHEMA = "relation string, blob binary"
"""The columns of a change set as Spark reads them."""

CLOCK = ""
"""The relation of the part with the watermarks."""

_FILES = b"windowpane.files"
_ARROW = pa.schema([("relation", pa.string()), ("blob", pa.binary())])


@dataclass(frozen=True)
class ChangeFile:
    """Changes of a relation that are stored in a file.

    Args:
        file: its name in the folder of the reader, which removes it some change sets after the one that names it.
        ids: the name in the file of each stored column.
    """

    relation: str
    file: str
    ids: Mapping[str, str]

    def parts(self, folder: Path) -> list[bytes]:
        """Return the parts of a change set that name this file, one for each of its row groups."""
        ids, groups = json.dumps(dict(self.ids)), parquet_metadata(folder / self.file).num_row_groups
        tables = (tagged(pa.table({}), file=self.file, group=str(group), ids=ids) for group in range(groups))
        return [to_stream(table).to_pybytes() for table in tables]


@dataclass(frozen=True)
class ChangeSet:
    """Changes for one view.

    Args:
        number: of the flush; it rises, and is a time in milliseconds.
        clock: watermarks as SQL, by base relation.
    """

    number: int
    initial: bool
    changes: tuple[ChangeFile, ...]
    clock: Mapping[str, str]

    def size(self, inbox: Path) -> int:
        return sum((received(inbox) / each.file).stat().st_size for each in self.changes)

    def write(self, inbox: Path) -> None:
        """Put the change set into an inbox, unless the inbox has it already."""
        target = inbox / f"{self.number}.parquet"
        if target.exists():
            return
        clock = to_stream(clock_table(self.clock, initial=self.initial)).to_pybytes()
        parts = [(each.relation, part) for each in self.changes for part in each.parts(received(inbox))]
        relations, blobs = zip((CLOCK, clock), *parts, strict=True)
        draft = inbox / f".{self.number}.draft"
        schema = _ARROW.with_metadata({_FILES: json.dumps([each.file for each in self.changes])})
        pq.write_table(pa.table([list(relations), list(blobs)], schema=schema), draft, row_group_size=1)
        age = self.number * 1_000_000
        os.utime(draft, ns=(age, age))
        draft.rename(target)


def opened(part: pa.Table, folder: Path) -> Iterator[pa.Table]:
    """Yield the changes in the file that a part of a change set names, in a folder."""
    ids = json.loads(str(tag(part, "ids")))
    for held in held_in(folder / str(tag(part, "file")), int(str(tag(part, "group")))):
        yield pa.table({**{name: held[identity] for name, identity in ids.items()}, WEIGHT: held[WEIGHT]})


def clock_table(clock: Mapping[str, str], *, initial: bool, ages: Mapping[str, int] | None = None) -> pa.Table:
    """Return watermarks as a table, which also says whether this is the first change set of a view.

    Args:
        clock: watermarks as SQL, by relation.
        initial: whether it is the first change set.
        ages: which of two watermarks of a relation is the newer one in a batch: the one with the higher number.
    """
    given = ages or {}
    columns = {
        "relation": pa.array(list(clock), pa.string()),
        "value": pa.array(list(clock.values()), pa.string()),
        "age": pa.array([given.get(relation, 0) for relation in clock], pa.int64()),
    }
    return tagged(pa.table(columns), clock="initial" if initial else "next")


def clock_of(table: pa.Table) -> dict[str, str]:
    return dict(zip(table["relation"].to_pylist(), table["value"].to_pylist(), strict=True))


def newest(clocks: Sequence[pa.Table]) -> pa.Table:
    """Merge several tables of watermarks: the newest of each relation; with the bucket of the first table."""
    values: dict[str, str] = {}
    ages: dict[str, int] = {}
    for table in clocks:
        for relation, value, age in zip(*table.to_pydict().values(), strict=True):
            if relation not in ages or age > ages[relation]:
                values[relation], ages[relation] = value, age
    made = clock_table(values, initial=any(map(is_initial, clocks)), ages=ages)
    return tagged(made, clock=str(tag(made, "clock")), bucket=str(tag(clocks[0], "bucket") or 0))


def is_initial(table: pa.Table) -> bool:
    return tag(table, "clock") == "initial"


def received(inbox: Path) -> Path:
    """Return the folder of the files that the change sets of an inbox name."""
    return inbox.parent / "received"


def sweep(inbox: Path, kept: int = 3) -> None:
    """Remove old change sets, and the files that they name; Spark may read the last ones again after a crash."""
    change_sets = sorted(inbox.glob("*.parquet"), key=lambda file: int(file.stem))
    for change_set in change_sets[:-kept]:
        for file in _named_by(change_set):
            (received(inbox) / file).unlink(missing_ok=True)
        change_set.unlink()


def named_in(inbox: Path) -> set[str]:
    return {file for change_set in inbox.glob("*.parquet") for file in _named_by(change_set)}


def _named_by(change_set: Path) -> list[str]:
    return list(json.loads((parquet_metadata(change_set).metadata or {}).get(_FILES, b"[]")))
