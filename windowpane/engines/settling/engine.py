"""The settling engine: the changes that the watermark has passed are counted for all equal rows at once.

State: a sort buffer ``b`` of changes that wait, as they came. Who may mutate: this engine, once a batch. Recovery: read it back;
the watermark is in the header.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.engines.nested_keys.writing import hashable_keys
from windowpane.engines.rows import appearing, python_rows
from windowpane.engines.settling.batch import SettlingBatch
from windowpane.engines.settling.program import SettlingProgram
from windowpane.engines.spec import BucketEngine
from windowpane.errors import AbsentInsertError
from windowpane.hidden_columns import TIME
from windowpane.kernels.keys.key_codes import key_codes
from windowpane.kernels.packed_order import stable_order
from windowpane.windowing.outputs import CHANGE_TYPE


class _Batch(SettlingBatch):
    def settled(self, changes: pa.Table) -> pa.Table:
        names, count = self.program.columns.names, changes.num_rows
        numbers = np.unique(key_codes([*hashable_keys(changes, names), changes[TIME]], count), return_inverse=True)[1]
        copies = np.bincount(numbers, np.where(appearing(changes[CHANGE_TYPE]), 1, -1)).astype(np.int64)
        newest = np.zeros(len(copies), np.int64)
        newest[numbers] = np.arange(count)
        if (copies < 0).any():
            row = changes.slice(int(newest[copies.argmin()]), 1).select(names)
            raise AbsentInsertError(python_rows(row)[0], int(-copies.min()))
        staying = np.sort(np.repeat(newest, copies))
        times = changes[TIME].to_numpy()[staying]
        return changes.take(pa.array(staying[stable_order(times)])).drop_columns([CHANGE_TYPE])


class SettlingEngine(BucketEngine[SettlingProgram]):
    name = "settling"
    reason = "changes of equal rows are counted all at once"
    state = "a sort buffer: changes that wait for the watermark"
    holds: ClassVar = {"b": "changes that wait"}
    batch = _Batch
