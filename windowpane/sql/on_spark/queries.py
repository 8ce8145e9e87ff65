"""The streaming queries of a session: one a view, one a table with a connector, each with a checkpoint in a folder of its own.

The query of a view reads an inbox beside the checkpoint, its sources themselves, or both. It starts with its first change set and
runs until the session closes. The folders are no part of the store's transactions: one that the store does not know is left over
from a crash, and is removed when a session opens.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowpane.errors import MisplacedStateError, NotAFolderError
from windowpane.sql.on_spark.batch_writing import LogWriter
from windowpane.sql.on_spark.change_log import ChangeLog
from windowpane.sql.on_spark.change_sets import SCHEMA, named_in, received
from windowpane.sql.on_spark.connect_limits import check_folder
from windowpane.sql.on_spark.pending_changes import TAKES_NONE, PendingChanges
from windowpane.state.pairs import NONE, Pair

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windowpane.spark.queries.batch_query import BatchQuery
    from windowpane.spark.queries.followed_query import Elsewhere

_FOLDER = ".streams"
"""How the folder ends that is named by the store."""

_OWNER = "_store"
"""The file in the folder that names the store it belongs to."""

Ingested = Callable[[str, pa.Table, int], None]


class ViewQueries:
    def __init__(self, spark: SparkSession, store: str, pending: PendingChanges, ingest: Ingested) -> None:
        """Run queries in a folder beside the store, or a temporary one."""
        from windowpane.spark.internals.session import is_classic

        self.is_remote = not is_classic(spark)
        self._spark, self._pending, self._ingest = spark, pending, ingest
        self._is_lasting = store != ":memory:"
        folder = f"{store}{_FOLDER}" if self._is_lasting else tempfile.mkdtemp(prefix="windowpane-streams-")
        self._folder = Path(folder).absolute()  # tasks have other working directories
        self._running: dict[str, BatchQuery] = {}
        self._sharing: set[str] = set()
        if self.is_remote:
            check_folder(spark, self._folder)
        self._compare()

    def _compare(self) -> None:
        """Refuse a store and a folder that do not belong together, before anything of either is changed.

        Raises:
            MisplacedStateError: the folder is that of another store, or one of the two was restored from an older copy.
        """
        NotAFolderError.refuse("the state beside the store", self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        mark = self._folder / _OWNER
        if mark.exists() and mark.read_text() != self._pending.identity:
            raise MisplacedStateError(
                f"folder {str(self._folder)!r} has the checkpoints of another store than the one beside it. Put the store back "
                "that it belongs to; if that is gone, remove the folder. Nothing was written."
            )
        for name in self._pending.names():
            self._compare_view(name)
        if not mark.exists():
            draft = mark.with_suffix(".draft")
            draft.write_text(self._pending.identify())
            draft.rename(mark)

    def _compare_view(self, name: str) -> None:
        stream, log = self._pending.stream(name), self.change_log(name)
        folder, pair = self._folder / stream.folder, self.pair(name)
        committed, begun = (
            max((int(file.name) for file in (folder / "checkpoint" / kind).glob("*") if file.name.isdecimal()), default=NONE)
            for kind in ("commits", "offsets")
        )
        pair.has_begun(max(stream.batch, log.last()), committed, begun)
        pair.has_begun(stream.batch, max(stream.batch, log.taken()), max(stream.batch, log.taken()))
        last = max((int(file.stem) for file in (folder / "inbox").glob("*.parquet")), default=NONE)
        due = stream.sent if stream.due is None else stream.due[0]
        if last != NONE or stream.sent > TAKES_NONE:
            Pair(pair.taker, f"the inbox of {name!r} in {str(folder)!r}", pair.way_out).has_begun(last, stream.sent, due)

    def pair(self, name: str) -> Pair:
        return Pair(
            f"the checkpoint of {name!r} in {str(self._folder)!r}",
            f"store {str(self._folder).removesuffix(_FOLDER)!r}",
            "Put copies of the store and the folder back that belong together; if there are none, make a new store and insert "
            "the rows of its tables, which are plain tables of the DuckDB file.",
        )

    def tidy(self) -> None:
        """Remove folders that no view uses, and files of changes that neither a change set nor a pending change names."""
        self._folder.mkdir(parents=True, exist_ok=True)
        known = self._pending.folders()
        for folder in filter(Path.is_dir, self._folder.iterdir()):
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            named = {Path(file).name for file in known[folder.name] | named_in(folder / "inbox")}
            for file in received(folder / "inbox").glob("*"):
                if file.name not in named:
                    file.unlink()

    def inbox(self, name: str) -> Path:
        inbox = self._folder / self._pending.stream(name).folder / "inbox"
        inbox.mkdir(parents=True, exist_ok=True)
        return inbox

    def received(self, name: str) -> Path:
        return received(self._folder / self._pending.stream(name).folder / "inbox")

    def change_log(self, name: str) -> ChangeLog:
        return ChangeLog(self._folder / self._pending.stream(name).folder / "changes")

    def exchange_folder(self, name: str) -> Path:
        return self._folder / self._pending.stream(name).folder / "exchange"

    def start_view(self, name: str, changes: Callable[[Any], Any], writer: LogWriter, take: Callable[[], None]) -> None:
        """Start the query of a view, if it does not run.

        Args:
            name: of the view.
            changes: makes the streaming DataFrame of its changes in a session.
            writer: writes its batches, in the process of Spark's driver.
            take: brings what is in the change log to the store, here.
        """
        from windowpane.spark.queries.followed_query import Elsewhere

        elsewhere = Elsewhere(writer.log.last, take) if self.is_remote else None
        self._start(name, changes, writer, elsewhere, None if self.is_remote else take)

    def share_change_sets(self, name: str, *, is_shared: bool) -> None:
        """Let all tasks share the parts of the change sets of a view, or one take them; if that changes, the query starts anew.

        A query that runs must have nothing left to do, and must not read sources.
        """
        if is_shared != (name in self._sharing):
            self.drop(name)
            self._sharing ^= {name}

    def change_sets(self, name: str, spark: SparkSession) -> Any:
        from windowpane.spark.queries.batch_query import inbox

        return inbox(spark, self.inbox(name), SCHEMA, is_shared=name in self._sharing)

    def is_running(self, name: str) -> bool:
        return name in self._running

    def last_batch(self, name: str) -> Any:
        """Return the progress of the last batch of a view, as Spark gives it; ``None`` where none has run in this session."""
        return self._running[name].last_batch if name in self._running else None

    def start_table(self, name: str, rows: Callable[[Any], Any]) -> None:
        """Start the query that fills a table, if it does not run; ``rows`` makes the streaming DataFrame of a session."""
        self._start(name, rows, _collecting(partial(self._ingest, name)))

    def _start(
        self,
        name: str,
        rows: Callable[[Any], Any],
        take: Callable[[Any, int], None],
        elsewhere: Elsewhere | None = None,
        behind: Callable[[], None] | None = None,
    ) -> None:
        from windowpane.spark.queries.batch_query import BatchQuery
        from windowpane.spark.queries.followed_query import FollowedQuery

        if name not in self._running:
            checkpoint = self._folder / self._pending.stream(name).folder / "checkpoint"
            given = self._spark, f"windowpane {name}", checkpoint, rows, take
            logging.getLogger(__name__).info(
                "starting the streaming query of %s; the first one starts Spark's workers, too", name
            )
            self._running[name] = BatchQuery(*given, behind) if elsewhere is None else FollowedQuery(*given, elsewhere)
        self._running[name].start()

    def finish(self, name: str, *, is_endless: bool = False) -> None:
        """Wait until a query that was started has taken all rows that exist; of an endless source, those that exist now.

        Raises:
            WindowpaneError: it cannot; the query has stopped, and starts again with the next attempt.
        """
        self._running[name].finish(is_endless=is_endless)

    def drop(self, name: str) -> None:
        query = self._running.pop(name, None)
        if query is not None:
            query.stop()

    def close(self) -> None:
        running = list(self._running.values())
        for name in list(self._running):
            self.drop(name)
        for query in running:
            query.join()
        if not self._is_lasting:
            shutil.rmtree(self._folder, ignore_errors=True)


def _collecting(take: Callable[[pa.Table, int], None]) -> Callable[[Any, int], None]:
    """Return a function that takes a batch as a DataFrame, and hands its rows on as an Arrow table."""

    def collect(rows: DataFrame, number: int) -> None:
        from windowpane.spark.queries.batch_query import collected

        take(collected(rows), number)

    return collect


def local_spark() -> SparkSession:
    """Return the running SparkSession, or a new one, as the settings of Spark say; by default on all cores here."""
    from windowpane.spark.internals.session import local_session

    return local_session()
