"""Deliveries: changes wait in outboxes until the server of the views, and the stores of sinks, have taken them.

Whether views stand on a server is one thing, and who runs them another: both runners fill these outboxes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from windowpane.sql.catalog.entries import Catalog, SinkInfo, ViewInfo
from windowpane.sql.embedded.outbox import Outbox, next_batch
from windowpane.sql.embedded.postgres_views import ServedViews
from windowpane.sql.embedded.sinks import Delivery
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.streaming.deltas import with_words


class Deliveries:
    """The outboxes of a session."""

    def __init__(self, storage: Storage, catalog: Catalog, served: ServedViews | None) -> None:
        """Deliver changes of what ``catalog`` holds; ``served`` are its views elsewhere, if they stand there."""
        self._storage, self._catalog, self.served = storage, catalog, served
        self._sinks: dict[str, Delivery] = {}

    def take_up(self) -> None:
        """Go on with the tables of views where they are served.

        Raises:
            StoreError: the server cannot be reached.
        """
        if self.served is not None:
            with self._storage.transaction():
                self.served.take_up(self._catalog.views())

    def close(self) -> None:
        """Disconnect."""
        if self.served is not None:
            self.served.close()

    # --- in a transaction ------------------------------------------------------------------------------

    def forget(self) -> None:
        """Go on with the sinks that the catalog has, after a transaction was rolled back."""
        self._sinks = {}
        for sink in self._catalog.sinks():
            self.open(sink, is_new=False)

    def open(self, sink: SinkInfo, *, is_new: bool) -> None:
        """Let the changes of a relation wait for a sink; a new one begins with all rows that the store has of it."""
        delivery = Delivery(self._storage, sink, self._catalog.relation(sink.source))
        if is_new:
            delivery.outbox.create()
            delivery.outbox.put_all(next_batch(self._storage))
        self._sinks[sink.name] = delivery

    def drop(self, sink: str) -> None:
        """Forget a sink, and what waits for it."""
        self._sinks.pop(sink).outbox.drop()

    def serve(self, view: ViewInfo, *, by_tasks: bool = False) -> None:
        """Begin to show a new view where views are served; its rows wait, unless tasks will write them there."""
        if self.served is not None:
            self.served.add(view, by_tasks=by_tasks)

    def withdraw(self, view: ViewInfo) -> None:
        """Show a view no longer that is dropped."""
        if self.served is not None:
            self.served.drop(view)

    def check_drop(self, view: str) -> None:
        """Refuse to drop a view that cannot be dropped where it is served.

        Raises:
            StoreError: saying why.
        """
        if self.served is not None:
            self.served.try_to_drop(view)

    def followed(self) -> set[str]:
        """Return the relations whose changes somebody gets."""
        return {box.relation.name for box in self._outboxes()}

    def fill(self, changes: Mapping[str, str]) -> None:
        """Let changes wait, by relation, as one batch."""
        boxes = [box for box in self._outboxes() if box.relation.name in changes]
        number = next_batch(self._storage) if boxes else 0
        for box in boxes:
            rows = self._storage.arrow(f"SELECT * FROM {changes[box.relation.name]}")
            box.put(with_words(rows, box.relation.key), number)

    def _outboxes(self) -> list[Outbox]:
        served = [] if self.served is None else self.served.outboxes(self._catalog.views())
        return [*served, *(sink.outbox for sink in self._sinks.values())]

    # --- after it --------------------------------------------------------------------------------------

    def hand_over(self) -> None:
        """Hand what waits to the server of the views, and to the stores of sinks.

        Raises:
            WindowpaneError: one of them cannot take it, which goes on waiting. The others have taken theirs.
        """
        failures: list[Exception] = []
        deliveries: list[Callable[[], None]] = [sink.deliver for sink in self._sinks.values()]
        if self.served is not None:
            deliveries.insert(0, partial(self.served.deliver, self._catalog.views()))
        for deliver in deliveries:
            try:
                deliver()
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
