"""Kind ``pattern``: an input in steps through a row pattern; the watermark of a step comes before its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from verify.conformance.reading.fields import NotUnderstoodError, require_known
from verify.conformance.reading.patterns import pattern_spec
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.engines.patterns.program import TIMEOUTS, PatternProgram
from windowpane.engines.patterns.reference import PatternReferenceEngine
from windowpane.engines.patterns.text import PatternTextEngine
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import Clock, Engine
from windowpane.errors import SkipTargetError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.expressions import Operation
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.patterns.values import Aggregated, Classifier, MatchNumber, Moved, Picked
from windowpane.windowing.times import MIN

MakeEngine = Callable[[PatternProgram], Engine]
"""Makes the engine of a program."""

FIELDS = {
    *(
        "id",
        "kind",
        "name",
        "class",
        "input",
        "steps",
        "partition_by",
        "order_by",
        "pattern",
        "define",
        "subset",
        "measures",
        "rows",
    ),
    *("skip", "within", "timeouts", "deterministic", "checked_by", "flink_differs", "flink_refuses"),
}
_COLUMNS = pa.schema([("id", pa.int64()), ("k", pa.string()), ("ts", pa.int64()), ("t", pa.string()), ("v", pa.int64())])
_TYPES = {column.name: column.type for column in _COLUMNS}
_NAMES = {MAIN: "match", TIMEOUTS: "timeout", LATE: "late"}


def replay(case: Case, options: Options, engine: MakeEngine = PatternReferenceEngine) -> list[Difference]:
    """Run the steps through the engine; with ``restart`` it is built anew on what its state was written to, after each."""
    require_known(case.body, FIELDS, "pattern")
    return list(_differences(case, options, engine))


def text_engine(program: PatternProgram) -> Engine:
    """Return the engine that searches by regular expressions; a pattern that it does not take is skipped."""
    refused = PatternTextEngine.refusal(program)
    if refused is not None:
        raise NotUnderstoodError(refused)
    return PatternTextEngine(program)


def _differences(case: Case, options: Options, engine: MakeEngine) -> Iterator[Difference]:
    program, store = pattern_program(case.body), MemoryBlobStore()
    running, watermark, position, answers = engine(program), MIN, 0, case.get("steps")
    for number, (step, expected) in enumerate(zip(case.get("input"), answers, strict=False)):
        watermark = watermark if step["watermark"] is None else max(watermark, step["watermark"])
        table = _table(step["rows"], position)
        position += table.num_rows
        try:
            output = running.run(store, [table], Clock(watermark, 0))
        except SkipTargetError as error:
            if not any("error" in later for later in answers[number:]):
                yield Difference(f"step {number}", expected, str(error))
            return
        if "error" in expected:
            yield Difference(f"step {number}", expected, "no error")
            return
        if options.restart:
            restored = MemoryBlobStore()
            restored.restore(store.snapshot())
            store, running = restored, engine(program)
        got = _results(program, output.tables)
        wanted = {"late": [[each] for each in step["late"]], **{name: expected.get(name, []) for name in ("match", "timeout")}}
        for name in ("match", "timeout", "late"):
            if Counter(map(repr, got[name])) != Counter(map(repr, wanted[name])):
                yield Difference(f"step {number}: {name}", wanted[name], got[name])


def pattern_program(query: Mapping[str, Any]) -> PatternProgram:
    """Return the program of a query of the vectors, whose rows have ``id``, ``k``, ``ts``, ``t`` and ``v``."""
    spec = pattern_spec(query, _TYPES)
    kinds = [(measure.name, _type(measure.value)) for measure in spec.measures]
    order = [OrderColumn(name, nulls_first=True) for name in query["order_by"][1:]]
    keys = tuple(query["partition_by"])
    return PatternProgram(spec, keys, _COLUMNS, pa.schema(kinds), ("id",), "ts", tuple(order), has_late_output=True)


def _type(value: Any) -> pa.DataType:
    match value:
        case Picked():
            return _TYPES[value.column]
        case Moved():
            return _TYPES[value.of.column]
        case Aggregated():
            return value.aggregate.result_type
        case Classifier():
            return pa.string()
        case MatchNumber():
            return pa.int64()
        case Operation():
            return _type(value.parts[0])
    raise ValueError(f"a measure that is no leaf: {value!r}")


def _results(program: PatternProgram, tables: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in _NAMES.values()}
    for number, table in tables:
        for row in (table.select(program.passed) if number == LATE else table).to_pylist():
            values = list(row.values())
            is_whole = not program.keys and number != LATE and not (number == MAIN and program.shows_rows)
            found[_NAMES[number]].append([None, *values] if is_whole else values)
    return found


def _table(rows: list[Any], position: int) -> pa.Table:
    values = dict(zip(_COLUMNS.names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(_COLUMNS.names, ())
    columns = {column.name: pa.array(values[column.name], column.type) for column in _COLUMNS}
    return pa.table(
        {
            **columns,
            TIME: columns["ts"],
            PARTITION: pa.array([0] * len(rows), pa.int32()),
            POSITION: pa.array(range(position, position + len(rows)), pa.int64()),
        }
    )
