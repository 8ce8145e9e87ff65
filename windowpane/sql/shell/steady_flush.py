"""Keeps the views of a session up to date while nobody types: a flush at a steady pace, until the process is told to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from windowpane.errors import WindowpaneError
from windowpane.sql.session import Session


def keep_flushing(session: Session, seconds: float, failed: Callable[[WindowpaneError], None]) -> None:
    """Flush again and again, until SIGINT or SIGTERM comes; a flush under way ends first.

    Args:
        session: whose views are brought up to date.
        seconds: between the end of a flush and the next.
        failed: takes the error of a flush that failed, as where a server is away; the next one tries again.
    """
    told = threading.Event()
    held = {number: signal.signal(number, lambda *_: told.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not told.wait(seconds):
            try:
                session.run("FLUSH")
            except WindowpaneError as error:
                failed(error)
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
