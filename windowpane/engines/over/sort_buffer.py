"""The sort buffer: rows wait for the watermark, and are released in the order of the window.

State, by name in the bucket's blob store: a segment log ``<name>`` whose segments are spans of event time of one width, and
``<name>.w``, that width in microseconds. Segments hold rows as they arrived, without column ``TIME`` where it is the ORDER BY
column as a number. Who may mutate: this buffer. Recovery: read back.

A release reads the segments that the watermark has passed; only the one that it falls into is written again. The width follows
the data: an eighth of what an empty buffer takes first, eight times as much when segments become many.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.columns import padded
from windowpane.hidden_columns import TIME
from windowpane.kernels.keys.coded_texts import coded_alike
from windowpane.kernels.packed_order import stable_order
from windowpane.kernels.segments import starts_of_runs
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore, note_layout
from windowpane.state.codec import decode_int64, encode_int64, frame, unframe
from windowpane.state.segment_log import SegmentLog

_KIND = "over-sort-buffer-width"
_PIECES = 8
_MOST_SEGMENTS = Size("segments of the sort buffer", 64, (1, 3))


class SortBuffer:
    def __init__(self, store: BlobStore, name: str, order_by: str | None, coded: Collection[str], columns: pa.Schema) -> None:
        names = [name for name in columns.names if name != TIME]
        self._columns = pa.schema([columns.field(name) for name in names])
        self._store = store
        self._order_by = order_by
        self._coded = coded
        self._width_key = f"{name}.w"
        self._log = SegmentLog(store, name, coded)
        blob = store.get(self._width_key) if self._log.segments() else None
        self._width = 0 if blob is None else decode_int64(unframe(_KIND, blob))
        self._name = name
        note_layout(store, name, self)

    def over(self, store: BlobStore) -> SortBuffer:
        """Return the same buffer over another store, whose texts are read as they are."""
        return SortBuffer(store, self._name, self._order_by, (), self._columns)

    @property
    def byte_size(self) -> int:
        return self._log.byte_size

    @property
    def rows(self) -> int:
        return self._log.row_count

    def add(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        times = rows[TIME].to_numpy()
        if not self._log.segments():
            self._set_width(max((int(times.max()) - int(times.min())) // _PIECES, 1))
        self._append(rows, times)
        if len(self._log.segments()) > _MOST_SEGMENTS.value:
            self._widen()

    def release(self, watermark: int) -> list[pa.Table]:
        """Take out the rows at or below ``watermark``, those of earlier segments first."""
        released = []
        for segment in self._log.segments():
            if segment * self._width > watermark:
                break
            held = self._read(segment)
            if (segment + 1) * self._width - 1 <= watermark:
                self._log.drop(segment)
                released.append(held)
                continue
            passed = held[TIME].to_numpy() <= watermark
            if passed.any():
                released.append(held.filter(pa.array(passed)))
                if passed.all():
                    self._log.drop(segment)
                else:
                    self._log.replace(segment, self._lean(held.filter(pa.array(~passed))))
        return released

    def flush(self) -> None:
        self._log.flush()

    def _append(self, rows: pa.Table, times: Integers) -> None:
        numbers = times // self._width
        rows = self._lean(rows)
        if not (numbers[1:] >= numbers[:-1]).all():
            order = stable_order(numbers)
            rows, numbers = rows.take(pa.array(order)), numbers[order]
        firsts = np.flatnonzero(starts_of_runs(numbers)).tolist()
        for first, end in pairwise([*firsts, len(numbers)]):
            self._log.append(int(numbers[first]), rows.slice(first, end - first))

    def _lean(self, rows: pa.Table) -> pa.Table:
        times = self._times(rows)
        return rows.drop_columns([TIME]) if times is not None and times.equals(rows[TIME]) else rows

    def _read(self, segment: int) -> pa.Table:
        return pa.concat_tables(coded_alike([self._whole(table) for table in self._log.read(segment)], self._coded))

    def _whole(self, kept: pa.Table) -> pa.Table:
        times = kept[TIME] if TIME in kept.column_names else self._times(kept)
        return padded(kept, self._columns).append_column(TIME, times)

    def _times(self, rows: pa.Table) -> pa.ChunkedArray | None:
        """Return the ORDER BY column as a number, if there is one of 64 bits."""
        if self._order_by is None:
            return None
        column = rows[self._order_by]
        is_number = pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)
        return column.cast(pa.int64()) if is_number and column.type.bit_width == 64 else None

    def _widen(self) -> None:
        held = pa.concat_tables(coded_alike([self._read(segment) for segment in self._log.segments()], self._coded))
        for segment in self._log.segments():
            self._log.drop(segment)
        self._set_width(self._width * _PIECES)
        self._append(held, held[TIME].to_numpy())

    def _set_width(self, width: int) -> None:
        self._width = min(width, 1 << 62)
        self._store.put(self._width_key, frame(_KIND, encode_int64(self._width)))
