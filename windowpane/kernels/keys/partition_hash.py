"""A hash of partition values that is the same in every process and for every batch: where the state of a partition lies.

Equal partitions hash equally (NaN is one value, -0.0 is 0.0, NULL is a value); unequal ones may, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import pyarrow as pa

from windowpane.arrays import Unsigned
from windowpane.kernels.keys.ordered_codes import has_codes, ordered_codes, validity
from windowpane.kernels.keys.splitmix import GAMMA, mixed, stepped


def partition_hash(columns: Sequence[pa.Array], rows: int) -> Unsigned:
    """Return the hash of each row's partition."""
    hashes = np.zeros(rows, np.uint64)
    for column in columns:
        words = ordered_codes(column).view(np.uint64) if has_codes(column.type) else _checksums(column)
        words = np.where(validity(column), words, GAMMA)
        hashes = mixed(hashes ^ stepped(words))
    return hashes


def _checksums(column: pa.Array) -> Unsigned:
    encoded = column.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    sums = [crc32(value if isinstance(value, bytes) else str(value).encode()) for value in distinct]
    by_code: Unsigned = np.array(sums or [0], np.uint64)[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return by_code
