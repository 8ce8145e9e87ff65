"""Pipelined writes: state calls whose answers are read later.

A state call is a message to Spark's state server in the JVM, and its answer; PySpark waits for each. The server answers in the
order of the messages, so the answers of writes can be read together, and Python goes on while the JVM writes. Every other call to
the server needs the answers read before. They are few at a time: a server whose answers nobody reads stops reading, too.
"""

from __future__ import annotations

import copy
from typing import Any

from pyspark.errors import PySparkRuntimeError

_MOST_UNANSWERED = 64
_DONE = 0


class PipelinedWrites:
    """Writes to a MapState; ``settle`` comes before any other call to its server, and before the bucket is done."""

    def __init__(self, map_state: Any) -> None:
        """Write to ``map_state`` the way its own client does; one that has no such client waits for each answer."""
        self._map = map_state
        self._server: _Deferring | None = None
        client = getattr(map_state, "_mapStateClient", None)
        if client is not None and hasattr(client, "_stateful_processor_api_client"):
            self._server = _Deferring(client._stateful_processor_api_client)
            self._map = copy.copy(map_state)
            self._map._mapStateClient = copy.copy(client)
            self._map._mapStateClient._stateful_processor_api_client = self._server

    def update(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:
        """Write a value.

        Raises:
            PySparkRuntimeError: the server could not carry out this write, or one before it.
        """
        self._map.updateValue(key, value)
        if self._server is not None and self._server.unanswered >= _MOST_UNANSWERED:
            self._server.settle()

    def settle(self) -> None:
        """Read the answers to all writes.

        Raises:
            PySparkRuntimeError: the server could not carry one out.
        """
        if self._server is not None:
            self._server.settle()


class _Deferring:
    """A state server's client that takes every write for done, and asks later."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.unanswered = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def _receive_proto_message(self) -> tuple[int, str, bytes]:
        self.unanswered += 1
        return _DONE, "", b""

    def settle(self) -> None:
        answers = [self._server._receive_proto_message() for _ in range(self.unanswered)]
        self.unanswered = 0
        failures = [answer[1] for answer in answers if answer[0] != _DONE]
        if failures:
            raise PySparkRuntimeError(f"Error updating map state value: {failures[0]}")
