"""What a bucket emits, some of it made only when it is read: a hot key has more pairs than fit in memory at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

import pyarrow as pa

Tables = Iterator[tuple[int, pa.Table]]


class Pieces(Sequence[tuple[int, pa.Table]]):
    """The tables of an output. Reading them in order holds one of those in memory that are made while they are read.

    Args:
        parts: each a table with the number of its output, or what makes such tables, the same ones each time.
    """

    def __init__(self, parts: Sequence[tuple[int, pa.Table] | Callable[[], Tables]]) -> None:
        self._parts = parts

    def __iter__(self) -> Tables:
        for part in self._parts:
            if callable(part):
                yield from part()
            else:
                yield part

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, place: int) -> tuple[int, pa.Table]: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[tuple[int, pa.Table]]: ...

    def __getitem__(self, place: int | slice) -> tuple[int, pa.Table] | Sequence[tuple[int, pa.Table]]:
        return list(self)[place]
