"""What sessions of Spark Connect refuse: all that needs rows in the process of the session, since batches run on the server.

- The rows of a table with a connector, or of a source that something reads in the store, are stored: a classic session inserts
  them batch by batch.
- A store holds one of these tables.
- The folder beside the store is one that the server does not see: tasks write there what the session takes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windowpane.errors import UnsupportedSqlError, UnsupportedStoreError
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.embedded.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WAY_OUT = "Open a classic one, or make views of a source, whose rows are not stored."


@dataclass(frozen=True)
class ConnectLimits:
    """Refuses what a session cannot do on Spark Connect."""

    is_remote: bool

    def check_storing(self, tables: Iterable[TableInfo]) -> None:
        """Refuse to store the rows of tables with a connector."""
        names = [table.relation.name for table in tables]
        if names and self.is_remote:
            message = f"storing the rows of {names[0]!r} on Spark Connect is not supported: they pass the process "
            raise UnsupportedSqlError(f"{message}of the session, and its batches run on the server. {_WAY_OUT}", 1, 1)

    def check_store(self, storage: Storage, stored: Iterable[TableInfo]) -> None:
        """Refuse a store with tables that only a classic session fills."""
        names = [table.relation.name for table in stored] if self.is_remote else []
        if names:
            raise UnsupportedStoreError(
                storage.path,
                f"{', '.join(names)} need a classic SparkSession: rows of a table with a connector pass the process of the "
                f"session. {_WAY_OUT}",
            )


def check_folder(spark: SparkSession, folder: Path) -> None:
    """Refuse a folder that the server of Spark Connect does not see."""
    from windowpane.spark.queries.batch_query import sees

    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f"probe-{uuid.uuid4().hex}.txt"
    probe.write_text(probe.name)
    try:
        if not sees(spark, probe):
            raise UnsupportedStoreError(
                str(folder),
                "the server of Spark Connect does not see this folder, where its tasks write and the session reads. Put the "
                "store into one that both share, under the same path.",
            )
    finally:
        probe.unlink()
