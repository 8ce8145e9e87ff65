"""A hash of partition values that is the same in every process and for every batch: where the state of a partition lies.

Equal partitions hash equally (NaN is one value, -0.0 is 0.0, NULL is a value); unequal ones may, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.kernels.keys.ordered_codes import has_codes, ordered_codes, validity

Hashes = npt.NDArray[np.uint64]

_NULL = np.uint64(0x9E3779B97F4A7C15)


def partition_hash(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """Return the hash of each row's partition."""
    hashes = np.zeros(rows, np.uint64)
    for column in columns:
        words = ordered_codes(column).view(np.uint64) if has_codes(column.type) else _checksums(column)
        words = np.where(validity(column), words, _NULL)
        hashes = _mixed(hashes ^ _mixed(words + _NULL))
    return hashes


def _checksums(column: pa.Array) -> Hashes:
    encoded = column.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    sums = [crc32(value if isinstance(value, bytes) else str(value).encode()) for value in distinct]
    by_code: Hashes = np.array(sums or [0], np.uint64)[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return by_code


def _mixed(words: Hashes) -> Hashes:
    """The finalizer of splitmix64: every bit of the input moves every bit of the output."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = words ^ (words >> np.uint64(31))
    return mixed
