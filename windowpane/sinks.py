"""Sinks: what outputs are written to, and tables that are kept up to date with a changelog."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from windowpane.errors import InvalidSpecError
from windowpane.planning.sinks import DeltaTable, Files, Sink, SinkFunction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["ChangeWriter", "DeltaTable", "Files", "Sink", "SinkFunction", "apply_changes"]


@overload
def apply_changes(
    df: DataFrame,
    store: str,
    key: str | Sequence[str],
    *,
    table: str,
    checkpoint: str,
    trigger: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> StreamingQuery: ...


@overload
def apply_changes(
    df: DataFrame,
    store: str,
    key: str | Sequence[str],
    *,
    table: str,
    checkpoint: None = None,
    trigger: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> StreamingQuery | None: ...


def apply_changes(
    df: DataFrame,
    store: str,
    key: str | Sequence[str],
    *,
    table: str,
    checkpoint: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> StreamingQuery | None:
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
        InvalidSpecError: a checkpoint for a static DataFrame, which has no query.
        ChangedViewSchemaError: the table has other columns; nothing was written.
        RunningCheckpointError: a query with this checkpoint runs already.

    Example:
        >>> query = apply_changes(result.df, "views.duckdb", key=["sym", "id"], table="prices", checkpoint="ckpt")
    """
    names = (key,) if isinstance(key, str) else tuple(key)
    write = ChangeWriter(store, names, table)
    if not df.isStreaming:
        if checkpoint is not None:
            raise InvalidSpecError(
                f"checkpoint={checkpoint!r} belongs to a query, and this DataFrame is static: it is applied at once. Leave the "
                "checkpoint out, or read the changes with spark.readStream."
            )
        write.rows(df.toArrow(), None)
        return None
    from windowpane.spark.queries.running import start_writing

    query: StreamingQuery = start_writing(df, write, checkpoint, trigger, options=options or {})
    return query


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
