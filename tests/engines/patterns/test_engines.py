"""The engines of row patterns: cases by hand, and random programs on both, cut into batches at random, with restarts."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windowpane.aggregates as aggregates
from tests.examples import seeds
from verify.fuzz.patterns import COLUMNS, count_of, is_kind, replay, run, table_of, type_of
from verify.sizes import drawn_sizes
from windowpane.engines.changes import ACCEPTED, Verdict, changes
from windowpane.engines.patterns.program import TIMEOUTS, PatternProgram
from windowpane.engines.patterns.reference import PatternReferenceEngine
from windowpane.engines.patterns.text import PatternTextEngine
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import Clock, Engine
from windowpane.errors import InvalidSpecError, MissingEventTimeError, PatternLimitError, SkipTargetError
from windowpane.kernels.conditions import values
from windowpane.operators.patterns.values import Label, Path, Values
from windowpane.planning.description.programs import of_patterns
from windowpane.planning.engines import combiner_of_patterns, make_engine, with_engine
from windowpane.planning.patterns.binding import bound, refuse_no_conditions
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.expressions import Constant, Operation
from windowpane.windowing.patterns.spec import AfterMatch, Measure, PatternSpec
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.values import Aggregated, Classifier, MatchNumber, MatchTime, Moved, Picked
from windowpane.windowing.times import MAX, MIN

ENGINES = pytest.mark.parametrize("engine", [PatternReferenceEngine, PatternTextEngine])


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
        spec, ("key",), COLUMNS, pa.schema([(m.name, type_of(m.value)) for m in spec.measures]), COLUMNS.names, "at"
    )


@ENGINES
def test_an_absence_is_certain_when_the_watermark_has_passed_the_bound(engine: type[Engine]) -> None:
    """An order and no payment within 30: x is paid in time, y too late, z never, w twice ordered."""
    unpaid = program("a -> !b", [Picked("first", "a", "at"), MatchTime()], within=30)
    rows = [("x", 0, "a", 1), ("y", 1, "a", 1), ("x", 29, "b", 1), ("y", 31, "b", 1), ("z", 40, "a", 1), ("w", 41, "a", 1)]
    found, _ = replay(engine, unpaid, [(MIN, rows), (29, [("w", 45, "a", 2)]), (30, []), (69, []), (MAX, [])])

    assert found[:3] == [[], [], [(MAIN, ("y", 1, 30))]]
    assert found[3] == [(MAIN, ("z", 40, 69))]
    assert sorted(found[4]) == [(MAIN, ("w", 41, 70)), (MAIN, ("w", 45, 74))]


@ENGINES
def test_what_fails_for_want_of_a_row_times_out_where_its_absence_matches(engine: type[Engine]) -> None:
    paid = program("a -> b", [Picked("first", "a", "at"), Picked("last", "b", "at")], within=30, has_timeouts=True)
    rows = [("x", 0, "a", 1), ("y", 1, "a", 1), ("x", 29, "b", 1), ("y", 31, "b", 1)]
    found, counts = replay(engine, paid, [(MIN, rows), (29, []), (30, [])])

    assert found == [[], [(MAIN, ("x", 0, 29))], [(TIMEOUTS, ("y", 1, None))]]
    assert (counts["timeouts"], counts["firings"]) == (1, 1)


def test_a_timeout_has_a_row() -> None:
    """Of the ways that end for want of a b the first one with a row counts: rows that are passed over are none of the match."""
    measures = [Picked("first", "a", "at"), count_of(None)]
    paid = program("a?? -> b", measures, within=30, has_timeouts=True)
    found, _ = replay(make_engine, with_engine(paid), [(MIN, [("x", 0, "a", 1), ("y", 1, "c", 1)]), (MAX, [])])

    assert found == [[], [(TIMEOUTS, ("x", 0, 1))]]


@ENGINES
def test_a_greedy_loop_waits_for_the_row_behind_and_a_reluctant_one_does_not(engine: type[Engine]) -> None:
    rows = [("x", 1, "a", 1), ("x", 2, "b", 1), ("x", 3, "b", 1)]
    batches = [(MIN, rows), (3, [("x", 4, "c", 1)]), (4, [])]
    assert replay(engine, program("a b+", [count_of("b")]), batches)[0] == [[], [], [(MAIN, ("x", 2))]]
    assert replay(engine, program("a b+?", [count_of("b")]), batches)[0] == [[], [(MAIN, ("x", 1))], []]


@ENGINES
def test_rows_that_tie_are_ordered_by_arrival_and_late_ones_are_counted(engine: type[Engine]) -> None:
    asked = program("a b", [Picked("first", None, "value"), Picked("last", None, "value")])
    rows = [("x", 5, "b", 1), ("x", 5, "a", 2), ("x", 5, "b", 3), (None, 5, "a", 4), (None, 5, "b", None)]
    found, counts = replay(engine, asked, [(MIN, rows), (5, [("x", 5, "b", 9), ("x", 6, "b", 10)]), (6, [])])

    assert sorted(found[1], key=repr) == [(MAIN, ("x", 2, 3)), (MAIN, (None, 4, None))]
    assert counts["late_dropped"] == 1
    assert found[2] == []


@ENGINES
def test_the_first_row_of_a_key_is_the_first_one_for_ever(engine: type[Engine]) -> None:
    opening = program("^ a", [MatchNumber()])
    found, _ = replay(
        engine, opening, [(MIN, [("x", 1, "b", 1), ("y", 1, "a", 1)]), (1, [("x", 2, "a", 1), ("y", 2, "a", 1)]), (MAX, [])]
    )

    assert found == [[], [(MAIN, ("y", 1))], []]


@ENGINES
def test_a_row_that_the_search_cannot_go_on_at_is_an_error_or_is_counted(engine: type[Engine]) -> None:
    batches = [(MIN, [("x", 1, "a", 1), ("x", 2, "b", 1), ("x", 3, "a", 1), ("x", 4, "b", 1)]), (MAX, [])]
    to_first = program("a b", [Picked("first", None, "at")], after_match=AfterMatch("to first", "a"))
    with pytest.raises(SkipTargetError, match=r"'x'.*'a', and that is the first row of the match"):
        replay(engine, to_first, batches)
    optional = program("a b? b", [Picked("first", None, "at")], "ab", after_match=AfterMatch("to last", "c"), on_error="next row")
    found, counts = replay(engine, optional, batches)
    assert (found[1], counts["bad_skips"]) == ([(MAIN, ("x", 1)), (MAIN, ("x", 3))], 2)


@ENGINES
def test_an_attempt_that_waits_with_too_many_rows_is_given_up(engine: type[Engine]) -> None:
    held = program("a b* c", [count_of(None)], "abc", within=100, has_timeouts=True, most_rows=3)
    rows = [("x", 1, "a", 1), ("x", 2, "b", 1), ("x", 3, "b", 1), ("x", 4, "b", 1)]
    found, counts = replay(engine, held, [(MIN, rows), (3, []), (4, [("x", 5, "c", 1)]), (5, [])])

    assert found == [[], [], [(TIMEOUTS, ("x", 4))], []]
    assert counts["overflow"] == 1


@ENGINES
def test_aggregates_count_values_and_no_row_that_was_passed_over(engine: type[Engine]) -> None:
    """COUNT of a column leaves NULLs out; rows between an a and the next b are no rows of the match."""
    counted = [count_of(None), values_of("count", None), values_of("sum", None), values_of("max", "a"), values_of("sum", "b")]
    rows = [("x", 1, "a", None), ("x", 2, "c", 100), ("x", 3, "b", 4), ("x", 4, "a", 1), ("x", 5, "b", None)]
    found, _ = replay(engine, program("a -> b", counted, within=50), [(MIN, rows), (MAX, [])])

    assert found[1] == [(MAIN, ("x", 2, 1, 4, None, 4)), (MAIN, ("x", 2, 1, 1, 1, None))]


@pytest.mark.parametrize(
    ("rows_shown", "expected"),
    [
        ("all", [(1, 1, None), (2, 2, 1), (3, 2, 2), (4, 3, None)]),
        ("all omit empty", [(2, 2, 1), (3, 2, 2)]),
        ("all unmatched", [(1, 1, None), (2, 2, 1), (3, 2, 2), (4, 3, None)]),
    ],
)
def test_an_empty_match_has_a_number_and_is_shown_unless_it_is_omitted(rows_shown: Any, expected: list[Any]) -> None:
    """``a*`` over c a a c: an empty match at 1, one of two rows, an empty one at 4."""
    rows = [("x", 1, "c", 0), ("x", 2, "a", 1), ("x", 3, "a", 2), ("x", 4, "c", 0)]
    asked = program("a*", [MatchNumber(), Picked("last", "a", "value")], rows=rows_shown)
    found, _ = replay(PatternReferenceEngine, asked, [(MIN, rows), (MAX, [])])

    assert [(values[1], *values[4:]) for _, values in found[1]] == expected


def test_labels_of_rows_in_loops_of_several_variables() -> None:
    """``(a b){2} a? c`` over a b a b a c, on both engines; ``(a (b c)+)+ d`` over a b c b c a b c d, on that which backtracks."""
    names = [count_of("a"), count_of("b"), values_of("sum", "a"), Picked("last", "b", "value"), Classifier()]
    flat = program("(a b){2} a? c", names, "abc", rows="all")
    rows = [("x", at, kind, at) for at, kind in enumerate("ababac", start=1)]
    expected = [
        (1, 0, 1, None, "a"),
        (1, 1, 1, 2, "b"),
        (2, 1, 4, 2, "a"),
        (2, 2, 4, 4, "b"),
        (3, 2, 9, 4, "a"),
        (3, 2, 9, 4, "c"),
    ]
    assert PatternTextEngine.refusal(flat) is None
    for engine in (PatternReferenceEngine, PatternTextEngine):
        found, _ = replay(engine, flat, [(MIN, rows), (MAX, [])])
        assert [values[4:] for _, values in found[1]] == expected

    nested = program("(a (b c)+)+ d", [*map(count_of, "abc"), values_of("sum", "c")], "abcd")
    rows = [("x", at, kind, at) for at, kind in enumerate("abcbcabcd", start=1)]
    found, _ = replay(PatternReferenceEngine, nested, [(MIN, rows), (MAX, [])])
    assert found[1] == [(MAIN, ("x", 2, 3, 3, 3 + 5 + 8))]


@ENGINES
def test_each_watermark_decides_the_keys_whose_bound_it_passes(engine: type[Engine]) -> None:
    """60 keys that wait in pages of a few rows, an order a microsecond; every seventh was paid at once."""
    unpaid = program("a -> !b", [Picked("first", "a", "at")], within=30)
    rows = [(f"k{number:02}", number, "a", 1) for number in range(60)]
    paid = [(f"k{number:02}", number + 1, "b", 1) for number in range(0, 60, 7)]
    with drawn_sizes(3):
        found, _ = replay(engine, unpaid, [(MIN, [*rows, *paid]), *((watermark, []) for watermark in range(61, 95))])
    decided = [[values[1] for _, values in batch] for batch in found]
    assert sorted(decided[1]) == [number for number in range(33) if number % 7]
    assert decided[2:] == [[number] if number < 60 and number % 7 else [] for number in range(33, 66)]


@ENGINES
def test_an_idle_key_is_forgotten_when_it_is_retained_no_longer(engine: type[Engine]) -> None:
    opening = replace(program("^ a", [MatchNumber()]), retain=10)
    batches = [
        (MIN, [("x", 1, "b", 1), ("y", 1, "b", 1)]),
        (10, [("y", 11, "a", 1)]),
        (12, []),
        (20, [("x", 30, "a", 1)]),
        (MAX, []),
    ]
    found, _ = replay(engine, opening, batches)
    assert found == [[], [], [], [], [(MAIN, ("x", 1))]]


@ENGINES
def test_attempts_that_wait_begin_anew_by_another_pattern(engine: Callable[[PatternProgram], Engine]) -> None:
    """From ``a -> b`` to ``a -> !b``, over the orders that wait: a payment that has come counts for both."""
    rows = [("x", 0, "a", 1), ("y", 1, "a", 1), ("x", 20, "b", 1)]
    was, now = (program(text, [Picked("first", "a", "at")], within=30) for text in ("a -> b", "a -> !b"))
    was = replace(was, description=of_patterns(was, {"a": "a", "b": "b"}))
    now = replace(now, description={**of_patterns(now, {"a": "a", "b": "b"}), ACCEPTED: ["pattern"]})
    store = MemoryBlobStore()
    engine(was).run(store, [table_of(rows)], Clock(MIN, 0))
    engine(was).run(store, [], Clock(15, 0))
    output = engine(now).run(store, [], Clock(40, 0))
    assert [row for _, table in output.tables for row in table.to_pylist()] == [{"key": "y", "m0": 1}]


@ENGINES
@pytest.mark.parametrize("before", [100, None])
def test_a_shorter_bound_decides_attempts_when_it_has_passed(
    engine: Callable[[PatternProgram], Engine], before: int | None
) -> None:
    """An attempt from 1 on within 10 ends at 10, though no row of its key comes."""
    was, now = (program("a b+", [count_of("b")], within=each) for each in (before, 10))
    was = replace(was, description=of_patterns(was, {}))
    now = replace(now, description={**of_patterns(now, {}), ACCEPTED: ["within"]})
    store = MemoryBlobStore()
    engine(was).run(store, [table_of([("x", 1, "a", 1), ("x", 2, "b", 1)])], Clock(MIN, 0))
    engine(was).run(store, [], Clock(5, 0))
    found = [engine(now).run(store, [], Clock(watermark, 0)).tables for watermark in (9, 10)]
    assert [[row for _, table in tables for row in table.to_pylist()] for tables in found] == [[], [{"key": "x", "m0": 1}]]


def test_what_a_restart_may_change_of_a_pattern() -> None:
    def parts(text: str, conditions: Any = None, **more: Any) -> dict[str, Any]:
        found = program(text, [Picked("first", "a", "at")], within=more.pop("within", 30), **more)
        return dict(of_patterns(found, conditions or {"a": "a", "b": "b"}))

    was = parts("a -> b")
    verdicts = {
        "pattern": parts("a -> !b"),
        "within": parts("a -> b", within=60),
        "after match": parts("a -> b", after_match=AfterMatch("to next row")),
        "conditions": parts("a -> b", {"a": "a", "b": "c"}),
        "reach": {**was, "reach": 1},
        "remembers keys": {**was, "remembers keys": True},
        "keys": {**was, "keys": ["other"]},
        "only rows of": parts("a b"),
        "columns": {**was, "columns": [*was["columns"], {**was["columns"][0], "name": "new"}], "asks": [*was["asks"], "new"]},
    }
    found = {part: {each.part: each.outcome.verdict for each in changes(was, now)}[part] for part, now in verdicts.items()}
    accepted = {part for part, verdict in found.items() if verdict is Verdict.ACCEPT}
    assert accepted == {"pattern", "within", "after match", "conditions"}
    assert {part for part, verdict in found.items() if verdict is Verdict.REFUSED} == found.keys() - accepted
    back = {each.part: each.outcome.verdict for each in changes(parts("a b"), was)}
    assert back["only rows of"] is Verdict.SAFE


@pytest.mark.parametrize(
    ("text", "leaves_out"),
    [
        ("a", True),
        ("a -> b", True),
        ("a -> !b", True),
        ("a -> !b -> (a | b) -> !a", True),
        ("a b", False),
        ("a -> b+", False),
        ("a? -> b", False),
        ("a -> b $", False),
        ("^ a -> b", False),
        ("a -> x", False),  # it takes every row
        ("a -> c", False),  # the last value of an a, which is not the row itself
    ],
)
def test_which_patterns_leave_rows_out(text: str, leaves_out: bool) -> None:
    of_match = Operation("<", (Picked("last", None, "value"), Picked("last", "a", "value")))
    conditions = {"a": is_kind("a"), "b": is_kind("b"), "c": of_match}
    asked = program(text, [count_of("a")], conditions=conditions, within=30)
    assert asked.leaves_rows_out == leaves_out
    others = {"rows": "all unmatched"}, {"measures": (Measure("m0", Moved(Picked("first", None, "value"), -1)),)}
    assert not any(replace(asked.spec, **parts).leaves_rows_out for parts in others)
    assert not replace(asked, retain=30).leaves_rows_out


@pytest.mark.parametrize("has_late_output", [False, True])
def test_rows_that_no_variable_takes_are_left_out_of_state(has_late_output: bool) -> None:
    """Of a, three others and an order that is open, four rows or one are kept; late rows come out as they are."""
    asked = replace(program("a -> !b", [Picked("first", "a", "at")], within=30), has_late_output=has_late_output)
    rows = table_of([("x", 10, "a", 1), ("x", 11, "c", 1), ("y", 11, "c", 1), ("x", 12, "d", None)])
    late = table_of([("x", 3, "c", 1), ("x", 4, "a", 1)])
    kept, found = {}, {}
    for engine in (PatternReferenceEngine, PatternTextEngine):
        store = MemoryBlobStore()
        first = engine(asked).run(store, [rows], Clock(MIN, 0))
        then = engine(asked).run(store, [late], Clock(9, 0))
        last = engine(asked).run(store, [], Clock(MAX, 0))
        kept[engine.name] = first.counters.open_windows
        found[engine.name] = [(number, table.to_pylist()) for each in (then, last) for number, table in each.tables]
    assert kept == {"pattern reference": 4, "pattern text": 1}
    assert found["pattern text"] == found["pattern reference"]
    assert [number for number, _ in found["pattern text"]] == [LATE, MAIN] if has_late_output else [MAIN]


def test_rows_are_left_out_before_the_shuffle() -> None:
    asked = program("a -> b", [Picked("first", "a", "at")], within=30)
    rows = table_of([("x", 10, "a", 1), ("x", 11, "c", 1), ("y", 12, "b", 1), ("x", None, "d", None)])  # type: ignore[list-item]
    combined = combiner_of_patterns(with_engine(asked), foresees_watermark=False)
    assert combined is not None
    assert combined(rows)["at"].to_pylist() == [10, 12, None]  # the last is refused where its key is known
    with_late = with_engine(replace(asked, has_late_output=True))
    assert combiner_of_patterns(with_late, foresees_watermark=False) is None
    parting = combiner_of_patterns(with_late, foresees_watermark=True)
    assert parting is not None
    assert [each["at"].to_pylist() for each in parting.parted(rows, 10)] == [[11, 12], [10, None]]
    assert combiner_of_patterns(with_engine(asked, "pattern reference"), foresees_watermark=True) is None


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (Decimal("1.10"), "==", 1.1, True),  # the decimal becomes a double, as in Spark
        (Decimal("1.10"), "*", 2.0, 2.2),
        (2**53 + 1, "==", 2.0**53, True),
        (2**53 + 1, "is distinct from", 2.0**53, False),
        (Decimal("123456.79"), "==", 123456.79, True),  # the nearest double
        (Decimal(10**36 + 1), "+", Decimal(1), Decimal(10**36 + 2)),
        (Decimal(10**37), "*", Decimal("0.1"), Decimal("1" + "0" * 36 + ".0")),
        (Decimal(10**37), ">", Decimal("0.01"), True),
        (Decimal(1), "/", Decimal(3), Decimal("0." + "3" * 28)),
        (Decimal("0.15"), "%", Decimal("0.05"), Decimal(0)),
        (Decimal("-0.17"), "%", Decimal("0.05"), Decimal("-0.02")),
        (2**60 + 2, "/", 2, float(2**59)),
        (-(2**63), "%", -1, 0),
        (1.0, "%", 0.1, 0.09999999999999995),  # as in Java
        (-5.0, "%", float("inf"), -5.0),
        (dt.date(2024, 2, 29), "==", dt.datetime(2024, 2, 29), True),
        (dt.date(2024, 2, 29), "<", dt.datetime(2024, 2, 29, 1, tzinfo=dt.UTC), True),
        (None, "*", 2.0, None),
    ],
)
def test_numbers_of_several_kinds_meet(left: Any, operator: str, right: Any, expected: Any) -> None:
    computed = Operation(operator, (Constant(left), Constant(right)))
    found = Values(None, 0, 1).of(computed, Path({}))  # type: ignore[arg-type]
    assert (found, type(found)) == (expected, type(expected))
    assert (isinstance(left, Decimal) and isinstance(right, int)) or values(
        computed, lambda leaf: pa.nulls(1)
    ).as_py() == expected


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
def test_numbers_of_32_bits_are_computed_as_by_spark(sign: str) -> None:
    kinds = pa.schema({"v": pa.float32(), "w": pa.float32()})
    computed = bound(Operation(sign, (Picked("last", None, "v"), Picked("last", None, "w"))), kinds)
    one, other = np.float32(3.3), np.float32(0.7)
    with_32 = {"+": one + other, "-": one - other, "*": one * other}
    expected = float(with_32[sign]) if sign in with_32 else float(one) / float(other)  # Spark divides doubles
    path, row = Path({}), {"v": pa.array([one]), "w": pa.array([other])}
    path.append(Label(0, "a", True))
    rows = SimpleNamespace(columns={name: column.to_pylist() for name, column in row.items()})
    assert Values(rows, 0, 1).of(computed, path) == expected
    assert values(computed, lambda leaf: row[leaf.column])[0].as_py() == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("left", "operator", "right", "refused"),
    [
        ("s", "==", "n", "compared"),  # row by row a text equals no number: no row would match, without a word
        ("s", "==", Constant(1), "compared"),
        ("yes", "==", "n", "compared"),
        ("at", "!=", "local", "compared"),
        ("at", "==", "s", "compared"),
        ("s", "+", "s", "computed with"),  # Python would join texts
        ("tags", "*", "n", "computed with"),
        ("yes", "&", "n", "true or false"),
        ("yes", "|", "yes", None),
        ("at", "==", "day", None),
        ("n", "<", "m", None),
        ("m", "<=", Constant(0.5), None),
        ("tags", "==", "tags", None),
        ("s", "==", Constant(None), None),
    ],
)
def test_what_a_condition_cannot_compute_is_refused(left: Any, operator: str, right: Any, refused: str | None) -> None:
    kinds = {"s": pa.string(), "n": pa.int32(), "m": pa.decimal128(10, 2), "yes": pa.bool_(), "day": pa.date32()}
    kinds |= {"at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"), "tags": pa.list_(pa.string())}
    one, other = (Picked("last", None, side) if isinstance(side, str) else side for side in (left, right))
    computed = Operation(operator, (one, other))
    asked = program("a b", [], conditions={"b": Operation("is not null", (computed,))}).spec
    check = partial(refuse_no_conditions, asked, pa.schema(kinds), kinds["at"])
    if refused:
        with pytest.raises(InvalidSpecError, match=f"b=.* and .* are not {refused}"):
            check()
    else:
        check()


def test_running_aggregates_go_on_where_they_were() -> None:
    """A match of 2,000 rows, shown one by one with its sum so far, takes one addition a row."""
    shown = program("a+", [values_of("sum", "a"), count_of(None)], rows="all")
    adds = Counter[str]()

    class Counting:
        result_type = pa.int64()

        def create_accumulator(self) -> int:
            return 0

        def add(self, accumulator: int, value: int) -> int:
            adds["sum"] += 1
            return accumulator + value

        def get_result(self, accumulator: int) -> int:
            return accumulator

    total = shown.spec.measures[0].value
    assert isinstance(total, Aggregated)
    total = replace(total, aggregate=Counting())  # type: ignore[arg-type]
    shown = replace(shown, spec=replace(shown.spec, measures=(Measure("m0", total), shown.spec.measures[1])))
    rows = [("x", at, "a", 1) for at in range(2_000)]
    found, _ = replay(PatternReferenceEngine, shown, [(MIN, rows), (MAX, [])])
    assert [values[-2:] for _, values in found[1]] == [(number, number) for number in range(1, 2_001)]
    assert adds["sum"] == 2_000

    adds.clear()
    limited = {"a": Operation("<=", (total, Constant(1_500)))}
    asked = program("a+", [count_of(None)], conditions=limited)
    found, _ = replay(PatternReferenceEngine, asked, [(MIN, rows), (MAX, [])])
    assert [values[-1] for _, values in found[1]] == [1_500, 500]
    assert adds["sum"] <= 2 * 2_000


def test_a_search_that_takes_too_many_steps_ends_by_name() -> None:
    rows = [("x", at, "a", 1) for at in range(30)]
    nested = program("(a+)+ b", [count_of(None)], most_steps=10_000)
    assert PatternTextEngine.refusal(nested) == "a loop over a choice or a loop could be searched for ever"
    with pytest.raises(PatternLimitError, match=r"partition 'x'.*more than 10,000 steps"):
        replay(PatternReferenceEngine, nested, [(MIN, rows), (MAX, [])])


@ENGINES
def test_a_row_without_a_time_is_refused_with_its_key(engine: type[Engine]) -> None:
    with pytest.raises(MissingEventTimeError, match="'x'"):
        replay(engine, program("a b", [count_of(None)]), [(MIN, [("x", None, "a", 1)])])  # type: ignore[list-item]


@pytest.mark.parametrize("seed", seeds(16))
def test_random_programs_are_those_of_the_matcher(seed: int) -> None:
    outcomes = [run(1000 * seed + number) for number in range(25)]
    assert [(outcome.seed, outcome.differences) for outcome in outcomes if outcome.differences] == []
    assert len({outcome.engine for outcome in outcomes}) == 2


def values_of(name: str, variable: str | None) -> Aggregated:
    bound = getattr(aggregates, name)("value").bind([pa.int64()])
    return Aggregated(variable, ("value",), bound, name, f"{name}({variable})")
