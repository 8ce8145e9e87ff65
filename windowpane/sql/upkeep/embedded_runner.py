"""Views without Spark: one flush takes all changes of tables through every view, in order, in one transaction of the store.

A view that fails stops no other: its expressions that fail become NULL, and if it still fails, its changes wait for it. Caches of
operators, and which views are in TRY, are dropped when a transaction is rolled back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeVar

from windowpane.errors import (
    ConnectorError,
    MalformedRowError,
    MissingOffsetsError,
    StaleViewError,
    UnreadableFileError,
    UnsupportedSqlError,
    UnsupportedStoreError,
    WindowpaneError,
)
from windowpane.sql.catalog.entries import Catalog, TableInfo, ViewInfo, query_of_sink, shown_name
from windowpane.sql.embedded import file_sources
from windowpane.sql.embedded.kafka_sources import TopicSources
from windowpane.sql.embedded.message_rows import check_topic, is_topic
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.failures.bad_values import BadValues
from windowpane.sql.failures.malformed_rows import MalformedRows
from windowpane.sql.failures.stale import StaleViews, in_one_line
from windowpane.sql.nodes import Node
from windowpane.sql.parse.positions import Place
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import Delta, inserted
from windowpane.sql.streaming.job import Job
from windowpane.sql.streaming.physical import physical_lines
from windowpane.sql.upkeep.deliveries import Deliveries
from windowpane.sql.upkeep.stored_changes import StoredChanges, Swap
from windowpane.sql.upkeep.view_runner import ViewRunner

T = TypeVar("T")


class ViewFailure(Exception):  # noqa: N818 - never leaves this room: ``EmbeddedRunner.attempt`` catches it
    def __init__(self, view: ViewInfo, cause: Exception) -> None:
        super().__init__(view.relation.name)
        self.view, self.cause = view, cause

    @property
    def reason(self) -> str:
        return in_one_line(self.cause)


class EmbeddedRunner(ViewRunner):
    def __init__(
        self, storage: Storage, catalog: Catalog, clock: Watermarks, deliveries: Deliveries, bad_values: BadValues
    ) -> None:
        self._storage, self._catalog, self._clock = storage, catalog, clock
        self._deliveries, self._bad_values = deliveries, bad_values
        self.changes = StoredChanges(storage, catalog)
        self._stale, self._files = StaleViews(storage), file_sources.TakenFiles(storage)
        self._topics = TopicSources(storage)
        self._unreadable: dict[str, WindowpaneError] = {}
        self._by_rows: set[str] = set()
        self._malformed = MalformedRows(storage)
        self._tried: dict[str, str] = {}
        self._settling: dict[str, bool] = {}
        self._seconds: dict[str, float] = {}

    def open(self) -> None:
        """Continue with what the store holds, once the catalog is read.

        Raises:
            UnsupportedStoreError: Spark has state or rows that a session without it would miss, or take twice.
        """
        self._refuse_what_spark_has()
        self._deliveries.take_up()
        self._deliveries.hand_over(is_opening=True)

    def _refuse_what_spark_has(self) -> None:
        views = {view.relation.name for view in self._catalog.views()}
        streams = self._storage.run("SELECT name, batch FROM windowpane.streams ORDER BY name")
        spread = [name for name, _ in streams if name in views]
        filled = [name for name, batch in streams if name not in views and batch >= 0]
        with_spark = "Open it with Session(spark=..., store=...)"
        for names, reason in (
            (
                spread,
                "the state of {} lies in Spark's checkpoints beside it, so a session without Spark cannot keep them up to "
                f"date. {with_spark}, or drop these views there first.",
            ),
            (
                filled,
                "Spark has filled {}, and a session without Spark would read their files from the beginning, so each row "
                f"would be there twice. {with_spark}.",
            ),
        ):
            if names:
                raise UnsupportedStoreError(self._storage.path, reason.format(", ".join(map(shown_name, names))))

    def close(self) -> None:
        self._topics.close()
        self._deliveries.close()

    # --- around a statement ----------------------------------------------------------------------------

    def attempt(self, action: Callable[[], T]) -> T:
        """Do something in a transaction, so that no view's failure stops another.

        DuckDB ends a transaction with the first error in it, so the whole is done again: first with expressions of the view
        that failed in TRY, unless it is strict, then without the view, which is stale from then on. A file of a source that
        cannot be read is read row by row; one that cannot be read so is skipped, until the next time, as is a topic.

        Raises:
            WindowpaneError: the action failed, or a view that it makes; nothing of it was kept.
        """
        self._unreadable.clear()
        times = 0
        while True:
            self._settling.clear()
            try:
                with self.changes.transaction():
                    result = action()
            except BaseException as failure:
                self._forget()
                if isinstance(failure, UnreadableFileError | MalformedRowError) and self._passes_over(failure):
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

    def _passes_over(self, failure: UnreadableFileError | MalformedRowError) -> bool:
        """Say whether the action can be done again without a file as it was read, and prepare that."""
        is_of_texts = isinstance(failure, UnreadableFileError) and failure.format in file_sources.TEXTS
        if is_of_texts and failure.path not in self._by_rows:
            self._by_rows.add(failure.path)
            return True
        if failure.path in self._unreadable:
            return False
        self._unreadable[failure.path] = failure
        return True

    def _forget(self) -> None:
        self._clock.reload()
        self._stale.forget()
        self._files.forget()
        for view in self._catalog.views():
            view.operators.forget()
        self._deliveries.forget()

    def _settle(self) -> None:
        """Keep expressions of views in TRY where that is committed, and take the others out of it."""
        for name, stays in self._settling.items():
            view = self._catalog.entries.get(name)
            if stays:
                self._tried[name] = ""
            elif isinstance(view, ViewInfo):
                self._tried.pop(name, None)
                self._catalog.entries[name] = replace(view, job=view.operators.trying(None))

    def _try_all(self) -> None:
        """Put the expressions of all views in TRY: a bad value may reach many, and the flush is not done again for each."""
        for name, view in self._catalog.entries.items():
            if isinstance(view, ViewInfo) and not (view.strict or view.operators.tries):
                self._catalog.entries[name] = replace(view, job=view.operators.trying(self._bad_values))

    def _gives_way(self, failure: ViewFailure) -> bool:
        """Say whether the action that a view stopped can be done again, and prepare the view for it."""
        view, name = failure.view, failure.view.relation.name
        is_new = name not in self._catalog.entries
        if not (view.strict or view.operators.tries):
            self._tried[name] = failure.reason
            if not is_new:
                self._catalog.entries[name] = replace(view, job=view.operators.trying(self._bad_values))
            return True
        if is_new or name in self._stale.reasons():
            self._tried.pop(name, None)
            return False
        with self._storage.transaction():
            self._stale.add(name, failure.reason)
        return True

    def deliver(self) -> WindowpaneError | None:
        unreadable = list(self._unreadable.values())
        behind = self._catch_up()
        self._deliveries.hand_over()
        return StaleViewError(behind) if behind else next(iter(unreadable), None)

    def _catch_up(self) -> dict[str, str]:
        """Let stale views take their changes, each in a transaction of its own; return why some failed, by view."""
        failures: dict[str, str] = {}
        for name in self._stale.reasons():
            try:
                self.attempt(partial(self._caught_up, name))
            except Exception as failure:
                reason = failures[shown_name(name)] = in_one_line(failure)
                with self._storage.transaction():
                    self._stale.add(name, reason)
                    self._bad_values.note_view(name, reason)
        return failures

    def _caught_up(self, name: str) -> None:
        stale, changes = self._stale.reasons(), dict[str, Delta]()
        for view in self._catalog.views():
            if view.relation.name == name:
                waiting = self._stale.taken(name, {each: self._catalog.relation(each) for each in view.reads})
                self._bad_values.forget_view(name)
                delta = self._advance(view, waiting)
                if delta is not None:
                    changes[name] = delta
            elif view.reads & set(changes):
                self._follow(view, changes, is_stale=view.relation.name in stale)
        self._deliveries.fill(changes)

    # --- in its transaction ----------------------------------------------------------------------------

    def check_source(self, options: Mapping[str, str], place: Place, *, is_new: bool) -> None:
        file_sources.check_options(options, place)
        if is_new and "path" in options:
            file_sources.check_is_there(options["path"], place)

    def create_table(self, info: TableInfo) -> None:
        if is_topic(info):
            check_topic(info)
            self._topics.begin(info)

    def drop_table(self, table: TableInfo) -> None:
        self._files.drop(table.relation.name)
        self._topics.drop(table.relation.name)
        self._malformed.drop(table.relation.name)

    def job(self, name: str, node: Node, *, strict: bool) -> Job:
        return Job(name, node, self._storage, self._clock, self._bad_values if name in self._tried else None)

    def create(self, view: ViewInfo) -> None:
        """Run a new view on the rows of its relations, and make its table on the server, if there is one."""
        changes = {name: inserted(self._catalog.relation(name).storage) for name in view.reads}
        self._advance(view, changes, initial=True)
        self._deliveries.add_view(view)

    def drop(self, view: ViewInfo) -> None:
        name = view.relation.name
        view.operators.drop()
        self._stale.drop(name, view.reads)
        self._bad_values.drop(name)
        self._tried.pop(name, None)
        self._seconds.pop(name, None)
        self.changes.drop(name)

    def is_unfilled(self, name: str) -> bool:
        return False

    def flush(self, writer: Callable[[TableInfo], TableWriter]) -> None:
        for table in self._catalog.tables():
            if is_topic(table):
                try:
                    self._topics.take(table, writer(table))
                except (ConnectorError, MissingOffsetsError) as error:  # before anything of it was written
                    self._unreadable[table.relation.name] = error
            else:
                file_sources.take_new_files(self._storage, table, writer(table), self._files, self._unreadable, self._by_rows)
        self._files.save()
        changes, stale = self.changes.of_tables(self._deliveries.followed()), self._stale.reasons()
        self.changes.forget()
        for view in self._catalog.views():
            self._follow(view, changes, is_stale=view.relation.name in stale)
        self._deliveries.fill(changes)
        self.changes.end_of_tables()

    def _follow(self, view: ViewInfo, changes: dict[str, Delta], *, is_stale: bool) -> None:
        """Let a view take the changes of the relations it reads, and add its own to ``changes``."""
        mine = {name: changes[name] for name in view.reads if name in changes}
        if is_stale:
            self._stale.hold(view.relation.name, mine)
            return
        delta = self._advance(view, mine)
        if delta is not None:
            changes[view.relation.name] = delta

    def _advance(self, view: ViewInfo, changes: Mapping[str, Delta], *, initial: bool = False) -> Delta | None:
        """Run the job of a view on changes, store its result, and return that in stored names."""
        began = time.perf_counter()
        try:
            with self._storage.trying() if view.operators.tries else nullcontext():
                named = self.changes.keep(view, view.operators.run(changes, initial=initial))
            self._note(view)
            self._seconds[view.relation.name] = time.perf_counter() - began
            return named
        except Exception as failure:
            raise ViewFailure(view, failure) from failure

    def _note(self, view: ViewInfo) -> None:
        """Note the reason of a view with expressions in TRY where no row of a batch shows it, as in a join.

        Where there is neither a bad value nor a reason, the view does without TRY from the next flush on.
        """
        if view.operators.tries:
            name = view.relation.name
            reason = "" if view.operators.has_bad_values else self._tried.get(name, "")
            if reason:
                self._bad_values.note_view(name, reason)
            self._settling[name] = view.operators.has_bad_values or bool(reason)

    def check_rename(self, name: str, place: Place) -> None:
        """Refuse to rename an entry that is known by its name outside of the store, or for which changes wait.

        Raises:
            SqlError: it is a materialized view on a PostgreSQL server, or changes wait for a view that failed on them.
        """
        if self._deliveries.view_tables is not None and isinstance(self._catalog.entries[name], ViewInfo):
            message = f"renaming {name!r}, a table on the PostgreSQL server, is not supported. CREATE a VIEW with the new name."
            raise place.error(UnsupportedSqlError, message)
        behind, names = self._stale.reasons(), {name, query_of_sink(name)}
        for view in self._catalog.views():
            if view.relation.name in behind and names & {view.relation.name, *view.reads}:
                message = f"renaming {name!r} while {shown_name(view.relation.name)!r} is behind is not supported. "
                message += "Mend what it fails on and FLUSH, or DROP it."
                raise place.error(UnsupportedSqlError, message)

    def renamed(self, old: str, new: str) -> None:
        self._forget()
        self.changes.renamed(old, new)

    def check_swap(self, readers: Collection[str], place: Place) -> None:
        behind = sorted(set(readers) & set(self._stale.reasons()))
        if behind:
            message = f"replacing a view while {', '.join(map(repr, behind))}, which reads it, is behind is not supported. "
            raise place.error(UnsupportedSqlError, f"{message}Mend what it fails on and FLUSH, or DROP it.")

    def goes_on(self, old: ViewInfo, node: Node) -> bool:
        return True

    def swapped(self, swap: Swap) -> None:
        self._forget()
        self.changes.swapped(swap)
        changes = dict(swap.changes)
        for view in self._catalog.views():
            if view.relation.name not in swap.names and view.reads & changes.keys():
                self._follow(view, changes, is_stale=view.relation.name in self._stale.reasons())
        self._deliveries.fill(changes)

    # --- questions -------------------------------------------------------------------------------------

    def explain(self, node: Node, view: ViewInfo | None = None) -> list[str]:
        return physical_lines(node, self._storage) if view is None else view.operators.lines()

    def cost(self, view: ViewInfo) -> list[str]:
        name = view.relation.name
        if name not in self._seconds:
            return ["cost: no batch has run in this session"]
        return [f"cost of the last batch: {self._seconds[name]:.3f} s, {self.changes.count(view):,} changes of the view"]
