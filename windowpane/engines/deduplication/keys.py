"""The keys of rows to be deduplicated, as columns of their own: one spelling for equal keys."""

from __future__ import annotations

import pyarrow as pa

from windowpane.arrays import Unsigned
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.nested_keys.writing import hashable_key
from windowpane.hidden_columns import hidden
from windowpane.kernels.keys.key_codes import key_hashes


def key_columns(program: DeduplicationProgram, rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the key of each row, by hidden names; nested values as bytes."""
    named = zip(key_names(program), program.keys, strict=True)
    return {hidden_name: hashable_key(name, rows[name]) for hidden_name, name in named}


def key_names(program: DeduplicationProgram) -> list[str]:
    return [hidden(f"key_of_run_{number}") for number in range(len(program.keys))]


def hashes_of(keys: pa.Table) -> Unsigned:
    return key_hashes(keys.columns, keys.num_rows)
