"""The elements of a batch, in order of arrival, with the number of the key of each: a key is made and encoded once a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.values import Value
from windowpane.engines.nested_keys.writing import hashable_key
from windowpane.engines.rows import python_keys, python_rows
from windowpane.hidden_columns import TIME
from windowpane.kernels.grouping.running_positions import run_ends
from windowpane.kernels.keys.dense_codes import dense_codes
from windowpane.kernels.packed_order import stable_order
from windowpane.state.codec import encode_key
from windowpane.windowing.times import MIN


class Key(NamedTuple):
    """A key as functions see it, and as state does."""

    value: Value
    encoded: bytes


@dataclass(frozen=True)
class Elements:
    """The elements of a batch, or of a part of it."""

    keys: Sequence[Key]  # the different keys, in order of first appearance
    codes: Integers  # for each element the number of its key
    seen: pa.Table  # the elements as a table
    times: Integers  # their event times in microseconds, ``MIN`` where there is none
    instants: Sequence[int]  # the same as Python's integers
    first: int  # the number of the first of them among the rows of the batch

    @cached_property
    def values(self) -> list[Value]:
        """The elements as functions see them, made key by key: those of a key lie together in memory, as the cache likes it."""
        if not self.seen.num_columns:
            return python_rows(self.seen)  # such a table forgets how many rows it has when some are taken
        order = stable_order(self.codes)
        made = np.empty(len(self.codes), object)
        made[order] = python_rows(self.seen.take(pa.array(order)))
        values: list[Value] = made.tolist()
        return values

    def value(self, number: int) -> Value:
        return self.values[number] if "values" in self.__dict__ else python_rows(self.seen.slice(number, 1))[0]

    def by_key(self, numbers: Integers) -> Iterator[tuple[Key, list[int]]]:
        """Yield each key of some elements with the numbers of those, in order of arrival."""
        if not len(numbers):
            return
        codes = self.codes[numbers]
        order = stable_order(codes)
        ends = run_ends(codes[order]) + 1
        found = numbers[order].tolist()
        for start, end in pairwise([0, *ends.tolist()]):
            yield self.keys[self.codes[found[start]]], found[start:end]


def elements_of(rows: pa.Table, key_columns: Sequence[str], seen: pa.Table, first: int) -> Elements:
    """Return the rows of a table, in order of arrival, as elements; ``seen`` is what functions see of each."""
    keys, codes = _numbered(rows, key_columns)
    filled = pc.fill_null(rows[TIME], MIN).to_numpy()
    return Elements(keys, codes, seen, filled, filled.tolist(), first)


def _numbered(rows: pa.Table, names: Sequence[str]) -> tuple[list[Key], Integers]:
    codes, firsts = dense_codes([hashable_key(name, rows[name]) for name in names], rows.num_rows)
    keys = python_keys(rows.select(list(names)).take(pa.array(firsts)), names) if names else [None]
    return [Key(key, encode_key(key)) for key in keys], codes
