"""Sinks for a query with several outputs: what ``start`` writes each output to, once a batch.

A sink is any callable ``(DataFrame, batch_id)``, or one of the specs here. ``start`` may hand the same batch to a sink again
after a crash, so a sink must be idempotent by batch id; those here are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

SinkFunction = Callable[[Any, int], None]


@dataclass(frozen=True)
class Files:
    """Files below ``path``, in a folder of its own for each query and batch, so that a repeated batch overwrites itself.

    Args:
        path: folder, on any file system Spark can write.
        format: ``"parquet"``, ``"json"``, ``"csv"``, ``"orc"``, ...
        options: of the writer.

    Read them back with ``spark.read.parquet(path)``; the folders show as the columns ``query`` and ``batch``.

    Example:
        >>> result.start(main=Files("out/hourly"), late=Files("out/late", format="json"), checkpoint="ckpt")
    """

    path: str
    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DeltaTable:
    """Appends to a Delta table at ``path``; Delta itself drops a batch it has already seen from this query.

    Args:
        path: folder of the table.
        options: of the writer.
    """

    path: str
    options: Mapping[str, str] = field(default_factory=dict)


Sink = SinkFunction | Files | DeltaTable | str
"""A callable, a spec, or a path, which means ``Files(path)``."""


def apply_changes(
    df: Any,
    store: str,
    key: str | Sequence[str],
    *,
    table: str,
    checkpoint: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Keep a table of a store up to date with a changelog, exactly once.

    Args:
        df: a DataFrame, streaming or static; ``_change_type`` says what a row is (insert, update_preimage, update_postimage,
            delete), absent means that every row is an insert or replaces the row of its key.
        store: path of a DuckDB file, or a ``postgresql://`` URL.
        key: the columns that identify a row of the table.
        table: name of the table; it is created if it is not there.
        checkpoint: checkpoint location of the streaming query. Batches are numbered by it: a table belongs to one checkpoint.
        trigger: arguments of the streaming writer's ``trigger``, such as ``{"availableNow": True}``.
        options: passed to the streaming writer's ``options``.

    Returns:
        The started streaming query, ``None`` for a static DataFrame.

    Raises:
        ChangedViewSchemaError: the table has other columns; nothing was written.

    Example:
        >>> query = apply_changes(result.df, "views.duckdb", key=["sym", "id"], table="prices", checkpoint="ckpt")
    """
    names = (key,) if isinstance(key, str) else tuple(key)
    write = ChangeWriter(store, names, table)
    if not df.isStreaming:
        write.rows(df.toArrow(), None)
        return None
    writer = df.writeStream.outputMode("append").options(**dict(options or {}))
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", checkpoint)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return writer.foreachBatch(write).start()


@dataclass(frozen=True)
class ChangeWriter:
    """A sink ``(DataFrame, batch_id)`` that applies changes to a table of a store; a repeated batch changes nothing.

    Use it where a sink function is asked for, as in ``result.start(main=ChangeWriter("views.duckdb", ("id",), "prices"))``.

    Args:
        store: path of a DuckDB file, or a ``postgresql://`` URL.
        key: the columns that identify a row of the table.
        table: name of the table.
    """

    store: str
    key: tuple[str, ...]
    table: str

    def __call__(self, df: Any, batch_id: int) -> None:
        """Apply one batch."""
        self.rows(df.toArrow(), batch_id)

    def rows(self, changes: pa.Table, batch_id: int | None) -> None:
        """Apply changes that stand in an Arrow table; without a number they count as new."""
        from windowpane.stores import Batch, open_store  # they bring DuckDB, and every worker imports this module

        target = open_store(self.store)
        try:
            number = time.time_ns() if batch_id is None else batch_id
            source = f"{self.table} (one by one)" if batch_id is None else self.table
            target.apply(Batch(self.table, self.key, changes, number, source))
        finally:
            target.close()
