"""How many rows of each side the windows of a join hold: its window program counts windows, and knows no sides.

Where windows are made of slices, rows are dropped with their slice. A session that is joined once drops its rows with it. On
engines of rows these are counted as lists of them grow and are cleared; a row in several windows is held, and counted, once in
each.

State: one framed JSON blob ``held``, the rows of each side by slice, or all of them together. Who may mutate: the engine of
window joins, once a batch, after the engine of its window program. Recovery: read it back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from windowpane.arrays.values import Value
from windowpane.engines.row.contents import values_of
from windowpane.operators.window.contents import CONTENTS
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.state.keyed import KeyedState
from windowpane.windowing.windows import Window

_KEY, _KIND = "held", "held-rows"

Sides = Counter[int]
"""Rows by the code of their side."""


class HeldCounts:
    def __init__(self, store: BlobStore) -> None:
        self._store = store
        blob = store.get(_KEY)
        held = {} if blob is None else json.loads(unframe(_KIND, blob))
        self._rows = {int(place): Sides({int(side): rows for side, rows in of.items()}) for place, of in held.items()}

    def add(self, place: int, rows: Mapping[int, int]) -> None:
        """Add rows, or take them away where there are less than none."""
        self._rows.setdefault(place, Sides()).update(rows)

    def keep(self, places: Iterable[int]) -> None:
        kept = set(places)
        self._rows = {place: rows for place, rows in self._rows.items() if place in kept}

    def written(self) -> Sides:
        total = sum((+rows for rows in self._rows.values()), Sides())
        if total:
            held = {str(place): dict(+rows) for place, rows in self._rows.items()}
            self._store.put(_KEY, frame(_KIND, json.dumps(held).encode()))
        elif self._store.get(_KEY) is not None:
            self._store.remove(_KEY)
        return total


class CountingState(KeyedState):
    """Keyed state that counts the rows in windows, by a column that holds their side."""

    def __init__(self, entries: Value, side: str) -> None:
        super().__init__(entries)
        self._side = side
        self.rows = Sides()  # how many rows of each side were added, less those that were removed

    def append(self, window: Window | None, name: str, element: object) -> None:
        super().append(window, name, element)
        if name == CONTENTS:
            self.rows.update(self._sides([element]))

    def put_list(self, window: Window | None, name: str, elements: list[Value]) -> None:
        if name == CONTENTS:
            self.rows.subtract(self._sides(self.get_list(window, name)))
            self.rows.update(self._sides(elements))
        super().put_list(window, name, elements)

    def _sides(self, elements: Iterable[Value]) -> Iterator[int]:
        return (value[self._side] for element in elements for value in values_of(element))
