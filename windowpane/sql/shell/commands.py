"""A session that a command runs: what its script would do, and flushes while nobody types."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator

from windowpane.errors import WindowpaneError
from windowpane.sql.parse.positions import Text
from windowpane.sql.parse.reader import read_statement, split
from windowpane.sql.parse.statements import CreateTable, CreateView, Explain, Query
from windowpane.sql.session import Session


def explain_script(session: Session, text: str) -> Iterator[str]:
    """Yield how the views and queries of a script would run; relations are made in ``session``, rows are not.

    Raises:
        SqlError: a statement is refused.
    """
    for cursor in split(text):
        statement = read_statement(cursor)
        if isinstance(statement, CreateView | Query):
            yield statement.text.strip()
            yield from (f"  {row[0]}" for row in session.execute(Explain(statement.place, text, statement), Text(text)).rows())
            yield ""
        if isinstance(statement, CreateTable | CreateView):
            session.execute(statement, Text(text))


def keep_flushing(session: Session, seconds: float, failed: Callable[[WindowpaneError], None]) -> None:
    """Flush again and again, until SIGINT or SIGTERM arrives; a flush under way ends first.

    Args:
        session: whose views are brought up to date.
        seconds: between the end of a flush and the next.
        failed: takes the error of a flush that failed, for instance since a server is down; the next one tries again.
    """
    is_ending = threading.Event()
    held = {number: signal.signal(number, lambda *_: is_ending.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not is_ending.wait(seconds):
            try:
                session.run("FLUSH")
            except WindowpaneError as error:
                failed(error)
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
