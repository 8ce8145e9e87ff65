"""Deliveries: changes wait in outboxes until the server of the views, and the stores of sinks, have taken them.

Whether views have tables on a server does not depend on the runner: both runners fill these outboxes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from windowpane.errors import MisplacedStateError
from windowpane.sql.catalog.entries import Catalog, SinkInfo, ViewInfo
from windowpane.sql.catalog.relations import Relation, shape
from windowpane.sql.embedded.outbox import Outbox, next_batch
from windowpane.sql.embedded.postgres_views import ViewTables
from windowpane.sql.embedded.sinks import Delivery
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.streaming.deltas import Delta


class Deliveries:
    def __init__(self, storage: Storage, catalog: Catalog, view_tables: ViewTables | None) -> None:
        """Deliver changes of what ``catalog`` holds; to ``view_tables``, too, if its views have tables on a server."""
        self._storage, self._catalog, self.view_tables = storage, catalog, view_tables
        self._sinks: dict[str, Delivery] = {}

    def take_up(self) -> None:
        """Continue with the tables of views on the server, if there is one."""
        if self.view_tables is not None:
            with self._storage.transaction():
                self.view_tables.take_up(self._catalog.views())

    def close(self) -> None:
        if self.view_tables is not None:
            self.view_tables.close()

    # --- in a transaction ------------------------------------------------------------------------------

    def forget(self) -> None:
        """Read the sinks from the catalog again, after a transaction was rolled back."""
        self._sinks = {}
        for sink in self._catalog.sinks():
            self.open(sink, is_new=False)

    def open(self, sink: SinkInfo, *, is_new: bool) -> None:
        """Let the changes of a relation wait for a sink; a new one begins with all rows that the store has of it."""
        delivery = Delivery(self._storage, sink, self._catalog.relation(sink.source))
        if is_new:
            delivery.create()
            delivery.outbox.put_all(next_batch(self._storage))
        self._sinks[sink.name] = delivery

    def drop(self, sink: str) -> None:
        self._sinks.pop(sink).drop()

    def add_view(self, view: ViewInfo, *, replaces: bool = False) -> None:
        """Make a table for a new view on the server, if there is one; its rows wait."""
        if self.view_tables is not None:
            self.view_tables.add(view, replaces=replaces)

    def needs_another_table(self, old: ViewInfo, new: Relation) -> bool:
        """Whether the table of a view on the server must be replaced when it becomes another one."""
        return self.view_tables is not None and shape(old.relation) != shape(new)

    def drop_view(self, view: ViewInfo) -> None:
        if self.view_tables is not None:
            self.view_tables.drop(view)

    def check_drop(self, view: str) -> None:
        """Refuse to drop a view whose table on the server cannot be dropped."""
        if self.view_tables is not None:
            self.view_tables.try_to_drop(view)

    def followed(self) -> set[str]:
        """Return the relations whose changes are delivered."""
        return {box.relation.name for box in self._outboxes()}

    def fill(self, changes: Mapping[str, Delta]) -> None:
        """Add changes, by relation, to the outboxes, as one batch."""
        boxes = [box for box in self._outboxes() if box.relation.name in changes]
        number = next_batch(self._storage) if boxes else 0
        for box in boxes:
            box.put(changes[box.relation.name], number)

    def _outboxes(self) -> list[Outbox]:
        view_tables = [] if self.view_tables is None else self.view_tables.outboxes(self._catalog.views())
        return [*view_tables, *(sink.outbox for sink in self._sinks.values())]

    # --- after it --------------------------------------------------------------------------------------

    def hand_over(self, *, is_opening: bool = False) -> None:
        """Deliver the changes that wait to the server of the views, and to the stores of sinks.

        Args:
            is_opening: whether the session opens: of a sink that is apart from its store a log tells, as it can be dropped.

        Raises:
            WindowpaneError: one of them cannot take its changes, which still wait. The others have taken theirs.
        """
        failures: list[Exception] = []
        deliveries: list[Callable[[], None]] = [sink.deliver for sink in self._sinks.values()]
        if self.view_tables is not None:
            deliveries.insert(0, partial(self.view_tables.deliver, self._catalog.views()))
        for deliver in deliveries:
            try:
                deliver()
            except MisplacedStateError as failure:
                if not is_opening:
                    failures.append(failure)
                else:
                    logging.getLogger(__name__).warning("%s", failure)
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
