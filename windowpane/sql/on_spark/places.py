"""By what the rows of a node are spread over buckets, kept beside its state: who moves state to other buckets has no plan.

The number that says where a row belongs is SQL over its keys (``stages.layout``). It is kept as text, for rows that do not have
the number beside them: those that engines hold, and distinct values, which lie by another one in their pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.arrays import Unsigned
from windowpane.sql.on_spark.rowwise import cast_items, task_storage
from windowpane.sql.on_spark.stages import HASH, Stage


def spread_of(stage: Stage) -> dict[str, Any]:
    """Return by what the rows of a node are spread, as JSON has it.

    ``keys`` are the columns of each input, ``types`` those of the first one's in DuckDB, ``sql`` is over these, and ``column``
    has the number, of rows that are kept by the keys of their input.
    """
    first = stage.keys[0]
    return {
        "keys": [[key.id for key in keys] for keys in stage.keys],
        "types": {key.id: key.type.duckdb for key in first},
        "sql": stage.place_sql(0),
        "column": HASH,
    }


def places_of(rows: pa.Table, spread: Mapping[str, Any]) -> Unsigned:
    """Return where rows belong that have the keys of the first input of a node."""
    if not spread["types"]:
        return np.zeros(rows.num_rows, np.uint64)
    items = cast_items(list(spread["types"].items()))
    storage = task_storage()
    with storage.transaction(), storage.reading(rows) as given:
        found = storage.arrow(f"SELECT {spread['sql']} AS {HASH} FROM (SELECT {items} FROM {given})")
    return stored_places(found)


def stored_places(rows: pa.Table) -> Unsigned:
    """Return where rows belong that have the number beside them."""
    places: Unsigned = rows[HASH].to_numpy().astype(np.uint64)
    return places
