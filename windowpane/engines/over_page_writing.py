"""Writing changed pages: in place while their sizes suit, cut anew together with changed neighbours where not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.kernels.sort_keys import Bytes
from windowpane.state.row_pages import NewPage, RowPages

Numbers = npt.NDArray[np.int64]

PAGE_ROWS = 128
"""Most rows of a page. State calls cost by number and by size; at this size random inserts cost about as much in each way."""


def write_pages(pages: RowPages, dirty: Numbers, rows: pa.Table, keys: Bytes, page_of: Numbers) -> None:
    """Put ``rows`` in place of all rows of the ``dirty`` pages.

    Args:
        pages: the tree.
        dirty: ordinals of read pages, ascending; of the empty tree, 0.
        rows: their rows from now on, in order.
        keys: the sort keys of the rows.
        page_of: the page of each row.
    """
    batches = rows.to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)
    groups = np.split(dirty, np.flatnonzero(np.diff(dirty) > 1) + 1) if len(dirty) else []
    for group in reversed(groups):
        first, last = int(group[0]), int(group[-1])
        bounds = np.searchsorted(page_of, np.arange(first, last + 2))
        sizes = np.diff(bounds)
        if len(pages) and ((sizes > 0) & (sizes <= PAGE_ROWS)).all() and (len(sizes) == 1 or sizes.mean() >= PAGE_ROWS / 4):
            for number, ordinal in enumerate(group.tolist()):
                pages.rewrite(ordinal, batch.slice(int(bounds[number]), int(sizes[number])))
        else:
            cut = _cut(batch, keys, int(bounds[0]), int(bounds[-1]))
            pages.replace(first, min(last + 1, len(pages)), cut)


def _cut(batch: pa.RecordBatch, keys: Bytes, start: int, end: int) -> list[NewPage]:
    """Return rows as pages of even size, three quarters full, so that they can grow and shrink."""
    count = -(-(end - start) * 4 // (PAGE_ROWS * 3))
    cuts = np.linspace(start, end, count + 1).astype(int).tolist() if count else []
    return [NewPage(bytes(keys[low]), batch.slice(low, high - low)) for low, high in pairwise(cuts)]
