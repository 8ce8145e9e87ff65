"""Letters: what a flush has for one view, as a file that a streaming file source reads.

Layout of a file ``<number>.parquet``: one row a part, with its ``relation`` (empty for the watermarks) and a ``blob``, an Arrow
table: changes with the stored columns of the relation and the weight, or base relations with their watermarks as SQL. The name
and the age of a file say its number, so Spark's file source, which orders by age, takes letters in the order of their numbers. A
file appears whole, under a name that is written once: writing a letter again changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windowpane.state.compact import from_stream, to_stream

SCHEMA = "relation string, initial boolean, blob binary"
"""The columns of a letter as Spark reads them."""

_ARROW = pa.schema([("relation", pa.string()), ("initial", pa.bool_()), ("blob", pa.binary())])
_CLOCK = ""
_ROWS = 250_000
"""So many rows are one part at most: parts are read side by side."""


@dataclass(frozen=True)
class Letter:
    """Changes for one view.

    Args:
        number: of the flush; it rises, and is a time in milliseconds.
        initial: whether it is the first letter of the view.
        parts: (relation, packed changes).
        clock: watermarks as SQL, by base relation.
    """

    number: int
    initial: bool
    parts: tuple[tuple[str, bytes], ...]
    clock: Mapping[str, str]

    def write(self, inbox: Path) -> None:
        """Put the letter into an inbox, unless it is there already."""
        target = inbox / f"{self.number}.parquet"
        if target.exists():
            return
        rows = [(_CLOCK, _packed_clock(self.clock)), *self.parts]
        columns = [[name for name, _ in rows], [self.initial] * len(rows), [blob for _, blob in rows]]
        draft = inbox / f".{self.number}.draft"
        pq.write_table(pa.table(columns, schema=_ARROW), draft, row_group_size=1)
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
        initial = initial or row["initial"]
        if row["relation"] == _CLOCK:
            clock |= dict(zip(table["relation"].to_pylist(), table["value"].to_pylist(), strict=True))
        else:
            changes.setdefault(row["relation"], []).append(table)
    return Received(initial, changes, clock)


def packed(changes: pa.Table) -> Iterator[bytes]:
    """Return changes as parts of a letter; none if there are none."""
    for start in range(0, changes.num_rows, _ROWS):
        yield to_stream(changes.slice(start, _ROWS), "lz4").to_pybytes()


def _packed_clock(clock: Mapping[str, str]) -> bytes:
    table = pa.table({"relation": pa.array(list(clock), pa.string()), "value": pa.array(list(clock.values()), pa.string())})
    blob: bytes = to_stream(table).to_pybytes()
    return blob


def sweep(inbox: Path, kept: int = 3) -> None:
    """Remove old letters; Spark may ask for the last ones again after a crash."""
    letters = sorted(inbox.glob("*.parquet"), key=lambda file: int(file.stem))
    for file in letters[:-kept]:
        file.unlink()
