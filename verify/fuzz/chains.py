"""Kind ``chains``: operators behind operators, batch by batch, and the same one by one on all that the one before has left.

A chain is up to four of windows, OVER windows, deduplications, row patterns, and joins of rows with each other, any behind any;
where a changelog comes to one that takes rows, it is settled in front. Every operator of a chain is made anew from bytes before
every batch, and takes what the one before emits in the same batch. Alone, an operator gets the table that the one before has made
of all batches, at once, as if from files. Both must end with the same rows, and no row that an operator hands on may be late for
the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import windowpane as wp
from verify.fuzz.outcome import Outcome, differences_of, raised
from windowpane.engines.common.tagged import tagged
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.join.program import JoinProgram, JoinSide
from windowpane.engines.over.program import Emit
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.program import MAIN, BucketProgram, Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.errors import present
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.planning.deduplication import DeduplicationPlan
from windowpane.planning.deduplication_programs import compile_deduplication
from windowpane.planning.engines import make_engine, with_engine
from windowpane.planning.over import OverPlan, WindowedCall
from windowpane.planning.over_programs import compile_stages
from windowpane.planning.settings import Settings
from windowpane.planning.settling.programs import compile_settling
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.expressions import SIDES, Constant, Operation
from windowpane.windowing.frames import Frame, preceding
from windowpane.windowing.joins import How, IntervalMatch
from windowpane.windowing.outputs import APPEARING, CHANGE_TYPE
from windowpane.windowing.over.spec import OrderColumn, OverCall
from windowpane.windowing.patterns.spec import AfterMatch, Measure, PatternSpec
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.values import Aggregated, MatchTime, Moved, Picked
from windowpane.windowing.spec import PaneSettings
from windowpane.windowing.times import MAX, MIN

INSTANT = pa.timestamp("us", "UTC")
ROWS = pa.schema([("k", pa.string()), ("id", pa.int64()), ("v", pa.int64()), ("at", INSTANT)])
"""What every operator takes and leaves: a key, what identifies the row, a value, and its event time."""
KEYS = ["a", "b", None]
_SETTLED = "settled"
_MANY = "join"
"""At most once in a chain: pairs of pairs are many."""
Row = tuple[str | None, int, int | None, int]
Batch = tuple[list[Row], int]
"""Rows, and the watermark under which they are taken."""


@dataclass(frozen=True)
class Link:
    """One operator of a chain.

    Args:
        text: the operator for people.
        programs: its programs, a stage each.
        held_back: microseconds by which what it emits may stay behind its watermark.
        value: the column that is the value of a row to the next one.
        takes_changes: whether it takes a changelog itself.
        behind: microseconds by which the watermark of each stage stays behind that of the operator.
    """

    text: str
    programs: tuple[BucketProgram, ...]
    held_back: int
    value: str = "v"
    takes_changes: bool = False
    behind: tuple[int, ...] = (0,)

    @property
    def retracts(self) -> bool:
        return CHANGE_TYPE in self.programs[-1].main_schema.names


def run(seed: int) -> Outcome:
    """Return what became of the program of a seed."""
    draw = Random(seed)
    kinds = random_kinds(draw)
    batches = random_batches(draw)
    text = f"{' -> '.join(kinds)}, {batches!r}"
    try:
        chain = list(linked(draw, kinds))
        text = f"{' -> '.join(link.text for link in chain)}, {batches!r}"
    except Exception as error:
        return Outcome(seed, text, "", [raised(error)])
    return Outcome(seed, text, chain[-1].programs[-1].engine, differences_of(seed, lambda: _differences(chain, batches)))


def random_kinds(draw: Random) -> list[str]:
    """Draw the kinds of the operators of a chain, one join at most: pairs of pairs are many."""
    kinds = [draw.choice(list(LINKS)) for _ in range(draw.randint(2, 4))]
    return [kind for number, kind in enumerate(kinds) if kind != "join" or "join" not in kinds[:number]]


def random_batches(draw: Random) -> list[Batch]:
    """Draw batches of rows in some disorder, a few of them late for the first operator."""
    batches: list[Batch] = []
    watermark, number = MIN, 0
    for _ in range(draw.randint(1, 6)):
        rows = []
        for _ in range(draw.choice([0, 1, 3, 8])):
            at = max(watermark, 0) + draw.randint(-10, 60)
            rows.append((draw.choice(KEYS), number := number + 1, draw.choice([None, 1, 2, 5]), max(at, 0)))
        batches.append((rows, watermark))
        watermark = max(watermark, 0) + draw.choice([0, 5, 20, 50])
    return batches


def linked(draw: Random, kinds: Sequence[str]) -> Iterator[Link]:
    """Draw an operator of each kind, behind the one before; a changelog is settled where one does not take it."""
    before: Link | None = None
    for kind in kinds:
        carries = before is not None and TIME in before.programs[-1].main_schema.names and draw.random() < 0.5
        upstream = Upstream.SOURCE if before is None else Upstream.WINDOW_WITH_WATERMARKS if carries else Upstream.WINDOW
        changes = before is not None and before.retracts
        link = LINKS[kind](draw, upstream, changes)
        if changes and not link.takes_changes:
            yield Link(_SETTLED, (compile_settling(ROWS, upstream),), 0)
        yield link
        before = link


# Both ways to run them.


def _differences(chain: Sequence[Link], batches: Sequence[Batch]) -> Iterator[str]:
    found, late = chained(chain, batches)
    if late:
        yield f"late on the way: {late}"
    expected = one_by_one(chain, batches)
    if expected is not None and Counter(found) != Counter(expected):
        yield f"one by one {sorted(expected, key=repr)}, in a chain {sorted(found, key=repr)}"


def one_by_one(chain: Sequence[Link], batches: Sequence[Batch]) -> list[Row] | None:
    """Return the rows that a chain ends with where each operator takes the table that the one before has left.

    ``None`` where that says nothing: of rows of one time a deduplication keeps the first to come, and a full join emits rows
    without a partner of both sides, in an order that depends on the batches.
    """
    expected = _after([(table_of(rows, watermark), watermark) for rows, watermark in batches], chain[0])
    is_ordered = not _is_full_join(chain[0])
    for link in chain[1:]:
        if not is_ordered and isinstance(link.programs[0], DeduplicationProgram) and _have_ties(expected):
            return None
        expected = expected if link.text == _SETTLED else _alone(link, expected)
        is_ordered &= not _is_full_join(link)
    return expected


def _is_full_join(link: Link) -> bool:
    return isinstance(link.programs[0], JoinProgram) and link.programs[0].how == "full"


def _have_ties(rows: Sequence[Row]) -> bool:
    return max(Counter((key, at) for key, _, _, at in set(rows)).values(), default=0) > 1


def chained(chain: Sequence[Link], batches: Sequence[Batch]) -> tuple[list[Row], list[str]]:
    """Return the rows that a chain ends with, and which of its operators but the first had late rows."""
    runs = list(runs_of(chain))
    left: list[tuple[Row, str]] = []
    late = []
    for rows, watermark in [*batches, ([], MAX)]:
        table = table_of(rows, watermark)
        for number, each in enumerate(runs):
            table, dropped = each.take(table, watermark)
            if dropped and number:
                late.append(each.link.text)
        left += changes_in(table)
    return applied(left, chain[-1].retracts), late


def runs_of(chain: Sequence[Link]) -> Iterator[_Run]:
    """Yield the operators of a chain, each with its state."""
    delay = 0
    for link in chain:
        yield from (_Run(program, link, delay + behind) for program, behind in zip(link.programs, link.behind, strict=True))
        delay += link.held_back


class _Run:
    """An operator of a chain with its state."""

    def __init__(self, program: BucketProgram, link: Link, delay: int) -> None:
        self.program, self.link, self.delay, self.store = program, link, delay, MemoryBlobStore()

    def take(self, rows: pa.Table, watermark: int) -> tuple[pa.Table, int]:
        """Return what it hands on of a batch, and how many rows were late; its state is made anew from bytes before."""
        store = MemoryBlobStore()
        store.restore(self.store.snapshot())
        self.store = store
        clock = Clock(watermark if watermark in (MIN, MAX) else watermark - self.delay, 0)
        output = make_engine(self.program).run(store, self.given(rows), clock)
        late = sum(getattr(output.counters, name, 0) for name in ("late_dropped", "left_late", "right_late"))
        return self.handed_on(output), late

    def given(self, rows: pa.Table) -> list[pa.Table]:
        """Return rows as the engine takes them: those of a join are both of its sides."""
        return [tagged(rows, side=side) for side in SIDES] if isinstance(self.program, JoinProgram) else [rows]

    def handed_on(self, output: BucketOutput) -> pa.Table:
        """Return what it has emitted as the next one takes it."""
        tables = [table for number, table in output.tables if number == MAIN]
        is_last = self.program is self.link.programs[-1]
        return _handed_on(self.program, tables, self.link.value if is_last else None)


def _after(batches: Sequence[tuple[pa.Table, int]], link: Link) -> list[Row]:
    """Return the table that the first operator leaves of a stream."""
    runs = [_Run(program, link, behind) for program, behind in zip(link.programs, link.behind, strict=True)]
    left: list[tuple[Row, str]] = []
    for table, watermark in [*batches, (table_of([], MAX), MAX)]:
        for each in runs:
            table, _ = each.take(table, watermark)
        left += changes_in(table)
    return applied(left, link.retracts)


def _alone(link: Link, rows: Sequence[Row]) -> list[Row]:
    """Return the table that an operator leaves of a table that it is given at once."""
    programs = tuple(_of_a_table(program, number == 0) for number, program in enumerate(link.programs))
    return _after([(table_of(rows, MIN), MIN)], replace(link, programs=programs))


def _of_a_table(program: Any, is_first: bool) -> BucketProgram:
    given = {"upstream": Upstream.SOURCE, **({"append_only": True} if hasattr(program, "append_only") else {})}
    found: BucketProgram = replace(program, **given) if is_first else program
    return found


# Rows between operators.


def table_of(rows: Sequence[Row], watermark: int) -> pa.Table:
    """Return rows as an operator is sent them."""
    columns = [pa.array(values, field.type) for values, field in zip(_columns(rows, 4), ROWS, strict=True)]
    return _sent(pa.table(columns, schema=ROWS))


def _columns(rows: Sequence[Row], count: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(count)]


def _sent(rows: pa.Table) -> pa.Table:
    """Return rows as an operator is sent them."""
    if TIME not in rows.column_names:
        rows = rows.append_column(TIME, rows["at"].cast(pa.int64()))
    places = pa.array(range(rows.num_rows), pa.int64())
    return rows.append_column(PARTITION, pa.nulls(rows.num_rows, pa.int32()).fill_null(0)).append_column(POSITION, places)


def _handed_on(program: BucketProgram, tables: Sequence[pa.Table], value: str | None) -> pa.Table:
    """Return what an operator emits as the next one takes it; between stages of one operator all columns stay."""
    rows = pa.concat_tables(tables) if tables else program.main_schema.empty_table()
    if value is None:
        return _sent(rows)
    if isinstance(program, JoinProgram):
        rows = _joined(rows)
    names = rows.column_names
    at = rows[TIME].cast(INSTANT) if TIME in names else rows["at"]
    made = {"k": rows["k"], "v": rows[value].cast(pa.int64()), "at": at}
    if "id" in names:
        made["id"] = rows["id"]
    else:
        ends, keys = rows["window_end"].cast(pa.int64()).to_pylist(), rows["k"].to_pylist()
        made["id"] = pa.array([end * 8 + KEYS.index(key) for end, key in zip(ends, keys, strict=True)], pa.int64())
    kept = {name: rows[name] for name in (CHANGE_TYPE, TIME, FIRING_WATERMARK) if name in names}
    return _sent(pa.table({name: made[name] for name in ROWS.names} | kept))


def _joined(pairs: pa.Table) -> pa.Table:
    """Return pairs as rows: the value of the right row, and a number that is of both rows."""
    names = pairs.column_names
    left, right = (pairs[f"{side}.id"] if f"{side}.id" in names else pa.nulls(pairs.num_rows, pa.int64()) for side in SIDES)
    number = pc.add(pc.multiply(pc.fill_null(left, 0), 1 << 30), pc.fill_null(right, 0))
    columns = {"k": pairs["left.k"], "id": number, "v": pairs["right.v" if "right.v" in names else "left.v"]}
    return pa.table({**columns, **{name: pairs[name] for name in (TIME, FIRING_WATERMARK)}})


def changes_in(rows: pa.Table) -> list[tuple[Row, str]]:
    """Return rows, each with the word of its change."""
    values = zip(*(rows[name].to_pylist() for name in ("k", "id", "v")), rows["at"].cast(pa.int64()).to_pylist(), strict=True)
    words = rows[CHANGE_TYPE].to_pylist() if CHANGE_TYPE in rows.column_names else ["insert"] * rows.num_rows
    return list(zip(values, words, strict=True))


def applied(changes: Sequence[tuple[Row, str]], is_changelog: bool) -> list[Row]:
    """Return the rows that stay of changes; those of a changelog in the order of their times, others as they came."""
    if not is_changelog:
        return [row for row, _ in changes]
    copies: Counter[Row] = Counter()
    last: dict[Row, int] = {}
    for place, (row, word) in enumerate(changes):
        copies[row] += 1 if word in APPEARING else -1
        last[row] = place
    return sorted(copies.elements(), key=lambda row: (row[3], last[row]))


# The operators.


def _windows(draw: Random, upstream: Upstream, _changes: bool) -> Link:
    assigner = draw.choice(
        [
            wp.TumblingEventTimeWindows(20),
            wp.SlidingEventTimeWindows(30, 10),
            wp.EventTimeSessionWindows.with_gap(15),
            wp.CumulateEventTimeWindows(30, 10),
        ]
    )
    return _windowed(f"{assigner!r}", assigner, upstream)


def _retracting(draw: Random, upstream: Upstream, _changes: bool) -> Link:
    early = wp.AfterWatermark(early=wp.AfterCount(draw.choice([1, 2])), late=wp.AfterCount(1))
    lateness = draw.choice([0, 25]) if upstream is Upstream.SOURCE else 0
    panes, settings = PaneSettings(accumulation="retracting"), Settings(allowed_lateness=lateness)
    found = _windowed(
        "retracting windows", wp.TumblingEventTimeWindows(20), upstream, trigger=early, panes=panes, settings=settings
    )
    return replace(found, held_back=lateness)


def _windowed(text: str, assigner: Any, upstream: Upstream, **settings: Any) -> Link:
    function = FunctionPlan("aggregate", aggregates=(("v", wp.sum("v")),))
    plan = WindowPlan(("k",), assigner, function, event_time="at", upstream=upstream, **settings)
    keys = pa.schema([ROWS.field("k")])
    types = InputTypes(ROWS, keys, ("k",), INSTANT, argument_columns={"v": ("v",)})
    return Link(text, (compile_program(plan, types, ROWS.names),), 0)


def _over(draw: Random, upstream: Upstream, changes: bool, mode: Emit, lateness: int = 0) -> Link:
    frame = draw.choice([Frame.rows(preceding(1)), None])
    call = OverCall("sum", ("v",), frame) if frame else OverCall("lag", ("v",))
    calls = [WindowedCall("total", ("k",), (OrderColumn("at", nulls_first=True),), call)]
    if draw.random() < 0.3:  # another window: a stage more
        calls.append(WindowedCall("number", (), (OrderColumn("at", nulls_first=True),), OverCall("row_number", ())))
    is_update = mode is Emit.UPDATE
    plan = OverPlan(
        tuple(calls),
        ("id",),
        mode,
        "at",
        has_watermark=True,
        append_only=not (changes and is_update),
        is_bounded=upstream is not Upstream.SOURCE,
        settings=Settings(allowed_lateness=lateness),
    )
    held_back = plan.held_back
    if held_back is None:
        raise AssertionError("frames look back in time")
    programs, behind = compile_stages(plan, ROWS, upstream), tuple(stage.behind for stage in plan.stages)
    return Link(f"OVER on {mode.value} {calls}", programs, held_back, "total", is_update, behind)


def _close(draw: Random, upstream: Upstream, changes: bool) -> Link:
    return _over(draw, upstream, changes, Emit.CLOSE, draw.choice([0, 15]))


def _update(draw: Random, upstream: Upstream, changes: bool) -> Link:
    return _over(draw, upstream, changes, Emit.UPDATE)


def _first(draw: Random, upstream: Upstream, _changes: bool) -> Link:
    return _deduplicated(draw, upstream, Keep.FIRST)


def _last(draw: Random, upstream: Upstream, _changes: bool) -> Link:
    return _deduplicated(draw, upstream, Keep.LAST)


def _deduplicated(draw: Random, upstream: Upstream, keep: Keep) -> Link:
    settings = Settings(allowed_lateness=draw.choice([0, 15]))
    plan = DeduplicationPlan(draw.choice([5, 25]), keep, keys=("k",), event_time="at", settings=settings)
    program = compile_deduplication(plan, ROWS, ("k",), tuple(ROWS.names), upstream, INSTANT)
    held_back = plan.held_back
    if held_back is None:
        raise AssertionError("it goes by event time")
    return Link(f"{keep.value} rows within {plan.within}", (program,), held_back)


def _join(draw: Random, upstream: Upstream, _changes: bool) -> Link:
    lower = draw.choice([-10, 0, 3])
    match = IntervalMatch(lower, lower + draw.choice([0, 12]))
    how: How = draw.choice(_HOWS)
    side = JoinSide(("k",), ROWS, tuple(ROWS.names))
    program = JoinProgram(
        match,
        how,
        side,
        side,
        null_safe=draw.random() < 0.5,
        allowed_lateness=draw.choice([0, 15]),
        time_of=draw.choice(["max", "left", "right"]),
        upstream=upstream,
    )
    return Link(f"{how} join {match}", (with_engine(program),), present(program.held_back, "an interval bounds it"))


_HOWS: tuple[How, ...] = ("inner", "left", "full", "semi", "anti")


def _pattern(draw: Random, upstream: Upstream, _changes: bool) -> Link:
    value = Picked("last", None, "v")
    conditions = {
        "a": Operation(draw.choice([">", "<="]), (value, Constant(1))),
        "b": Operation("is null", (value,)) if draw.random() < 0.3 else Operation(">", (value, Moved(value, -1))),
        "c": Operation(">=", (value, Picked("first", "a", "v"))),
    }
    text, names = draw.choice(_PATTERNS)
    is_one = draw.random() < 0.7
    total = Aggregated(None, ("v",), wp.sum("v").bind([pa.int64()]), "sum", "sum(v)")
    measured = {"id": Picked("first", None, "id"), "total": total, "at": MatchTime()} if is_one else {"total": total}
    spec = PatternSpec(
        parse_pattern(text),
        {name: conditions[name] for name in names},
        measures=tuple(Measure(name, value) for name, value in measured.items()),
        rows="one" if is_one else "all",
        after_match=AfterMatch(draw.choice(["past last row", "to next row"]) if is_one else "past last row"),
        within=draw.choice([20, 80]),
    )
    lateness, types = draw.choice([0, 15]), {"id": pa.int64(), "total": pa.int64(), "at": INSTANT}
    program = PatternProgram(
        spec,
        ("k",),
        ROWS,
        pa.schema([(name, types[name]) for name in measured]),
        tuple(ROWS.names),
        "at",
        (OrderColumn("id", nulls_first=True),),
        lateness,
        upstream=upstream,
    )
    held_back = lateness + present(spec.passed_on, "there is a bound")
    return Link(f"{text} {conditions}, {spec.rows}", (with_engine(program),), held_back, "total")


_PATTERNS = (
    ("a b", "ab"),
    ("a+ b", "ab"),
    ("a -> b", "ab"),
    ("a -> !b", "ab"),
    ("b any*? c", "bc"),
    ("a c+", "ac"),
    ("(a | b) any $", "ab"),
)
"""Texts of patterns that take a row, and their variables with a condition."""

LINKS = {
    "windows": _windows,
    "retracting": _retracting,
    "over close": _close,
    "over update": _update,
    "first": _first,
    "last": _last,
    "join": _join,
    "pattern": _pattern,
}
