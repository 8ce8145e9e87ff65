"""The blob store over ``transformWithState``: one MapState of names to blobs a bucket.

Spark commits all state of a micro-batch or none of it, which is what the blob store promises. A state call is a message to the
state server in the JVM, and its answer: 0.2 to 0.6 ms, most of it waiting, and PySpark waits for each. The server answers in the
order of the messages, so many can be sent before the first answer is read: answers to writes wait until they are needed, those
to announced reads until all of them are sent. What was read is kept for the length of one call of the bucket. Any other call to
the server needs the answers read before (``settle``). They are few at a time: a server whose answers nobody reads stops reading.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pyspark.sql import types as T

from windowpane.arrays.values import Value
from windowpane.errors import StateStoreError

_MOST_UNANSWERED = 64
_DONE = 0


class StateMap(Protocol):
    """What is used of a MapState of Spark's."""

    def getValue(self, key: tuple[str]) -> Sequence[bytes] | None: ...  # noqa: N802
    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None: ...  # noqa: N802
    def removeKey(self, key: tuple[str]) -> None: ...  # noqa: N802


class SparkBlobStore:
    """A bucket's blobs in a MapState with the columns (name string, blob binary), of whatever bucket is current in Spark."""

    # Types rather than texts: Python would have the JVM parse a text, in every task.
    DECLARED = (
        "blobs",
        T.StructType([T.StructField("name", T.StringType(), True)]),
        T.StructType([T.StructField("blob", T.BinaryType(), True)]),
    )
    """The name of the MapState, its key and its value."""

    def __init__(self, map_state: StateMap) -> None:
        """Use ``map_state`` the way its own client does; one that has no such client waits for each answer."""
        self._map: Value = map_state  # or a copy, whose calls are answered later
        self._server: _Deferring | None = None
        self._fetched: dict[str, bytes | None] = {}
        client = getattr(map_state, "_mapStateClient", None)
        if client is not None and hasattr(client, "_stateful_processor_api_client"):
            self._server = _Deferring(client._stateful_processor_api_client)
            self._map = copy.copy(map_state)
            self._map._mapStateClient = copy.copy(client)
            self._map._mapStateClient._stateful_processor_api_client = self._server

    def get(self, key: str) -> bytes | None:
        self.prefetch([key])
        return self._fetched.pop(key)

    def prefetch(self, keys: Sequence[str]) -> None:
        missing = [key for key in keys if key not in self._fetched]
        self._answer_from(1)
        for start in range(0, len(missing), _MOST_UNANSWERED):
            part = missing[start : start + _MOST_UNANSWERED]
            found = [self._map.getValue((key,)) for key in part]
            found = found if self._server is None else self._server.answers()
            self._fetched |= {key: None if row is None else bytes(row[0]) for key, row in zip(part, found, strict=True)}

    def put(self, key: str, blob: bytes) -> None:
        """Store ``blob`` under ``key``; whether it could be stored, ``settle`` says."""
        self._write(key, self._map.updateValue, (blob,))

    def remove(self, key: str) -> None:
        self._write(key, self._map.removeKey)

    def settle(self) -> None:
        """Wait until everything is stored: the last thing before any other call to Spark, or another bucket.

        Raises:
            StateStoreError: something could not be stored.
        """
        self._fetched.clear()
        self._answer_from(1)

    def _write(self, key: str, call: Callable[..., object], *value: tuple[bytes]) -> None:
        self._fetched.pop(key, None)
        call((key,), *value)
        self._answer_from(_MOST_UNANSWERED)

    def _answer_from(self, unanswered: int) -> None:
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
        try:
            answers = [self._server._receive_proto_message() for _ in range(self.unanswered)]
        except (OSError, EOFError) as error:
            raise StateStoreError(f"it does not answer ({error})") from error
        self.unanswered = 0
        failures = [answer[1] for answer in answers if answer[0] != _DONE]
        if failures:
            raise StateStoreError(failures[0])
        return [self._server._deserialize_from_bytes(answer[2]) if answer[2] else None for answer in answers]
