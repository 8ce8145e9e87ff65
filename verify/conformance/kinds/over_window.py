"""Kind ``over_window``: RisingWave's general and EOWC OVER operators, with checkpoints, recovery and evicted caches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.over_ops import SIGNS, WORDS, raise_it
from verify.conformance.reading.over_vectors import OverSchema, read_spec
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.changelog import EXPECT, Changelog
from verify.conformance.replay.comparison import frozen
from verify.conformance.replay.recovering import Recovering
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.arrays.values import Row
from windowpane.operators.over.on_close import OverOnClose
from windowpane.operators.over.on_update import OverOnUpdate
from windowpane.state.entries import MemoryEntries
from windowpane.state.keyed import KeyedState
from windowpane.windowing.over.spec import OverSpec
from windowpane.windowing.over.types import output_schema

_WINDOW = {"mode", "schema", "pk", "partition_by", "order_by", "calls", "out_columns"}
_CASE = {"id", "kind", "rust_test", "options", "steps"} | _WINDOW
_CACHE = {"expect_cache"}
"""What RisingWave's cache did: there is none here, and results do not depend on it."""
_NOTES = {"note"}


def replay(case: Case, options: Options, operator: MakeOperator | None = None) -> list[Difference]:
    """Run the steps on an operator, the reference if not given; with ``restart`` it is built anew on its state after each."""
    require_known(case.body, _CASE | _CACHE, "case")
    replayed = _Replay(case, operator or _Reference)
    differences = []
    for number, step in enumerate(case.get("steps")):
        if step.keys() & (EXPECT | {"expect_state"}):
            differences += replayed.compare(step, f"step {number}")
        else:
            replayed.act({name: value for name, value in step.items() if name not in _NOTES})
        if options.restart:
            replayed.state.restart()
    return differences


class Operator(Protocol):
    """An operator on its state."""

    def process(self, changes: list[tuple[str, Row]]) -> list[tuple[str, Row]]:
        """Take changes, (sign, row), and return those that are emitted."""

    def flush(self) -> None:
        """Write what is not in the state yet."""


MakeOperator = Callable[[str, OverSpec, pa.Schema, pa.Schema, MemoryEntries], Operator]
"""Makes an operator from its mode, window, input and output columns, and state."""


class _Reference:
    """One of the two reference operators, and the state it flushes."""

    def __init__(self, mode: str, spec: OverSpec, columns: pa.Schema, outputs: pa.Schema, entries: MemoryEntries) -> None:
        self._state = KeyedState(entries)
        parts = (spec, columns, outputs, self._state)
        self._general = OverOnUpdate(*parts, raise_it) if mode == "general" else None
        self._closing = OverOnClose(*parts) if mode == "eowc" else None

    def process(self, changes: list[tuple[str, Row]]) -> list[tuple[str, Row]]:
        if self._closing is not None:
            return [("+", row) for row in self._closing.process(row for _, row in changes)]
        assert self._general is not None, "a case is general or eowc"
        emitted = self._general.process((WORDS[op], row) for op, row in changes)
        return [(SIGNS[word], row) for change in emitted for word, row in change.entries()]

    def flush(self) -> None:
        self._state.flush()


class _Replay:
    def __init__(self, case: Case, operator: MakeOperator) -> None:
        self.mode = case.get("mode")
        if self.mode not in ("general", "eowc"):
            raise NotUnderstoodError(f"mode {self.mode!r} is not understood")
        self.schema = OverSchema(case.get("schema"))
        self.spec = read_spec(case.body)
        self.outputs = output_schema(self.spec, self.schema.arrow, [f"${number}" for number in range(len(self.spec.calls))])
        self._columns = [*self.schema.names, *self.outputs.names]
        self._emitted = Changelog(self.schema, self._columns)
        self._materialized: Counter[Any] = Counter()
        parts = (self.mode, self.spec, self.schema.arrow, self.outputs)
        self.state: Recovering[Operator] = Recovering(lambda entries: operator(*parts, entries), lambda each: each.flush())

    def act(self, step: Json) -> None:
        if set(step) == {"changes"}:
            self._emit(self.state.operator.process(self.schema.changes(step["changes"])))
        elif set(step) == {"barrier"}:
            self.state.commit()
        elif set(step) == {"recover"}:
            self.state.recover()
        elif not set(step) <= {"watermark", "evict_cache"}:  # RisingWave's operators read no watermark
            raise NotUnderstoodError(f"over_window step {sorted(step)} is not understood")

    def _emit(self, changes: list[tuple[str, Row]]) -> None:
        self._emitted.changes += changes
        for op, row in changes:
            self._materialized[frozen(list(row.values()))] += 1 if op in ("+", "U+") else -1

    def compare(self, step: Json, where: str) -> list[Difference]:
        emitted = {name: value for name, value in step.items() if name != "expect_state"}
        differences = self._emitted.compare(emitted, where) if emitted else []
        if "expect_state" in step:
            rows = [self.schema.row(cells, self._columns) for cells in step["expect_state"]]
            expected = Counter(frozen(list(row.values())) for row in rows)
            if expected != +self._materialized:
                differences.append(Difference(f"{where} expect_state", rows, sorted(self._materialized.elements(), key=repr)))
        return differences
