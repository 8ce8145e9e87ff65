"""The history that state begins with: rows before a cut, which are in the state before the first row of the stream arrives.

The cut is kept in the header of each bucket. A row of the stream below it is skipped, in this run and in all later ones: the
history has the rows of that time. So no row below the cut is still expected, which is what a watermark of ``cut - 1`` means.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.rolling.program import RollingProgram
from windowpane.errors import HistoryAfterStartError
from windowpane.hidden_columns import TIME
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.times import MIN


class BeginsWithHistory(Protocol):
    def begin(self, store: BlobStore, rows: list[pa.Table], cut: int) -> None:
        """Put rows below ``cut`` into the empty state of a bucket; nothing is emitted."""


def watermark_of(cut: int) -> int:
    return max(cut - 1, MIN)


def check_history(program: RollingProgram, header: BucketHeader) -> None:
    if program.cut is not None and header.cut is None:
        raise HistoryAfterStartError()


def after_cut(rows: pa.Table, header: BucketHeader) -> tuple[pa.Table, int]:
    """Return the rows that the history does not have, and how many it has."""
    if header.cut is None:
        return rows, 0
    is_before = rows[TIME].to_numpy() < header.cut
    found = int(np.count_nonzero(is_before))
    return (rows.filter(pa.array(~is_before)).combine_chunks() if found else rows), found
