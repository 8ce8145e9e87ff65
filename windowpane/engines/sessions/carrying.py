"""Sessions that go on under another trigger, lateness or refinement: taken out of the state, and put back in its new form.

There are two forms, told by their index: pages of sessions whose end alone fires them (``batch``), and panes with what a trigger
knows of each (``called``). Contents stay. Under another trigger sessions that hold nothing are forgotten, and the others wait for
the clocks as if it had begun with them; counts begin at none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windowpane.engines.changes import Description, begins_anew
from windowpane.engines.common.columnar import ALL
from windowpane.engines.panes.standings import Standings
from windowpane.engines.panes.store import STANDING, DueTimers, PaneStore
from windowpane.errors import present
from windowpane.hidden_columns import END, FILLED, HELD, SEGMENT, START
from windowpane.kernels.keys.key_codes import plain_key
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import kind_of
from windowpane.state.listing import hash_pages
from windowpane.windowing.windows import TimeWindow

_IN_PAGES = "hash-pages-index"
_FORMED_BY = ("trigger", "allowed lateness", "refinements")


def taken_out(store: BlobStore, keys: Sequence[str], was: Description, now: Description) -> pa.Table | None:
    """Return the sessions of a bucket, which it does not hold any more; ``None`` where they stay as they are.

    All have ``FILLED``, and ``STANDING`` if a trigger was called that goes on with them.
    """
    index = None if all(was.get(part) == now.get(part) for part in _FORMED_BY) else store.get("p.i")
    if index is None:
        return None
    rows = _of_pages(store) if kind_of(index) == _IN_PAGES else _of_panes(store, keys)
    if FILLED not in rows.column_names:
        rows = rows.append_column(FILLED, pa.array(np.ones(rows.num_rows, np.bool_)))
    if not begins_anew(was, now):
        return rows
    rows = rows.filter(rows[FILLED])
    return rows.drop_columns([STANDING]) if STANDING in rows.column_names else rows


def in_pages(rows: pa.Table, groups: Sequence[str], keeps_empty: bool) -> pa.Table:
    """Return sessions that were taken out as pages have them: with these columns of the key, empty ones if they are kept."""
    rows = rows if keeps_empty else rows.filter(rows[FILLED])
    known = [*groups, START, END, *([HELD] if HELD in rows.column_names else [])]
    others = [name for name in rows.column_names if name not in (*known, STANDING, FILLED, ALL)]
    rows = rows.select([*known, *others, *([FILLED] if keeps_empty else [])]).combine_chunks()
    for name in groups:
        rows = rows.set_column(rows.column_names.index(name), name, plain_key(rows[name]))
    return rows


def in_panes(rows: pa.Table, keys: Sequence[str], standings: Standings, lateness_before: int) -> pa.Table:
    """Return sessions that were taken out as panes have them: those that are over go, unless a tree may still show them."""
    lateness, watermark = standings.spec.lateness, standings.watermark
    if lateness.is_event_time and not (STANDING in rows.column_names and standings.is_composed):
        rows = rows.filter(pa.array(lateness.cleanup_times(rows[END].to_numpy() - 1) > watermark))
    if STANDING in rows.column_names:
        numbers = standings.kept_for(standings.of(rows[STANDING]), lateness_before)
        rows = rows.drop_columns([STANDING])
    else:
        bounds = zip(rows[START].to_pylist(), rows[END].to_pylist(), strict=True)
        numbers = np.array([standings.begun(TimeWindow(*each)) for each in bounds], np.int64)
    if ALL in keys and ALL not in rows.column_names:
        rows = rows.append_column(ALL, pa.array(np.zeros(rows.num_rows, np.int8)))
    return rows.append_column(STANDING, standings.column(numbers))


def _of_pages(store: BlobStore) -> pa.Table:
    pages = hash_pages(store, "p")
    rows = pa.concat_tables([page for at in range(len(pages)) if (page := pages.read(at)) is not None])
    pages.replace(range(len(pages)), rows.slice(0, 0))
    pages.commit()
    return rows


def _of_panes(store: BlobStore, keys: Sequence[str]) -> pa.Table:
    panes, due = PaneStore(store, keys, is_global=True), DueTimers(store)
    segments = panes.segments()
    rows = present(panes.read(segments), "its index is there")
    for segment in segments:
        panes.drop(segment)
    panes.flush()
    due.clear()
    due.flush()
    return rows.drop_columns([SEGMENT])
