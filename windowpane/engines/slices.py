"""The slices engine: tumbling, sliding and cumulating event-time windows of built-in aggregates, on Arrow tables.

Rows fold once into slices that overlapping windows share; a window merges its slices when it fires; late rows fire again only
for the keys they touch. State, by name in the bucket's blob store: ``header``, and a segment log ``s`` with one segment a
slice, whose rows are the partial aggregates of each key. Who may mutate: this engine, once a batch. Recovery: read them back.

There are no timers: the windows of a slice follow from its start, and a window fires when the watermark passes its end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.bucket_header import BucketHeader
from windowpane.engines.late_rows import late_table
from windowpane.engines.program import JUDGED, MAIN, TIME, Program, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.engines.rows import python_keys, python_rows
from windowpane.engines.slicing import SharedSlices
from windowpane.errors import MissingTimestampError
from windowpane.kernels.grouped_fold import GroupedFold
from windowpane.kernels.partial_aggregates import columnar
from windowpane.state.blob_store import BlobStore
from windowpane.state.segment_log import SegmentLog
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import add_clamped
from windowpane.windowing.triggers import EventTimeTrigger, PurgingTrigger
from windowpane.windowing.windows import TimeWindow

SLICE = "__windowpane_slice"
ROWS = "__windowpane_rows"
"""Number of rows that were folded into one of partials, which tells how many were late."""
ALL = "__windowpane_all"
"""Group column where there are no keys."""
_TOUCHED = "__windowpane_touched"


class SlicesEngine:
    """Runs what ``refusal`` does not refuse."""

    name = "slices"

    def __init__(self, program: Program) -> None:
        """Run ``program``."""
        self.program = program
        slices, fold = _parts(program)
        assert slices is not None, "the planner asked"
        assert fold is not None, "the planner asked"
        self.slices = slices
        self.fold = fold
        self.groups = program.key_columns or (ALL,)

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        return _Batch(self, store).run(rows, clock)

    def fold_rows(self, rows: pa.Table) -> pa.Table:
        """Return the partials of rows by slice and key: the combiner, before the shuffle or in the bucket.

        Raises:
            MissingTimestampError: a row without an event time.
            TimestampOverflowError: a row whose windows do not fit into int64.
        """
        return self.fold.fold(self.sliced(rows), [SLICE, *self.groups], counted=ROWS)

    def sliced(self, rows: pa.Table) -> pa.Table:
        """Return rows with the column that names their slice."""
        if rows[TIME].null_count:
            self._refuse_null_time(rows)
        starts = self.slices.starts(rows[TIME].to_numpy())
        rows = rows.append_column(SLICE, pa.array(starts))
        return rows if self.program.key_columns else rows.append_column(ALL, pa.array(np.zeros(len(starts), np.int8)))

    def _refuse_null_time(self, rows: pa.Table) -> None:
        at = rows[TIME].is_null().to_pylist().index(True)
        row = rows.slice(at, 1)
        key = python_keys(row, self.program.key_columns)[0]
        raise MissingTimestampError(self.program.spec.assigner, key, python_rows(row.select(self.program.values))[0])


def refusal(program: Program) -> str | None:
    """Return why the slices engine cannot run a program, ``None`` if it can."""
    spec = program.spec
    if SharedSlices.of(spec.assigner) is None:
        return f"{type(spec.assigner).__name__} has no shared slices"
    if _plain_trigger(spec) is None:
        return f"{type(spec.trigger).__name__} fires key by key"
    if spec.evictor is not None:
        return "an evictor needs every row"
    if spec.refine != "last":
        return "refine='each' fires for every late row"
    if not program.aggregates or program.processes_results:
        return "the function is no plain list of built-in aggregates"
    if not all(_is_plain_key(field.type) for field in program.keys):
        return "a key column has a type that Arrow does not group as Spark does"
    return None if _parts(program)[1] is not None else "an aggregate has no columnar form for its argument"


def _plain_trigger(spec: WindowSpec) -> EventTimeTrigger | None:
    inner = spec.trigger.inner if isinstance(spec.trigger, PurgingTrigger) else spec.trigger
    return inner if type(inner) is EventTimeTrigger else None


def _is_plain_key(kind: pa.DataType) -> bool:
    tests = (pa.types.is_signed_integer, pa.types.is_string, pa.types.is_binary, pa.types.is_boolean, pa.types.is_date32)
    return any(test(kind) for test in (*tests, pa.types.is_timestamp, pa.types.is_decimal128))


def _parts(program: Program) -> tuple[SharedSlices | None, GroupedFold | None]:
    found = []
    for number, (_, aggregate, slots) in enumerate(program.aggregates):
        kind = program.value_types.field(slots[0]).type if slots else None
        found.append(columnar(aggregate, f"__windowpane_{number}_", slots, kind))
    parts = tuple(part for part in found if part is not None)
    fold = GroupedFold(parts) if parts and len(parts) == len(found) else None
    return SharedSlices.of(program.spec.assigner), fold


class _Batch:
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, engine: SlicesEngine, store: BlobStore) -> None:
        self._engine = engine
        self._program = engine.program
        self._slices = engine.slices
        self._fold = engine.fold
        self._store = store
        self._log = SegmentLog(store, "s")
        self._header = BucketHeader.read(store, engine.program.description)
        self._watermark = self._header.watermark
        self._purges = isinstance(engine.program.spec.trigger, PurgingTrigger)
        self._merged: dict[int, pa.Table] = {}
        self._results: list[pa.Table] = []
        self._late: list[pa.Table] = []
        self._late_elements = self._late_dropped = self._firings = 0

    def run(self, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        arrived = [table for table in rows if table.num_rows]
        if self._program.upstream is Upstream.SOURCE:
            self._advance(clock.watermark)
            self._take(arrived)
        else:
            self._take_from_window(arrived)
            self._advance(clock.watermark)
        return self._close(clock)

    # The watermark.

    def _advance(self, watermark: int) -> None:
        """Fire the windows that end between the watermark before and this one, then drop what no window needs."""
        before, self._watermark = self._watermark, max(watermark, self._watermark)
        windows = {w for s in self._log.segments() for w in self._slices.windows_of(s)}
        due = [w for w in windows if before < w.max_timestamp <= self._watermark]
        for window in sorted(due, key=lambda w: (w.max_timestamp, w)):
            self._emit(window, self._contents(window), judged=before)
        for start in self._log.segments():
            if all(self._is_over(window) for window in self._slices.windows_of(start)):
                self._log.drop(start)
                self._merged.pop(start, None)

    def _is_over(self, window: TimeWindow) -> bool:
        """Whether nothing will read a window's slices any more: it was cleaned up, or purged at its firing."""
        return self._is_late(window) or (self._purges and window.max_timestamp <= self._watermark)

    def _is_late(self, window: TimeWindow) -> bool:
        return add_clamped(window.max_timestamp, self._program.spec.allowed_lateness) <= self._watermark

    def _contents(self, window: TimeWindow) -> pa.Table:
        parts = self._parts_of(window)
        return parts[0] if len(parts) == 1 else self._fold.merge(parts, self._engine.groups)

    def _parts_of(self, window: TimeWindow) -> list[pa.Table]:
        return [self._slice(start) for start in self._slices.slices_of(window) if start in self._log]

    def _slice(self, start: int) -> pa.Table:
        """Return the partials of a slice, one row a key."""
        if start not in self._merged:
            chunks = self._log.read(start)
            merged = chunks[0] if len(chunks) == 1 else self._fold.merge(chunks, self._engine.groups)
            if self._log.wants_compaction(start):
                self._log.replace(start, merged)
            self._merged[start] = merged
        return self._merged[start]

    # The rows.

    def _take_from_window(self, rows: list[pa.Table]) -> None:
        if not rows or self._program.upstream is Upstream.WINDOW:
            self._take(rows)
            return
        arrived = pa.concat_tables(rows)
        for judged in sorted(set(arrived[JUDGED].to_pylist())):
            self._advance(judged)
            self._take([arrived.filter(pc.equal(arrived[JUDGED], judged))])

    def _take(self, tables: list[pa.Table]) -> None:
        if not tables:
            return
        groups = [SLICE, *self._engine.groups]
        if all(SLICE in table.column_names for table in tables):
            folded = pa.concat_tables(tables)
            self._count_late(folded)
            self._add(self._fold.merge([folded], groups))
        else:
            rows = pa.concat_tables([self._engine.sliced(table) for table in tables])
            self._report_late(rows)
            self._add(self._fold.fold(rows, groups))

    def _missed(self, starts: npt.NDArray[np.int64]) -> dict[int, tuple[list[TimeWindow], bool]]:
        """Return, for the slices that missed windows, those windows and whether they are all the slice has."""
        found = {}
        for start in np.unique(starts).tolist():
            windows = self._slices.windows_of(start)
            missed = [window for window in windows if self._is_late(window)]
            if missed:
                found[start] = (missed, len(missed) == len(windows))
        return found

    def _count_late(self, folded: pa.Table) -> None:
        """Count the rows behind partials that missed windows."""
        starts, rows = folded[SLICE].to_numpy(), folded[ROWS].to_numpy()
        for start, (_, dropped) in self._missed(starts).items():
            late = int(rows[starts == start].sum())
            self._late_elements += late
            self._late_dropped += late if dropped else 0

    def _report_late(self, rows: pa.Table) -> None:
        """Count the rows that missed windows, and keep them where late data is asked for."""
        starts = rows[SLICE].to_numpy()
        missed = self._missed(starts)
        if not missed:
            return
        numbers = np.flatnonzero(np.isin(starts, list(missed))).tolist()
        late = [missed[int(starts[number])] for number in numbers]
        self._late_elements += len(numbers)
        self._late_dropped += sum(dropped for _, dropped in late)
        if self._program.late_output is not None:
            windows, dropped = [each[0] for each in late], [each[1] for each in late]
            self._late.append(late_table(self._program, rows, numbers, windows, dropped))

    def _add(self, partials: pa.Table) -> None:
        """Fire again the windows that partials came late for, for the keys they touch; then append them to their slices."""
        by_slice = _by_slice(partials)
        touched: dict[TimeWindow, list[pa.Table]] = {}
        for start, rows in by_slice:
            for window in self._slices.windows_of(start):
                if not self._is_late(window) and window.max_timestamp <= self._watermark:
                    touched.setdefault(window, []).append(rows)
        for window in sorted(touched):
            self._emit(window, self._refined(window, touched[window]), judged=self._watermark)
        for start, rows in by_slice:
            if not all(self._is_over(window) for window in self._slices.windows_of(start)):
                self._log.append(start, rows)
                self._merged.pop(start, None)

    def _refined(self, window: TimeWindow, late: list[pa.Table]) -> pa.Table:
        """Return what fires for late rows: what is new if the trigger purges, else the whole contents of the touched keys."""
        groups = self._engine.groups
        earlier = [] if self._purges else self._parts_of(window)
        marked = [_marked(table, True) for table in late] + [_marked(table, False) for table in earlier]
        merged = self._fold.merge(marked, groups, [(_TOUCHED, "max")])
        return merged.filter(merged[_TOUCHED]).drop_columns([_TOUCHED])

    # What comes out.

    def _emit(self, window: TimeWindow, partials: pa.Table, judged: int) -> None:
        program, rows = self._program, partials.num_rows
        self._firings += rows
        keys = [
            partials[name].combine_chunks().cast(field.type)
            for name, field in zip(program.key_columns, program.keys, strict=True)
        ]
        bounds = [_constant(bound, rows).cast(program.window_bound) for bound in (window.start, window.end)]
        results = self._fold.finish(partials)
        system = [_constant(window.max_timestamp, rows), _constant(judged, rows)]
        self._results.append(pa.table([*keys, *bounds, *results, *system], schema=program.main_schema))

    def _close(self, clock: Clock) -> BucketOutput:
        self._log.flush()
        windows = {w for s in self._log.segments() for w in self._slices.windows_of(s) if not self._is_over(w)}
        now = max(clock.processing_time, self._header.processing_time)
        BucketHeader(self._program.description, self._watermark, now, len(windows)).write(self._store)
        counters = Counters(self._late_elements, self._late_dropped, self._firings, 0, len(windows), self._log.byte_size)
        tables = [(MAIN, pa.concat_tables(self._results))] if self._results else []
        if self._late and self._program.late_output is not None:
            tables.append((self._program.late_output, pa.concat_tables(self._late)))
        idle = not self._log.segments() and self._program.upstream is Upstream.SOURCE
        return BucketOutput(tables, counters, idle)


def _by_slice(partials: pa.Table) -> list[tuple[int, pa.Table]]:
    """Return (slice, its rows without the slice column) for each slice present, in order."""
    partials = partials.sort_by(SLICE)
    starts = partials[SLICE].to_numpy()
    present, firsts = np.unique(starts, return_index=True)
    body = partials.drop_columns([SLICE])
    ends = [*firsts[1:].tolist(), len(starts)]
    spans = zip(present.tolist(), firsts.tolist(), ends, strict=True)
    return [(start, body.slice(first, end - first).combine_chunks()) for start, first, end in spans]


def _marked(table: pa.Table, touched: bool) -> pa.Table:
    return table.append_column(_TOUCHED, pa.array(np.full(table.num_rows, touched)))


def _constant(value: int, count: int) -> pa.Array:
    return pa.array(np.full(count, value, np.int64))
