"""The tails of partitions: the rows that a window that emits on close still needs, in pages by a hash of the partition.

The rows of a partition are in their order. A page is due while rows of it wait to be emitted; their number is in its index. Who
may mutate: this class, at ``write``. Recovery: that of hash pages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Unsigned
from windowpane.arrays.columns import padded
from windowpane.hidden_columns import hidden
from windowpane.kernels.keys.key_codes import key_hashes, plain_key
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import HashPages, PageSummary
from windowpane.windowing.times import MAX, MIN

EMITTED = hidden("emitted")
"""The column that says whether a row was emitted; the others wait to be."""
PAGE_ROWS = Size("rows of a page of tails", 1 << 15, (2, 8))


class Tails:
    def __init__(self, store: BlobStore, name: str, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        self._schema = schema
        self._partition_by = partition_by
        self._pages = HashPages(store, name, self._hashes, _summary, PAGE_ROWS.value, PAGE_ROWS.value)

    @property
    def waiting(self) -> list[int]:
        return self._pages.due(MIN)

    @property
    def waiting_rows(self) -> int:
        return self._pages.live

    @property
    def byte_size(self) -> int:
        return self._pages.byte_size

    def touched(self, rows: pa.Table) -> list[int]:
        if len(self._pages) < 2:
            return [0] if rows.num_rows else []
        pages: list[int] = np.unique(self._pages.locate(self._hashes(rows))).tolist()
        return pages

    def read(self, pages: Sequence[int]) -> pa.Table:
        self._pages.prefetch(pages)
        tables = [table for page in pages if (table := self._pages.read(page)) is not None]
        return pa.concat_tables(tables) if tables else self._schema.empty_table()

    def write(self, pages: Sequence[int], rows: pa.Table) -> None:
        if len(self._pages) < 2:
            self._pages.write(0, rows)
        else:
            self._pages.put(pages, rows, is_run=False)
        self._pages.commit()

    def widen(self) -> None:
        self._pages.rewrite(lambda page: padded(page, self._schema))

    def _hashes(self, rows: pa.Table) -> Unsigned:
        return key_hashes([plain_key(rows[name]) for name in self._partition_by], rows.num_rows)


def _summary(page: pa.Table) -> PageSummary:
    waiting = page.num_rows - (pc.sum(page[EMITTED]).as_py() or 0)
    return PageSummary(MIN if waiting else MAX, waiting)
