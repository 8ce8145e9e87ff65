"""The protocol of runners: what a session calls to run its views, with Spark or without."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol, TypeVar

from windowpane.errors import WindowpaneError
from windowpane.sql.catalog.entries import TableInfo, ViewInfo
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.nodes import Node
from windowpane.sql.parse.positions import Place
from windowpane.sql.parse.statements import Statement
from windowpane.sql.streaming.job import Job
from windowpane.sql.upkeep.stored_changes import StoredChanges, Swap

T = TypeVar("T")


class ViewRunner(Protocol):
    """Runs the views of a session, and fills its tables that have a connector.

    A statement takes the same steps under every runner: ``prepare``; then ``attempt``, which does it in one transaction; then, if
    it may have changed views, ``deliver``. The methods from ``check_source`` to ``swapped`` are part of the transaction.
    """

    changes: StoredChanges
    """The changes in the store: what the last flush changed in each view among them."""

    def open(self) -> None:
        """Continue with what the store holds, once the catalog is read.

        Raises:
            WindowpaneError: the store cannot be used with this runner.
        """

    def close(self) -> None:
        """Stop what runs between statements."""

    # --- around a statement ----------------------------------------------------------------------------

    def prepare(self, statement: Statement, upcoming: Callable[[], Node | None]) -> None:
        """Get ready for a statement, before its transaction.

        Args:
            statement: the statement.
            upcoming: plans the view that it makes; ``None`` if it makes none.

        Raises:
            SqlError: it reads a relation that cannot be read.
        """
        return

    def attempt(self, action: Callable[[], T]) -> T:
        """Do something in one transaction, and return its result.

        Raises:
            WindowpaneError: it failed, or a view that it makes did; nothing of it was kept.
        """

    def deliver(self) -> WindowpaneError | None:
        """Deliver the changes of a statement to views, to their tables on a server, and to the stores of sinks.

        Returns:
            what a flush must report though all was delivered: views are behind, or a file was skipped.

        Raises:
            WindowpaneError: some changes could not be delivered. They wait for the next flush; all others were delivered.
        """

    # --- in its transaction ----------------------------------------------------------------------------

    def check_source(self, options: Mapping[str, str], place: Place, *, is_new: bool) -> None:
        """Refuse a connector, or options of one, that rows cannot be read with.

        Args:
            options: the options.
            place: where they are written.
            is_new: whether the source is made now; where one was made before may be empty by now.
        """

    def create_table(self, table: TableInfo) -> None:
        """Begin to fill a new table, if it has a connector."""
        return

    def drop_table(self, table: TableInfo) -> None:
        """Stop filling a table, and forget what was read for it."""

    def job(self, name: str, node: Node, *, strict: bool) -> Job | None:
        """Return the operators of a view, if they run here; unless it is strict, an expression that fails is NULL."""
        return None

    def create(self, view: ViewInfo) -> None:
        """Begin a new view with the rows of its relations, and make its table on the server of the views, if there is one."""

    def drop(self, view: ViewInfo) -> None:
        """Forget a view and the state behind it."""

    def is_unfilled(self, name: str) -> bool:
        """Whether a view has not had its first rows."""

    def flush(self, writer: Callable[[TableInfo], TableWriter]) -> None:
        """Take the changes of tables; views have them when it ends, or get them from ``deliver``.

        Args:
            writer: makes the writer that brings rows of files into a table.
        """

    def check_rename(self, name: str, place: Place) -> None:
        """Refuse to rename an entry that is known by its name outside of the store."""

    def renamed(self, old: str, new: str) -> None:
        """Continue with an entry of the catalog under its new name."""

    def goes_on(self, old: ViewInfo, node: Node) -> bool:
        """Whether a view can go on under another plan, whose operators are the same and whose rows have other columns."""

    def check_swap(self, readers: Collection[str], place: Place) -> None:
        """Refuse to let a view take the place of one that others read, where they cannot take what changes."""
        return

    def settle(self, name: str) -> None:
        """Stop a view, and take all that it has made, before its rows get other columns."""
        return

    def swapped(self, swap: Swap) -> None:
        """Continue with views that took the place of others, and hand on what has changed."""

    # --- questions -------------------------------------------------------------------------------------

    def explain(self, node: Node, view: ViewInfo | None = None) -> list[str]:
        """Return how a plan runs as a view, as lines; with the size of its state, if ``view`` has it here."""

    def cost(self, view: ViewInfo) -> list[str]:
        """Return what the last batch of a view cost, as lines."""
