"""EachBatch on columnar engines equals the reference on random programs, batch by batch, with a restart after every batch."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.engines.columnar_programs import KEPT, Pair, batches, fixed_assigners, lateness, program_of, table_of
from tests.examples import examples
from verify.fuzz.windowed_streams import SmallBatch as Batch
from windowpane.engines.panes.engine import PanesEngine
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import Clock
from windowpane.engines.sessions.engine import SessionsEngine
from windowpane.planning.engines import combiner_of, make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.spec import PaneSettings

assigners = st.one_of(st.just(wp.GlobalWindows.create()), fixed_assigners)
panes = st.builds(
    lambda mode, shows: PaneSettings(mode, shows_info=shows),
    st.sampled_from([None, "accumulating", "discarding", "retracting"]),
    st.booleans(),
)
sessions = st.one_of(
    st.integers(1, 12).map(wp.EventTimeSessionWindows.with_gap),
    st.integers(1, 12).map(wp.ProcessingTimeSessionWindows.with_gap),
)
TEN = wp.TumblingEventTimeWindows.of(10)


def changelog_of(program, stream):
    """Return what an engine of the program puts out, batch by batch: rows without the columns of the system."""
    engine, store = make_engine(program), MemoryBlobStore()
    shown = []
    for batch in stream:
        tables = [table_of(batch)] if batch.rows else []
        output = engine.run(store, tables, Clock(batch.watermark, batch.processing_time))
        rows = [row for number, table in output.tables if number == 0 for row in table.to_pylist()]
        hidden = {"window_start", "window_end", *(name for row in rows for name in row if name.startswith("__"))}
        shown.append([{name: value for name, value in row.items() if name not in hidden} for row in rows])
    return shown


@settings(max_examples=examples(200), deadline=None, print_blob=True)
@given(assigners, panes, lateness, st.booleans(), batches())
def test_random_programs_agree_with_the_reference_batch_by_batch(assigner, pane_settings, late, keyed, stream):
    program = program_of(assigner, wp.EachBatch(), None, late, keyed, panes=pane_settings)
    note(repr(program.spec))
    assert PanesEngine.refusal(program) is None
    Pair(program, PanesEngine, in_order=False, counts_panes=True).run_all(stream)


@settings(max_examples=examples(30), deadline=None, print_blob=True)
@given(assigners, panes, batches(), st.sampled_from([Upstream.WINDOW_WITH_WATERMARKS, Upstream.WINDOW]))
def test_rows_of_an_earlier_window_are_late_alike(assigner, pane_settings, stream, upstream):
    program = replace(program_of(assigner, wp.EachBatch(), panes=pane_settings), upstream=upstream)
    Pair(program, PanesEngine, in_order=False, counts_panes=True).run_all(stream)


@settings(max_examples=examples(30), deadline=None, print_blob=True)
@given(assigners, panes, batches(most_rows=12))
def test_aggregates_that_keep_values_see_them_in_order_of_arrival(assigner, pane_settings, stream):
    pair = Pair(program_of(assigner, wp.EachBatch(), aggregates=KEPT, panes=pane_settings), PanesEngine, in_order=False)
    for batch in stream:
        rows = table_of(batch)
        pair.run(batch, [rows.slice(2), rows.slice(0, 2)])


def test_a_pane_takes_the_row_of_the_one_before_back_as_it_was():
    pane_settings = PaneSettings("retracting", shows_info=True)
    program = program_of(TEN, wp.EachBatch(), lateness=100, aggregates={"n": wp.count()}, late=False, panes=pane_settings)
    assert program.engine == "panes"
    stream = [
        Batch(-1, 0, (("a", 1, 1), ("a", 1, 2))),
        Batch(5, 1, (("b", 1, 3),)),
        Batch(20, 2, (("a", 1, 4),)),
        Batch(200, 3, (("a", 1, 5),)),
    ]

    def row(key, n, index, other, timing, change):
        info = {"pane_index": index, "pane_nonspeculative_index": other, "pane_timing": timing}
        return {"k": key, "n": n, **info, "pane_is_first": index == 0, "pane_is_last": False, "_change_type": change}

    assert changelog_of(program, stream) == [
        [row("a", 2, 0, -1, "EARLY", "insert")],
        [row("b", 1, 0, -1, "EARLY", "insert")],
        [row("a", 2, 0, -1, "EARLY", "update_preimage"), row("a", 3, 1, 0, "LATE", "update_postimage")],
        [],
    ]


def test_sessions_that_grow_or_meet_are_deleted_and_inserted_anew():
    pane_settings = PaneSettings("retracting", shows_info=True)
    gap = wp.EventTimeSessionWindows.with_gap(5)
    program = program_of(gap, wp.EachBatch(), lateness=100, aggregates={"n": wp.count()}, late=False, panes=pane_settings)
    assert program.engine == "sessions"
    stream = [
        Batch(-1, 0, (("a", 1, 0), ("a", 1, 9))),  # [0, 5) and [9, 14)
        Batch(-1, 1, (("a", 1, 0),)),  # [0, 5) stays
        Batch(20, 2, (("a", 1, 4),)),  # both and [4, 9) are [0, 14)
        Batch(200, 3, ()),
    ]
    info = ["n", "pane_index", "pane_nonspeculative_index", "pane_timing", "pane_is_first", "_change_type"]
    shown = [sorted(tuple(row[name] for name in info) for row in rows) for rows in changelog_of(program, stream)]
    assert shown == [
        [(1, 0, -1, "EARLY", True, "insert"), (1, 0, -1, "EARLY", True, "insert")],
        [(1, 0, -1, "EARLY", True, "update_preimage"), (2, 1, -1, "EARLY", False, "update_postimage")],
        [
            (1, 0, -1, "EARLY", True, "delete"),
            (2, 1, -1, "EARLY", False, "delete"),
            (4, 0, 0, "LATE", True, "insert"),
        ],
        [],
    ]


@settings(max_examples=examples(100), deadline=None, print_blob=True)
@given(sessions, panes, lateness, st.booleans(), batches())
def test_random_sessions_agree_with_the_reference_batch_by_batch(assigner, pane_settings, late, keyed, stream):
    program = program_of(assigner, wp.EachBatch(), None, late, keyed, panes=pane_settings)
    note(repr(program.spec))
    assert program.engine == "sessions"
    Pair(program, SessionsEngine, in_order=False).run_all(stream)


def test_discarded_windows_leave_nothing_behind():
    program = program_of(TEN, wp.EachBatch(), aggregates={"n": wp.count()}, late=False, panes=PaneSettings("discarding"))
    engine, store = make_engine(program), MemoryBlobStore()
    output = engine.run(store, [table_of(Batch(-1, 0, (("a", 1, 1), ("a", 1, 2))))], Clock(-1, 0))
    assert output.tables[0][1]["n"].to_pylist() == [2]
    assert (output.is_idle, output.counters.open_windows, output.counters.state_bytes) == (True, 0, 0)


def test_rows_fold_before_the_shuffle():
    program = program_of(TEN, wp.EachBatch(), late=False, aggregates={"n": wp.count()}, panes=PaneSettings("retracting"))
    combine = combiner_of(program)
    assert combine is not None
    parts = [combine(table_of(Batch(-1, 0, (("a", 1, 1), ("a", 1, 2), ("a", 1, 11))))) for _ in range(2)]
    assert [part.num_rows for part in parts] == [2, 2]
    output = make_engine(program).run(MemoryBlobStore(), parts, Clock(-1, 0))
    found = pa.concat_tables([table for _, table in output.tables])
    assert sorted(found["n"].to_pylist()) == [2, 4]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"assigner": wp.EventTimeSessionWindows.with_gap(5)}, "neither global nor of fixed size"),
        ({"evictor": wp.CountEvictor.of(3)}, "an evictor needs every row"),
        ({"aggregates": {"m": wp.sum("u")}}, "no columnar form"),
    ],
)
def test_what_it_cannot_run_exactly_it_refuses_with_the_reason(change, reason):
    assert reason in (PanesEngine.refusal(program_of(**{"assigner": TEN, "trigger": wp.EachBatch()} | change)) or "")
