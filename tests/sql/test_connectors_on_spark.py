"""Connectors that need no jar, on real Spark: files, the clock, a socket; and what is said of those that do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from windowpane.errors import SqlRunError
from windowpane.sql import Session

pytestmark = pytest.mark.spark


class Lines:
    """A server that sends lines to whoever connects; ``connected`` waits for the next one."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]

    def connected(self) -> socket.socket:
        self._server.settimeout(60)
        return self._server.accept()[0]

    def send_first(self, text: str) -> threading.Thread:
        """Send lines to the next one that connects, and hold the connection."""
        thread = threading.Thread(target=lambda: self._held(text), daemon=True)
        thread.start()
        return thread

    def _held(self, text: str) -> None:
        self.connection = self.connected()
        self.connection.sendall(text.encode())

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def lines() -> Iterator[Lines]:
    server = Lines()
    yield server
    server.close()
