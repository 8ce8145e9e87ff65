"""Materialized views as tables of a PostgreSQL database, kept up to date from a state elsewhere.

Layout: ``windowpane_state`` holds in one row the state that the views of the database belong to, ``windowpane_views`` the views
and the source that the batches of each are numbered for, ``windowpane_batches`` the number of the last batch by source. A view's
entry is inserted and deleted in the transaction that makes and drops its table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windowpane.errors import StoreError
from windowpane.stores.batches import Batch, quoted
from windowpane.stores.postgres import PostgresStore

_SET_UP = (
    "CREATE TABLE IF NOT EXISTS windowpane_state (id text PRIMARY KEY, path text NOT NULL, host text NOT NULL)",
    "CREATE TABLE IF NOT EXISTS windowpane_views (view text PRIMARY KEY, source text NOT NULL)",
)
_LONGEST_NAME = 63  # Bytes of a name, of which PostgreSQL cuts off what is more


@dataclass(frozen=True)
class Owner:
    id: str  # of the state
    path: str  # of its file, when it was last opened
    host: str  # the machine it was opened on


class PostgresViews(PostgresStore):
    """The views of one state in a database."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        with self.transaction():
            for statement in _SET_UP:
                self.run(statement)

    def owner(self) -> Owner | None:
        rows = self.read("SELECT id, path, host FROM windowpane_state")
        return Owner(*rows[0]) if rows else None

    def claim(self, owner: Owner) -> None:
        with self.transaction():
            self.run("DELETE FROM windowpane_state")
            self.run("INSERT INTO windowpane_state VALUES (%s, %s, %s)", [owner.id, owner.path, owner.host])

    def numbers(self) -> dict[str, int]:
        rows = self.read(
            "SELECT source, number FROM windowpane_views JOIN windowpane_batches USING (source) "
            "WHERE to_regclass(quote_ident(view)) IS NOT NULL"
        )
        return dict(rows)

    def try_to_create(self, view: Batch, *, replaces: bool = False) -> None:
        """Check that the table of a view, given as a batch without rows, can be made, perhaps for another; nothing is changed."""
        for name in (view.table, *view.columns.names):
            if len(name.encode()) > _LONGEST_NAME:
                raise StoreError(
                    self.address, f"{name!r} is longer than the {_LONGEST_NAME} bytes of a name. Give it a shorter one."
                )
        with self.transaction(is_trial=True):
            if replaces:
                self.run(f"DROP TABLE IF EXISTS {quoted(view.table)}")
            self.prepare(view)
            known = self.run("SELECT 1 FROM windowpane_views WHERE view = %s", [view.table]).fetchall()
            if not known and self.run(f"SELECT 1 FROM {quoted(view.table)} LIMIT 1").fetchall():
                raise StoreError(
                    self.address,
                    f"there is a table {view.table!r} with rows that are not those of a view. Drop or rename it, or give the "
                    "view another name; nothing was written.",
                )

    def apply_all(self, batches: Iterable[Batch], replaced: Iterable[tuple[str, str]] = ()) -> None:
        """Apply batches of several views in one transaction; those that were applied before change nothing.

        Args:
            batches: the batches.
            replaced: views, each with its source, whose tables are dropped before: batches make others in their place.
        """
        with self.transaction():
            for view, source in replaced:
                self.drop(view, source)
            for batch in batches:
                if self.apply(batch) and batch.is_whole:
                    self._register(batch.table, batch.source)

    def _register(self, view: str, source: str) -> None:
        self._forget(view, "source <> %s", source)
        self.run("INSERT INTO windowpane_views VALUES (%s, %s) ON CONFLICT DO NOTHING", [view, source])

    def _forget(self, view: str, condition: str, source: str) -> bool:
        """Remove the entry of a view, if its source fits, and say whether it did."""
        delete = f"DELETE FROM windowpane_views WHERE view = %s AND {condition} RETURNING source"
        sources = [row[0] for row in self.run(delete, [view, source]).fetchall()]
        for each in sources:
            self.drop_staging(each)
        self.run("DELETE FROM windowpane_batches WHERE source = ANY(%s)", [sources])
        return bool(sources)

    def try_to_drop(self, view: str) -> None:
        """Check that the table of a view can be dropped: others may depend on it; nothing is changed."""
        with self.transaction(is_trial=True):
            self.run(f"DROP TABLE IF EXISTS {quoted(view)}")

    def drop(self, view: str, source: str) -> None:
        """Drop the table of a view, unless it was dropped before, or belongs to a later view of that name."""
        with self.transaction():
            if self._forget(view, "source = %s", source):
                self.run(f"DROP TABLE IF EXISTS {quoted(view)}")
