"""The number of the bucket of each key: one hash, where rows are encoded and where a checkpoint is spread over other buckets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Unsigned
from windowpane.arrays.columns import flat
from windowpane.engines.nested_keys.writing import hashable_keys
from windowpane.kernels.keys.coded_texts import CodedTexts, are_coded
from windowpane.kernels.keys.key_codes import key_hashes, stepped
from windowpane.kernels.keys.murmur import murmur_of_texts

_SEED = 42


def bucket_numbers(rows: pa.Table, keys: Sequence[str], buckets: int) -> Integers:
    """Return the number of the bucket of each row, the same for equal keys in any process, whether rows came whole or folded."""
    if not keys or buckets == 1:
        return np.zeros(rows.num_rows, np.int64)
    first, *others = map(_hashes, hashable_keys(rows, keys))
    hashes = reduce(lambda before, column: stepped(before * np.uint64(31) + column), others, first)
    number = np.uint64(buckets)
    found = hashes & (number - np.uint64(1)) if buckets & (buckets - 1) == 0 else hashes - hashes // number * number
    return found.view(np.int64)  # numpy takes five times as long for a remainder as for a quotient


def _hashes(column: pa.ChunkedArray) -> Unsigned:
    """Return the hash of each key of a column; of texts, all bytes: addresses of pages are often the same at both ends."""
    if are_coded(column.type):
        coded = CodedTexts.of(column)
        found: Unsigned = _hashes(pa.chunked_array([coded.texts]))[coded.codes.to_numpy()]
        return found
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return key_hashes([column], len(column))
    texts = flat(column)
    hashes, _ = murmur_of_texts(texts, _SEED)
    return np.where(texts.is_null().to_numpy(zero_copy_only=False), 0, hashes) if texts.null_count else hashes
