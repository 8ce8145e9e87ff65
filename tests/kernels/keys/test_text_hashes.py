"""Hashes of texts, whole ones."""

from __future__ import annotations

from hashlib import md5

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from windowpane.kernels.keys.key_codes import key_hashes, stepped, text_hash


@given(st.lists(st.none() | st.text(max_size=90)), st.integers(0, 3))
def test_texts_are_hashed_as_keys_of_partitions_are_and_long_ones_by_their_md5(texts: list[str | None], skipped: int) -> None:
    """The hash of keys is tested beside a model; it has one step more."""
    column = pa.chunked_array([pa.array(texts, pa.string()).slice(skipped)])
    for text, found in zip(texts[skipped:], text_hash(column).to_pylist(), strict=True):
        if text is None:
            assert found is None
        elif len(written := text.encode()) > 64:
            assert found == int.from_bytes(md5(written).digest()[:8], "little")
        else:
            (right,) = key_hashes([pa.chunked_array([[text]])], 1)
            assert stepped(np.array([found], np.uint64)) == right
