"""Keeps the views of a session up to date while nobody types: a flush at a steady pace, until a signal ends the process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from windowpane.errors import WindowpaneError
from windowpane.sql.session import Session


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
