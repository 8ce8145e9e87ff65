"""Files of Spark's state store, made by hand as its writers make them."""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pytest

from windowpane.errors import UnreadableStateError
from windowpane.inspect.change_logs import ChangeLog

BLOCK = 64


def lz4_stream(body: bytes) -> bytes:
    """Blocks as ``LZ4BlockOutputStream`` writes them, and the empty one at the end."""
    parts = []
    for at in range(0, len(body), BLOCK):
        plain = body[at : at + BLOCK]
        packed = pa.compress(plain, "lz4_raw", asbytes=True)
        token, stored = (0x26, packed) if len(packed) < len(plain) else (0x16, plain)
        parts.append(struct.pack("<8sBiii", b"LZ4Block", token, len(stored), len(plain), 0) + stored)
    return b"".join([*parts, struct.pack("<8sBiii", b"LZ4Block", 0x16, 0, 0, 0)])


def records(*changes: tuple[bytes, bytes | None], version: str = "v2") -> bytes:
    out = io.BytesIO()
    out.write(len(version).to_bytes(2, "big") + version.encode())
    if version == "v4":
        out.write((2).to_bytes(2, "big") + b"[]")
    for key, value in changes:
        out.write(b"\x10" if value is None else b"\x01")
        out.write(len(key).to_bytes(4, "big") + key)
        out.write((-1).to_bytes(4, "big", signed=True) if value is None else len(value).to_bytes(4, "big") + value)
    return out.getvalue() + b"\x00"


@pytest.mark.parametrize("version", ["v2", "v4"])
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_the_last_change_of_a_key_holds(version: str, codec: str) -> None:
    large = bytes(range(256)) * 5
    body = records((b"a", b"1"), (b"gone", None), (b"b", large), (b"a", b"2"), (b"empty", b""), version=version)
    stream = lz4_stream(body) if codec == "lz4" else pa.compress(body, "zstd", asbytes=True)
    log = ChangeLog(pa.BufferReader(stream), codec, "7.changelog")
    assert {key: log.value(key) for key in log.changes} == {b"a": b"2", b"gone": None, b"b": large, b"empty": b""}


def test_what_is_not_read_is_refused() -> None:
    with pytest.raises(UnreadableStateError, match="compressed by lzf"):
        ChangeLog(pa.BufferReader(b""), "lzf", "7.changelog")
    with pytest.raises(UnreadableStateError, match="no stream of LZ4 blocks"):
        ChangeLog(pa.BufferReader(b"x" * 40), "lz4", "7.changelog")
    with pytest.raises(UnreadableStateError, match="version 'v9'"):
        ChangeLog(pa.BufferReader(lz4_stream(records(version="v9"))), "lz4", "7.changelog")
