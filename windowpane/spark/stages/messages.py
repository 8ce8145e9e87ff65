"""What a bucket is sent, each a blob of its own: rows for its engine, and what tells it of the batch.

A table says in its metadata which it is: without any it is rows, and without columns, too, a heartbeat.

- A *mark* has the latest event time of each source in the rows of one task of the encoder, which sends it to every bucket. So all
  buckets know the same of each batch, and a batch without marks has no rows.
- A *report* is the watermark of a bucket of the operator before, where Spark does not make it: the one that rows are compared
  with, and the one at the end of the batch, which is another one if rows may close windows at once. The encoder of the next
  operator hands the least of them to all its buckets.
- What is *passed* is of another output than the main one of an operator before (its late rows). It leaves the chain at its end
  under its old number, which it says itself. Malformed rows of sources are passed to the output of them, and counted once.
- A *probe* has its bucket compare layouts (``layout``), and is no call of its engine.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.spark.stages.blobs import pack, unpack
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import decode_key, encode_key, frame, unframe
from windowpane.windowing.times import MIN, add_clamped
from windowpane.windowing.watermarks import SourceName

_MARK, _REPORT, _PROBE = b"windowpane.mark", b"windowpane.report", b"windowpane.probes"
_OUTPUT, _READ = b"windowpane.output", b"windowpane.read"
"""The number of an output that rows are passed to; malformed rows that no operator has counted yet."""

MALFORMED = -3  # The number of the output of malformed rows
HEARTBEAT: bytes = pack(pa.table({}))
PROBE: bytes = pack(pa.table({}).replace_schema_metadata({_PROBE: b""}))

Passed = tuple[int, pa.Table]  # The number of an output, and a table of it


@dataclass
class Mark:
    """The latest event time of each source, seen in the rows of one task."""

    source: str | None  # the column with the names of sources, ``None`` for one source
    latest: dict[SourceName, int] = field(default_factory=dict)

    def see(self, rows: pa.Table) -> None:
        if self.source is None:
            _add(self.latest, [None], [pc.max(rows[TIME]).as_py()])
            return
        table = pa.table({"source": rows[self.source], "time": rows[TIME]})
        times = table.group_by("source", use_threads=False).aggregate([("time", "max")])  # few rows: threads cost more
        _add(self.latest, times["source"].cast(pa.string()).to_pylist(), times["time_max"].to_pylist())

    def blob(self) -> bytes | None:
        """Return the mark as it travels, ``None`` if there is nothing to report."""
        if not self.latest:
            return None
        columns = [pa.array(list(self.latest), pa.string()), pa.array(list(self.latest.values()), pa.int64())]
        return pack(pa.table(columns, names=["source", "latest"]).replace_schema_metadata({_MARK: b""}))


def latest_of(marks: Iterable[pa.Table]) -> dict[SourceName, int]:
    latest: dict[SourceName, int] = {}
    for mark in marks:
        _add(latest, mark["source"].to_pylist(), mark["latest"].to_pylist())
    return latest


def _add(latest: dict[SourceName, int], sources: Iterable[SourceName], times: Iterable[int | None]) -> None:
    for source, time in zip(sources, times, strict=True):
        if time is not None:
            latest[source] = max(latest.get(source, time), time)


class Moves(NamedTuple):
    """The watermark of a bucket in one batch: the one that rows are compared with, and the one at its end."""

    before: int = MIN
    after: int = MIN

    def less(self, delay: int) -> Moves:
        return Moves(add_clamped(self.before, -delay), add_clamped(self.after, -delay))

    @classmethod
    def least(cls, reports: Sequence[Moves]) -> Moves:
        return cls(min((each.before for each in reports), default=MIN), min((each.after for each in reports), default=MIN))

    def report(self) -> pa.Table:
        return pa.table({}).replace_schema_metadata({_REPORT: f"{self.before} {self.after}".encode()})


def reported(table: pa.Table) -> Moves | None:
    """Return the watermark that a table reports, ``None`` if it is no report."""
    found = (table.schema.metadata or {}).get(_REPORT)
    return None if found is None else Moves(*map(int, found.split()))


def marked(table: pa.Table, output: int) -> pa.Table:
    """Return a table that says which output it is of, wherever it is passed on to."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _OUTPUT: str(output)})


def malformed_blob(rows: pa.Table) -> bytes:
    return pack(rows.replace_schema_metadata({_OUTPUT: str(MALFORMED), _READ: ""}))


def malformed_read(passed: Iterable[Passed]) -> list[pa.Table]:
    """Return the malformed rows that no operator has counted yet, of what is passed on."""
    return [table for _, table in passed if _READ in (table.schema.metadata or {})]


def counted_once(passed: Iterable[Passed]) -> Iterator[Passed]:
    """Yield what is passed on behind an operator that has counted the malformed rows in it."""
    for output, table in passed:
        metadata = {name: value for name, value in (table.schema.metadata or {}).items() if name != _READ}
        yield output, table.replace_schema_metadata(metadata)


class Received(NamedTuple):
    """What a bucket got in one batch; it is called unless there were probes alone."""

    rows: list[pa.Table]
    passed: list[Passed]
    marks: list[pa.Table]
    reports: list[Moves]
    is_called: bool


def received(blobs: Iterable[bytes], coded: Container[str] = ()) -> Received:
    """Return what blobs are; texts of the columns ``coded`` stay coded."""
    found = Received([], [], [], [], is_called=False)
    for table in unpacked(blobs, coded):
        metadata = table.schema.metadata or {}
        if _PROBE in metadata:
            continue
        found = found._replace(is_called=True)
        if _MARK in metadata:
            found.marks.append(table)
        elif _OUTPUT in metadata:
            found.passed.append((int(metadata[_OUTPUT]), table))
        elif (moves := reported(table)) is not None:
            found.reports.append(moves)
        elif table.num_columns or metadata:
            found.rows.append(table)
    return found


_RESULTS = "history-results"


def keep_results(store: BlobStore, tables: Sequence[Passed]) -> None:
    """Keep what the history of a bucket has given, until its first batch."""
    blobs = [pack(marked(table, output)) for output, table in tables if table.num_rows]
    if blobs:
        store.put(_RESULTS, frame(_RESULTS, encode_key(blobs)))


def taken_results(store: BlobStore) -> list[Passed]:
    """Take out what the history of a bucket has given, nothing if that has been emitted."""
    blob = store.get(_RESULTS)
    if blob is None:
        return []
    store.remove(_RESULTS)
    tables = [unpack(each) for each in cast("Sequence[bytes]", decode_key(unframe(_RESULTS, blob)))]
    return [(int((table.schema.metadata or {})[_OUTPUT]), table.replace_schema_metadata()) for table in tables]


def unpacked(blobs: Iterable[bytes], coded: Container[str] = ()) -> list[pa.Table]:
    """Return the tables of blobs in an order that is the same when a batch is run again: those of several tasks arrive in any.

    Rows that have their place in the input come in its order, which whoever puts them in order gains from.
    """
    found = [(blob, unpack(blob, coded)) for blob in blobs]
    return [table for _, table in sorted(found, key=lambda each: (_place(each[1]), each[0]))]


def _place(table: pa.Table) -> tuple[int, int]:
    """Return where in the input the first row of a table was, by its task and the position there."""
    if not table.num_rows or PARTITION not in table.column_names or POSITION not in table.column_names:
        return -1, -1
    return table[PARTITION][0].as_py(), table[POSITION][0].as_py()
