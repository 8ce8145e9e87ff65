"""The panes that a batch touches: their contents before, the elements they get, and one code for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.engines.panes.panes import Elements
from windowpane.engines.panes.store import PaneStore
from windowpane.hidden_columns import SEGMENT
from windowpane.kernels.keys.dense_codes import combined, dense_codes, distinct, first_rows


@dataclass(frozen=True)
class TouchedPanes:
    """Panes by code, from 0.

    Args:
        held: the rows that the touched segments held, ``None`` for none; panes there need not be touched themselves.
        elements: the elements of the batch.
        held_panes: the pane of each row held.
        element_panes: the pane of each element.
        keys: keys and segment of each pane.
        segments: the segments that were read, and are to be written back.
    """

    held: pa.Table | None
    elements: Elements
    held_panes: Integers
    element_panes: Integers
    keys: pa.Table
    segments: list[int]

    @property
    def count(self) -> int:
        """The number of panes."""
        return int(self.keys.num_rows)

    @property
    def held_count(self) -> int:
        """The number of panes that hold something."""
        is_held = np.zeros(self.count, bool)
        is_held[self.held_panes] = True
        return int(is_held.sum())


@dataclass(frozen=True)
class BatchKeys:
    """The distinct keys of the rows of a batch, and which of them each row has."""

    distinct: pa.Table
    codes: Integers

    @classmethod
    def of(cls, rows: pa.Table, names: Sequence[str]) -> BatchKeys:
        """Return the keys in the columns ``names``."""
        keys = rows.select(list(names))
        codes, firsts = dense_codes(keys.columns, rows.num_rows)
        return cls(keys.take(pa.array(firsts)), codes)


def touched_panes(store: PaneStore, elements: Elements) -> TouchedPanes:
    """Read the panes that the elements of a batch are in, and those of the same segments."""
    names, keys = store.keys, BatchKeys.of(elements.rows, store.keys)
    segments = store.shards(keys.distinct)[keys.codes] if store.is_global else elements.ends
    read = distinct(segments)
    held = store.read(read)
    before = 0 if held is None else held.num_rows
    everything = keys.distinct if held is None else pa.concat_tables([held.select(names), keys.distinct])
    codes, firsts = dense_codes(everything.columns, everything.num_rows)
    all_keys = np.concatenate([codes[:before], codes[before:][keys.codes[elements.numbers]]])
    held_segments = np.zeros(0, np.int64) if held is None else held[SEGMENT].to_numpy()
    all_segments = np.concatenate([held_segments, segments])
    panes = combined(all_keys, dense_codes([pa.chunked_array([pa.array(all_segments)])], len(all_segments)).codes)
    at = first_rows(panes)
    named = everything.take(pa.array(firsts[all_keys[at]])).append_column(SEGMENT, pa.array(all_segments[at]))
    return TouchedPanes(held, elements, panes[:before], panes[before:], named, read)
