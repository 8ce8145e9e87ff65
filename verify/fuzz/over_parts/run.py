"""Runs a random OVER program batch by batch and compares everything it emits with the oracle.

Mode update: after every batch the changelog, applied, gives what DuckDB's OVER gives on the input so far, and it is sound: no
double insert, no delete or update of an absent row, no update that changes nothing, at most one change of a row. Mode
close: each row that is not late is emitted once, in order, with its final values, and no later than its frames allow; late
rows are emitted as late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from verify.fuzz.comparison import difference, identical
from verify.fuzz.over_parts.inputs import Batch, Row, Trial
from verify.fuzz.over_parts.oracle import Oracle
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import Clock, Engine, coded_columns
from windowpane.errors import WindowpaneError
from windowpane.hidden_columns import FIRING_WATERMARK, PREFIX, TIME
from windowpane.operators.over.row_order import RowOrder
from windowpane.state.codec import encode_key
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.over.spec import watermark_delay
from windowpane.windowing.times import MAX, MIN

_COUNTERS = ("late_elements", "late_dropped", "inconsistent")

MakeEngine = Callable[[OverProgram], Engine]


class UnsoundError(Exception):
    """The output cannot be, whatever the values."""


class NotCoveredError(Exception):
    """The engine does not run the program, for the reason given."""


def check_trial(trial: Trial, make_engine: MakeEngine, oracle: Oracle) -> list[str]:
    """Run a trial and return what differs, empty if nothing does."""
    check = _CloseCheck if trial.program.mode is Emit.CLOSE else _UpdateCheck
    run = check(trial.program, oracle)
    engines = _Engines(trial.program, make_engine)
    for number, batch in enumerate(trial.batches):
        try:
            found = run.batch(batch, engines.run(batch))
        except UnsoundError as reason:
            found = str(reason)
        if found is not None:
            return [f"batch {number}: {found}"]
    return []


def check_beside(trial: Trial, make_engine: MakeEngine, make_reference: MakeEngine) -> list[str]:
    """Run a trial on two engines and return where the results of a batch differ, empty if nothing does."""
    reference, engine = _Engines(trial.program, make_reference), _Engines(trial.program, make_engine)
    for number, batch in enumerate(trial.batches):
        expected, got = _outcome(reference, batch), _outcome(engine, batch)
        if isinstance(expected, WindowpaneError) or isinstance(got, WindowpaneError):
            return [] if type(expected) is type(got) else [f"batch {number}: expected {expected!r}, got {got!r}"]
        if reference.counters != engine.counters:
            return [f"batch {number}: counters {reference.counters}, got {engine.counters}"]
        for output, name in ((MAIN, "main"), (LATE, "late")):
            rows = [_visible(tables.get(output), [TIME, FIRING_WATERMARK]) for tables in (expected, got)]
            found = _difference(trial.program, *rows) if output == MAIN else difference(*rows)
            if found is not None:
                return [f"batch {number}, {name}: {found}"]
    return []


def _outcome(engines: _Engines, batch: Batch) -> dict[int, pa.Table] | WindowpaneError:
    try:
        return engines.run(batch)
    except WindowpaneError as error:
        return error


class _Engines:
    """The engine, built anew on a snapshot of its state where the trial says so; without rows it is called only if not idle."""

    def __init__(self, program: OverProgram, make_engine: MakeEngine) -> None:
        self._program = program
        self._make = make_engine
        self._engine, self._store = make_engine(program), MemoryBlobStore()
        self._is_idle = True
        self.counters: dict[str, int] = {}
        """Those of the last batch that do not depend on how state is kept."""

    def _coded(self, rows: pa.Table) -> pa.Table:
        """Return rows with codes for texts where the engine takes them, as they arrive from the encoder."""
        for name in coded_columns(self._engine):
            rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].combine_chunks().dictionary_encode())
        return rows

    def run(self, batch: Batch) -> dict[int, pa.Table]:
        if batch.restart:
            snapshot = self._store.snapshot()
            self._engine, self._store = self._make(self._program), MemoryBlobStore()
            self._store.restore(snapshot)
        if self._is_idle and not batch.rows.num_rows:
            return {}
        split = batch.rows.num_rows // 2
        earlier, later = batch.rows.slice(0, split), self._coded(batch.rows.slice(split))
        parts = [later, earlier if split % 2 else self._coded(earlier)]
        output = self._engine.run(self._store, parts, Clock(batch.watermark, 0))
        self._is_idle = output.is_idle
        self.counters = {name: getattr(output.counters, name) for name in _COUNTERS}
        return {number: pa.concat_tables(t for n, t in output.tables if n == number) for number, _ in output.tables}


class _UpdateCheck:
    """The changelog, applied row by row."""

    def __init__(self, program: OverProgram, oracle: Oracle) -> None:
        self._program = program
        self._oracle = oracle
        self._input: dict[int, Row] = {}
        self._output: dict[bytes, Row] = {}
        self._expected: list[Row] = []

    def batch(self, batch: Batch, tables: dict[int, pa.Table]) -> str | None:
        rows = batch.rows.to_pylist()
        late = [self._is_late(row[TIME], self._program.horizon(batch.watermark)) for row in rows]
        for row, is_late in zip(rows, late, strict=True):
            if not is_late:
                self._take(row)
        expected = [row for row, is_late in zip(_visible(batch.rows, []), late, strict=True) if is_late]
        found = difference(expected, _late(self._program, tables))
        if found is not None:
            return f"late rows: {found}"
        self._apply(_visible(tables.get(MAIN), [CHANGE_TYPE]))
        if not all(late):
            table = pa.Table.from_pylist(list(self._input.values()), schema=self._program.columns)
            self._expected = self._oracle.rows(self._program.spec, self._program.outputs.names, table)
        return _difference(self._program, self._expected, list(self._output.values()))

    def _is_late(self, time: int | None, horizon: int | None) -> bool:
        if horizon is None:
            return False
        return self._program.null_is_late and horizon > MIN if time is None else time <= horizon

    def _take(self, row: Row) -> None:
        if row.get(CHANGE_TYPE, INSERT) in (DELETE, UPDATE_PREIMAGE):
            del self._input[row["id"]]
        else:
            self._input[row["id"]] = {name: row[name] for name in self._program.columns.names}

    def _apply(self, entries: list[Row]) -> None:
        changed: set[bytes] = set()
        before: Row | None = None
        for entry in entries:
            word, row = entry.pop(CHANGE_TYPE), entry
            key = encode_key(tuple(row[name] for name in self._program.spec.output_key))
            if (word == UPDATE_POSTIMAGE) != (before is not None):
                raise UnsoundError(f"the images of an update are not adjacent: {row}")
            if word != UPDATE_POSTIMAGE and key in changed:
                raise UnsoundError(f"a second change of {row}")
            changed.add(key)
            if word in (DELETE, UPDATE_PREIMAGE):
                self._remove(key, row)
            elif key in self._output:
                raise UnsoundError(f"{word} of {row}, which exists")
            elif before is not None and identical(before, row):
                raise UnsoundError(f"an update that changes nothing: {row}")
            else:
                self._output[key] = row
            before = row if word == UPDATE_PREIMAGE else None

    def _remove(self, key: bytes, row: Row) -> None:
        held = self._output.pop(key, None)
        if held is None or not identical(held, row):
            raise UnsoundError(f"{row} disappears, but the row of its key is {held}")


@dataclass
class _CloseCheck:
    """Rows that were emitted, and those that may or must be."""

    program: OverProgram
    oracle: Oracle
    accepted: list[Row] = field(default_factory=list)
    emitted: list[Row] = field(default_factory=list)
    watermark: int = MIN

    def batch(self, batch: Batch, tables: dict[int, pa.Table]) -> str | None:
        self.watermark = batch.watermark
        horizon = self.program.horizon(self.watermark)
        assert horizon is not None, "mode close has a horizon"
        rows = _visible(batch.rows, [TIME])
        late = [row for row in rows if row[TIME] <= horizon]
        self.accepted += [row for row in rows if row[TIME] > horizon]
        found = difference([_without(row, TIME) for row in late], _late(self.program, tables))
        if found is not None:
            return f"late rows: {found}"
        self.emitted += _visible(tables.get(MAIN), [TIME])
        return self._untimely(horizon) or (self._final() if self.watermark == MAX else None)

    def _untimely(self, horizon: int) -> str | None:
        """Rows above the watermark must wait, and those whose frames it has completed must be emitted."""
        early = [row for row in self.emitted if row[TIME] > horizon]
        if early:
            return f"the watermark is {horizon}, yet {early[0]} was emitted"
        delay = watermark_delay(self.program.spec)
        if delay is None:
            return None
        out = {row["id"] for row in self.emitted}
        held = [row for row in self.accepted if row[TIME] + delay <= horizon and row["id"] not in out]
        return f"the watermark is {horizon}, yet {held[0]} was not emitted" if held else None

    def _final(self) -> str | None:
        table = pa.Table.from_pylist([_without(row, TIME) for row in self.accepted], schema=self.program.columns)
        expected = self.oracle.rows(self.program.spec, self.program.outputs.names, table)
        found = _difference(self.program, expected, [_without(row, TIME) for row in self.emitted])
        return found or self._disorder()

    def _disorder(self) -> str | None:
        order = RowOrder(self.program.spec, self.program.columns)
        last: dict[bytes, Any] = {}
        for row in self.emitted:
            partition, position = encode_key(tuple(row[name] for name in self.program.spec.partition_by)), order.position(row)
            if partition in last and position < last[partition]:
                return f"{row} was emitted after a later row of its partition"
            last[partition] = position
        return None


def _difference(program: OverProgram, expected: list[Row], got: list[Row]) -> str | None:
    """Compare rows; the order of a set means nothing."""
    calls = zip(program.outputs.names, program.spec.calls, strict=True)
    sets = [name for name, call in calls if call.function == "collect_set"]
    return difference(*([row | {name: _in_order(row[name]) for name in sets} for row in rows] for rows in (expected, got)))


def _in_order(values: list[Any]) -> list[Any]:
    return sorted(values, key=repr)


def _visible(table: pa.Table | None, system: list[str]) -> list[Row]:
    """The rows of a table without system columns but those named."""
    if table is None:
        return []
    names = [name for name in table.column_names if not name.startswith(PREFIX) or name in system]
    rows: list[Row] = table.select(names).to_pylist()
    return rows


def _late(program: OverProgram, tables: dict[int, pa.Table]) -> list[Row]:
    """Return late rows without what made them late."""
    table = tables.get(LATE)
    return [] if table is None else _visible(table.select(program.columns.names), [])


def _without(row: Row, name: str) -> Row:
    return {column: value for column, value in row.items() if column != name}
