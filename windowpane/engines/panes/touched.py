"""The panes that a batch touches: their contents before, the elements they get, and one code for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.engines.panes.store import PaneStore
from windowpane.engines.panes.windows import Elements
from windowpane.hidden_columns import SEGMENT
from windowpane.kernels.keys.dense_codes import combined, dense_codes, distinct, first_rows


@dataclass(frozen=True)
class TouchedPanes:
    """Panes that get elements, by code, from 0.

    Args:
        held: the rows that these panes held, ``None`` where their segments held nothing.
        others: the rows of other panes of the same segments, likewise.
        held_panes: the pane of each row held.
        element_panes: the pane of each element.
        keys: keys and segment of each pane.
        segments: the segments that were read, and are to be written back.
    """

    held: pa.Table | None
    others: pa.Table | None
    held_panes: Integers
    element_panes: Integers
    keys: pa.Table
    segments: list[int]


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
    if held is None:
        panes = _paired(keys.codes[elements.numbers], segments)
        at = first_rows(panes)
        named = keys.distinct.take(pa.array(keys.codes[elements.numbers[at]])).append_column(SEGMENT, pa.array(segments[at]))
        return TouchedPanes(None, None, np.zeros(0, np.int64), panes, named, read)
    count, others = len(segments), None
    together = dense_codes(
        pa.concat_tables([keys.distinct, held.select(names)]).columns, len(keys.distinct) + held.num_rows
    ).codes
    element_keys, held_keys = keys.codes[elements.numbers], together[len(keys.distinct) :]
    panes = _paired(np.append(element_keys, held_keys), np.append(segments, held[SEGMENT].to_numpy()))
    at = first_rows(panes[:count])
    named = keys.distinct.take(pa.array(element_keys[at])).append_column(SEGMENT, pa.array(segments[at]))
    is_touched = panes[count:] < len(at)
    held_panes = panes[count:]
    if not is_touched.all():
        others, held = held.filter(pa.array(~is_touched)), held.filter(pa.array(is_touched))
        held_panes = held_panes[is_touched]
    return TouchedPanes(held, others, held_panes, panes[:count], named, read)


def _paired(keys: Integers, segments: Integers) -> Integers:
    """Return one code for each pair, in the order in which pairs appear."""
    return combined(keys, dense_codes([pa.chunked_array([pa.array(segments)])], len(segments)).codes)
