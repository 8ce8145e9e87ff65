"""The engine of window joins: a window program over the rows of both sides together, whose function joins what a window holds.

So a window join has the windows, the lateness, the merging of sessions and the state of any other window program, and the engine
that such a program has. Rows carry the columns of both sides, those of the other side NULL. Where rows may come late, each firing
corrects the one before it, and results that are the same in both stay: on slices the earlier results follow from rows of earlier
batches, whose numbers rows keep; sessions, which merge, keep their results (panes of the reference).

Source of the rules: Flink's join of windows, whose sessions are those of both sides together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.columns import replaced
from windowpane.arrays.values import Row
from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.batch.late_rows import DROPPED, late_schema
from windowpane.engines.common.held_panes import Wanted, WindowsEngine
from windowpane.engines.common.slicing import staggered
from windowpane.engines.common.tagged import tag
from windowpane.engines.join.grouping import CoGroup, GroupedRows, GroupedTables, Names
from windowpane.engines.join.held_counts import CountingState, HeldCounts, Sides
from windowpane.engines.join.program import LATE, JoinCounters, JoinProgram, passed_name
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START, Program, SideOutput, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.engines.row.engine import RowEngine
from windowpane.engines.row.reference import HOLDS_OF_ROWS, ReferenceEngine
from windowpane.engines.rows import appearing
from windowpane.engines.sessions.engine import SessionsEngine
from windowpane.engines.slices.engine import SlicesEngine
from windowpane.engines.spec import BucketEngine
from windowpane.errors import MissingSideTimestampError, MistakeError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME, hidden
from windowpane.kernels.joined_windows import BOTH, LEFT, RIGHT, Batch, CorrectedWindows, JoinedWindows
from windowpane.kernels.keys.codes import as_written
from windowpane.kernels.keys.key_codes import key_codes
from windowpane.state.blob_store import BlobStore
from windowpane.state.segment_log import SegmentLog
from windowpane.state.sorted_pages import SortedPages
from windowpane.windowing.arrow_functions import ArrowByKey, ArrowWindowFunction
from windowpane.windowing.assigners.session import GapFunction
from windowpane.windowing.expressions import Side
from windowpane.windowing.functions import PassThrough, WindowFunctionSpec
from windowpane.windowing.joins import LEFT_ONLY, WindowMatch
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT, OutputTag
from windowpane.windowing.spec import DEFAULT_PANES, PaneSettings, Refine, WindowSpec
from windowpane.windowing.times import MAX, Duration

SIDE, _BATCH = hidden("side"), hidden("batch")
"""The column of the side of a row in state."""
_CODES: Mapping[Side, int] = {"left": LEFT, "right": RIGHT}
_KIND = "join"


class JoinWindowEngine(BucketEngine[JoinProgram]):
    name = "join_window"
    reason = "a window program over the rows of both sides, whose function joins what a window holds"
    state = "that of windows which keep their rows"
    holds: ClassVar = {**HOLDS_OF_ROWS, "p": "panes"}

    @classmethod
    def serves(cls, program: JoinProgram) -> bool:
        return isinstance(program.match, WindowMatch)

    def __init__(self, program: JoinProgram, row_by_row: bool = False) -> None:
        super().__init__(program)
        self._fired = Sides()
        self._counting: list[CountingState] = []
        self._now = Batch()
        corrected = corrects_on_columns(program) and not row_by_row
        self._windowed = _windowed(program, self._fired, self._now if corrected else None)
        self._engine: WindowsEngine = (None if row_by_row else self._fast_engine()) or ReferenceEngine(
            self._windowed, self._counting_state
        )

    @property
    def windowed(self) -> Program:
        """The program of windows over the rows of both sides."""
        return self._windowed

    def held(self, store: BlobStore, wanted: Wanted) -> Iterator[pa.Table]:
        """List what windows hold of both sides."""
        return self._engine.held(store, wanted)

    @property
    def windows_on(self) -> str:
        return self._engine.name

    @property
    def key_columns(self) -> list[str]:
        """The columns of keys in rows of state."""
        return list(self._windowed.key_columns)

    def _fast_engine(self) -> WindowsEngine | None:
        program = self._windowed
        if SlicesEngine.refusal(program) is None:
            return SlicesEngine(program)
        if SessionsEngine.refusal(program) is None:
            return SessionsEngine(program)
        return RowEngine(program, self._counting_state) if RowEngine.refusal(program) is None else None

    def _counting_state(self, entries: SortedPages) -> CountingState:
        self._counting = [CountingState(entries, SIDE)]
        return self._counting[0]

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        self._fired.clear()
        header = BucketHeader.read(store, self.program.description)
        self._now.number = header.arrivals
        self._now.refired = header.watermark if self.program.upstream is Upstream.WINDOW else MAX
        together = list(self._together(rows))
        output = self._engine.run(store, together, clock)
        main = [table for number, table in output.tables if number == MAIN]
        late = [table for number, table in output.tables if number != MAIN]
        results = self._results(pa.concat_tables(main)) if main else None
        if results is not None and self.program.co_group is not None:
            keys = dict(zip(self._windowed.keys.names, self.program.left.keys, strict=True))
            named = [passed_name("left", keys[name]) if name in keys else name for name in results.column_names]
            results = results.rename_columns(named)
        tables = [] if results is None else [(MAIN, results.select(self.program.main_schema.names))]
        tables += [found for table in late for found in self._late(table)]
        held = self._held(store, together, late, clock)
        counters = self._counters(output.counters, results, late, held)
        return BucketOutput(tables, counters, output.is_idle, output.next_processing_time)

    # Rows in.

    def _together(self, tables: Sequence[pa.Table]) -> Iterator[pa.Table]:
        """Yield the tables of both sides with the same columns, those of the right side behind the left ones."""
        filled = [(table, str(tag(table, "side"))) for table in tables if table.num_rows]
        behind = max((int(np.max(table[PARTITION].to_numpy())) for table, side in filled if side == "left"), default=-1) + 1
        for table, side in filled:
            yield self._wide(table, side, behind)

    def _wide(self, table: pa.Table, side: str, behind: int) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        program = self.program
        if table[TIME].null_count and self._windowed.spec.assigner.is_event_time:
            raise MissingSideTimestampError(side, table[TIME].null_count)
        for each, of in program.sides.items():
            if each == side:
                for field, key in zip(self._windowed.keys, of.keys, strict=True):
                    columns[field.name] = table[key].cast(field.type)
            for column in of.columns:
                values = table[column.name] if each == side else pa.nulls(table.num_rows, column.type)
                columns[passed_name(each, column.name)] = values
        partition = table[PARTITION].to_numpy() + (behind if side == "right" else 0)
        columns[SIDE] = pa.array(np.full(table.num_rows, LEFT if side == "left" else RIGHT, np.int8))
        columns[_BATCH] = pa.array(np.full(table.num_rows, self._now.number))
        columns |= {TIME: table[TIME], PARTITION: pa.array(partition), POSITION: table[POSITION]}
        return pa.table(columns)

    # Rows out.

    def _results(self, results: pa.Table) -> pa.Table:
        """Return the results; of a changelog, those that remain when deletes and inserts of equal rows cancel."""
        if not self.program.retracts:
            return results
        appears = appearing(results[CHANGE_TYPE])
        if appears.all():
            return results
        signs = np.where(appears, 1, -1)
        named = [name for name in results.column_names if name not in (CHANGE_TYPE, TIME, FIRING_WATERMARK)]
        kept = _net(key_codes([as_written(results[name]) for name in named], results.num_rows), signs)
        words = pa.array(np.where(signs[kept] > 0, INSERT, DELETE).tolist(), pa.string())
        changed = results.take(pa.array(kept))
        return replaced(changed, CHANGE_TYPE, words)

    def _late(self, late: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        sides = late[SIDE].to_numpy()
        for side, of in self.program.sides.items():
            if of.has_late_output and (sides == _CODES[side]).any():
                rows = late.filter(pa.array(sides == _CODES[side]))
                schema = self.program.late_schema(side)
                own = of.columns.names
                columns = [rows[passed_name(side, field.name) if field.name in own else field.name] for field in schema]
                yield LATE[side], pa.table(columns, schema=schema)

    def _held(self, store: BlobStore, rows: Sequence[pa.Table], late: Sequence[pa.Table], clock: Clock) -> Sides:
        counts = HeldCounts(store)
        if isinstance(self._engine, SlicesEngine):
            folding = self._engine.folding
            slices = staggered(folding.slices, self._windowed.spec.assigner, store, None)
            for table in rows:
                times = table[TIME].to_numpy() if folding.is_event_time else np.full(table.num_rows, clock.processing_time)
                starts = slices.starts(times)
                places, numbers = np.unique(starts[slices.covers(times, starts)], return_counts=True)
                side = table[SIDE][0].as_py()
                for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
                    counts.add(place, {side: number})
            counts.keep(SegmentLog(store, "s").segments())
        elif isinstance(self._engine, RowEngine | ReferenceEngine):
            counts.add(0, self._counting[0].rows)
        elif not self.program.allowed_lateness:
            taken = Sides()
            for table in rows:
                taken[table[SIDE][0].as_py()] += table.num_rows
            for table in late:
                taken.subtract(table.filter(table[DROPPED])[SIDE].to_pylist())
            taken.subtract(self._fired)
            counts.add(0, taken)
        return counts.written()

    def _counters(self, counters: Counters, results: pa.Table | None, late: Sequence[pa.Table], held: Sides) -> JoinCounters:
        made_of = np.zeros(0, np.int8)
        if results is not None and self.program.co_group is None:
            made_of = results[SIDE].to_numpy()
            if self.program.retracts:
                made_of = made_of[appearing(results[CHANGE_TYPE])]
        sides = np.concatenate([table[SIDE].to_numpy() for table in late]) if late else np.zeros(0, np.int8)
        return JoinCounters(
            **vars(counters),
            left_late=int((sides == LEFT).sum()),
            right_late=int((sides == RIGHT).sum()),
            pairs=int((made_of == BOTH).sum()),
            padded=int((made_of != BOTH).sum()),
            held_left=held[LEFT],
            held_right=held[RIGHT],
        )


@dataclass(frozen=True)
class _GapOfSide:
    """The gap function of sessions on rows of both sides: it sees those columns of a row that its side has."""

    gap_of: GapFunction
    columns: Mapping[int, tuple[tuple[str, str], ...]]

    def __call__(self, row: Row) -> Duration:
        return self.gap_of({name: row[passed] for name, passed in self.columns[row[SIDE]]})


def _net(codes: Integers, signs: Integers) -> Integers:
    """Return the rows that are left when rows of one code and opposite signs cancel, in their order.

    Example:
        >>> _net(np.array([7, 8, 7, 9]), np.array([-1, -1, 1, 1])).tolist()
        [1, 3]
    """
    _, groups = np.unique(codes, return_inverse=True)
    left = np.bincount(groups, weights=signs).astype(np.int64)
    counted = np.where(signs == np.sign(left[groups]), 1, 0)
    order = np.argsort(groups, kind="stable")
    running = np.cumsum(counted[order])
    starts = np.searchsorted(groups[order], np.arange(len(left)))
    before = np.concatenate(([0], running))[starts]
    rank = np.empty(len(codes), np.int64)
    rank[order] = running - before[groups[order]]
    return np.flatnonzero((counted == 1) & (rank <= np.abs(left[groups])))


@dataclass(frozen=True)
class _Counted:
    """A function of a window program that counts the rows it is given, by their side."""

    function: Callable[[pa.Table], pa.Table]
    fired: Sides

    def __call__(self, rows: pa.Table) -> pa.Table:
        numbers = np.bincount(rows[SIDE].to_numpy(), minlength=len(_CODES)).tolist()
        self.fired.update(dict(enumerate(numbers)))
        return self.function(rows)

    def __repr__(self) -> str:
        return repr(self.function)


def corrects_on_columns(program: JoinProgram) -> bool:
    """Whether the windows of a join that late rows correct are made of slices: their rows are all that is held."""
    if not isinstance(program.match, WindowMatch) or not program.corrects:
        return False
    return SlicesEngine.refusal(_windowed(program, Sides(), Batch())) is None


class _Function(NamedTuple):
    """What joins the rows of a window: its results, and how it runs by row and, if it can, on tables."""

    results: pa.Schema
    by_row: WindowFunctionSpec = WindowFunctionSpec(_KIND, PassThrough())
    arrow: ArrowWindowFunction | None = None


def _windowed(program: JoinProgram, fired: Sides, now: Batch | None) -> Program:
    """Return the window program of a join; ``now`` is for a function that emits its own corrections, ``None`` where panes do."""
    names = {side: tuple((name, passed_name(side, name)) for name in of.columns.names) for side, of in program.sides.items()}
    keys = pa.schema(
        [pa.field(hidden(f"key_{n}"), program.left.columns.field(name).type) for n, name in enumerate(program.left.keys)]
    )
    values = pa.schema(
        [
            pa.field(SIDE, pa.int8()),
            *([] if now is None else [pa.field(_BATCH, pa.int64())]),
            *(column.with_name(passed_name(side, column.name)) for side, of in program.sides.items() for column in of.columns),
        ]
    )
    late = late_schema(values, program.window_bound, has_windows=True)
    if program.co_group is None:
        function = _joining(program, names, keys, values, fired, now)
    else:
        function = _co_grouping(program, program.co_group, names, keys, fired)
    made = Program(
        spec=_spec(program, names, function.by_row, emits_corrections=now is not None),
        keys=keys,
        key_columns=tuple(keys.names),
        values=tuple(values.names),
        main=function.results,
        window_bound=program.window_bound,
        late_columns=tuple(values.names),
        side_outputs=(SideOutput(OutputTag("late"), late, is_late=True),),
        upstream=program.upstream,
        value_types=values,
        arrow=function.arrow,
        description=program.description,
    )
    if function.arrow is None:
        return made
    by_key = WindowFunctionSpec(_KIND, ArrowByKey(function.arrow, *made.window_schemas, len(keys)))
    return replace(made, spec=replace(made.spec, function=by_key))


def _joining(
    program: JoinProgram, names: Mapping[Side, Names], keys: pa.Schema, values: pa.Schema, fired: Sides, now: Batch | None
) -> _Function:
    sides: tuple[Side, ...] = ("left",) if program.how in LEFT_ONLY else ("left", "right")
    passed = tuple(passed_name(side, name) for side in sides for name in program.sides[side].passed)
    function = JoinedWindows(
        how=program.how,
        keys=tuple(keys.names),
        window=(*keys.names, WINDOW_START, WINDOW_END),
        side=SIDE,
        left=names["left"],
        right=names["right"],
        passed=passed,
        null_safe=program.null_safe,
        condition=program.condition,
    )
    results = pa.schema([values.field(name) for name in (SIDE, *passed)])
    if now is None:
        return _Function(results, arrow=ArrowWindowFunction(_Counted(function, fired), _KIND))
    corrected = CorrectedWindows(function, _BATCH, WINDOW_END, CHANGE_TYPE, now)
    results = results.append(pa.field(CHANGE_TYPE, pa.string()))
    return _Function(results, arrow=ArrowWindowFunction(_Counted(corrected, fired), _KIND))


def _co_grouping(program: JoinProgram, group: CoGroup, names: Mapping[Side, Names], keys: pa.Schema, fired: Sides) -> _Function:
    named = {_CODES[side]: _keys_first(names[side], program.sides[side].keys) for side in _CODES}
    if not group.in_arrow:
        return _Function(group.results, WindowFunctionSpec.apply(GroupedRows(group.function, SIDE, named)))
    of_keys = tuple(zip(program.left.keys, keys.names, strict=True))
    grouped = GroupedTables(group.function, group.results, SIDE, named, of_keys)
    return _Function(group.results, arrow=ArrowWindowFunction(_Counted(grouped, fired), group.kind))


def _spec(
    program: JoinProgram, names: Mapping[Side, Names], function: WindowFunctionSpec, *, emits_corrections: bool
) -> WindowSpec:
    """Return the windows; late rows retract panes unless the function emits its corrections itself."""
    if not isinstance(program.match, WindowMatch):
        raise MistakeError("the engine refuses other joins")
    assigner, group = program.match.assigner, program.co_group
    if program.match.gap_of is not None:
        gap = _GapOfSide(program.match.gap_of, {_CODES[side]: columns for side, columns in names.items()})
        assigner = replace(assigner, gap=gap)  # type: ignore[type-var]  # sessions are dataclasses
    panes = PaneSettings("retracting") if program.retracts and not emits_corrections else DEFAULT_PANES
    evictor = None if group is None else group.evictor
    refine: Refine = "last" if group is None else group.refine
    trigger = panes.trigger((group and group.trigger) or assigner.default_trigger(), assigner, evictor, program.allowed_lateness)
    return WindowSpec(assigner, function, trigger, evictor, program.allowed_lateness, refine, panes.options)


def _keys_first(columns: Names, keys: tuple[str, ...]) -> Names:
    named = dict(columns)
    return tuple({key: named[key] for key in keys}.items()) + tuple((name, as_) for name, as_ in columns if name not in keys)
