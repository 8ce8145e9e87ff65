"""A session that a command runs: what its script would do, and flushes while nobody types."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator

from windowpane.errors import SqlNameError, WindowpaneError
from windowpane.sql.parse.dialect import tokenize
from windowpane.sql.parse.positions import Text
from windowpane.sql.parse.reader import read_statement, split
from windowpane.sql.parse.statements import (
    CreateIndex,
    CreateSink,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Explain,
    Insert,
    Query,
    Rename,
    Update,
)
from windowpane.sql.session import Session

_NAP = 0.1  # seconds


def explain_script(session: Session, text: str) -> Iterator[str]:
    """Yield how the views and queries of a script would run; relations are made in ``session``, rows are not."""
    for cursor in split(text):
        statement = read_statement(cursor)
        if isinstance(statement, CreateView | Query):
            yield statement.text.strip()
            yield from (f"  {row[0]}" for row in session.execute(Explain(statement.place, text, statement), Text(text)).rows())
            yield ""
        if isinstance(statement, CreateTable | CreateView):
            session.execute(statement, Text(text))


_CREATING = (CreateTable, CreateView, CreateSink, CreateIndex)
_CHANGING = (Insert, Update, Delete, Drop, Rename)


def left_of(session: Session, text: str) -> str:
    """Return what of a script is left to do in a store that has run it before: what it made is passed over.

    So is what changes rows or relations before the last definition that is there: it was done. What is passed over becomes
    blanks, so places of errors stay.

    Raises:
        SqlNameError: a definition is there under its name with other words.
    """
    there = session.definitions()
    statements = [(cursor.span, read_statement(cursor)) for cursor in split(text)]
    made = [number for number, (_, each) in enumerate(statements) if isinstance(each, _CREATING) and each.name in there]
    left = text
    for number, ((start, end), each) in enumerate(statements):
        if number in made and isinstance(each, _CREATING):
            is_found = isinstance(each, CreateTable) and (each.query is not None or not each.columns)
            if not is_found and _words(there[each.name]) != _words(each.text):
                message = f"{each.name!r} is in the store already, and was made by other words. Write it as it was, DROP it "
                raise each.place.error(SqlNameError, f"{message}and what reads it, or take another store.")
        elif not (made and number < made[-1] and isinstance(each, _CHANGING)):
            continue
        left = left[:start] + re.sub(r"[^\n]", " ", left[start:end]) + left[end:]
    return left


def _words(text: str) -> list[str]:
    return [token.text for token in tokenize(text)]


def keep_flushing(session: Session, seconds: float, failed: Callable[[WindowpaneError], None]) -> None:
    """Flush again and again, until SIGINT or SIGTERM arrives; a flush under way ends first.

    Args:
        session: whose views are brought up to date.
        seconds: between the end of a flush and the next.
        failed: takes the error of a flush that failed, for instance since a server is down; the next one tries again.
    """
    arrived: list[int] = []  # an Event would wait for itself where a signal arrives inside its wait
    held = {number: signal.signal(number, lambda number, _: arrived.append(number)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not _is_there(arrived, seconds):
            try:
                session.run("FLUSH")
            except WindowpaneError as error:
                failed(error)
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)


def _is_there(arrived: list[int], seconds: float) -> bool:
    """Whether a signal arrives before so much time has passed; ``sleep`` goes on behind it, so naps are short."""
    deadline = time.monotonic() + seconds
    while not arrived and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, _NAP))
    return bool(arrived)
