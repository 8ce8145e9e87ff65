"""Versions: the right rows of a join as of an instant, which may be a changelog."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.errors import UnknownChangeError
from windowpane.windowing.outputs import CHANGE_TYPE, CHANGE_TYPES, UPDATE_PREIMAGE


def versions_among(rows: pa.Table) -> pa.Table:
    """Return rows without those that an update replaces: the version that replaces one comes beside it."""
    if CHANGE_TYPE not in rows.column_names:
        return rows
    words = rows[CHANGE_TYPE]
    unknown = rows.filter(pc.invert(pc.fill_null(pc.is_in(words, pa.array(sorted(CHANGE_TYPES))), False)))
    if unknown.num_rows:
        raise UnknownChangeError(CHANGE_TYPE, unknown[CHANGE_TYPE][0].as_py(), sorted(CHANGE_TYPES))
    return rows.filter(pc.not_equal(words, UPDATE_PREIMAGE))
