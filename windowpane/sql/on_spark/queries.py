"""The streaming queries of a session: one a view, each with an inbox and a checkpoint in a folder of its own.

A query starts with its first letter and runs until the session closes. The folders are no part of the store's transactions: one
that the store does not know is left over from a crash, and is removed when a session opens.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowpane.errors import InvalidSpecError
from windowpane.sql.on_spark.letters import SCHEMA
from windowpane.sql.on_spark.mail import Mail

if TYPE_CHECKING:
    from windowpane.spark.inbox_query import InboxQuery

Answer = Callable[[str, pa.Table, int], None]


class ViewQueries:
    """The queries of a session, by view."""

    def __init__(self, spark: Any, store: str, mail: Mail, answer: Answer) -> None:
        """Run queries in a folder beside the store, or a temporary one, that hand each batch to ``answer``."""
        if not hasattr(spark, "_jsparkSession"):
            raise InvalidSpecError(
                f"Session(spark={type(spark).__name__}): views need a classic SparkSession: their batches are written here. "
                "On Spark Connect the fluent API, and sinks.apply_changes, run; a session without Spark runs the same SQL."
            )
        self._spark, self._mail, self._answer = spark, mail, answer
        self._is_lasting = store != ":memory:"
        self._folder = Path(f"{store}.streams") if self._is_lasting else Path(tempfile.mkdtemp(prefix="windowpane-streams-"))
        self._running: dict[str, InboxQuery] = {}

    def tidy(self) -> None:
        """Remove folders that no view uses."""
        self._folder.mkdir(parents=True, exist_ok=True)
        known = self._mail.folders()
        for folder in self._folder.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)

    def inbox(self, name: str) -> Path:
        """Return the folder of a view's letters."""
        inbox = self._folder / self._mail.stream(name).folder / "inbox"
        inbox.mkdir(parents=True, exist_ok=True)
        return inbox

    def start(self, name: str, made: Callable[[Any], Any] | None) -> None:
        """Start the query of a view, if it does not run; ``made`` says what becomes of a DataFrame of letters on Spark."""
        from windowpane.spark.inbox_query import InboxQuery

        if name not in self._running:
            inbox = self.inbox(name)
            take = partial(self._answer, name)
            self._running[name] = InboxQuery(
                self._spark, f"windowpane {name}", inbox, inbox.parent / "checkpoint", SCHEMA, take, made
            )
        self._running[name].start()

    def finish(self, name: str) -> None:
        """Wait until a view, whose query was started, has taken all its letters.

        Raises:
            WindowpaneError: it cannot; the query has stopped, and starts again with the next attempt.
        """
        self._running[name].finish()

    def drop(self, name: str) -> None:
        """Stop the query of a view."""
        query = self._running.pop(name, None)
        if query is not None:
            query.stop()

    def close(self) -> None:
        """Stop all queries."""
        for name in list(self._running):
            self.drop(name)
        if not self._is_lasting:
            shutil.rmtree(self._folder, ignore_errors=True)
