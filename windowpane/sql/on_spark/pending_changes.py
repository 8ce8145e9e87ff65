"""Changes on their way to views, and how far the query of each view is.

Layout: ``windowpane.mail`` holds the changes that wait: the file of the changes of a relation, by its name in the folder of the
reader, the names of the stored columns there, and the number of the change set that names the file, once this is settled.

``windowpane.streams`` holds for each view: the folder of its inbox and checkpoint; how its state is spread over Spark (``plan``,
a ``ViewPlan`` as JSON); the last batch that was written; the last change set sent and the last one answered; the change set
that is due (its number and its watermarks); the watermarks that it was sent; and its progress in the sources that it reads
itself, before and behind the last batch. ``windowpane.flushes`` holds the number and the watermarks of the last flush,
``windowpane.identity`` the name that the folder of the checkpoints knows the store by.

Every method is part of a transaction of the store. What was read of a stream is known until it is written, or a transaction is
rolled back: a flush asks a hundred times. The files of a change set are settled before it is written, and are removed
from ``windowpane.mail`` once it lies in the inbox: after a crash between the two it is written again, which changes nothing.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from windowpane.sql.embedded.storage import Storage
from windowpane.sql.on_spark.change_sets import ChangeFile, ChangeSet
from windowpane.state.pairs import NONE

TAKES_NONE = 1
"""The number of the last change set of a view that takes none: it has its first rows."""


@dataclass(frozen=True)
class ViewPlan:
    """How the state of a view is spread over Spark, as it was when the view was made.

    Args:
        is_program: whether the view is one window or OVER program, with a watermark of its own.
        sources: those that its query reads itself.
        has_groups_below: whether groups of windows are a program below the nodes of SQL.
        takes_change_sets: whether it has an inbox; not where its sources are all that it needs.
    """

    is_program: bool = False
    sources: tuple[str, ...] = ()
    has_groups_below: bool = False
    takes_change_sets: bool = True

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> ViewPlan:
        parts = json.loads(text)
        return cls(**{**parts, "sources": tuple(parts["sources"])})


@dataclass(frozen=True)
class Stream:
    """How far the query of a view is; see the module."""

    name: str
    folder: str
    batch: int
    sent: int
    done: int
    clock: Mapping[str, str]
    plan: ViewPlan
    progress: tuple[str | None, str | None]
    due: tuple[int, Mapping[str, str]] | None


class PendingChanges:
    """The changes that wait for the views of a store, and the progress of each view."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[str, Stream] = {}
        self._rollbacks = storage.rollbacks
        storage.run("CREATE TABLE IF NOT EXISTS windowpane.flushes (number BIGINT, clock VARCHAR)")
        storage.run("CREATE TABLE IF NOT EXISTS windowpane.identity (id VARCHAR)")

    @property
    def identity(self) -> str | None:
        """The name of the store for the folder of its checkpoints, ``None`` before the first of them."""
        found = self._storage.value("SELECT id FROM windowpane.identity")
        return None if found is None else str(found)

    def identify(self) -> str:
        """Return the name of the store, a new one if it has none."""
        with self._storage.transaction():
            if self.identity is None:
                self._storage.run("INSERT INTO windowpane.identity VALUES (?)", [uuid4().hex])
        return str(self.identity)

    def names(self) -> list[str]:
        return [str(row[0]) for row in self._storage.run("SELECT name FROM windowpane.streams ORDER BY name")]

    # --- flushes ---------------------------------------------------------------------------------------

    def begin(self, clock: Mapping[str, str]) -> int:
        """Begin a flush, and return its number: the time in milliseconds, or more where two share one."""
        number = max(time.time_ns() // 1_000_000, self.number + 1)
        self._storage.run("DELETE FROM windowpane.flushes")
        self._storage.run("INSERT INTO windowpane.flushes VALUES (?, ?)", [number, json.dumps(dict(clock))])
        return number

    @property
    def number(self) -> int:
        return int(self._storage.value("SELECT max(number) FROM windowpane.flushes") or 1)

    @property
    def clock(self) -> dict[str, str]:
        found = self._storage.value("SELECT clock FROM windowpane.flushes")
        return dict(json.loads(found)) if found is not None else {}

    # --- streams ---------------------------------------------------------------------------------------

    def open(self, name: str, plan: ViewPlan = ViewPlan()) -> None:
        values = [name, _new_folder(name), NONE, 0 if plan.takes_change_sets else TAKES_NONE, plan.text()]
        self._write("INSERT INTO windowpane.streams VALUES (?, ?, ?, ?, 0, '{}', ?, NULL, NULL)", values)

    def begin_anew(self, name: str) -> None:
        """Begin the stream of a table again, with a checkpoint of its own."""
        reset = "folder = ?, batch = -1, clock = '{}', progress = NULL, due = NULL"
        self._write(f"UPDATE windowpane.streams SET {reset} WHERE name = ?", [_new_folder(name), name])

    def close(self, name: str) -> None:
        self._write("DELETE FROM windowpane.streams WHERE name = ?", [name])
        self._storage.run("DELETE FROM windowpane.mail WHERE name = ?", [name])

    def stream(self, name: str) -> Stream:
        with self._storage.lock:
            if self._rollbacks != self._storage.rollbacks:
                self.forget()
            if name not in self._known:
                self._known[name] = self._read(name)
            return self._known[name]

    def forget(self) -> None:
        self._known.clear()
        self._rollbacks = self._storage.rollbacks

    def _write(self, sql: str, values: list[Any]) -> None:
        """Change the stream of one view, or of several."""
        with self._storage.lock:
            self._storage.run(sql, values)
            self._known.clear()

    def _read(self, name: str) -> Stream:
        query = "SELECT folder, batch, sent, done, clock, plan, progress, due FROM windowpane.streams WHERE name = ?"
        ((folder, batch, sent, done, clock, plan, progress, due),) = self._storage.run(query, [name])
        before, after = (None, None) if progress is None else json.loads(progress)
        how, watermarks, change_set = ViewPlan.of(plan), json.loads(clock), json.loads(due or "null")
        return Stream(name, folder, batch, sent, done, watermarks, how, (before, after), change_set)

    def folders(self) -> dict[str, set[str]]:
        """Return the folders in use, with the files that wait in each for a change set."""
        query = "SELECT folder, file FROM windowpane.streams LEFT JOIN windowpane.mail USING (name)"
        found: dict[str, set[str]] = {}
        for folder, file in self._storage.run(query):
            found.setdefault(folder, set()).update([] if file is None else [file])
        return found

    # --- change sets -----------------------------------------------------------------------------------

    def post(self, name: str, file: ChangeFile, change_set: int | None = None) -> None:
        """Let changes wait for a view, with the next change set or one that is due."""
        values = [name, self.number, file.relation, file.file, change_set, json.dumps(dict(file.ids))]
        self._storage.run("INSERT INTO windowpane.mail VALUES (?, ?, ?, ?, ?, ?)", values)

    def due_change_set(self, name: str, clock: Mapping[str, str]) -> ChangeSet | None:
        """Return the change set that is due to a view: one with changes, or with watermarks that advanced, to ``clock``."""
        stream = self.stream(name)
        if stream.due is None:
            waits = self._storage.run("SELECT 1 FROM windowpane.mail WHERE name = ? LIMIT 1", [name])
            advanced = any(stream.clock.get(relation) != value for relation, value in clock.items())
            if not (waits or advanced) and stream.sent:
                return None
            number, watermarks = max(self.number, stream.sent + 1), dict(clock)
            self._storage.run("UPDATE windowpane.mail SET change_set = ? WHERE name = ?", [number, name])
            self._write("UPDATE windowpane.streams SET due = ? WHERE name = ?", [json.dumps([number, watermarks]), name])
        else:
            number, watermarks = stream.due[0], dict(stream.due[1])
        query = "SELECT relation, file, ids FROM windowpane.mail WHERE name = ? AND change_set = ? ORDER BY number, file"
        rows = self._storage.run(query, [name, number])
        files = tuple(ChangeFile(relation, file, json.loads(ids)) for relation, file, ids in rows)
        return ChangeSet(number, not stream.sent, files, watermarks)

    def sent(self, name: str, change_set: ChangeSet) -> None:
        """Note that a change set lies in the inbox of a view."""
        self._storage.run("DELETE FROM windowpane.mail WHERE name = ? AND change_set = ?", [name, change_set.number])
        values = [change_set.number, json.dumps(dict(change_set.clock)), name]
        self._write("UPDATE windowpane.streams SET sent = ?, clock = ?, due = NULL WHERE name = ?", values)

    def took(self, name: str, batch: int) -> None:
        self._write("UPDATE windowpane.streams SET batch = ? WHERE name = ?", [batch, name])

    def took_directly(self, name: str, batch: int, before: str, after: str) -> None:
        """Note that a batch of a view that reads sources itself is written, and its progress before and behind the batch."""
        self.took(name, batch)
        progress = json.dumps([before, after])
        self._write("UPDATE windowpane.streams SET progress = ? WHERE name = ?", [progress, name])

    def answered(self, name: str) -> None:
        """Note that the query of a view has written the batches of all change sets sent."""
        self._write("UPDATE windowpane.streams SET done = sent WHERE name = ?", [name])


def _new_folder(name: str) -> str:
    return f"{re.sub('[^a-zA-Z0-9_]', '_', name)}-{time.time_ns()}"
