"""Writing changed pages: in place while their sizes suit, cut anew together with changed neighbours where not.

How large pages are follows how they change. A state call costs as much as moving some 500 rows. Where changes lie far apart,
small pages move few rows for each; where a batch changes rows all over its pages (the last row of every partition, say), all of
them are moved anyway, and large ones save calls; pages of rows that arrived in one long stretch are between the two, since their
next changes are not known. Where the store is near, in the process, a call costs little, and pages are small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.engines.over.page_form import PageWriter
from windowpane.sizes import Size
from windowpane.state.row_pages import NewPage, RowPages

KeyAt = Callable[[int], bytes]


@dataclass(frozen=True)
class PageSizes:
    few: Size[int]  # most rows of a page whose rows change a few at a time
    # most rows of one whose rows arrived in long stretches; pages up to this size stay as they are where changes are few
    loaded: Size[int]
    dense: Size[int]  # most rows of one among pages with changes all over
    gap: Size[int]  # changes are all over where so many rows, on average, lie between one stretch of them and the next


FAR = PageSizes(
    Size("rows of an OVER page changed a few at a time", 256, (2, 4)),
    Size("rows of an OVER page that arrived in long stretches", 512, (2, 6)),
    Size("rows of an OVER page with changes all over", 4096, (3, 8)),
    Size("rows from one change of an OVER page to the next", 128, (1, 4)),
)
"""Sizes where each page is a call to Spark's state store."""
NEAR = PageSizes(
    Size("rows of a near OVER page changed a few at a time", 128, (2, 4)),
    Size("rows of a near OVER page that arrived in long stretches", 192, (2, 6)),
    Size("rows of a near OVER page with changes all over", 1024, (3, 8)),
    Size("rows from one change of a near OVER page to the next", 32, (1, 4)),
)
"""Sizes where pages are in the process."""
_LONG = Size("rows of a long stretch of an OVER page", 64, (1, 3))
"""Rows of a long stretch."""


@dataclass(frozen=True)
class Altered:
    """Where a batch altered rows: the page of each row inserted, deleted or updated, and of each stretch of such rows.

    A stretch ends with its partition, at whose end more rows are likely to arrive. All pages were read; while there are none,
    they are 0.
    """

    rows: Integers
    stretches: Integers

    @classmethod
    def of(cls, page: Integers, altered: Mask, starts_partition: Mask) -> Self:
        starts = altered.copy()
        starts[1:] &= ~altered[:-1] | starts_partition[1:]
        return cls(page[altered], page[starts])

    @classmethod
    def none(cls) -> Self:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    def __or__(self, other: Altered) -> Altered:
        stretches = np.sort(np.concatenate([self.stretches, other.stretches]))
        return Altered(np.concatenate([self.rows, other.rows]), stretches)

    def among(self, page: Integers) -> Mask:
        marks = np.zeros(max(int(page.max(initial=0)), int(self.rows.max(initial=0))) + 1, np.bool_)
        marks[self.rows] = True
        return marks[page]


def write_pages(pages: RowPages, altered: Altered, writer: PageWriter, key_at: KeyAt, page_of: Integers) -> None:
    counts = np.bincount(altered.rows)
    dirty = np.flatnonzero(counts)
    counts = counts[dirty]
    stretches = np.diff(np.searchsorted(altered.stretches, np.append(dirty, dirty[-1:] + 1)))
    starts = np.flatnonzero(np.append(True, np.diff(dirty) > 1)[: len(dirty)]).tolist()
    limits = NEAR if pages.are_near else FAR
    for low, high in reversed(list(pairwise([*starts, len(dirty)]))):
        group = dirty[low:high]
        bounds = np.searchsorted(page_of, np.arange(int(group[0]), int(group[-1]) + 2))
        sizes = np.diff(bounds)
        changes, runs = int(counts[low:high].sum()), int(stretches[low:high].sum())
        if changes >= _LONG.value * runs:
            most = limits.loaded.value
        else:
            most = limits.dense.value if runs * limits.gap.value >= int(sizes.sum()) else limits.few.value
        if len(pages) and _suit(limits, sizes, most):
            for number, ordinal in enumerate(group.tolist()):
                pages.rewrite(ordinal, writer.blob(int(bounds[number]), int(bounds[number + 1])))
        else:
            cut = _cut(writer, key_at, int(bounds[0]), int(bounds[-1]), most)
            pages.replace(int(group[0]), min(int(group[-1]) + 1, len(pages)), cut)


def _suit(limits: PageSizes, sizes: Integers, most: int) -> bool:
    """Whether pages of these sizes can stay: none empty or too large, and not too small on average."""
    if int(sizes.min()) == 0 or int(sizes.max()) > max(most, limits.loaded.value):
        return False
    return len(sizes) == 1 or 4 * int(sizes.sum()) >= most * len(sizes)


def _cut(writer: PageWriter, key_at: KeyAt, start: int, end: int, most: int) -> list[NewPage]:
    """Return rows as pages of even size, three quarters full, so that they can grow and shrink."""
    count = -(-(end - start) * 4 // (most * 3))
    cuts = np.linspace(start, end, count + 1).astype(int).tolist() if count else []
    return [NewPage(key_at(low), writer.blob(low, high)) for low, high in pairwise(cuts)]
