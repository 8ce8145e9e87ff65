"""Rows as Redis hashes, one a key, which hold the newest version.

The server compares versions in one script with the write, so writers that overlap, and batches that are repeated, leave the
newest row of a key, in whatever order they write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.values import Value
from windowpane.errors import StoreError, UnsupportedTypeError
from windowpane.state.pairs import NONE
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, UPDATE_PREIMAGE

if TYPE_CHECKING:
    import redis

BATCH = 1_000  # How many rows go to the server at once

_WRITE = """
local stored = redis.call('HGET', KEYS[1], ARGV[1])
if stored and tonumber(stored) > tonumber(ARGV[2]) then return 0 end
redis.call('DEL', KEYS[1])
if #ARGV > 3 then
  redis.call('HSET', KEYS[1], unpack(ARGV, 4))
  if ARGV[3] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
end
return 1
"""
"""ARGV: field of the version, the version, milliseconds to live (0: for ever), fields and values; none delete the hash."""

_BATCHES = "windowpane:"
"""What the name of the hash begins with that has the number of the last batch by query; the prefix of the rows follows."""

_EXACT = 2**53  # The numbers in scripts of Redis are doubles. Microseconds since 1970 exceed it in the year 2255

SCHEMA = "written long"


@dataclass(frozen=True)
class HashWriter:
    url: str  # ``redis://host:6379/0``, ``rediss://...`` or ``unix://path``
    key: tuple[str, ...]  # the columns that identify a row
    prefix: str  # how names of hashes begin
    version: str  # the column that says which row of a key is newer: a timestamp or an integer
    live_milliseconds: int = 0  # after which a hash expires that nothing has written; 0 for never

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _connected(self.url) as client:
            written = sum(self._write(client, pa.Table.from_batches([batch])) for batch in batches)
        yield pa.RecordBatch.from_pydict({"written": [written]}, pa.schema([("written", pa.int64())]))

    def _write(self, client: redis.Redis, rows: pa.Table) -> int:
        import redis

        if CHANGE_TYPE in rows.column_names:
            rows = rows.filter(pc.not_equal(rows[CHANGE_TYPE], UPDATE_PREIMAGE))
        versions = _versions(rows[self.version], self.version)
        script, written = client.register_script(_WRITE), 0
        try:
            for start in range(0, rows.num_rows, BATCH):
                pipeline = client.pipeline(transaction=False)
                part = rows.slice(start, BATCH).to_pylist()
                for row, version in zip(part, versions[start : start + BATCH], strict=True):
                    script(keys=[self.name(row)], args=self._arguments(row, version), client=pipeline)
                written += sum(pipeline.execute())
        except redis.RedisError as error:
            raise StoreError("Redis", str(error)) from None
        return written

    def name(self, row: dict[str, Value]) -> str:
        """Return the name of a row's hash: the prefix, and the values of the key, with colons between.

        It says which values they are: NULL is ``%null``, ``%`` is ``%25``, and where there are several values, a colon in one
        is ``%3A``. 0.0 and -0.0 are one key.
        """
        several = len(self.key) > 1
        return self.prefix + ":".join(_in_name(row[name], several) for name in self.key)

    def _arguments(self, row: dict[str, Value], version: int | None) -> list[str | bytes | int]:
        if version is None:
            raise StoreError("Redis", f"the row of key {self.name(row)} has no {self.version!r}, which says whether it is newer.")
        if abs(version) > _EXACT:
            raise StoreError("Redis", f"{self.version!r} of key {self.name(row)} is {version}: scripts compare up to {_EXACT}.")
        head: list[str | bytes | int] = [self.version, version, self.live_milliseconds]
        if row.pop(CHANGE_TYPE, None) == DELETE:
            return head
        row[self.version] = version
        return head + [part for name, value in row.items() if value is not None for part in (name, _text(value))]


def last_batch(url: str, prefix: str, query: str) -> int:
    """Return the number of the last batch of a query, ``NONE`` if the server has none."""
    with _connected(url) as client:
        found = client.hget(f"{_BATCHES}{prefix}", query)
    return NONE if found is None else int(found)


def keep_batch(url: str, prefix: str, query: str, number: int) -> None:
    """Keep the number of a batch, all of whose rows are written."""
    with _connected(url) as client:
        client.hset(f"{_BATCHES}{prefix}", query, number)


def _connected(url: str) -> redis.Redis:
    import redis

    client: redis.Redis = redis.Redis.from_url(url)
    try:
        client.ping()
    except redis.RedisError as error:
        raise StoreError("Redis", str(error)) from None
    return client


def _versions(column: pa.ChunkedArray, name: str) -> Sequence[int | None]:
    """Return versions as integers, those of timestamps in microseconds since 1970."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif not pa.types.is_integer(kind):
        raise UnsupportedTypeError(f"column {name!r} is {kind}, and a version is a timestamp or an integer.")
    versions: list[int | None] = column.to_pylist()
    return versions


def _in_name(value: object, several: bool) -> str:
    """Return a value of a key as part of the name of a hash, which no other value gives."""
    if value is None:
        return "%null"
    text = _text(value + 0.0 if isinstance(value, float) else value)
    written = (text.hex() if isinstance(text, bytes) else text).replace("%", "%25")
    return written.replace(":", "%3A") if several else written


def _text(value: object) -> str | bytes:
    """Return a value as a field of a hash holds it."""
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)
