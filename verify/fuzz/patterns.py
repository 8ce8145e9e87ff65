"""Kind ``patterns``: random row patterns, batch by batch, on the engine that planning chooses and on the matcher that backtracks.

The engine is made anew from bytes before every batch. After every batch both must have emitted the same rows; and over all
batches those that the matcher gives for all rows that were not late, at once. Of every fourth program a query gives them, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

import windowpane.aggregates as aggregates
from verify.fuzz import patterns_in_sql
from verify.fuzz.outcome import Outcome, differences_of
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.patterns.reference import PatternReferenceEngine
from windowpane.engines.program import LATE
from windowpane.engines.protocol import Clock, Engine
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.expressions import Constant, Expression, Operation
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.patterns import tree
from windowpane.windowing.patterns.spec import AfterMatch, Measure, PatternSpec, SkipTo
from windowpane.windowing.patterns.values import Aggregated, Classifier, MatchNumber, MatchTime, Moved, Picked
from windowpane.windowing.times import MAX, MIN

COLUMNS = pa.schema([("key", pa.string()), ("at", pa.int64()), ("kind", pa.string()), ("value", pa.int64())])
"""The columns of every row; random programs have their ``rate`` and their ``amount``, too."""
WITH_RATE = COLUMNS.append(pa.field("rate", pa.float64())).append(pa.field("amount", pa.decimal128(38, 18)))
"""The ``value``, or NaN for the largest ones, and a tenth of it, exactly."""

NAMES = "ABCD"

Row = tuple[str | None, int, str | None, int | None]
Batch = tuple[int, Sequence[Row]]
"""The watermark that counts before the rows, and the rows."""


def run(seed: int) -> Outcome:
    """Return what became of the program of a seed."""
    drawn = Random(seed)
    program = with_engine(random_program(drawn))
    batches = random_batches(drawn)
    text = f"{program.spec.pattern} {program.spec}, lateness {program.allowed_lateness}, {batches!r}"
    return Outcome(seed, text, program.engine, differences_of(seed, lambda: _differences(program, batches, in_sql=not seed % 4)))


def _differences(program: PatternProgram, batches: Sequence[Batch], *, in_sql: bool) -> Iterator[str]:
    expected, counted = replay(PatternReferenceEngine, program, batches, restarts=False)
    found, counts = replay(make_engine, program, batches)
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if Counter(one) != Counter(other):
            yield f"batch {number}: the matcher {sorted(one, key=repr)}, {program.engine} {sorted(other, key=repr)}"
    if counted != counts:
        yield f"counters: the matcher {counted}, {program.engine} {counts}"
    watermarks = [max(watermark for watermark, _ in batches[: number + 1]) for number in range(len(batches))]
    taken = [row for known, (_, rows) in zip(watermarks, batches, strict=True) for row in rows if row[1] > program.known(known)]
    (_, at_once), _ = replay(PatternReferenceEngine, program, [(MIN, taken), (MAX, [])], restarts=False)
    streamed = [row for batch in found for row in batch if row[0] != LATE]
    if Counter(at_once) != Counter(streamed):
        yield f"all at once {sorted(at_once, key=repr)}, batch by batch {sorted(streamed, key=repr)}"
    if in_sql:
        yield from patterns_in_sql.differences(program, taken, at_once)


def replay(
    engine: Callable[[PatternProgram], Engine], program: PatternProgram, batches: Sequence[Batch], restarts: bool = True
) -> tuple[list[list[tuple[int, tuple[Any, ...]]]], Counter[str]]:
    """Return what came out of each batch, by output, and the counters added up."""
    store, running, found, counts = MemoryBlobStore(), engine(program), [], Counter[str]()
    for watermark, rows in batches:
        output = running.run(store, [table_of(rows)], Clock(watermark, 0))
        found.append([(number, tuple(row.values())) for number, rows in output.tables for row in rows.to_pylist()])
        left = ("state_bytes", "open_windows") if program.leaves_rows_out else ("state_bytes",)
        counts.update({name: value for name, value in vars(output.counters).items() if value and name not in left})
        if restarts:
            again = MemoryBlobStore()
            again.restore(store.snapshot())
            store, running = again, engine(program)
    return found, counts


def is_kind(*kinds: str) -> Operation:
    """Return the condition that a row is of one of some kinds."""
    found, *others = [Operation("==", (Picked("last", None, "kind"), Constant(kind))) for kind in kinds]
    for other in others:
        found = Operation("|", (found, other))
    return found


def count_of(variable: str | None) -> Aggregated:
    """Return how many rows a variable has."""
    return Aggregated(variable, (), aggregates.count().bind([]), "count", f"count({variable})")


def type_of(value: Expression) -> pa.DataType:
    """Return the type of a measure."""
    match value:
        case Picked():
            return COLUMNS.field(value.column).type
        case Moved():
            return COLUMNS.field(value.of.column).type
        case Aggregated():
            return value.aggregate.result_type
        case Classifier():
            return pa.string()
    return pa.int64()


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Return rows as an engine is given them."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    given = {field.name: pa.array(values, field.type) for field, values in zip(COLUMNS, columns, strict=True)}
    given["rate"] = pa.array([float("nan") if value == 3 else value for value in columns[3]], pa.float64())
    tenths = [None if value is None else Decimal(value) / 10 for value in columns[3]]
    given["amount"] = pa.array(tenths, WITH_RATE.field("amount").type)
    places = {PARTITION: pa.array([0] * len(rows), pa.int32()), POSITION: pa.array(range(len(rows)), pa.int64())}
    return pa.table({**given, TIME: given["at"], **places})


def random_program(draw: Random) -> PatternProgram:
    """Draw a program."""
    value = Picked("last", None, "value")
    before = Moved(value, -draw.choice([1, 1, 2]))
    conditions = {
        "A": Operation(draw.choice(["<", ">="]), (value, before)),
        "B": is_kind(*draw.sample("abc", draw.choice([1, 2]))),
        "C": Operation("&", (is_kind("a", "b"), Operation("is not null", (value,)))),
    }
    looks_for_rows = draw.random() < 0.2
    if looks_for_rows:  # of each row by itself: others may be left out
        conditions = {name: is_kind(*draw.sample("abcd", draw.choice([1, 1, 2]))) for name in NAMES}
    elif draw.random() < 0.4:  # conditions of the match so far, of rows to come, and of floating point
        total = Aggregated("A", ("value",), aggregates.sum("value").bind([pa.int64()]), "sum", "sum(A)")
        earlier, rate = Picked("first", draw.choice(["A", "B", "U"]), "value"), Picked("last", None, "rate")
        conditions |= {
            "C": draw.choice(
                [
                    Operation("<=", (total, Constant(draw.randint(2, 6)))),
                    Operation(draw.choice(["<", "==", "!="]), (value, earlier)),
                    Operation("is distinct from", (value, Moved(Picked("last", "B", "value", 1), draw.choice([-1, 1])))),
                    Operation(draw.choice(["<", ">="]), (value, Moved(value, 1))),
                ]
            ),
            "D": Operation(draw.choice(["<", "<=", "==", "!=", ">"]), (rate, Moved(rate, -1))),
        }
    apart = Random(f"numbers {conditions}")  # so that the programs of seeds that were kept stay what they are
    if not looks_for_rows and apart.random() < 0.3:
        conditions["B"] = random_comparison(apart)
    of = [None, "A", "B", "D", "U"]
    measures = [
        Picked(draw.choice(["first", "last"]), draw.choice(of), "value", draw.choice([0, 0, 1])),
        Moved(Picked("first", draw.choice(of), "value"), -1),
        Aggregated(name := draw.choice(of), ("value",), aggregates.sum("value").bind([pa.int64()]), "sum", f"sum({name})"),
        Aggregated(name := draw.choice(of), ("value",), aggregates.max("value").bind([pa.int64()]), "max", f"max({name})"),
        Aggregated(name := draw.choice(of), ("value",), aggregates.count("value").bind([pa.int64()]), "count", f"count({name})"),
        count_of(draw.choice(of)),
        Classifier(draw.choice(of)),
        MatchNumber(),
        MatchTime(),
    ]
    chosen = draw.sample(measures, draw.randint(1, 5))
    within = draw.choice([None, 3, 10, 30])
    spec = PatternSpec(
        random_chain(draw) if looks_for_rows else random_end(draw, random_pattern(draw)),
        conditions,
        {"U": frozenset(draw.sample("ABCD", 2))},
        tuple(Measure(f"m{number}", measure, draw.random() < 0.3) for number, measure in enumerate(chosen)),
        draw.choice(["one", "one", "one", "all", "all unmatched", "all omit empty"]),
        draw.choice([AfterMatch(), AfterMatch(), AfterMatch("to next row"), _to_a_variable(draw)]),
        "next row",
        within,
        within is not None and draw.random() < 0.5,
    )
    types = pa.schema([(measure.name, type_of(measure.value)) for measure in spec.measures])
    keys = ("key",) if draw.random() < 0.8 else ()
    ties = OrderColumn(draw.choice(["value", "rate"]), draw.random() < 0.5, nulls_first=draw.random() < 0.5)
    return PatternProgram(
        spec,
        keys,
        WITH_RATE,
        types,
        tuple(COLUMNS.names),
        "at",
        (ties,) if draw.random() < 0.3 else (),
        allowed_lateness=draw.choice([0, 0, 2]),
        has_late_output=True,
    )


def random_comparison(draw: Random) -> Operation:
    """Draw a comparison of what is computed of numbers of any kind: of a row, of the one before, and constants."""

    def number() -> Expression:
        picked = Picked("last", None, draw.choice(["value", "rate", "amount", "amount"]))
        constant = Constant(draw.choice([0, 2, 0.1, 0.3, Decimal("0.1"), Decimal("-0.3")]))
        return draw.choice([picked, picked, Moved(picked, -1), constant])

    computed = Operation(draw.choice(["+", "-", "*", "/", "%"]), (number(), number()))
    other = Operation(draw.choice(["/", "%"]), (number(), number())) if draw.random() < 0.5 else number()
    return Operation(draw.choice(["<", "<=", "==", "!=", ">", "is distinct from"]), (computed, other))


def _to_a_variable(draw: Random) -> AfterMatch:
    to: SkipTo = draw.choice(["to first", "to last"])
    return AfterMatch(to, draw.choice("ABCDU"))


def random_batches(draw: Random) -> list[Batch]:
    """Draw batches, the last of which ends the input."""
    batches: list[Batch] = []
    watermark, at = MIN, 0
    for _ in range(draw.randint(2, 6)):
        rows: list[Row] = []
        for _ in range(draw.randint(0, 12)):
            at += draw.choice([0, 0, 1, 2])
            row = (
                draw.choice(["x", "y", None]),
                at - draw.choice([0, 0, 0, 3]),
                draw.choice("abcd"),
                draw.choice([None, 1, 2, 3]),
            )
            rows.append(row)
        batches.append((watermark, rows))
        watermark = at - draw.choice([0, 1, 4])
    return [*batches, (MAX, [])]


def random_pattern(draw: Random, depth: int = 0) -> tree.Pattern:
    """Draw a pattern."""
    kind = draw.random()
    if depth > 2 or kind < 0.4:
        return tree.Variable(draw.choice(NAMES))
    if kind < 0.6:
        return tree.Sequence(tuple(random_pattern(draw, depth + 1) for _ in range(draw.randint(2, 3))))
    if kind < 0.7:
        return tree.Alternation((random_pattern(draw, depth + 1), random_pattern(draw, depth + 1)))
    if kind < 0.75:
        return tree.Permutation(tuple(map(tree.Variable, draw.sample(NAMES, draw.randint(2, 3)))))
    least = draw.choice([0, 0, 1, 1, 2])
    most = draw.choice([None, None, least + 1, least + 2, max(least, 1)])
    part = random_pattern(draw, depth + 1) if draw.random() < 0.5 else tree.Variable(draw.choice(NAMES))
    return tree.Repetition(part, least, most, draw.random() < 0.7)


def random_chain(draw: Random) -> tree.Pattern:
    """Draw rows that are looked for one after the other, mostly with others between them."""
    first, *names = draw.sample(NAMES, draw.randint(2, 4))
    parts: list[tree.Pattern] = [tree.Variable(first)]
    for name in names:
        if draw.random() < 0.3:
            parts.append(tree.Absence((name,)))
            break
        parts += [tree.Passing((name, *draw.sample(NAMES, draw.choice([0, 0, 1])))), tree.Variable(name)]
    return tree.Sequence(tuple(parts)) if draw.random() < 0.9 else tree.Repetition(tree.Sequence(tuple(parts)), 1, 2)


def random_end(draw: Random, pattern: tree.Pattern) -> tree.Pattern:
    """Draw what surrounds a pattern."""
    kind = draw.random()
    if kind < 0.15:
        return tree.Sequence((pattern, tree.Last()))
    if kind < 0.3:
        return tree.Sequence((pattern, tree.Absence(tuple(draw.sample(NAMES, draw.choice([1, 2]))))))
    if kind < 0.5:
        first = draw.choice(NAMES)
        return tree.Sequence((pattern, tree.Passing((first, draw.choice(NAMES))), tree.Variable(first)))
    return tree.Sequence((tree.First(), pattern)) if kind < 0.6 else pattern
