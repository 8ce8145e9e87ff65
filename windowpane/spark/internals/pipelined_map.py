"""A pipelined map: state calls whose answers are read together.

A state call is a message to Spark's state server in the JVM, and its answer; PySpark waits for each. The server answers in the
order of the messages, so many can be sent before the first answer is read: those of writes wait until they are needed, those of
reads until all of them are sent. Every other call to the server needs the answers read before. They are few at a time: a server
whose answers nobody reads stops reading, too.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import islice
from typing import Any

from pyspark.errors import PySparkRuntimeError

_MOST_UNANSWERED = 64
_DONE = 0

Key = tuple[Any, ...]


class PipelinedMap:
    """A MapState; ``settle`` comes before any call to its server that is not made here, and before the bucket is done."""

    def __init__(self, map_state: Any) -> None:
        """Use ``map_state`` the way its own client does; one that has no such client waits for each answer."""
        self._map = map_state
        self._server: _Deferring | None = None
        client = getattr(map_state, "_mapStateClient", None)
        if client is not None and hasattr(client, "_stateful_processor_api_client"):
            self._server = _Deferring(client._stateful_processor_api_client)
            self._map = copy.copy(map_state)
            self._map._mapStateClient = copy.copy(client)
            self._map._mapStateClient._stateful_processor_api_client = self._server

    def values(self, keys: Sequence[Key]) -> list[Any]:
        """Return the values under keys, ``None`` where there is none."""
        if self._server is None:
            return [self._map.getValue(key) for key in keys]
        self.settle()
        waiting, found = iter(keys), list[Any]()
        while part := list(islice(waiting, _MOST_UNANSWERED)):
            for key in part:
                self._map.getValue(key)
            found += self._server.answers()
        return found

    def update(self, key: Key, value: tuple[Any, ...]) -> None:
        self._map.updateValue(key, value)
        self._settle_from(_MOST_UNANSWERED)

    def remove(self, key: Key) -> None:
        self._map.removeKey(key)
        self._settle_from(_MOST_UNANSWERED)

    def settle(self) -> None:
        """Read the answers to all writes."""
        self._settle_from(1)

    def _settle_from(self, unanswered: int) -> None:
        if self._server is not None and self._server.unanswered >= unanswered:
            self._server.answers()


class _Deferring:
    """A state server's client that takes every call for done, without a value, and reads the answer later."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.unanswered = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def _receive_proto_message(self) -> tuple[int, str, bytes]:
        self.unanswered += 1
        return _DONE, "", b""

    def answers(self) -> list[Any]:
        """Return the value that each unanswered call was answered with, ``None`` where there is none."""
        answers = [self._server._receive_proto_message() for _ in range(self.unanswered)]
        self.unanswered = 0
        failures = [answer[1] for answer in answers if answer[0] != _DONE]
        if failures:
            raise PySparkRuntimeError(f"Error in a call to map state: {failures[0]}")
        return [self._server._deserialize_from_bytes(answer[2]) if answer[2] else None for answer in answers]
