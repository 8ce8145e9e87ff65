"""What programs that are no windows hold, as rows by key: OVER windows, joins, rolling features, deduplication, patterns.

The structures of a state name their columns; what these mean is said here, a kind of program each: which columns are the key,
which is the time, and when the clock lets a row go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.common.held_panes import ROWS, SIZE, Wanted
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.join.program import JoinProgram, passed_name
from windowpane.engines.join.windows import SIDE
from windowpane.engines.over.program import OverProgram
from windowpane.engines.over.update import OverUpdateEngine
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.program import BucketProgram, Program
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.engines.settling.program import SettlingProgram
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import END, PREFIX, START, TIME, hidden
from windowpane.inspect.buckets import Bucket
from windowpane.inspect.key_texts import key_of_values, key_texts, texts_of
from windowpane.inspect.tables import instants
from windowpane.kernels.joined_windows import LEFT, RIGHT
from windowpane.state.blob_store import BlobStore
from windowpane.state.keyed import KeyedState
from windowpane.state.listing import hash_pages, listed
from windowpane.state.segment_log import SegmentLog
from windowpane.state.sorted_pages import SortedPages
from windowpane.windowing.joins import AsOfMatch, IntervalMatch
from windowpane.windowing.times import MAX, add_clamped

TABLE_OF: dict[type, str] = {
    OverProgram: "over",
    JoinProgram: "join",
    RollingProgram: "rolling",
    PointInTimeProgram: "rolling",
    DeduplicationProgram: "deduplication",
    PatternProgram: "patterns",
    SettlingProgram: "between",
    FillingProgram: "between",
}
"""The table that shows what a kind of program holds."""


SIDES = {"left": "left", "right": "right", "versions": "right", "last": "right"}
"""The side that rows of joins are of, by the first word of what holds them."""


def table_of(bucket: Bucket) -> str | None:
    """Return the table that shows what a bucket holds beside windows, ``None`` where there is none."""
    return "nodes" if bucket.node is not None else TABLE_OF.get(type(bucket.program))


class Held(NamedTuple):
    """Some rows that are held alike: what they are, their keys as text, times in microseconds or ``None``, and bytes of all.

    ``rows`` are the rows themselves, with the names of their key columns; ``stays`` says until when one stays that leaves then.
    """

    holds: str
    keys: pa.Array
    times: pa.Array | None
    leaves: pa.Array | None
    size: int
    rows: pa.Table | None = None
    counts: pa.Array | None = None
    stays: Callable[[int | None], str] | None = None
    key_names: tuple[str, ...] = ()

    def text_of(self, key: Any) -> str:
        """Return a key as the text by which its rows are found.

        Raises:
            InvalidSpecError: it has other columns, or a value cannot be one of its type.
        """
        if self.rows is None:
            return key_of_values(list(values_of_key(self.key_names, key, self.holds).values()))
        kinds = pa.schema([pa.field(name, self.rows[name].type) for name in self.key_names])
        return str(key_texts(key_row(kinds, key, self.holds).columns, 1)[0].as_py())

    def as_table(self, operator: int, bucket: int) -> pa.Table:
        """Return the rows with the values of their columns, and when they leave; rows that are told by keys alone as these."""
        count = len(self.keys)
        table: dict[str, Any] = {
            "operator": pa.array([operator] * count, pa.int64()),
            "bucket": pa.array([bucket] * count, pa.int64()),
            "holds": pa.array([self.holds] * count, pa.string()),
        }
        rows = pa.table({}) if self.rows is None else self.rows
        own = [name for name in rows.column_names if not name.startswith(PREFIX)]
        table |= {f"{name} of the row" if name in table else name: rows[name] for name in own}
        if not own:
            table |= {"key": self.keys} | ({} if self.counts is None else {"rows": self.counts})
        leaves = pa.nulls(count, pa.int64()) if self.leaves is None else self.leaves
        table["leaves"] = instants(leaves)
        if self.stays is not None:
            table["stays"] = pa.array([self.stays(each) for each in leaves.to_pylist()], pa.string())
        return pa.table(table)


def held_rows(bucket: Bucket) -> Iterator[Held]:
    program, store = bucket.program, bucket.store
    if bucket.node is not None:
        yield from bucket.node.held()
    if program is None or bucket.runs_on is None:
        return
    if bucket.windows is not None:
        yield from _of_windows(bucket, bucket.windows)
        return
    for name, holds in bucket.runs_on.holds.items():
        found = listed(store, name)
        if found is None or holds in ("timers", "their keys"):
            continue
        if found.kind == "sorted pages":
            yield from _of_keys(SortedPages(store, name), holds, tuple(_key_columns(program, "l")))
            continue
        for size, table in _tables(bucket, store, name, found.kind):
            yield _held(bucket, program, name, holds, table, size)


def _of_windows(bucket: Bucket, windows: Program) -> Iterator[Held]:
    """Yield the rows of each side that a join by window holds: each leaves with its window."""
    program = bucket.program
    if not isinstance(program, JoinProgram):
        return
    for table in bucket.held(Wanted(rows=True)):
        table = table.combine_chunks()
        lists = table[ROWS].combine_chunks()
        places, rows = pc.list_parent_indices(lists), pa.Table.from_struct_array(lists.flatten())
        ends = table[END].take(places).combine_chunks()
        cleaned = windows.spec.lateness.cleanup_times(ends.fill_null(0).to_numpy() - 1)
        leaves = pa.array(cleaned, mask=ends.is_null().to_numpy(zero_copy_only=False))
        lengths = np.maximum(pc.list_value_length(lists).fill_null(0).to_numpy(), 1)
        sizes = (table[SIZE].to_numpy() / lengths)[places.to_numpy()]
        for (side, of), code in zip(program.sides.items(), (LEFT, RIGHT), strict=True):
            keep = rows[SIDE].to_numpy() == code
            if keep.any():
                own = rows.select([passed_name(side, name) for name in of.columns.names]).rename_columns(of.columns.names)
                own = own.filter(pa.array(keep))
                keys = key_texts([own[name] for name in of.keys], own.num_rows)
                size = int(sizes[keep].sum())
                yield Held(f"{side} rows", keys, None, leaves.filter(pa.array(keep)), size, own, key_names=tuple(of.keys))


def _tables(bucket: Bucket, store: BlobStore, name: str, kind: str) -> Iterator[tuple[int, pa.Table]]:
    if kind == "hash pages":
        pages = hash_pages(store, name)
        for position in pages.in_order_of_due():
            table = pages.read(position)
            if table is not None:
                yield pages.size_of(position), table
    elif kind == "segment log":
        log = SegmentLog(store, name)
        for segment in log.segments():
            chunks = log.read(segment)
            if chunks:
                yield log.size_of(segment), pa.concat_tables(chunks, promote_options="permissive")
    elif isinstance(bucket.program, OverProgram):
        engine = OverUpdateEngine(bucket.program)
        for table in engine.held_rows(store):
            yield table.nbytes, table


def _of_keys(pages: SortedPages, holds: str, key_names: tuple[str, ...]) -> Iterator[Held]:
    """Yield what keyed state holds; a sort buffer, whose keys are no keys of rows, as a whole."""
    if holds == "rows that wait":
        yield Held(holds, pa.array([""]), None, None, pages.byte_size, counts=pa.array([len(pages)]))
        return
    state = KeyedState(pages)
    for key, key_bytes, window, name, size in state.sizes():
        state.set_current_key(key, key_bytes)
        value = state.get(window, name)
        text = key_of_values(key if isinstance(key, tuple) else (key,))
        count = len(value) if isinstance(value, list | dict | tuple) else 1
        told = {"left": "left rows, by key", "right": "right rows, by key", "versions": "versions, by key"}.get(name, holds)
        yield Held(told, pa.array([text]), None, None, size, counts=pa.array([count]), key_names=key_names)


def _held(bucket: Bucket, program: BucketProgram, name: str, holds: str, table: pa.Table, size: int) -> Held:
    names = [each for each in _key_columns(program, name) if each in table.column_names]
    times = _times(program, table)
    leaves = None if times is None else _leaves(program, name, times)
    keys = key_texts([table[each] for each in names], table.num_rows)
    known = bucket.names
    if isinstance(program, RollingProgram):
        features = {hidden(f"feature_{number}"): call.name for number, call in enumerate(program.spec.calls)}
        known = dict(zip(names, program.keys.names, strict=True)) | features | {hidden("tiles"): "tiles"}
        if hidden("pieces") in table.column_names:
            table = table.append_column(hidden("tiles"), pc.list_value_length(table[hidden("pieces")]))
    rows = table.rename_columns([known.get(each, each) for each in table.column_names])
    return Held(holds, keys, times, leaves, size, rows, key_names=tuple(known.get(each, each) for each in names))


def _key_columns(program: BucketProgram, name: str) -> Sequence[str]:
    if isinstance(program, JoinProgram):
        return (program.left if name == "l" else program.right).keys
    if isinstance(program, OverProgram):
        return program.spec.partition_by
    if isinstance(program, RollingProgram):
        return [hidden(f"key_{number}") for number in range(len(program.keys))]
    if isinstance(program, PointInTimeProgram):
        return list(program.keys.names)
    return program.keys if isinstance(program, DeduplicationProgram | FillingProgram | SettlingProgram | PatternProgram) else ()


def _times(program: BucketProgram, table: pa.Table) -> pa.Array | None:
    for name in (TIME, END, hidden("newest"), START):
        if name in table.column_names and pa.types.is_integer(table[name].type):
            return table[name].combine_chunks()
    if isinstance(program, OverProgram) and program.spec.order_by:
        column = table[program.spec.order_names[0]]
        if pa.types.is_timestamp(column.type):
            return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).combine_chunks()
    return None


def _leaves(program: BucketProgram, name: str, times: pa.Array) -> pa.Array | None:
    """Return the watermark at which each row leaves, ``None`` where rows do not wait for that alone."""
    if isinstance(program, JoinProgram) and isinstance(program.match, IntervalMatch) and program.match.upper_column is None:
        reach = program.match.upper if name == "l" else -program.match.lower
        return _later(times, max(reach, 0) + program.allowed_lateness)
    if isinstance(program, JoinProgram) and isinstance(program.match, AsOfMatch):
        return _later(times, program.allowed_lateness) if name == "l" else None
    if isinstance(program, DeduplicationProgram):
        return _later(times, program.within - 1 + program.allowed_lateness)
    if isinstance(program, OverProgram) and name == "b":
        return _later(times, program.allowed_lateness or 0) if program.key_delay is None else None
    if isinstance(program, SettlingProgram):
        return times
    if isinstance(program, PatternProgram) and name == "p":  # an attempt that begins with the row is decided by its bound
        return None if program.spec.within is None else _later(times, program.spec.within - 1)
    return _later(times, program.allowed_lateness) if isinstance(program, PatternProgram) else None


def _later(times: pa.Array, by: int) -> pa.Array:
    values = times.fill_null(MAX).to_numpy()
    return pa.array(
        np.array([add_clamped(int(value), by) for value in np.unique(values)])[np.unique(values, return_inverse=True)[1]]
    )


def key_row(schema: pa.Schema, key: Any, whose: str) -> pa.Table:
    """Return a key as a table of one row.

    Args:
        schema: the key columns.
        key: the value of the only one, those of several as a tuple, or a mapping of columns to values; texts are cast.
        whose: what the columns are of, for people.

    Raises:
        InvalidSpecError: it has other columns, or a value cannot be one of its type.
    """
    values = values_of_key(schema.names, key, whose)
    try:
        columns = [_key_column(values[each.name], each.type) for each in schema]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError) as error:
        types = ", ".join(f"{each.name} {each.type}" for each in schema)
        raise InvalidSpecError(f"the key {key!r} is none of {types}: {error}.") from None
    return pa.table(columns, schema=schema)


def values_of_key(names: Sequence[str], key: Any, whose: str) -> dict[str, Any]:
    """Return the values of a key by its columns, in their order; see ``key_row``."""
    given = key if isinstance(key, tuple) else (key,)
    values = dict(key) if isinstance(key, Mapping) else dict(zip(names, given, strict=False))
    if set(values) != set(names) or (not isinstance(key, Mapping) and len(given) != len(names)):
        raise InvalidSpecError(f"the key {key!r} has other columns than those of {whose}: {', '.join(names) or 'none'}.")
    return {name: values[name] for name in names}


def _key_column(value: Any, kind: pa.DataType) -> pa.Array:
    """Return a value as a column of one row; texts are read as values of the type, of nested ones as JSON."""
    if isinstance(value, str) and pa.types.is_nested(kind):
        value = json.loads(value)
    return pa.array([value], pa.string()).cast(kind) if isinstance(value, str) else pa.array([value], kind)


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables of rows as one; a column that has several types in them is text."""
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for field in table.schema:
            kinds.setdefault(field.name, set()).add(field.type)
    texts = {name for name, found in kinds.items() if len(found) > 1}
    parts = []
    for table in tables:
        for name in texts & set(table.column_names):
            table = table.set_column(table.column_names.index(name), name, texts_of(table[name]))
        parts.append(table)
    return pa.concat_tables(parts, promote_options="default") if parts else pa.table({})
