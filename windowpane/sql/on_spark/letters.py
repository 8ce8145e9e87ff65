"""Letters: what a flush has for one view, as a file that a streaming file source reads.

Layout of a file ``<number>.parquet``: one row a part, with its ``relation`` (empty for the watermarks) and a ``blob``, an Arrow
table: changes with the stored columns of the relation and the weight, or base relations with their watermarks as SQL. A table
without columns, tagged with the name of a file, stands for the changes in it: that of a change log, which tasks wrote and tasks
read. The names of these files are metadata of the letter. The name and the age of a letter say its number, so Spark's file
source, which orders by age, takes letters in the order of their numbers. A letter appears whole, under a name that is written
once: writing it again changes nothing.
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
from windowpane.sql.on_spark.change_log import held_in
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.state.compact import from_stream, to_stream

SCHEMA = "relation string, blob binary"
"""The columns of a letter as Spark reads them."""

CLOCK = ""
"""The relation of the part with the watermarks."""

_FILES = b"windowpane.files"
_ARROW = pa.schema([("relation", pa.string()), ("blob", pa.binary())])
PART_ROWS = 250_000
"""So many rows are one part at most: parts are read side by side."""


@dataclass(frozen=True)
class Letter:
    """Changes for one view.

    Args:
        number: of the flush; it rises, and is a time in milliseconds.
        initial: whether it is the first letter of the view.
        parts: (relation, packed changes, or what ``standing_for`` a file).
        clock: watermarks as SQL, by base relation.
        files: the files that parts stand for.
    """

    number: int
    initial: bool
    parts: tuple[tuple[str, bytes], ...]
    clock: Mapping[str, str]
    files: tuple[str, ...] = ()

    def write(self, inbox: Path) -> None:
        """Put the letter into an inbox, unless it is there already."""
        target = inbox / f"{self.number}.parquet"
        if target.exists():
            return
        rows = [(CLOCK, to_stream(clock_table(self.clock, initial=self.initial)).to_pybytes()), *self.parts]
        columns = [[name for name, _ in rows], [blob for _, blob in rows]]
        draft = inbox / f".{self.number}.draft"
        schema = _ARROW.with_metadata({_FILES: json.dumps(self.files)})
        pq.write_table(pa.table(columns, schema=schema), draft, row_group_size=1)
        age = self.number * 1_000_000
        os.utime(draft, ns=(age, age))
        draft.rename(target)


@dataclass(frozen=True)
class Received:
    """A letter as a batch has it: changes by relation, each in several tables."""

    initial: bool
    changes: Mapping[str, list[pa.Table]]
    clock: Mapping[str, str]


def receive(batch: pa.Table) -> Received:
    """Return the letter that the rows of a batch are."""
    changes: dict[str, list[pa.Table]] = {}
    clock: dict[str, str] = {}
    initial = False
    for row in batch.to_pylist():
        table = from_stream(row["blob"])
        if row["relation"] == CLOCK:
            clock, initial = clock_of(table), is_initial(table)
        else:
            changes.setdefault(row["relation"], []).extend(opened(table))
    return Received(initial, changes, clock)


def standing_for(file: Path, ids: Mapping[str, str]) -> bytes:
    """Return a part of a letter that stands for the changes in a file, in which stored columns are named by ``ids``."""
    blob: bytes = to_stream(tagged(pa.table({}), file=str(file), ids=json.dumps(dict(ids)))).to_pybytes()
    return blob


def opened(part: pa.Table) -> Iterator[pa.Table]:
    """Yield the changes that a part of a letter is, or stands for."""
    file = tag(part, "file")
    if file is None:
        yield part
        return
    ids = json.loads(str(tag(part, "ids")))
    for held in held_in(Path(file)):
        yield pa.table({**{name: held[identity] for name, identity in ids.items()}, WEIGHT: held[WEIGHT]})


def packed(changes: pa.Table) -> Iterator[bytes]:
    """Return changes as parts of a letter; none if there are none."""
    for start in range(0, changes.num_rows, PART_ROWS):
        yield to_stream(changes.slice(start, PART_ROWS), "lz4").to_pybytes()


def clock_table(clock: Mapping[str, str], *, initial: bool, ages: Mapping[str, int] | None = None) -> pa.Table:
    """Return watermarks as a table, which also says whether this is the first letter of a view.

    Args:
        clock: watermarks as SQL, by relation.
        initial: whether it is the first letter.
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
    """Return the watermarks that a table holds."""
    return dict(zip(table["relation"].to_pylist(), table["value"].to_pylist(), strict=True))


def newest(clocks: Sequence[pa.Table]) -> pa.Table:
    """Return what several tables of watermarks say together: the newest of each relation; with the bucket of the first."""
    values: dict[str, str] = {}
    ages: dict[str, int] = {}
    for table in clocks:
        held = table["age"].to_pylist() if "age" in table.column_names else [0] * table.num_rows
        for relation, value, age in zip(table["relation"].to_pylist(), table["value"].to_pylist(), held, strict=True):
            if relation not in ages or age > ages[relation]:
                values[relation], ages[relation] = value, age
    made = clock_table(values, initial=any(map(is_initial, clocks)), ages=ages)
    return tagged(made, clock=str(tag(made, "clock")), bucket=str(tag(clocks[0], "bucket") or 0))


def is_initial(table: pa.Table) -> bool:
    """Whether a table of watermarks is that of the first letter of a view."""
    return tag(table, "clock") == "initial"


def sweep(inbox: Path, kept: int = 3) -> None:
    """Remove old letters, and the files that they stand for; Spark may ask for the last ones again after a crash."""
    letters = sorted(inbox.glob("*.parquet"), key=lambda file: int(file.stem))
    for letter in letters[:-kept]:
        for file in json.loads((pq.read_metadata(letter).metadata or {}).get(_FILES, b"[]")):
            Path(file).unlink(missing_ok=True)
        letter.unlink()
