"""The general OVER operator: a changelog in, a changelog out.

State layout, in the keyed state of a bucket: under each partition, ``rows`` = its rows with their current outputs, ascending by
position. Who may mutate: ``process``, once for each partition that a batch touches. Recovery: none, the entries are all there is.

A row is known by its partition, its order values and its key. Invariants after every batch: each stored output is what its call
gives on the stored rows; what was emitted so far adds up to the stored rows.

Every row of a partition that changes is computed anew from its whole frame. Source of the rules: RisingWave's general over-window
operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from windowpane.arrays.values import Row, Value
from windowpane.errors import InconsistentChangeError
from windowpane.operators.over.consolidation import Report, consolidate
from windowpane.operators.over.functions import evaluator
from windowpane.operators.over.row_forms import RowForms
from windowpane.operators.over.row_order import Position, RowOrder
from windowpane.operators.over.sorted_partition import SortedPartition
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.windowing.outputs import Change
from windowpane.windowing.over.spec import OverSpec

_ROWS = "rows"


@dataclass(slots=True)
class _Delta:
    """What a batch changes in one partition, by position; an overwritten position is in both."""

    partition: tuple[Value, ...]
    deleted: dict[Position, Row] = field(default_factory=dict)
    inserted: dict[Position, Row] = field(default_factory=dict)


Stored = dict[Position, Row]
"""The rows of a partition with their outputs."""


class OverOnUpdate:
    def __init__(self, spec: OverSpec, columns: pa.Schema, outputs: pa.Schema, state: KeyedState, report: Report) -> None:
        self._spec = spec
        self._order = RowOrder(spec, columns)
        self._calls = [(name, evaluator(call, columns)) for name, call in zip(outputs.names, spec.calls, strict=True)]
        self._inputs = RowForms(columns)
        self._all = RowForms(pa.schema([*columns, *outputs]))
        self._outputs = {name: RowForms(outputs, (name,)) for name in outputs.names}
        self._key = RowForms(columns, spec.key)
        self._partition = RowForms(columns, spec.partition_by)
        self._state = state
        self._report = report

    def process(self, changes: Iterable[tuple[str, Row]], touched: Iterable[tuple[Value, ...]] = ()) -> list[Change]:
        """Take one batch of (change type, row) and return what it changes: each row at most once, partition by partition.

        Partitions that are ``touched`` are computed anew without a change.
        """
        deltas: dict[bytes, _Delta] = {encode_key(partition): _Delta(partition) for partition in touched}
        for change in consolidate(changes, self._key.frozen, self._inputs.same, self._report):
            if change.before is not None:
                self._delta(deltas, change.before).deleted[self._order.position(change.before)] = change.before
            if change.after is not None:
                self._delta(deltas, change.after).inserted[self._order.position(change.after)] = change.after
        return [emitted for partition in sorted(deltas) for emitted in self._apply(partition, deltas[partition])]

    def _delta(self, deltas: dict[bytes, _Delta], row: Row) -> _Delta:
        partition = self._partition.spelled(row)
        return deltas.setdefault(encode_key(partition), _Delta(partition))

    def _apply(self, partition: bytes, delta: _Delta) -> list[Change]:
        self._state.set_current_key(delta.partition, partition)
        stored: Stored = dict(self._state.get(None, _ROWS) or ())
        self._check(stored, delta)
        after = self._computed({at: row for at, row in stored.items() if at not in delta.deleted} | delta.inserted)
        self._state.put(None, _ROWS, sorted(after.items()) or None)
        return self._joined(self._differences(stored, after))

    def _check(self, stored: Stored, delta: _Delta) -> None:
        for position, row in delta.deleted.items():
            if position not in stored:
                self._report(InconsistentChangeError("delete", row, "there is no such row in its partition"))
        for position, row in delta.inserted.items():
            if position in stored and position not in delta.deleted:
                self._report(InconsistentChangeError("insert", row, "its partition already has such a row"))

    def _computed(self, rows: Stored) -> Stored:
        positions = sorted(rows)
        partition = SortedPartition([rows[position] for position in positions], self._order)
        after: Stored = {}
        for index, position in enumerate(positions):
            row = rows[position]
            after[position] = {**row, **{name: self._value(row, name, call(partition, index)) for name, call in self._calls}}
        return after

    def _value(self, row: Row, name: str, value: object) -> Value:
        """Return the value of an output: equal ones may look different (a map's order), and what was emitted stays as it was."""
        return row[name] if name in row and self._outputs[name].same(row, {name: value}) else value

    def _differences(self, before: Stored, after: Stored) -> Iterator[tuple[Position, Change]]:
        for position in sorted(before.keys() | after.keys()):
            was, now = before.get(position), after.get(position)
            if was is None or now is None or not self._all.same(was, now):
                yield position, Change(was, now)

    def _joined(self, changes: Iterable[tuple[Position, Change]]) -> list[Change]:
        """A row that moves inside its partition is deleted at one place and inserted at another: one update."""
        joined: dict[Position, Change] = {}
        halves: dict[tuple[Value, ...], Position] = {}
        for position, change in changes:
            if change.before is None or change.after is None:
                other = halves.setdefault(position.key, position)
                if other != position:
                    half = joined.pop(other)
                    change = Change(half.before or change.before, half.after or change.after)
            joined[position] = change
        return list(joined.values())
