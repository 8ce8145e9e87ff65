"""Keeps materialized views and sinks up to date: one flush takes all changes of tables through every view, in order.

State in memory is only what the store can give again: the name of the last changelog of each view, a temporary relation
(``None`` stands for all rows, of a view that had none before), and caches of operators, which are dropped when a transaction is
rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from windowpane.errors import UnreadableFileError, UnsupportedSqlError, UnsupportedStoreError, WindowpaneError
from windowpane.sql.catalog import views
from windowpane.sql.catalog.entries import Catalog, SinkInfo, TableInfo, ViewInfo, shown_name
from windowpane.sql.catalog.relations import PlainView, Relation
from windowpane.sql.embedded import file_sources, tables
from windowpane.sql.embedded.outbox import Outbox, next_batch
from windowpane.sql.embedded.postgres_views import ServedViews
from windowpane.sql.embedded.sinks import Delivery
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.failures.bad_values import BadValues
from windowpane.sql.failures.stale import StaleViews
from windowpane.sql.nodes import Node, explain_plan
from windowpane.sql.parse.positions import Place
from windowpane.sql.parse.statements import Statement
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import WEIGHT, Inserts, apply_to, kept, like, settled, with_words

T = TypeVar("T")


class ViewFailure(Exception):  # noqa: N818 - passes no boundary: ``ViewMaintenance.attempt`` takes it
    """A view could not take its changes."""

    def __init__(self, view: ViewInfo, cause: Exception) -> None:
        """Keep the view, and what failed."""
        super().__init__(view.relation.name)
        self.view, self.cause = view, cause

    @property
    def reason(self) -> str:
        """What failed, for users."""
        return reason(self.cause)


def reason(failure: Exception) -> str:
    """Return what failed in one line; a mistake of ours with its kind."""
    line = str(failure).split("\n")[0]
    return line if isinstance(failure, WindowpaneError) else f"{type(failure).__name__}: {line} (please report this)"


class ViewMaintenance:
    """The views and sinks of a session at work."""

    def __init__(self, storage: Storage, catalog: Catalog, clock: Watermarks, served: ServedViews | None) -> None:
        """Keep up what ``catalog`` holds; ``served`` are its views elsewhere, if they stand there."""
        self._storage, self._catalog, self._clock, self._served = storage, catalog, clock, served
        self._changes: dict[str, str | None] = {}
        self._had_rows: set[str] = set()
        self._sinks: dict[str, Delivery] = {}
        self._stale, self._files = StaleViews(storage), file_sources.TakenFiles(storage)
        self.bad_values = BadValues(storage)
        self.unreadable: dict[str, UnreadableFileError] = {}
        self._tried: dict[str, str] = {}
        self._settling: dict[str, bool] = {}

    def open(self) -> None:
        """Take up what the store holds, once the catalog is read.

        Raises:
            UnsupportedStoreError: views of the store keep their state in Spark's checkpoints.
        """
        rows = self._storage.run("SELECT name FROM windowpane.streams WHERE spread ORDER BY name")
        if rows:
            raise UnsupportedStoreError(self._storage.path, ", ".join(row[0] for row in rows))
        self._take_up_served()
        self.deliver()

    def _take_up_served(self) -> None:
        if self._served is not None:
            with self._storage.transaction():
                self._served.take_up(self._catalog.views())

    def close(self) -> None:
        """Stop what runs between statements: here a connection at most."""
        if self._served is not None:
            self._served.close()

    def is_unfilled(self, name: str) -> bool:
        """Whether a view has not had its first rows: never after the statement that made it."""
        return False

    def forget(self) -> None:
        """Drop what is only held in memory of a transaction that was rolled back."""
        self._clock.reload()
        self._stale.forget()
        self._files.forget()
        self._had_rows.clear()
        for view in self._catalog.views():
            view.job.forget()
        self._sinks = {}
        for sink in self._catalog.sinks():
            self.open_sink(sink, is_new=False)

    def deliver(self) -> None:
        """Hand what waits in outboxes to the server of the views, and to the stores of sinks.

        Raises:
            WindowpaneError: one of them cannot take it, which goes on waiting. The others have taken theirs.
        """
        failures: list[Exception] = []
        deliveries: list[Callable[[], None]] = [sink.deliver for sink in self._sinks.values()]
        if self._served is not None:
            deliveries.insert(0, partial(self._served.deliver, self._catalog.views()))
        for deliver in deliveries:
            try:
                deliver()
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise failures[0]

    def flush(self) -> None:
        """Bring every view up to date with its tables; what a stale view reads waits for it.

        Raises:
            ViewFailure: a view cannot take its changes; see ``attempt``.
        """
        changes, stale = self._pending(), self._stale.reasons()
        self._forget_changes()
        for view in self._catalog.views():
            self._follow(view, changes, is_stale=view.relation.name in stale)
        self._fill_outboxes(changes)
        self._clear_pending()

    def _follow(self, view: ViewInfo, changes: dict[str, str], *, is_stale: bool) -> None:
        """Let a view take the changes of what it reads, and add its own to them."""
        mine = {name: changes[name] for name in view.reads if name in changes}
        if is_stale:
            self._stale.hold(view.relation.name, mine)
            return
        delta = self._advance(view, mine)
        if delta is not None:
            changes[view.relation.name] = delta

    def attempt(self, action: Callable[[], T]) -> T:
        """Do something in a transaction, so that no view's failure stops another.

        DuckDB ends a transaction with the first error in it, so the whole is done again: first with expressions of the view
        that failed in TRY, unless it is strict, then without the view, which is stale from then on. A file of a source that
        cannot be read is passed over, until the next time.

        Raises:
            WindowpaneError: what is done failed, or a view that it makes; nothing of it was kept.
        """
        self.unreadable.clear()
        times = 0
        while True:
            before, changes = dict(self._catalog.entries), dict(self._changes)
            self._settling.clear()
            try:
                with self._storage.transaction():
                    result = action()
            except BaseException as failure:
                self._catalog.entries, self._changes = before, changes
                self.forget()
                if isinstance(failure, UnreadableFileError) and failure.path not in self.unreadable:
                    self.unreadable[failure.path] = failure
                    continue
                if not isinstance(failure, ViewFailure):
                    raise
                if not self._gives_way(failure):
                    raise failure.cause from failure.cause.__cause__
                times += 1
                if times > 1:
                    self._try_all()
            else:
                self._settle()
                return result

    def _settle(self) -> None:
        """Keep expressions of views in TRY where that is committed, and take the others out of it."""
        for name, stays in self._settling.items():
            view = self._catalog.entries.get(name)
            if stays:
                self._tried[name] = ""
            elif isinstance(view, ViewInfo):
                self._tried.pop(name, None)
                self._catalog.entries[name] = replace(view, job=view.job.trying(None))

    def _try_all(self) -> None:
        """Put the expressions of all views in TRY: a bad value may reach many, and the flush is not done again for each."""
        for name, view in self._catalog.entries.items():
            if isinstance(view, ViewInfo) and not (view.strict or view.job.tries):
                self._catalog.entries[name] = replace(view, job=view.job.trying(self.bad_values))

    def _gives_way(self, failure: ViewFailure) -> bool:
        """Say whether what a view's failure stopped can be done again, and prepare the view for it."""
        view, name = failure.view, failure.view.relation.name
        is_new = name not in self._catalog.entries
        if not (view.strict or view.job.tries):
            self._tried[name] = failure.reason
            if not is_new:
                self._catalog.entries[name] = replace(view, job=view.job.trying(self.bad_values))
            return True
        if is_new or name in self._stale.reasons():
            self._tried.pop(name, None)
            return False
        with self._storage.transaction():
            self._stale.add(name, failure.reason)
        return True

    def catch_up(self) -> dict[str, str]:
        """Let stale views take what waits for them, each in a transaction of its own; return why those that cannot cannot."""
        failures: dict[str, str] = {}
        for name in self._stale.reasons():
            try:
                self.attempt(partial(self._caught_up, name))
            except Exception as failure:
                told = failures[shown_name(name)] = reason(failure)
                with self._storage.transaction():
                    self._stale.add(name, told)
                    self.bad_values.note_view(name, told)
        return failures

    def _caught_up(self, name: str) -> None:
        stale, changes = self._stale.reasons(), dict[str, str]()
        for view in self._catalog.views():
            if view.relation.name == name:
                columns = {each: [column.name for column in self._relation(each).columns] for each in view.reads}
                waiting = self._stale.held(name, columns)
                self._stale.drop(name, view.reads)
                self.bad_values.forget_view(name)
                delta = self._advance(view, waiting)
                if delta is not None:
                    changes[name] = delta
            elif view.reads & set(changes):
                self._follow(view, changes, is_stale=view.relation.name in stale)
        self._fill_outboxes(changes)

    def bad_values_of(self, name: str, *, strict: bool) -> BadValues | None:
        """Return where a view counts values that its expressions fail on, ``None`` if it fails with them."""
        return self.bad_values if name in self._tried else None

    def _pending(self) -> dict[str, str]:
        """Return the changes of tables that wait and that somebody reads, by name; ``_clear_pending`` ends the wait."""
        changes: dict[str, str] = {}
        read = set().union(*(view.reads for view in self._catalog.views()), (box.relation.name for box in self._outboxes()))
        for table in self._catalog.tables():
            relation = table.relation
            delta = tables.waiting_changes(self._storage, table) if relation.name in read else None
            if delta is not None:
                changes[relation.name] = delta
        return changes

    def _clear_pending(self) -> None:
        for table in self._catalog.tables():
            self._storage.waiting.end(table.relation.name, table.pending)

    def fill(self, view: ViewInfo) -> None:
        """Run a new view on what its relations hold."""
        changes: dict[str, str] = {name: whole(self._relation(name)) for name in view.reads}
        self._advance(view, changes, initial=True)

    def drop(self, view: ViewInfo) -> None:
        """Forget a view and the state behind it."""
        view.job.drop()
        self._stale.drop(view.relation.name, view.reads)
        self.bad_values.drop(view.relation.name)
        self._tried.pop(view.relation.name, None)
        if self._served is not None:
            self._served.drop(view)
        self._forget_changes(view.relation.name)
        self._had_rows.discard(view.relation.name)

    def gather(self, upcoming: Callable[[], Node | None] = lambda: None) -> None:
        """Wait until tables with a connector hold what there is to read; ``upcoming`` plans the view that is about to be made."""

    def check_reads(self, statement: Statement) -> None:
        """Refuse to read a relation whose rows are not stored: here all are."""

    def check_source(self, options: Mapping[str, str], place: Place) -> None:
        """Refuse a connector, or options of one, that rows cannot be read with.

        Raises:
            SqlError: naming them.
        """
        file_sources.check_options(options, place)

    def take_files(self, table: TableInfo, writer: TableWriter) -> None:
        """Insert the rows of files that are new into a table with a connector."""
        file_sources.take_new_files(self._storage, table, writer, self._files, self.unreadable)

    def end_files(self) -> None:
        """Remember which files were taken."""
        self._files.save()

    def add_table(self, table: TableInfo) -> None:
        """Begin to fill a new table, if it has a connector: the next flush does."""

    def drop_table(self, table: TableInfo) -> None:
        """Stop filling a table, and forget what was read for it."""
        self._files.drop(table.relation.name)

    def _relation(self, name: str) -> Relation:
        found = self._catalog.find(name)
        assert found is not None
        assert not isinstance(found, PlainView)
        return found

    def _advance(self, view: ViewInfo, changes: Mapping[str, str], *, initial: bool = False) -> str | None:
        """Run the job of a view on changes, keep what it gives, and return that in stored names.

        Raises:
            ViewFailure: it cannot take them.
        """
        try:
            with self._storage.trying() if view.job.tries else nullcontext():
                named = self._keep(view, view.job.run(changes, initial=initial))
            self._note(view)
            return named
        except Exception as failure:
            raise ViewFailure(view, failure) from failure

    def _note(self, view: ViewInfo) -> None:
        """Note the reason of a view with expressions in TRY where no row of a batch shows it, as in a join.

        Where there is neither a bad value nor a reason, the view does without TRY from the next flush on.
        """
        if view.job.tries:
            name = view.relation.name
            told = "" if view.job.has_bad_values else self._tried.get(name, "")
            if told:
                self.bad_values.note_view(name, told)
            self._settling[name] = view.job.has_bad_values or bool(told)

    def _keep(self, view: ViewInfo, delta: str | None) -> str | None:
        """Change the stored rows of a view by what its job gave, and return that in stored names."""
        if delta is None:
            return None
        relation, names = view.relation, [column.name for column in view.relation.columns]
        query = f"({views.in_stored_names(view.ids, delta, WEIGHT)})"
        if isinstance(delta, Inserts) and self._is_unfilled(relation):
            apply_to(self._storage, relation.storage, Inserts(query), names, relation.key)
            self._forget_changes(relation.name)
            self._changes[relation.name] = None
            return None if self._storage.is_empty(relation.storage) else whole(relation)
        named = self._in_stored_names(view, delta)
        if named is not None:
            apply_to(self._storage, relation.storage, named, names, relation.key)
            self._forget_changes(relation.name)
            self._storage.retain(named)
            self._changes[relation.name] = named
        return named

    def _in_stored_names(self, view: ViewInfo, delta: str) -> str | None:
        """Return what the job of a view gave in stored names, each row once; ``None`` if nothing is left."""
        query = like(f"({views.in_stored_names(view.ids, delta, WEIGHT)})", delta)
        batch = settled(self._storage, query, [column.name for column in view.relation.columns])
        return None if batch is None else kept(self._storage, batch)

    def _is_unfilled(self, relation: Relation) -> bool:
        """Whether a view has no rows; it is asked until it has some."""
        if relation.name not in self._had_rows and not self._storage.is_empty(relation.storage):
            self._had_rows.add(relation.name)
        return relation.name not in self._had_rows

    def _forget_changes(self, *names: str) -> None:
        """Forget the last changelog of views, or of all."""
        for name in names or tuple(self._changes):
            changes = self._changes.pop(name, None)
            if changes is not None:
                self._storage.release(changes)

    def changelog(self, view: ViewInfo, most: int) -> pa.Table:
        """Return what the last flush, or its creation, changed in a view: the columns users see, and ``_change_type``.

        Raises:
            ResultSizeError: it has more than ``most`` bytes; 0 is no bound.
        """
        relation = view.relation
        some = "" if relation.name in self._changes else " LIMIT 0"
        changes = self._storage.answer(f"SELECT * FROM {self._changes.get(relation.name) or whole(relation)}{some}", most)
        return with_words(changes, relation.key).drop_columns([column.name for column in relation.columns if column.hidden])

    def explain(self, node: Node) -> list[str]:
        """Return how a plan would run as a view, as lines."""
        return explain_plan(node)

    def serve(self, view: ViewInfo) -> None:
        """Begin to show a new view where views are served."""
        if self._served is not None:
            self._served.add(view)

    def check_drop(self, view: str) -> None:
        """Refuse to drop a view that cannot be dropped where it is served.

        Raises:
            StoreError: saying why.
        """
        if self._served is not None:
            self._served.try_to_drop(view)

    def check_rename(self, name: str, place: Place) -> None:
        """Refuse to rename what stands under its name outside of the store, too.

        Raises:
            SqlError: it is a materialized view on a PostgreSQL server, its state is in checkpoints of Spark, or changes wait
                for a view that failed on them.
        """
        if self._served is not None and isinstance(self._catalog.entries[name], ViewInfo):
            message = f"renaming {name!r}, a table on the PostgreSQL server, is not supported. CREATE a VIEW with the new name."
            raise UnsupportedSqlError(message, place.line, place.column)
        behind = self._stale.reasons()
        for view in self._catalog.views():
            if view.relation.name in behind and name in {view.relation.name, *view.reads}:
                message = f"renaming {name!r} while the view {view.relation.name!r} is behind is not supported. "
                message += "Mend what it fails on and FLUSH, or DROP it."
                raise UnsupportedSqlError(message, place.line, place.column)

    def renamed(self, old: str, new: str) -> None:
        """Go on with an entry of the catalog under its new name."""
        self.forget()
        if old in self._changes:
            self._changes[new] = self._changes.pop(old)

    def open_sink(self, sink: SinkInfo, *, is_new: bool) -> None:
        """Let the changes of a relation wait for a sink; a new one begins with all rows there are."""
        relation = self._relation(sink.source)
        delivery = Delivery(self._storage, sink, relation)
        if is_new:
            delivery.outbox.create()
            delivery.outbox.put_all(next_batch(self._storage))
        self._sinks[sink.name] = delivery

    def drop_sink(self, name: str) -> None:
        """Forget a sink, and what waits for it."""
        self._sinks.pop(name).outbox.drop()

    def _outboxes(self) -> list[Outbox]:
        served = [] if self._served is None else self._served.outboxes(self._catalog.views())
        return [*served, *(sink.outbox for sink in self._sinks.values())]

    def _fill_outboxes(self, changes: Mapping[str, str]) -> None:
        boxes = [box for box in self._outboxes() if box.relation.name in changes]
        number = next_batch(self._storage) if boxes else 0
        for box in boxes:
            rows = self._storage.arrow(f"SELECT * FROM {changes[box.relation.name]}")
            box.put(with_words(rows, box.relation.key), number)


def whole(relation: Relation) -> Inserts:
    """Return the rows of a relation as a batch."""
    return Inserts(f"(SELECT *, 1 AS {quoted(WEIGHT)} FROM {relation.storage})")
