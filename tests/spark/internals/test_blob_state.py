"""A pipelined map, with PySpark's own client of a map and a server that counts what it was not asked yet."""

from __future__ import annotations

from collections import deque

import pytest
from pyspark.serializers import CPickleSerializer
from pyspark.sql.streaming.map_state_client import MapStateClient
from pyspark.sql.streaming.proto import StateMessage_pb2
from pyspark.sql.streaming.stateful_processor import MapState

from windowpane.errors import StateStoreError
from windowpane.spark.internals.blob_state import SparkBlobStore

FAILS = b"fails"


class Server:
    """Answers in the order of its messages, as the JVM does; ``most`` is how many answers ever waited to be read."""

    def __init__(self):
        self.blobs, self.most, self.calls = {}, 0, []
        self.answers: deque[tuple[int, str, bytes]] = deque()

    def _serialize_to_bytes(self, schema, data):
        return CPickleSerializer().dumps(schema.toInternal(data))

    def _deserialize_from_bytes(self, value):
        return CPickleSerializer().loads(value)

    def _send_proto_message(self, message):
        request = StateMessage_pb2.StateRequest()
        request.ParseFromString(message)
        call = request.stateVariableRequest.mapStateCall
        self.calls.append(kind := call.WhichOneof("method"))
        if kind == "updateValue" and FAILS in call.updateValue.value:
            self.answers.append((1, "the disk is full", b""))
        elif kind == "updateValue":
            self.blobs[call.updateValue.userKey] = call.updateValue.value
            self.answers.append((0, "", b""))
        elif kind == "getValue":
            self.answers.append((0, "", self.blobs.get(call.getValue.userKey, b"")))
        else:
            self.blobs.pop(call.removeKey.userKey, None)
            self.answers.append((0, "", b""))
        self.most = max(self.most, len(self.answers))

    def _receive_proto_message(self):
        return self.answers.popleft()


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def store(server):
    name, key, value = SparkBlobStore.DECLARED
    return SparkBlobStore(MapState(MapStateClient(server, key, value), name))


def test_answers_are_read_later_and_only_so_many_wait(server, store):
    for number in range(200):
        store.put(f"k{number}", bytes([number]))
    assert 1 < server.most <= 64
    store.settle()
    assert not server.answers
    assert [store.get(f"k{number}") for number in range(200)] == [bytes([number]) for number in range(200)]


def test_a_read_and_a_removal_see_the_writes_before(server, store):
    store.put("a", b"1")
    store.put("a", b"2")
    assert store.get("a") == b"2"
    store.put("b", b"3")
    store.remove("a")
    assert (store.get("a"), store.get("b")) == (None, b"3")
    assert server.calls == ["updateValue", "updateValue", "getValue", "updateValue", "removeKey", "getValue", "getValue"]


@pytest.mark.parametrize(
    "asked", [lambda store: store.settle(), lambda store: store.get("b"), lambda store: store.prefetch(["b"])]
)
def test_what_could_not_be_written_is_said_with_the_next_question_and_no_answer_is_left(server, store, asked):
    store.put("a", FAILS)
    store.put("b", b"2")
    with pytest.raises(StateStoreError, match="Spark's state store failed: the disk is full"):
        asked(store)
    assert not server.answers
    assert store.get("b") == b"2"


def test_announced_reads_are_made_together_and_only_so_many_wait(server, store):
    names = [f"k{number}" for number in range(200)]
    for name in names[:150]:
        store.put(name, name.encode())
    store.settle()
    server.most, server.calls = 0, []
    store.prefetch(names)
    assert 1 < server.most <= 64
    assert not server.answers
    assert [store.get(name) for name in names] == [name.encode() for name in names[:150]] + [None] * 50
    assert server.calls == ["getValue"] * 200


def test_what_was_announced_is_not_what_was_written_since(server, store):
    for name in "abc":
        store.put(name, b"1")
    store.prefetch(["a", "b", "c"])
    store.put("a", b"2")
    store.remove("b")
    assert [store.get(name) for name in "abc"] == [b"2", None, b"1"]


def test_the_next_bucket_sees_its_own_blobs(server, store):
    store.put("a", b"1")
    store.prefetch(["a"])
    store.settle()
    server.blobs.clear()
    assert store.get("a") is None


def test_a_map_without_such_a_client_is_asked_at_once():
    written = {}

    class Map:
        def updateValue(self, key, value):  # noqa: N802
            written[key] = value

        def getValue(self, key):  # noqa: N802
            return written.get(key)

        def removeKey(self, key):  # noqa: N802
            del written[key]

    store = SparkBlobStore(Map())
    store.put("a", b"1")
    assert written == {("a",): (b"1",)}
    store.settle()
    store.prefetch(["a", "b"])
    assert (store.get("a"), store.get("b")) == (b"1", None)
    store.remove("a")
    assert not written


def test_a_server_that_is_gone_is_no_fault_of_the_users_function(server, store):
    def gone():
        raise EOFError

    server._receive_proto_message = gone
    with pytest.raises(StateStoreError, match="it does not answer"):
        store.get("a")
