"""The keys of rows to be deduplicated, as columns of their own: one spelling for equal keys."""

from __future__ import annotations

import pyarrow as pa

from windowpane.arrays import Unsigned
from windowpane.engines.common.rows import python_keys
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.hidden_columns import hidden
from windowpane.kernels.keys.codes import canonical, is_nested
from windowpane.kernels.keys.key_codes import key_hashes
from windowpane.state.codec import encode_key


def key_columns(program: DeduplicationProgram, rows: pa.Table) -> dict[str, pa.Array]:
    """Return the key of each row, by hidden names; nested values as bytes."""
    return {hidden(f"key_of_run_{number}"): _key(rows, name) for number, name in enumerate(program.keys)}


def hashes_of(keys: pa.Table) -> Unsigned:
    """Return the hash of each key."""
    return key_hashes(keys.columns, keys.num_rows)


def _key(rows: pa.Table, name: str) -> pa.Array:
    if is_nested(rows[name].type):
        return pa.array(map(encode_key, python_keys(rows, [name])), pa.binary())
    return canonical(rows[name])
