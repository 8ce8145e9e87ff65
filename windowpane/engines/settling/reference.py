"""The settling reference: the changes of a bucket are counted one after the other, by the row that they are of."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from windowpane.engines.rows import python_rows
from windowpane.engines.settling.batch import SettlingBatch
from windowpane.engines.settling.program import SettlingProgram
from windowpane.engines.spec import BucketEngine
from windowpane.errors import AbsentInsertError
from windowpane.hidden_columns import TIME
from windowpane.state.codec import encode_key
from windowpane.windowing.outputs import APPEARING, CHANGE_TYPE


class _Batch(SettlingBatch):
    def settled(self, changes: pa.Table) -> pa.Table:
        rows, words = python_rows(changes.select(self.program.columns.names)), changes[CHANGE_TYPE].to_pylist()
        times = changes[TIME].to_pylist()
        last: dict[bytes, int] = {}
        copies: dict[bytes, int] = {}
        for place, (row, word) in enumerate(zip(rows, words, strict=True)):
            of_row = encode_key((*row.values(), times[place]))
            last[of_row] = place
            copies[of_row] = copies.get(of_row, 0) + (1 if word in APPEARING else -1)
        for of_row, count in copies.items():
            if count < 0:
                raise AbsentInsertError(rows[last[of_row]], -count)
        staying = sorted((times[last[of_row]], last[of_row]) for of_row, count in copies.items() for _ in range(count))
        return changes.take(pa.array([place for _, place in staying], pa.int64())).drop_columns([CHANGE_TYPE])


class SettlingReferenceEngine(BucketEngine[SettlingProgram]):
    name = "settling reference"
    reason = "the reference counts one change after the other"
    state = "a sort buffer: changes that wait for the watermark"
    holds: ClassVar = {"b": "changes that wait"}
    batch = _Batch
