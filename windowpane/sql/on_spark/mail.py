"""The mail of a store: changes on their way to views, and how far the query of each view is.

Layout: ``windowpane.mail`` holds what is on its way to views: the file that the changes of a relation stand in, by its name in
the folder of the reader (in stores of earlier versions a whole path), the names of the stored columns there, and the number of
the letter once there is one. ``windowpane.streams`` holds for each view the folder of its
inbox and checkpoint, whether its state is spread over Spark, and the plan that made this state, the last batch that was written,
the last letter sent and the last one answered, the letter that is due (its number and its watermarks), the watermarks it was
told, and how far it was before and behind the last batch in sources that it reads itself. ``windowpane.flushes`` holds the number
and the watermarks of the last flush.

Every method is part of a transaction of the store. What a letter names is settled before it is written, and files leave the
mail once it lies in the inbox: a crash between the two writes the same letter again, which changes nothing.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from windowpane.sql.embedded.storage import Storage
from windowpane.sql.on_spark.change_log import write_shared
from windowpane.sql.on_spark.letters import ChangeFile, Letter, ids_of
from windowpane.state.compact import from_stream

_COLUMNS = "SELECT 1 FROM information_schema.columns WHERE table_schema = 'windowpane' AND table_name = 'mail'"

_ADOPTED = 1
"""The number of the last letter of a view that was made without Spark: it had its first rows."""


@dataclass(frozen=True)
class Stream:
    """How far the query of a view is; see the module."""

    name: str
    folder: str
    spread: bool
    batch: int
    sent: int
    done: int
    clock: Mapping[str, str]
    plan: str
    progress: tuple[str | None, str | None]
    due: tuple[int, Mapping[str, str]] | None


class Mail:
    """What is on its way to the views of a store."""

    def __init__(self, storage: Storage) -> None:
        """Use the tables of ``storage``."""
        self._storage = storage
        storage.run("CREATE TABLE IF NOT EXISTS windowpane.flushes (number BIGINT, clock VARCHAR)")

    # --- flushes ---------------------------------------------------------------------------------------

    def begin(self, clock: Mapping[str, str]) -> int:
        """Begin a flush, and return its number: the time in milliseconds, or more where two share one."""
        number = max(time.time_ns() // 1_000_000, self.number + 1)
        self._storage.run("DELETE FROM windowpane.flushes")
        self._storage.run("INSERT INTO windowpane.flushes VALUES (?, ?)", [number, json.dumps(dict(clock))])
        return number

    @property
    def number(self) -> int:
        """The number of the last flush."""
        return int(self._storage.value("SELECT max(number) FROM windowpane.flushes") or _ADOPTED)

    @property
    def clock(self) -> dict[str, str]:
        """The watermarks of the last flush."""
        found = self._storage.value("SELECT clock FROM windowpane.flushes")
        return dict(json.loads(found)) if found is not None else {}

    # --- streams ---------------------------------------------------------------------------------------

    def open(self, name: str, *, spread: bool, plan: str = "") -> Stream:
        """Begin the stream of a new view, or table."""
        values = [name, _new_folder(name), spread, plan]
        self._storage.run("INSERT INTO windowpane.streams VALUES (?, ?, ?, -1, 0, 0, '{}', ?, NULL, NULL)", values)
        return self.stream(name)

    def open_program(self, name: str, plan: str) -> None:
        """Begin the stream of a new view that reads its source itself: it gets no letters."""
        self.open(name, spread=True, plan=plan)
        self._storage.run("UPDATE windowpane.streams SET sent = ? WHERE name = ?", [_ADOPTED, name])

    def begin_anew(self, name: str, *, gets_letters: bool = False) -> None:
        """Begin the stream of a table, or of a view that reads its sources itself, again, with a checkpoint of its own."""
        reset = "folder = ?, batch = -1, clock = '{}', progress = NULL, due = NULL" + ", sent = 0, done = 0" * gets_letters
        self._storage.run(f"UPDATE windowpane.streams SET {reset} WHERE name = ?", [_new_folder(name), name])

    def adopt(self, name: str) -> None:
        """Begin the stream of a view that was made without Spark, if it has none."""
        if not self._storage.run("SELECT 1 FROM windowpane.streams WHERE name = ?", [name]):
            self.open(name, spread=False)
            self._storage.run("UPDATE windowpane.streams SET sent = ?, done = ? WHERE name = ?", [_ADOPTED, _ADOPTED, name])

    def close(self, name: str) -> None:
        """Forget the stream of a view."""
        self._storage.run("DELETE FROM windowpane.streams WHERE name = ?", [name])
        self._storage.run("DELETE FROM windowpane.mail WHERE name = ?", [name])

    def stream(self, name: str) -> Stream:
        """Return how far a view is."""
        query = "SELECT folder, spread, batch, sent, done, clock, plan, progress, due FROM windowpane.streams WHERE name = ?"
        ((folder, spread, batch, sent, done, clock, plan, progress, due),) = self._storage.run(query, [name])
        before, after = (None, None) if progress is None else json.loads(progress)
        return Stream(
            name, folder, spread, batch, sent, done, json.loads(clock), plan, (before, after), json.loads(due or "null")
        )

    def folders(self) -> dict[str, set[str]]:
        """Return the folders in use, with the files that wait in each for a letter."""
        query = "SELECT folder, file FROM windowpane.streams LEFT JOIN windowpane.mail USING (name)"
        found: dict[str, set[str]] = {}
        for folder, file in self._storage.run(query):
            found.setdefault(folder, set()).update([] if file is None else [file])
        return found

    # --- mail ------------------------------------------------------------------------------------------

    def post(self, name: str, file: ChangeFile, letter: int | None = None) -> None:
        """Let changes wait for a view, with the next letter or one that is due."""
        values = [name, self.number, file.relation, file.file, letter, json.dumps(dict(file.ids))]
        columns = "name, number, relation, file, letter, ids"
        self._storage.run(f"INSERT INTO windowpane.mail ({columns}) VALUES (?, ?, ?, ?, ?, ?)", values)

    def take_blobs_out(self, file_of: Callable[[str, int], Path]) -> None:
        """Let changes stand in files that a store of an earlier version holds as blobs.

        Args:
            file_of: the file for the row of a view that has a number.
        """
        if not self._storage.run(f"{_COLUMNS} AND column_name = 'blob'"):
            return
        rows = self._storage.run("SELECT rowid, name, relation, letter, file FROM windowpane.mail WHERE blob IS NOT NULL")
        for row, name, relation, letter, file in rows:
            part = from_stream(self._storage.value(f"SELECT blob FROM windowpane.mail WHERE rowid = {row}"))
            if file is None:
                path = file_of(name, row)
                write_shared([part], [path])
                file = path.name
            self.post(name, ChangeFile(relation, file, ids_of(part)), letter)
        self._storage.run("DELETE FROM windowpane.mail WHERE blob IS NOT NULL")

    def letter(self, name: str, clock: Mapping[str, str]) -> Letter | None:
        """Return the letter that is due to a view: one with changes, or with watermarks that moved, to ``clock``."""
        stream = self.stream(name)
        if stream.due is None:
            waits = self._storage.run("SELECT 1 FROM windowpane.mail WHERE name = ? LIMIT 1", [name])
            moved = any(stream.clock.get(relation) != value for relation, value in clock.items())
            if not (waits or moved) and stream.sent:
                return None
            number, told = max(self.number, stream.sent + 1), dict(clock)
            self._storage.run("UPDATE windowpane.mail SET letter = ? WHERE name = ?", [number, name])
            self._storage.run("UPDATE windowpane.streams SET due = ? WHERE name = ?", [json.dumps([number, told]), name])
        else:
            number, told = stream.due[0], dict(stream.due[1])
        query = "SELECT relation, file, ids FROM windowpane.mail WHERE name = ? AND letter = ? ORDER BY number, file"
        rows = self._storage.run(query, [name, number])
        files = tuple(ChangeFile(relation, file, json.loads(ids)) for relation, file, ids in rows)
        return Letter(number, not stream.sent, files, told)

    def sent(self, name: str, letter: Letter) -> None:
        """Note that a letter lies in the inbox of a view."""
        self._storage.run("DELETE FROM windowpane.mail WHERE name = ? AND letter = ?", [name, letter.number])
        values = [letter.number, json.dumps(dict(letter.clock)), name]
        self._storage.run("UPDATE windowpane.streams SET sent = ?, clock = ?, due = NULL WHERE name = ?", values)

    def took(self, name: str, batch: int) -> None:
        """Note that a batch of a view is written."""
        self._storage.run("UPDATE windowpane.streams SET batch = ? WHERE name = ?", [batch, name])

    def took_directly(self, name: str, batch: int, before: str, after: str) -> None:
        """Note that a batch of a view is written that reads sources itself, and how far it was in them before and behind it."""
        self.took(name, batch)
        progress = json.dumps([before, after])
        self._storage.run("UPDATE windowpane.streams SET progress = ? WHERE name = ?", [progress, name])

    def answered(self, name: str) -> None:
        """Note that the query of a view has taken all letters sent."""
        self._storage.run("UPDATE windowpane.streams SET done = sent WHERE name = ?", [name])


def _new_folder(name: str) -> str:
    return f"{re.sub('[^a-zA-Z0-9_]', '_', name)}-{time.time_ns()}"
