"""Reading back what ``Files`` wrote: of each window the last result.

Order: that of the batches, then of the files of a batch and of the rows in a file. All results of a key and window are emitted
by one bucket, so those of one batch are in one task's files, in the order in which they fired.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F

from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.spark.session.column_names import column_named
from windowpane.spark.stages.project import quoted
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, UPDATE_PREIMAGE

_BATCH = re.compile(r"batch(_\d+)?")
"""The last column of what ``Files`` wrote."""
_LATEST = "latest"


def read_latest(spark: Any, path: str, key: Sequence[str]) -> Any:
    """Return the last result of each key and window as a static DataFrame."""
    found = spark.read.parquet(path)
    batch = found.columns[-1]
    if not _BATCH.fullmatch(batch):
        raise InvalidSpecError(f"{path!r} has no folders of batches: wp.Files writes them, in start(main=...).")
    query = f"query{batch.removeprefix('batch')}"
    queries = [row[0] for row in found.select(query).distinct().limit(2).collect()] if query in found.columns else []
    if len(queries) > 1:
        raise InvalidSpecError(
            f"two queries wrote to {path!r}, {' and '.join(sorted(queries))}, and which of their batches came later is not "
            "known: read one of them, path + '/query=...', or give each checkpoint a folder of its own."
        )
    rows = found.drop(query, batch)
    names, spelled = rows.columns, [column_named(rows, name) or name for name in key]
    for name in spelled:
        if name not in names:
            raise UnknownColumnError(name, "key of read_latest", names)
    windows = [name for name in (WINDOW_START, WINDOW_END) if name in names]
    if not (key or windows):
        raise InvalidSpecError(f"{path!r} has no windows: name the columns that a result replaces another by, with key=.")
    if CHANGE_TYPE in names:
        found = found.filter(F.col(CHANGE_TYPE) != UPDATE_PREIMAGE)
    place = F.struct(F.col(batch).cast("long"), "_metadata.file_name", "_metadata.row_index")
    row = F.struct(*[F.col(quoted(name)) for name in names])
    grouped = found.groupBy(*[F.col(quoted(name)).alias(f"by_{n}") for n, name in enumerate((*spelled, *windows))])
    latest = grouped.agg(F.max_by(row, place).alias(_LATEST)).select(f"{_LATEST}.*")
    return latest.filter(F.col(CHANGE_TYPE) != DELETE).drop(CHANGE_TYPE) if CHANGE_TYPE in names else latest
