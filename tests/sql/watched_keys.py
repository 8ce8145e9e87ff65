"""Watches what every node of every view gives: each row stands there once, and no other row has its key.

An operator changes what it keeps by key, so two rows under one key are a row that vanishes with the next change. What a node gave
so far is kept by session, view and number of the node, so a session that is opened again goes on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from windowpane.sql.bind.scope import Column
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Node
from windowpane.sql.streaming.deltas import WEIGHT, Delta
from windowpane.sql.streaming.job import Job
from windowpane.sql.upkeep.embedded_runner import EmbeddedRunner
from windowpane.sql.upkeep.stored_changes import Swap

Row = tuple[str, str]
"""The key of a row, and the whole row, as text."""


def _as_text(column: Column) -> str:
    """Return a value as it is written."""
    return f"replace(CAST({quoted(column.id)} AS VARCHAR), '-nan', 'nan')"


class Watch:
    """The rows that each node gave so far."""

    def __init__(self) -> None:
        self.nodes: defaultdict[tuple[str, str, int], Counter[Row]] = defaultdict(Counter)
        self.checked = 0
        self._rewritten: set[str] = set()

    def take(self, job: Job, node: Node, delta: Delta | None, *, initial: bool) -> None:
        """Add a batch to what a node gave, and check the whole."""
        storage = job._storage
        if job._name in self._rewritten:
            return
        rows = self.nodes[storage.path if storage.path != ":memory:" else str(id(storage)), job._name, job._numbers[id(node)]]
        if initial:
            rows.clear()
        if delta is None:
            return
        names = [column.id for column in node.columns]
        items = ", ".join(_as_text(column) for column in node.columns)
        places = [names.index(name) for name in node.key]
        for *cells, weight in storage.run(f"SELECT {items}, {quoted(WEIGHT)} FROM {delta}"):
            row = (repr([cells[place] for place in places]), repr(cells))
            rows[row] += weight
            if not rows[row]:
                del rows[row]
        self.check(node, rows)

    def renamed(self, old: str, new: str) -> None:
        """Go on with a view under another name."""
        for store, name, number in list(self.nodes):
            if name == old:
                self.nodes[store, new, number] = self.nodes.pop((store, name, number))

    def swapped(self, names: Mapping[str, str]) -> None:
        """Go on with views that took the place of others; not with those whose rows were rewritten."""
        for new, before in names.items():
            if new == before:
                self._rewritten.add(new)
                continue
            for place in [each for each in self.nodes if each[1] == new]:
                del self.nodes[place]
            self._rewritten.discard(new)
            self.renamed(before, new)

    def moved(self, old: str, new: str) -> None:
        """Go on with a store at another path."""
        for store, name, number in list(self.nodes):
            if store == old:
                self.nodes[new, name, number] = Counter(self.nodes[store, name, number])

    def check(self, node: Node, rows: Mapping[Row, int]) -> None:
        self.checked += 1
        odd = {row: weight for row, weight in rows.items() if weight != 1}
        assert not odd, f"{node.label} ({node.detail}) gave rows not once: {odd}"
        keys = Counter(key for key, _ in rows)
        twice = [key for key, count in keys.items() if count > 1]
        assert not twice, f"{node.label} ({node.detail}) has the key {node.key} twice: {twice}"


@contextmanager
def watching_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Watch all jobs while this is open."""
    watch, run, outermost, finish = Watch(), Job._run, Storage._outermost, EmbeddedRunner.swapped

    def watched(job: Job, node: Node, changes: Mapping[str, Delta], initial: bool) -> Delta | None:
        delta = run(job, node, changes, initial)
        watch.take(job, node, delta, initial=initial)
        return delta

    def undone(storage: Storage) -> Iterator[None]:
        """A transaction that is rolled back takes back what nodes gave in it."""
        held = {name: Counter(rows) for name, rows in watch.nodes.items()}
        try:
            yield from outermost(storage)
        except BaseException:
            watch.nodes = defaultdict(Counter, held)
            raise

    def swapped(runner: EmbeddedRunner, swap: Swap) -> None:
        watch.swapped(swap.names)
        finish(runner, swap)

    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedRunner, "swapped", swapped)
        patched.setattr(Job, "_run", watched)
        patched.setattr(Storage, "_outermost", undone)
        yield watch
