"""Kind ``faults``: what is below a program fails, and what comes out is what an undisturbed run gives, batch by batch.

Drawn are a program of any kind, its batches, and what goes wrong in each: a call of the state store raises before or behind its
effect, and the batch is run again from the state before it, by the same process or by a new one, as Spark does; a batch that ran
is not committed, and runs again; the parts of a batch come in another order the second time, as tasks end in any order. A store
that takes the results stops at a statement of its transaction, before its commit or behind it, and is handed the batch again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from verify.fuzz import chains, closed_sessions, filling, joins, patterns, rolling, windowed
from verify.fuzz.comparison import difference
from verify.fuzz.outcome import Outcome, differences_of
from verify.fuzz.over_parts.inputs import random_trial
from verify.fuzz.rolling_runs import table_of
from verify.fuzz.windowed_streams import random_stream
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START, Program, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Engine
from windowpane.engines.registry import engines_for
from windowpane.errors import WindowpaneError
from windowpane.hidden_columns import PARTITION, POSITION, PREFIX, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.planning.settling.programs import compile_settling
from windowpane.state.memory import MemoryBlobStore
from windowpane.stores.batches import Batch as Changes
from windowpane.stores.batches import quoted
from windowpane.stores.duck import DuckStore
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, UPDATE_PREIMAGE
from windowpane.windowing.times import MIN

_STORED = 0.15
"""The share of programs whose results go to a table, too."""
_TABLE = "results"


class Fault(BaseException):
    """What was drawn to happen here: no part of a program may answer it."""


class Given(NamedTuple):
    """A batch: its rows in parts, and its clocks."""

    parts: Sequence[pa.Table]
    clock: Clock


class Case(NamedTuple):
    """A program on its batches, and the columns that name one of its results where later ones take its place."""

    program: Any
    batches: Sequence[Given]
    key: tuple[str, ...] = ()


def run(seed: int) -> Outcome:
    """Run the program of a seed undisturbed, and through faults, and compare."""
    draw = Random(seed)
    case = CASES[draw.choice(sorted(CASES))](draw, seed)
    text = f"{case.program}\n    {len(case.batches)} batches"
    return Outcome(seed, text, case.program.engine, differences_of(seed, lambda: _differences(case, draw)))


def on_reference(program: Any) -> Any:
    """Return a program that runs on the last engine that serves it, the plain one."""
    return replace(program, engine=[each.name for each in engines_for(program) if each.serves(program)][-1])


def _windows(draw: Random, seed: int) -> Case:
    program, columns = windowed.columnar_program(draw)
    stream = random_stream(draw, program, columns)
    return Case(program, [Given(each.parts, Clock(each.watermark, each.processing_time)) for each in stream], _names(program))


def _names(program: Program) -> tuple[str, ...]:
    return (*program.keys.names, WINDOW_START, WINDOW_END)


def _joins(draw: Random, seed: int) -> Case:
    program = joins.random_program(draw)
    given = []
    for step in joins.random_steps(draw, program):
        parts = [joins.table_of(program, side, rows) for side, rows in step.rows.items() if rows]
        given.append(Given(parts, Clock(step.watermark, 0)))
    return Case(program, given)


def _patterns(draw: Random, seed: int) -> Case:
    program = with_engine(patterns.random_program(draw))
    batches = patterns.random_batches(draw)
    return Case(program, [Given([patterns.table_of(rows)], Clock(watermark, 0)) for watermark, rows in batches])


def _rolling(draw: Random, seed: int) -> Case:
    program, position, given = rolling.random_program(draw), 0, []
    for step in rolling.random_steps(draw, program):
        given.append(Given([table_of(program, step.rows, position)], Clock(step.watermark, 0)))
        position += len(step.rows)
    return Case(program, given)


def _over(draw: Random, seed: int) -> Case:
    trial = random_trial(seed)
    given = []
    for batch in trial.batches:
        half = batch.rows.num_rows // 2
        given.append(Given([batch.rows.slice(0, half), batch.rows.slice(half)], Clock(batch.watermark, 0)))
    program = with_engine(trial.program)
    return Case(program, given, tuple(program.spec.output_key))


def _deduplication(draw: Random, _seed: int) -> Case:
    columns = pa.schema([("k", pa.int64()), ("s", pa.string()), ("t", pa.int64()), ("v", pa.int64())])
    program = DeduplicationProgram(
        keys=("k", "s"),
        columns=columns,
        passed=tuple(columns.names),
        within=draw.choice([1, 3, 20]),
        keep=draw.choice(list(Keep)),
        allowed_lateness=draw.choice([0, 5]),
    )
    given, time = [], 0
    for number in range(draw.randint(4, 9)):
        rows = [
            {"k": draw.randint(0, 9), "s": draw.choice(["a", "b", None]), "t": (at := time + draw.randint(-4, 9)), "v": place}
            | {TIME: at, PARTITION: 0, POSITION: 100 * number + place}
            for place in range(draw.randint(0, 12))
        ]
        system = [pa.field(TIME, pa.int64()), pa.field(PARTITION, pa.int32()), pa.field(POSITION, pa.int64())]
        given.append(Given([pa.Table.from_pylist(rows, pa.schema([*columns, *system]))], Clock(time - 6, time)))
        time += draw.randint(0, 12)
    return Case(with_engine(program), given)


def _closed(draw: Random, _seed: int) -> Case:
    program = closed_sessions.random_program(draw)
    given = [
        Given([closed_sessions.table_of(each)] if each.rows else [], Clock(each.watermark, 0))
        for each in closed_sessions.random_batches(draw)
    ]
    return Case(program, given)


def _filling(draw: Random, _seed: int) -> Case:
    program = with_engine(filling.random_program(draw))
    batches = filling.random_batches(draw, program)
    return Case(
        program, [Given([filling.table_of(rows, program, before)], Clock(watermark, 0)) for before, watermark, rows in batches]
    )


def _settling(draw: Random, _seed: int) -> Case:
    """A changelog as OVER windows emit it, in front of one that settles it."""
    upstream = draw.choice([Upstream.SOURCE, Upstream.WINDOW, Upstream.WINDOW_WITH_WATERMARKS])
    (link,) = chains.linked(draw, ["over update"])
    runs, given = list(chains.runs_of([link])), list[Given]()
    for rows, watermark in chains.random_batches(draw):
        table = chains.table_of(rows, watermark)
        for each in runs:
            table, _ = each.take(table, watermark)
        given.append(Given([table], Clock(watermark if watermark == MIN else watermark - link.held_back, 0)))
    return Case(compile_settling(chains.ROWS, upstream), given)


CASES: dict[str, Callable[[Random, int], Case]] = {
    "windows": _windows,
    "joins": _joins,
    "patterns": _patterns,
    "rolling": _rolling,
    "over": _over,
    "deduplication": _deduplication,
    "closed": _closed,
    "filling": _filling,
    "settling": _settling,
}
"""What makes the program of a seed, by kind."""


class _FailingStore(MemoryBlobStore):
    """A store in memory whose so many calls are still answered."""

    def __init__(self, snapshot: bytes, draw: Random, calls: int) -> None:
        super().__init__()
        self.restore(snapshot)
        self._left, self._behind = calls, draw.random() < 0.5

    def _call(self, effect: Callable[[], Any]) -> Any:
        self._left -= 1
        if self._left < 0 and not self._behind:
            raise Fault
        result = effect()
        if self._left < 0:
            raise Fault
        return result

    def get(self, key: str) -> bytes | None:
        found: bytes | None = self._call(lambda: super(_FailingStore, self).get(key))
        return found

    def put(self, key: str, blob: bytes) -> None:
        self._call(lambda: super(_FailingStore, self).put(key, blob))

    def remove(self, key: str) -> None:
        self._call(lambda: super(_FailingStore, self).remove(key))


@dataclass
class _Disturbed:
    """A bucket whose batches fail as drawn, until one is committed."""

    program: Any
    draw: Random
    state: bytes = field(default_factory=lambda: MemoryBlobStore().snapshot())
    engine: Engine = field(init=False)
    faults: int = 0

    def __post_init__(self) -> None:
        self.engine = make_engine(self.program)

    def run(self, given: Given) -> BucketOutput:
        parts = list(given.parts)
        while True:
            fails = self.draw.random() < 0.6
            store = _FailingStore(self.state, self.draw, self.draw.choice([0, 1, 2, 3, 5, 8, 13]) if fails else 1 << 40)
            try:
                output = self.engine.run(store, parts, given.clock)
            except Fault:
                is_committed = False
            else:
                is_committed = self.draw.random() < 0.8
            if is_committed:
                self.state = store.snapshot()
                return output
            self.faults += 1
            if self.draw.random() < 0.5:
                self.engine = make_engine(self.program)
            self.draw.shuffle(parts)


def _differences(case: Case, draw: Random) -> Iterator[str]:
    plain, engine = MemoryBlobStore(), make_engine(case.program)
    disturbed = _Disturbed(case.program, draw)
    committed: list[pa.Table | None] = []
    for number, given in enumerate(case.batches):
        try:
            wanted = engine.run(plain, list(given.parts), given.clock)
        except WindowpaneError as error:
            found = _error(disturbed, given)
            if type(found) is not type(error):
                yield f"batch {number}: undisturbed {error!r}, else {found!r}"
            return
        got = disturbed.run(given)
        for output in sorted({each for each, _ in (*wanted.tables, *got.tables)}):
            differs = difference(_rows(wanted, output), _rows(got, output))
            if differs is not None:
                yield f"batch {number}, output {output}, behind {disturbed.faults} faults: {differs}"
        main = [table for each, table in got.tables if each == MAIN and table.num_rows]
        committed.append(pa.concat_tables(main) if main else None)
    if case.key and draw.random() < _STORED and set(case.key) <= _columns(committed):
        yield from _stored(case, committed, draw)


def _error(disturbed: _Disturbed, given: Given) -> Exception | None:
    try:
        disturbed.run(given)
    except WindowpaneError as error:
        return error
    return None


def _rows(output: BucketOutput, number: int) -> list[dict[str, Any]]:
    return [row for which, table in output.tables if which == number for row in table.to_pylist()]


# A store that takes the results.


class _FailingConnection:
    """A connection to DuckDB that stops at a statement: before its effect or behind it."""

    def __init__(self, connection: Any, draw: Random) -> None:
        self._connection, self._left, self._behind = connection, draw.randint(0, 12), draw.random() < 0.5

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *values: Any) -> Any:
        self._left -= 1
        if statement == "ROLLBACK":  # a process that died says no such thing: closing the file does it
            return None
        if self._left < 0 and not self._behind:
            raise Fault
        result = self._connection.execute(statement, *values)
        if self._left < 0:
            raise Fault
        return result


def _columns(batches: Sequence[pa.Table | None]) -> set[str]:
    return {name for each in batches if each is not None for name in each.column_names}


def _stored(case: Case, committed: Sequence[pa.Table | None], draw: Random) -> Iterator[str]:
    """Return whether a table has the latest result of each name, whatever its store went through."""
    batches = [(number, _changes(rows)) for number, rows in enumerate(committed) if rows is not None]
    expected: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "store.duckdb")
        for number, changes in batches:
            for row in changes.to_pylist():
                name = repr([row[column] for column in case.key])
                if row.pop(CHANGE_TYPE, None) in (DELETE, UPDATE_PREIMAGE):
                    expected.pop(name, None)
                else:
                    expected[name] = row
            _taken_once(Changes(_TABLE, case.key, changes, number, "query"), path, draw)
        shown = _shown(batches[0][1].schema)
        store = DuckStore(path)
        found = store.read(f"SELECT {', '.join(map(quoted, shown))} FROM {_TABLE}")
        store.close()
    wanted = [{name: row[name] for name in shown} for row in expected.values()]
    differs = difference(wanted, [dict(zip(shown, row, strict=True)) for row in found])
    if differs is not None:
        yield f"the table of the store: {differs}"


def _changes(rows: pa.Table) -> pa.Table:
    return rows.select([name for name in rows.column_names if not name.startswith(PREFIX)])


def _shown(schema: pa.Schema) -> list[str]:
    """The columns whose values DuckDB gives back as Arrow does."""
    kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_boolean, pa.types.is_date)
    return [each.name for each in schema if each.name != CHANGE_TYPE and any(kind(each.type) for kind in kinds)]


def _taken_once(changes: Changes, path: str, draw: Random) -> None:
    """Hand a batch to the store until it says that it has it, and now and then once more."""
    while True:
        store = DuckStore(path)
        if draw.random() < 0.4:
            store._connection = _FailingConnection(store._connection, draw)  # type: ignore[assignment]
        try:
            store.apply(changes)
        except Fault:
            continue
        finally:
            store.close()
        if draw.random() < 0.8:
            return
