"""The engines of row patterns: cases by hand, and random programs on both, cut into batches at random, with restarts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import windowpane.aggregates as aggregates
from tests.examples import seeds
from tests.kernels.patterns.test_regex import random_end, random_pattern
from windowpane.engines.patterns.program import TIMEOUTS, PatternCounters, PatternProgram
from windowpane.engines.patterns.reference import PatternReferenceEngine
from windowpane.engines.patterns.text import PatternTextEngine, refusal
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import Clock, Engine
from windowpane.errors import MissingEventTimeError, PatternLimitError, SkipTargetError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.expressions import Constant, Operation
from windowpane.windowing.patterns.spec import AfterMatch, Measure, PatternSpec
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.values import Aggregated, Classifier, MatchNumber, MatchTime, Moved, Picked
from windowpane.windowing.times import MAX, MIN

COLUMNS = pa.schema([("key", pa.string()), ("at", pa.int64()), ("kind", pa.string()), ("value", pa.int64())])
ENGINES = pytest.mark.parametrize("engine", [PatternReferenceEngine, PatternTextEngine])

Row = tuple[str | None, int, str | None, int | None]


def is_kind(*kinds: str) -> Operation:
    found, *others = [Operation("==", (Picked("last", None, "kind"), Constant(kind))) for kind in kinds]
    for other in others:
        found = Operation("|", (found, other))
    return found


def program(text: str, measures: Sequence[Any], kinds: str = "", **parts: Any) -> PatternProgram:
    """A pattern over rows (key, at, kind, value), whose variables take the rows of the kind of their name."""
    pattern = parse_pattern(text)
    names = kinds or "ab"
    spec = PatternSpec(
        pattern,
        parts.pop("conditions", {name: is_kind(name) for name in names}),
        measures=tuple(Measure(f"m{number}", value) for number, value in enumerate(measures)),
        **parts,
    )
    return PatternProgram(
        spec, ("key",), COLUMNS, pa.schema([(m.name, _type(m.value)) for m in spec.measures]), COLUMNS.names, "at"
    )


def _type(value: Any) -> pa.DataType:
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


def table(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    given = {field.name: pa.array(values, field.type) for field, values in zip(COLUMNS, columns, strict=True)}
    places = {PARTITION: pa.array([0] * len(rows), pa.int32()), POSITION: pa.array(range(len(rows)), pa.int64())}
    return pa.table({**given, TIME: given["at"], **places})


def run(engine: type, program: PatternProgram, batches: Sequence[tuple[int, Sequence[Row]]], restarts: bool = True) -> Any:
    """Return what came out of each batch, by output, and the counters added up."""
    store, running, found, counts = MemoryBlobStore(), engine(program), [], Counter[str]()
    for watermark, rows in batches:
        output = running.run(store, [table(rows)], Clock(watermark, 0))
        found.append([(number, tuple(row.values())) for number, rows in output.tables for row in rows.to_pylist()])
        assert isinstance(output.counters, PatternCounters)
        counts.update({name: value for name, value in vars(output.counters).items() if value and name not in ("state_bytes",)})
        if restarts:
            again = MemoryBlobStore()
            again.restore(store.snapshot())
            store, running = again, engine(program)
    return found, counts


@ENGINES
def test_an_absence_is_certain_when_the_watermark_has_passed_the_bound(engine: type[Engine]) -> None:
    """An order and no payment within 30: x is paid in time, y too late, z never, w twice ordered."""
    unpaid = program("a -> !b", [Picked("first", "a", "at"), MatchTime()], within=30)
    rows = [("x", 0, "a", 1), ("y", 1, "a", 1), ("x", 29, "b", 1), ("y", 31, "b", 1), ("z", 40, "a", 1), ("w", 41, "a", 1)]
    found, _ = run(engine, unpaid, [(MIN, rows), (29, [("w", 45, "a", 2)]), (30, []), (69, []), (MAX, [])])

    assert found[:3] == [[], [], [(MAIN, ("y", 1, 30))]]
    assert found[3] == [(MAIN, ("z", 40, 69))]
    assert sorted(found[4]) == [(MAIN, ("w", 41, 70)), (MAIN, ("w", 45, 74))]


@ENGINES
def test_what_fails_for_want_of_a_row_times_out_where_its_absence_matches(engine: type[Engine]) -> None:
    paid = program("a -> b", [Picked("first", "a", "at"), Picked("last", "b", "at")], within=30, has_timeouts=True)
    rows = [("x", 0, "a", 1), ("y", 1, "a", 1), ("x", 29, "b", 1), ("y", 31, "b", 1)]
    found, counts = run(engine, paid, [(MIN, rows), (29, []), (30, [])])

    assert found == [[], [(MAIN, ("x", 0, 29))], [(TIMEOUTS, ("y", 1, None))]]
    assert (counts["timeouts"], counts["firings"]) == (1, 1)


@ENGINES
def test_a_greedy_loop_waits_for_the_row_behind_and_a_reluctant_one_does_not(engine: type[Engine]) -> None:
    rows = [("x", 1, "a", 1), ("x", 2, "b", 1), ("x", 3, "b", 1)]
    batches = [(MIN, rows), (3, [("x", 4, "c", 1)]), (4, [])]
    assert run(engine, program("a b+", [count_of("b")]), batches)[0] == [[], [], [(MAIN, ("x", 2))]]
    assert run(engine, program("a b+?", [count_of("b")]), batches)[0] == [[], [(MAIN, ("x", 1))], []]


@ENGINES
def test_rows_that_tie_are_ordered_by_arrival_and_late_ones_are_counted(engine: type[Engine]) -> None:
    asked = program("a b", [Picked("first", None, "value"), Picked("last", None, "value")])
    rows = [("x", 5, "b", 1), ("x", 5, "a", 2), ("x", 5, "b", 3), (None, 5, "a", 4), (None, 5, "b", None)]
    found, counts = run(engine, asked, [(MIN, rows), (5, [("x", 5, "b", 9), ("x", 6, "b", 10)]), (6, [])])

    assert sorted(found[1], key=repr) == [(MAIN, ("x", 2, 3)), (MAIN, (None, 4, None))]
    assert counts["late_dropped"] == 1
    assert found[2] == []


@ENGINES
def test_the_first_row_of_a_key_is_the_first_one_for_ever(engine: type[Engine]) -> None:
    opening = program("^ a", [MatchNumber()])
    found, _ = run(
        engine, opening, [(MIN, [("x", 1, "b", 1), ("y", 1, "a", 1)]), (1, [("x", 2, "a", 1), ("y", 2, "a", 1)]), (MAX, [])]
    )

    assert found == [[], [(MAIN, ("y", 1))], []]


@ENGINES
def test_a_row_that_the_search_cannot_go_on_at_is_an_error_or_is_counted(engine: type[Engine]) -> None:
    batches = [(MIN, [("x", 1, "a", 1), ("x", 2, "b", 1), ("x", 3, "a", 1), ("x", 4, "b", 1)]), (MAX, [])]
    to_first = program("a b", [Picked("first", None, "at")], after_match=AfterMatch("to first", "a"))
    with pytest.raises(SkipTargetError, match=r"'x'.*'a', and that is the first row of the match"):
        run(engine, to_first, batches)
    optional = program("a b? b", [Picked("first", None, "at")], "ab", after_match=AfterMatch("to last", "c"), on_error="next row")
    found, counts = run(engine, optional, batches)
    assert (found[1], counts["bad_skips"]) == ([(MAIN, ("x", 1)), (MAIN, ("x", 3))], 2)


@ENGINES
def test_an_attempt_that_waits_with_too_many_rows_is_given_up(engine: type[Engine]) -> None:
    held = program("a b* c", [count_of(None)], "abc", within=100, has_timeouts=True, most_rows=3)
    rows = [("x", 1, "a", 1), ("x", 2, "b", 1), ("x", 3, "b", 1), ("x", 4, "b", 1)]
    found, counts = run(engine, held, [(MIN, rows), (3, []), (4, [("x", 5, "c", 1)]), (5, [])])

    assert found == [[], [], [(TIMEOUTS, ("x", 4))], []]
    assert counts["overflow"] == 1


def test_a_search_that_takes_too_many_steps_ends_by_name() -> None:
    rows = [("x", at, "a", 1) for at in range(30)]
    nested = program("(a+)+ b", [count_of(None)], most_steps=10_000)
    assert refusal(nested) == "a loop over a choice or a loop could be searched for ever"
    with pytest.raises(PatternLimitError, match=r"partition 'x'.*more than 10,000 steps"):
        run(PatternReferenceEngine, nested, [(MIN, rows), (MAX, [])])


@ENGINES
def test_a_row_without_a_time_is_refused_with_its_key(engine: type[Engine]) -> None:
    with pytest.raises(MissingEventTimeError, match="'x'"):
        run(engine, program("a b", [count_of(None)]), [(MIN, [("x", None, "a", 1)])])  # type: ignore[list-item]


def count_of(variable: str | None) -> Aggregated:
    return Aggregated(variable, (), aggregates.count().bind([]), "count", f"count({variable})")


def random_program(draw: random.Random) -> PatternProgram:
    value = Picked("last", None, "value")
    before = Moved(value, -draw.choice([1, 1, 2]))
    conditions = {
        "A": Operation(draw.choice(["<", ">="]), (value, before)),
        "B": is_kind(*draw.sample("abc", draw.choice([1, 2]))),
        "C": Operation("&", (is_kind("a", "b"), Operation("is not null", (value,)))),
    }
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
        random_end(draw, random_pattern(draw)),
        conditions,
        {"U": frozenset(draw.sample("ABCD", 2))},
        tuple(Measure(f"m{number}", measure, draw.random() < 0.3) for number, measure in enumerate(chosen)),
        draw.choice(["one", "one", "one", "all", "all unmatched", "all omit empty"]),
        draw.choice([AfterMatch(), AfterMatch(), AfterMatch("to next row"), AfterMatch("to last", draw.choice("ABCD"))]),
        "next row",
        within,
        within is not None and draw.random() < 0.5,
    )
    types = pa.schema([(measure.name, _type(measure.value)) for measure in spec.measures])
    keys = ("key",) if draw.random() < 0.8 else ()
    return PatternProgram(
        spec, keys, COLUMNS, types, tuple(COLUMNS.names), "at", allowed_lateness=draw.choice([0, 0, 2]), has_late_output=True
    )


def random_batches(draw: random.Random) -> list[tuple[int, list[Row]]]:
    batches: list[tuple[int, list[Row]]] = []
    watermark, at = MIN, 0
    for _ in range(draw.randint(2, 6)):
        rows: list[Row] = []
        for _ in range(draw.randint(0, 12)):
            at += draw.choice([0, 0, 1, 2])
            row = (
                draw.choice(["x", "y", None]),
                at - draw.choice([0, 0, 0, 3]),
                draw.choice("abc"),
                draw.choice([None, 1, 2, 3]),
            )
            rows.append(row)
        batches.append((watermark, rows))
        watermark = at - draw.choice([0, 1, 4])
    return [*batches, (MAX, [])]


@pytest.mark.parametrize("seed", seeds(16))
def test_random_programs_are_the_same_on_both_engines_however_rows_are_cut(seed: int) -> None:
    draw, compared = random.Random(seed), 0
    while compared < 25:
        asked = random_program(draw)
        if refusal(asked) is not None:
            continue
        compared += 1
        batches = random_batches(draw)
        expected, counted = run(PatternReferenceEngine, asked, batches, restarts=False)
        found, counts = run(PatternTextEngine, asked, batches)
        where = (seed, str(asked.spec.pattern), asked.spec)
        assert [sorted(each, key=repr) for each in found] == [sorted(each, key=repr) for each in expected], where
        assert counts == counted, where
        # Stream and batch: over all batches the results are those of all rows that were not late, at once.
        watermarks = [max(watermark for watermark, _ in batches[: number + 1]) for number in range(len(batches))]
        taken = [row for known, (_, rows) in zip(watermarks, batches, strict=True) for row in rows if row[1] > asked.known(known)]
        at_once, _ = run(PatternReferenceEngine, asked, [(MIN, taken), (MAX, [])], restarts=False)
        streamed = sorted((each for several in found for each in several if each[0] != LATE), key=repr)
        assert streamed == sorted((each for several in at_once for each in several), key=repr), where
