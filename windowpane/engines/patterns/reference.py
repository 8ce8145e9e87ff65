"""The reference engine of row patterns: the matcher that backtracks, row by row, for every program."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.engines.patterns.batch import Decided, Partitions, PatternBatch, PatternEngine
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.rows import python_keys, python_values
from windowpane.hidden_columns import TIME
from windowpane.operators.patterns.search import Search
from windowpane.state.blob_store import BlobStore


class _Batch(PatternBatch):
    def __init__(self, engine: PatternReferenceEngine, store: BlobStore) -> None:
        super().__init__(engine, store)
        self._search = engine.search

    def search(self, rows: pa.Table, partitions: Partitions, known: int) -> None:
        matches, timeouts = Decided(), Decided()
        numbers, asked = partitions.searched, sorted(self.program.spec.asks)
        lengths = (partitions.ends - partitions.firsts)[numbers]
        begins = (np.cumsum(lengths) - lengths).tolist()
        places = np.arange(int(lengths.sum())) + np.repeat(partitions.firsts[numbers] - begins, lengths)
        own = rows.select([*asked, TIME]).take(pa.array(places))
        held = {name: python_values(name, own[name]) for name in asked}
        times = own[TIME].to_pylist()
        keys = python_keys(rows.take(pa.array(partitions.firsts[numbers])), self.program.keys)
        for number, key, begin, length in zip(numbers.tolist(), keys, begins, lengths.tolist(), strict=True):
            first, end = int(partitions.firsts[number]), begin + length
            columns = {name: values[begin:end] for name, values in held.items()}
            with partitions.moving(number) as cursor:
                for row, values, is_timeout in self._search.advance(key, columns, times[begin:end], cursor, known):
                    decided = timeouts if is_timeout else matches
                    decided.add(first + (row or 0), values)
        self.decide(rows, matches, timeouts)


class PatternReferenceEngine(PatternEngine):
    name = "pattern reference"
    reason = "the matcher that backtracks runs every pattern"
    batch = _Batch

    def __init__(self, program: PatternProgram) -> None:
        super().__init__(program)
        self.search = Search(program.spec)
