"""The deduplication engine: rows of a batch meet earlier ones of their keys, on Arrow tables.

State, by name in the bucket's blob store: ``header``, and what ``first`` and ``last`` say of theirs. Who may mutate: this engine,
once a batch. Recovery: read them back; the clocks are in the header.
"""

from __future__ import annotations

from typing import ClassVar

from windowpane.engines.deduplication.first import FirstRows
from windowpane.engines.deduplication.last import LastRows
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.spec import BucketEngine
from windowpane.state.blob_store import BlobStore


class DeduplicationEngine(BucketEngine[DeduplicationProgram]):
    name = "deduplication"
    reason = "rows of a batch meet the held ones of their keys all at once"
    state = "hash pages: what a row that is not late can be a duplicate of, by a hash of the key"
    holds: ClassVar = {"h": "first rows", "k": "their keys", "p": "last rows"}

    def open(self, store: BlobStore) -> FirstRows | LastRows:
        return FirstRows(self, store) if self.program.keep is Keep.FIRST else LastRows(self, store)
