"""The file of a session's state: the store itself, or, where the store is a PostgreSQL server, a DuckDB file that belongs to it.

Layout: ``windowpane.server`` holds in one row the id of the state and the server with the tables of its views; the server has the
id, too. The id is committed here before it is written there, so that no server ever belongs to a state that does not exist.
"""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windowpane.errors import InvalidSpecError, MisplacedStateError, StoreError
from windowpane.sql.embedded.storage import Storage
from windowpane.stores import Owner, PostgresViews, is_server


class Server:
    """A connection to the server of a state, made anew after it failed."""

    def __init__(self, url: str, views: PostgresViews, state: str) -> None:
        self.url, self.state = url, state
        self._views: PostgresViews | None = views
        self._lock = threading.RLock()

    @contextmanager
    def at_work(self) -> Iterator[PostgresViews]:
        """Return the views there, for one thread at a time.

        A thread that is in a transaction of the storage may ask for them; one that has them must not begin such a transaction.

        Raises:
            StoreError: the server cannot be reached, or refuses something.
            MisplacedStateError: it belongs to another state by now.
        """
        with self._lock:
            try:
                self._views = self._views or PostgresViews(self.url)
                owner = self._views.owner()
                if owner is None or owner.id != self.state:
                    message = f"store {self._views.address}: its views have been given to another state meanwhile."
                    raise MisplacedStateError(message)
                yield self._views
            except StoreError:
                self.close()
                raise

    def close(self) -> None:
        if self._views is not None:
            self._views.close()
        self._views = None


def opened(store: str, state: str | None) -> tuple[Storage, Server | None]:
    """Open a session's state, and the server with the tables of its views, if there is one.

    Args:
        store: path of a DuckDB file, ``":memory:"``, or a ``postgresql://`` URL.
        state: with a URL, path of the DuckDB file beside it; ``None`` means ``<database>.state.duckdb`` in the working directory.

    Raises:
        InvalidSpecError: a state beside a store that is a file, or one that does not last.
        MisplacedStateError: store and state do not belong together.
        StoreError: the server cannot be reached.
    """
    if not is_server(store):
        if state is not None:
            raise InvalidSpecError(f"state={state!r} goes with a PostgreSQL store; a DuckDB file is its own state.")
        return _file(store), None
    if state == ":memory:":
        raise InvalidSpecError("state=':memory:' would leave the tables in PostgreSQL to nobody. Give it a file.")
    views = PostgresViews(store)
    try:
        path = state or f"{views.database}.state.duckdb"
        owner = views.owner()
        if owner is not None and not Path(path).exists():
            raise _other_state(views, owner, f"{path!r} is not there")
        return _with_server(Storage(path), store, views, owner)
    except BaseException:
        views.close()
        raise


def _file(path: str) -> Storage:
    storage = Storage(path)
    bound = storage.run("SELECT address FROM windowpane.server")
    if bound:
        storage.close()
        raise MisplacedStateError(
            f"{path!r} is the state of the views in the PostgreSQL store {bound[0][0]}, which would not follow. Open it with "
            f"Session(store='postgresql://...', state={path!r}), on the command line --store and --state."
        )
    return storage


def _with_server(storage: Storage, url: str, views: PostgresViews, owner: Owner | None) -> tuple[Storage, Server]:
    try:
        identity = _identity(storage, views, owner)
        with storage.transaction():
            storage.run("DELETE FROM windowpane.server")
            storage.run("INSERT INTO windowpane.server VALUES (?, ?)", [identity, views.address])
        views.claim(Owner(identity, str(Path(storage.path).resolve()), socket.gethostname()))
    except BaseException:
        storage.close()
        raise
    return storage, Server(url, views, identity)


def _identity(storage: Storage, views: PostgresViews, owner: Owner | None) -> str:
    """Return the id of a state, a new one if it has none, if the server may be its."""
    bound = storage.run("SELECT state, address FROM windowpane.server")
    identity, address = bound[0] if bound else (uuid.uuid4().hex, views.address)
    if owner is not None and owner.id != identity:
        raise _other_state(views, owner, f"{storage.path!r} is another")
    if owner is None and address != views.address:
        raise MisplacedStateError(
            f"state {storage.path!r} keeps the views of the store {address}, and {views.address} does not know it. Open it with "
            f"that store. If its views are to stand in {views.address} from now on, run there: "
            f"INSERT INTO windowpane_state VALUES ('{identity}', '', '')"
        )
    return str(identity)


def _other_state(views: PostgresViews, owner: Owner, found: str) -> MisplacedStateError:
    return MisplacedStateError(
        f"store {views.address}: its views are kept up to date from the state {owner.path!r} on {owner.host}, and {found}. Open "
        f"the session there with state={owner.path!r}. If that file is lost, DROP TABLE windowpane_state in PostgreSQL, and "
        "create the views again: they take over the tables that are there."
    )
