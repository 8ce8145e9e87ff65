"""Writing changed pages: in place while their sizes suit, cut anew together with changed neighbours where not.

How large pages are follows how they change. State calls cost by number and by size: where changes lie far apart, small pages move
few rows for each; where most rows of neighbouring pages change at once, large ones save calls.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.kernels.sort_keys import Bytes
from windowpane.state.row_pages import NewPage, RowPages

Numbers = npt.NDArray[np.int64]

PAGE_ROWS = 128
"""Most rows of a page whose rows change a few at a time."""
DENSE_FACTOR = 32
"""How many times as many rows a page has where at least half of all rows change at once."""


def write_pages(pages: RowPages, altered: Numbers, rows: pa.Table, keys: Bytes, page_of: Numbers) -> None:
    """Put ``rows`` in place of all rows of the pages in ``altered``.

    Args:
        pages: the tree.
        altered: for each row that came, went or changed, the ordinal of its page, which was read; of the empty tree, 0.
        rows: the rows of those pages from now on, in order.
        keys: the sort keys of the rows.
        page_of: the page of each row.
    """
    batches = rows.to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)
    dirty, counts = np.unique(altered, return_counts=True)
    starts = np.flatnonzero(np.append(True, np.diff(dirty) > 1)[: len(dirty)]).tolist()
    for low, high in reversed(list(pairwise([*starts, len(dirty)]))):
        group = dirty[low:high]
        bounds = np.searchsorted(page_of, np.arange(int(group[0]), int(group[-1]) + 2))
        sizes = np.diff(bounds)
        most = PAGE_ROWS
        if len(pages) and 2 * int(counts[low:high].sum()) >= int(sizes.sum()):
            most *= DENSE_FACTOR
        if len(pages) and _suit(sizes, most):
            for number, ordinal in enumerate(group.tolist()):
                pages.rewrite(ordinal, batch.slice(int(bounds[number]), int(sizes[number])))
        else:
            cut = _cut(batch, keys, int(bounds[0]), int(bounds[-1]), most)
            pages.replace(int(group[0]), min(int(group[-1]) + 1, len(pages)), cut)


def _suit(sizes: Numbers, most: int) -> bool:
    """Whether pages of these sizes can stay: none empty or too large, and not too small on average."""
    if int(sizes.min()) == 0 or int(sizes.max()) > most:
        return False
    return len(sizes) == 1 or 4 * int(sizes.sum()) >= most * len(sizes)


def _cut(batch: pa.RecordBatch, keys: Bytes, start: int, end: int, most: int) -> list[NewPage]:
    """Return rows as pages of even size, three quarters full, so that they can grow and shrink."""
    count = -(-(end - start) * 4 // (most * 3))
    cuts = np.linspace(start, end, count + 1).astype(int).tolist() if count else []
    return [NewPage(bytes(keys[low]), batch.slice(low, high - low)) for low, high in pairwise(cuts)]
