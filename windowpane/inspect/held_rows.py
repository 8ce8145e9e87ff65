"""What programs that are no windows hold, as rows by key: OVER windows, joins, rolling features, deduplication, patterns.

The structures of a state name their columns; what these mean is said here, a kind of program each: which columns are the key,
which is the time, and when the clock lets a row go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.common.held_panes import ELEMENTS, PARTIALS, SIZE, Wanted
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.over.program import OverProgram
from windowpane.engines.over.update import OverUpdateEngine
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.program import Program
from windowpane.engines.registry import AnyProgram
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.engines.settling.program import SettlingProgram
from windowpane.hidden_columns import END, START, TIME, hidden
from windowpane.inspect.buckets import Bucket
from windowpane.state.blob_store import BlobStore
from windowpane.state.keyed import KeyedState
from windowpane.state.listing import hash_pages, listed
from windowpane.state.segment_log import SegmentLog
from windowpane.state.sorted_pages import SortedPages
from windowpane.windowing.joins import AsOfMatch, IntervalMatch
from windowpane.windowing.times import MAX, add_clamped

TABLE_OF = {
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


class Held(NamedTuple):
    """Some rows that are held alike: what they are, their keys as text, times in microseconds or ``None``, and bytes of all."""

    holds: str
    keys: pa.Array
    times: pa.Array | None
    leaves: pa.Array | None
    size: int
    rows: pa.Table | None = None
    counts: pa.Array | None = None


def held_rows(bucket: Bucket) -> Iterator[Held]:
    """Yield what a bucket of a program that is no window holds."""
    program, store = bucket.program, bucket.store
    if program is None or bucket.spec is None:
        return
    if bucket.windows is not None:
        yield from _of_windows(bucket, bucket.windows)
        return
    for name, holds in bucket.spec.holds.items():
        found = listed(store, name)
        if found is None or holds in ("timers", "their keys"):
            continue
        if found.kind == "sorted pages":
            yield from _of_keys(SortedPages(store, name), holds)
            continue
        for size, table in _tables(bucket, store, name, found.kind):
            yield _held(program, name, holds, table, size)


def _of_windows(bucket: Bucket, windows: Program) -> Iterator[Held]:
    """Yield the rows of both sides that a join by window holds: each leaves with its window."""
    for table in bucket.held(Wanted()):
        ends = table[END].combine_chunks()
        leaves = pa.array([None if end is None else windows.spec.lateness.cleanup_time(end - 1) for end in ends.to_pylist()])
        counts = pc.coalesce(table[ELEMENTS], table[PARTIALS]).combine_chunks()
        keys = key_texts([table[name] for name in windows.keys.names], table.num_rows)
        yield Held("rows of both sides", keys, None, leaves.cast(pa.int64()), pc.sum(table[SIZE]).as_py(), counts=counts)


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


def _of_keys(pages: SortedPages, holds: str) -> Iterator[Held]:
    """Yield what keyed state holds; a sort buffer, whose keys are no keys of rows, as a whole."""
    if holds == "rows that wait":
        yield Held(holds, pa.array([""]), None, None, pages.byte_size, counts=pa.array([len(pages)]))
        return
    state = KeyedState(pages)
    keys, counts, sizes = list[str](), list[int](), list[int]()
    for key, key_bytes, window, name, size in state.sizes():
        state.set_current_key(key, key_bytes)
        value = state.get(window, name)
        keys.append(key_of_values(key if isinstance(key, tuple) else (key,)))
        counts.append(len(value) if isinstance(value, list | dict | tuple) else 1)
        sizes.append(size)
    for key, count, size in zip(keys, counts, sizes, strict=True):
        yield Held(holds, pa.array([key]), None, None, size, counts=pa.array([count]))


def _held(program: AnyProgram, name: str, holds: str, table: pa.Table, size: int) -> Held:
    names = [each for each in _key_columns(program, name) if each in table.column_names]
    times = _times(program, table)
    leaves = None if times is None else _leaves(program, name, times)
    return Held(holds, key_texts([table[each] for each in names], table.num_rows), times, leaves, size, table)


def _key_columns(program: AnyProgram, name: str) -> Sequence[str]:
    if isinstance(program, JoinProgram):
        return (program.left if name == "l" else program.right).keys
    if isinstance(program, OverProgram):
        return program.spec.partition_by
    if isinstance(program, RollingProgram):
        return [hidden(f"key_{number}") for number in range(len(program.keys))]
    if isinstance(program, PointInTimeProgram):
        return list(program.keys.names)
    return program.keys if isinstance(program, DeduplicationProgram | FillingProgram | SettlingProgram | PatternProgram) else ()


def _times(program: AnyProgram, table: pa.Table) -> pa.Array | None:
    for name in (TIME, END, hidden("newest"), START):
        if name in table.column_names and pa.types.is_integer(table[name].type):
            return table[name].combine_chunks()
    if isinstance(program, OverProgram) and program.spec.order_by:
        column = table[program.spec.order_names[0]]
        if pa.types.is_timestamp(column.type):
            return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).combine_chunks()
    return None


def _leaves(program: AnyProgram, name: str, times: pa.Array) -> pa.Array | None:
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


def key_texts(columns: Sequence[pa.ChunkedArray | pa.Array], rows: int) -> pa.Array:
    """Return keys as text: the value of one column, and those of several with a comma between; NULL is ``NULL``."""
    if not columns:
        return pa.array([""] * rows, pa.string())
    texts = [_texts(column) for column in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, ", ")


def _texts(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_decode()
    try:
        texts = flat.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = pa.array([None if value is None else str(value) for value in flat.to_pylist()], pa.string())
    return texts.fill_null("NULL")


def key_of_values(values: Sequence[Any]) -> str:
    """Return a key of Python values as the same text."""
    return ", ".join(key_texts([pa.array([value])], 1)[0].as_py() if value is not None else "NULL" for value in values)
