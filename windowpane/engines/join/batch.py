"""One batch of a bucket of a join: the order of things, late rows, and the held rows of each side.

State, by name in the bucket's blob store: ``header``, and the rows that are held of each side, with TIME and what the kind of
join keeps beside a row, in pages (``paged.py``). Who may mutate: the engine, once a batch. Recovery: read them back; the
watermark is in the header.

Rows are taken left ones first. What the watermark has made final is emitted before rows of a source are taken, and at the end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.values import Value
from windowpane.engines.batch.driver import BucketBatch, Left
from windowpane.engines.batch.late_rows import late_table
from windowpane.engines.common.arrival import ordered
from windowpane.engines.common.tagged import tag
from windowpane.engines.join.paged import ORDER, PLACE, SidePages, hashed, integers
from windowpane.engines.join.program import LATE, JoinCounters, JoinProgram, passed_name
from windowpane.engines.program import MAIN
from windowpane.engines.spec import BucketEngine
from windowpane.errors import MissingSideTimestampError
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.kernels.conditions import pairs_hold
from windowpane.kernels.keys.codes import comparable
from windowpane.kernels.keys.dense_codes import dense_codes
from windowpane.kernels.keys.key_codes import key_codes
from windowpane.kernels.keys.ordered_codes import all_valid
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.expressions import SIDES, Side
from windowpane.windowing.lateness import horizon
from windowpane.windowing.times import MIN, add_clamped

_MOST_BITS = 24
"""Codes of more bits make numbers of key and time too long."""


@dataclass
class Rows:
    table: pa.Table  # the columns of the side, TIME, and what the kind of join keeps beside a row
    new: int  # from which row on they are those of the batch

    @property
    def times(self) -> Integers:
        return integers(self.table[TIME])

    def kept(self, mask: Mask) -> Rows:
        table = self.table if mask.all() else self.table.filter(pa.array(mask))
        return Rows(table, table.num_rows)


class Held(NamedTuple):
    left: int
    right: int
    size: int


class JoinBatch(BucketBatch[JoinProgram]):
    """One batch of one bucket: state opened, run, written back."""

    counters = JoinCounters
    kept_beside: pa.Schema  # columns that the kind of join keeps beside a row

    def __init__(self, engine: BucketEngine[JoinProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        self.horizon = MIN  # the time at or below which rows of the batch are late
        self.rows: dict[Side, Rows] = {}  # the rows of each side
        self.side_pages: dict[Side, SidePages] = {}  # the pages of each side
        self.pieces: list[tuple[int, pa.Table] | Callable[[], Tables]] = []  # what is emitted, or what makes it

    def work(self, tables: list[pa.Table]) -> None:
        arrived = {side: self._arrived(side, [table for table in tables if tag(table, "side") == side]) for side in SIDES}
        self.read_held(arrived)
        if self.is_source:
            self.settle()
        self._take(arrived)
        self.settle()

    def close(self) -> Left:
        held = self.write_held()
        late = self.counts.get("left_late", 0) + self.counts.get("right_late", 0)
        self.counts |= {"late_elements": late, "late_dropped": late}
        return Left(held.left + held.right, held.size, gauges={"held_left": held.left, "held_right": held.right})

    def tables(self) -> Pieces:
        return Pieces(self.pieces)

    @abstractmethod
    def read_held(self, arrived: dict[Side, pa.Table]) -> None:
        """Read the held rows that the batch may change or match."""

    @abstractmethod
    def take(self) -> None:
        """Match the rows of the batch, which follow those held."""

    @abstractmethod
    def settle(self) -> None:
        """Emit the results that the watermark has made final, and drop their rows."""

    @abstractmethod
    def write_held(self) -> Held:
        """Write the held rows, as far as they changed."""

    def columns(self, side: Side) -> pa.Schema:
        beside = [pa.field(TIME, pa.int64()), *self.kept_beside]
        return pa.schema([*self.program.sides[side].columns, *beside])

    # Rows in.

    def _arrived(self, side: Side, tables: Sequence[pa.Table]) -> pa.Table:
        wanted = pa.schema([field for field in self.columns(side) if field.name not in self.kept_beside.names])
        rows = ordered(tables)
        if rows is None:
            return wanted.empty_table()
        if rows[TIME].null_count:
            raise MissingSideTimestampError(side, rows[TIME].null_count)
        return self.arriving(side, rows.select(wanted.names).cast(wanted))

    def arriving(self, side: Side, table: pa.Table) -> pa.Table:
        """Return the rows of the batch that the kind of join looks at, with ORDER, which decides in which page a row is held."""
        hashes = hashed(table, self.program.sides[side].keys)
        return table.append_column(ORDER, pa.array(self.side_pages[side].orders(hashes, integers(table[TIME]))))

    def landing(self, side: Side, arrived: pa.Table) -> Integers:
        return self.side_pages[side].landing(integers(arrived[ORDER])) if arrived.num_rows else np.zeros(0, np.int64)

    def _take(self, arrived: dict[Side, pa.Table]) -> None:
        late = self.horizon = horizon(self.late_under, self.program.allowed_lateness)
        for side in SIDES:
            table = arrived[side]
            is_late = integers(table[TIME]) <= late if late != MIN else np.zeros(table.num_rows, np.bool_)
            if is_late.any():
                self.count(f"{side}_late", int(is_late.sum()))
                self.late_counts.note_dropped(table[TIME].filter(pa.array(is_late)), self.late_under)
                table = self.late(side, table, is_late)
            held, columns = self.rows[side], self.columns(side)
            table = pa.table([_filled(table, field) for field in columns], schema=columns)
            self.rows[side] = Rows(pa.concat_tables([held.table, table]), held.table.num_rows)
        self.take()

    def late(self, side: Side, table: pa.Table, is_late: Mask) -> pa.Table:
        self.report_late(side, table.filter(pa.array(is_late)))
        return table.filter(pa.array(~is_late))

    def report_late(self, side: Side, table: pa.Table, **columns: pa.Array) -> None:
        of = self.program.sides[side]
        if of.has_late_output and table.num_rows:
            schema = self.program.late_schema(side)
            self.pieces.append((LATE[side], late_table(schema, table, self.late_under, self.clocks, columns)))

    def codes(self, left: pa.Table, right: pa.Table) -> tuple[Integers, Integers]:
        """Return the codes of keys: equal ones have one on both sides, and one with a NULL that matches nothing is below 0."""
        columns, count = key_columns(self.program, left, right), left.num_rows + right.num_rows
        codes = key_codes(columns, count)
        if int(codes.max(initial=0)).bit_length() > _MOST_BITS:
            codes = dense_codes(columns, count).codes
        if not self.program.null_safe and any(column.null_count for column in columns):
            codes = np.where(all_valid(columns, count), codes, -1)
        return codes[: left.num_rows], codes[left.num_rows :]

    # Rows out.

    def emit_joined(self, left: pa.Table | None, right: pa.Table | None, times: Integers, **columns: pa.Array) -> None:
        count = len(times)
        if not count:
            return
        self.count("pairs" if left is not None and right is not None else "padded", count)
        self.put(left, right, times, **columns)

    def put(self, left: pa.Table | None, right: pa.Table | None, times: Integers, **columns: pa.Array) -> None:
        """Emit results that are not counted here; else as ``emit_joined``."""
        if len(times):
            self.pieces.append((MAIN, self.made(left, right, times, **columns)))

    def made(self, left: pa.Table | None, right: pa.Table | None, times: Integers, **columns: pa.Array) -> pa.Table:
        program, count = self.program, len(times)
        delay = program.held_back
        fired_under = MIN if delay is None or self.before == MIN else add_clamped(self.before, -delay)
        found: dict[str, pa.Array] = {TIME: pa.array(times), FIRING_WATERMARK: pa.array(np.full(count, fired_under)), **columns}
        return results(program, left, right, found, count)


Tables = Iterator[tuple[int, pa.Table]]


class Pieces(Sequence[tuple[int, pa.Table]]):
    """The tables of an output. Reading them in order holds one of those in memory that are made while they are read."""

    def __init__(self, parts: Sequence[tuple[int, pa.Table] | Callable[[], Tables]]) -> None:
        self._parts = parts

    def __iter__(self) -> Tables:
        for part in self._parts:
            if callable(part):
                yield from part()
            else:
                yield part

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, place: Value) -> Value:
        return list(self)[place]


def _filled(table: pa.Table, field: pa.Field) -> pa.Array:
    """Return a column that is kept of rows of the batch: as it arrived, or -1 for no page yet, or false."""
    if field.name in table.column_names:
        return table[field.name]
    return pa.repeat(pa.scalar(-1 if field.name == PLACE else 0).cast(field.type), table.num_rows)


def key_columns(program: JoinProgram, left: pa.Table, right: pa.Table) -> list[pa.ChunkedArray]:
    """Return the columns of the keys of left rows, then of right rows, that Arrow compares as Spark does."""
    names = zip(program.left.keys, program.right.keys, strict=True)
    return [comparable(pa.chunked_array([*left[one].chunks, *right[other].chunks], left[one].type)) for one, other in names]


def fulfilling(program: JoinProgram, lefts: Integers, rights: Integers, left: pa.Table, right: pa.Table) -> Mask:
    taken: dict[Side, tuple[pa.Table, Integers]] = {"left": (left, lefts), "right": (right, rights)}
    return pairs_hold(program.condition, lambda side, name: taken[side][0][name].take(pa.array(taken[side][1])), len(lefts))


def results(
    program: JoinProgram, left: pa.Table | None, right: pa.Table | None, columns: dict[str, pa.Array], count: int
) -> pa.Table:
    """Return left rows beside right ones as a table of ``main_schema``, ``None`` to pad a side; ``columns`` are of none."""
    found = dict(columns)
    sides: tuple[tuple[Side, pa.Table | None], ...] = (("left", left), ("right", right))
    for side, table in sides:
        of = program.sides[side]
        for name in of.passed:
            values = pa.nulls(count, of.columns.field(name).type) if table is None else table[name]
            found[passed_name(side, name)] = values
    schema = program.main_schema
    return pa.table([found[name] for name in schema.names], schema=schema)
