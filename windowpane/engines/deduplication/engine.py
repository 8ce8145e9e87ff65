"""The deduplication engine: rows of a batch meet earlier ones of their keys, on Arrow tables.

State, by name in the bucket's blob store: ``header``, and what ``first`` and ``last`` say of theirs. Who may mutate: this engine,
once a batch. Recovery: read them back; the clocks are in the header.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windowpane.engines.deduplication.first import FirstRows
from windowpane.engines.deduplication.last import LastRows
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.state.blob_store import BlobStore


class DeduplicationEngine:
    name = "deduplication"

    def __init__(self, program: DeduplicationProgram) -> None:
        self.program = program

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        batch = FirstRows if self.program.keep is Keep.FIRST else LastRows
        return batch(self.program, store).run(rows, clock)
