"""Views that could not take the changes of a flush: these changes wait until they can.

State: ``windowpane.stale``, a row for each such view with the reason, and for each relation that it reads and that has changed
since, a table ``windowpane_state."stale/<view>/<relation>"`` of changes, in the order of flushes. A view is stale while it has a
row. The session writes both in the transaction of a flush; when the view has caught up they are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from windowpane.errors import WindowpaneError
from windowpane.sql.catalog.relations import Relation
from windowpane.sql.embedded.storage import Storage, as_part
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.streaming.deltas import WEIGHT, Delta, netted


def in_one_line(failure: Exception) -> str:
    """Return why a view is behind in one line; a mistake of ours with its kind."""
    line = str(failure).split("\n")[0]
    return line if isinstance(failure, WindowpaneError) else f"{type(failure).__name__}: {line} (please report this)"


class StaleViews:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._held: dict[str, str] | None = None

    def reasons(self) -> dict[str, str]:
        """Return the reason of each stale view, in order of their names."""
        if self._held is None:
            self._held = dict(self._storage.run("SELECT view, reason FROM windowpane.stale ORDER BY view"))
        return dict(self._held)

    def forget(self) -> None:
        self._held = None

    def add(self, view: str, reason: str) -> None:
        self._storage.run("DELETE FROM windowpane.stale WHERE view = ?", [view])
        self._storage.run("INSERT INTO windowpane.stale VALUES (?, ?)", [view, reason])
        self.forget()

    def hold(self, view: str, changes: Mapping[str, Delta]) -> None:
        """Let changes wait for a stale view, by relation."""
        for relation, delta in changes.items():
            table = _table(view, relation)
            self._storage.run(f"CREATE TABLE IF NOT EXISTS {table} AS SELECT * FROM {delta} LIMIT 0")
            self._storage.run(f"INSERT INTO {table} BY NAME SELECT * FROM {delta}")

    def taken(self, view: str, relations: Mapping[str, Relation]) -> dict[str, Delta]:
        """Remove the changes that wait for a view, and return them, netted, by relation; ``relations`` are all that it reads."""
        waiting = {}
        for name, relation in relations.items():
            if self._storage.has_state(_name(view, name)):
                items = ", ".join(map(quoted, [*relation.types, WEIGHT]))
                delta = netted(self._storage, f"SELECT {items} FROM {_table(view, name)}", relation.types)
                if delta is not None:
                    waiting[name] = delta
        self.drop(view, relations)
        return waiting

    def drop(self, view: str, relations: Iterable[str]) -> None:
        """Forget a view that has caught up, or is dropped."""
        self._storage.run("DELETE FROM windowpane.stale WHERE view = ?", [view])
        for relation in relations:
            self._storage.run(f"DROP TABLE IF EXISTS {_table(view, relation)}")
        self.forget()


def _name(view: str, relation: str) -> str:
    return f"stale/{as_part(view)}/{as_part(relation)}"


def _table(view: str, relation: str) -> str:
    return f"windowpane_state.{quoted(_name(view, relation))}"
