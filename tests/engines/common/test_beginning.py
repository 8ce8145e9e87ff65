"""History and stream give what one run over both gives; rows of the stream before the cut are passed over, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windowpane as wp
from tests.engines.columnar_programs import program_of
from verify.fuzz import faults
from verify.fuzz.comparison import difference
from windowpane.engines.beginning import Past, begun
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.errors import ChangedPlanError, WindowpaneError, present
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.changing import Held, continued
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MIN

KINDS = ("windows", "joins", "over", "patterns")


def parts(tables: Sequence[pa.Table], cut: int, before: bool) -> list[pa.Table]:
    """Return the rows before a cut, or from it on; those without a time are from it on."""
    wanted = [pc.fill_null(pc.less(table[TIME], cut), False) for table in tables if table.num_rows]
    filled = [table for table in tables if table.num_rows]
    return [table.filter(mask if before else pc.invert(mask)) for table, mask in zip(filled, wanted, strict=True)]


def rows(outputs: Sequence[BucketOutput]) -> list[dict[str, Any]]:
    return [{"output": number, **row} for each in outputs for number, table in each.tables for row in table.to_pylist()]


@pytest.mark.parametrize("seed", range(30))
def test_history_and_stream_are_one_run(seed: int) -> None:
    draw = Random(seed)
    program, batches, _ = faults.CASES[draw.choice(KINDS)](draw, seed)
    spec = getattr(program, "spec", None)
    by_clock = isinstance(spec, WindowSpec) and (not spec.assigner.is_event_time or spec.trigger.uses_processing_time)
    if program.upstream is not Upstream.SOURCE or by_clock:
        pytest.skip("it is no stream by event time")
    cut = min(draw.choice(batches).clock.watermark, 10**15) + 1
    past = [part for given in batches for part in parts(given.parts, cut, before=True)]
    alone, with_past = MemoryBlobStore(), MemoryBlobStore()
    try:
        engine = make_engine(program)
        wanted = [engine.run(alone, past, Clock(MIN, MIN)), engine.run(alone, [], Clock(max(cut - 1, MIN), MIN))]
        wanted += [engine.run(alone, parts(given.parts, cut, before=False), given.clock) for given in batches]
    except WindowpaneError:
        pytest.skip("its rows are refused")
    found = [begun(make_engine(program), with_past, past, Past.below(cut))]
    found += [make_engine(program).run(with_past, list(given.parts), given.clock) for given in batches]
    assert difference(rows(wanted), rows(found)) is None
    if program.engine != "join_window":  # which takes the counters of its windows apart
        assert sum(each.counters.before_cut for each in found[1:]) == sum(table.num_rows for table in past)


def test_rows_that_arrive_folded_are_refused_behind_a_history() -> None:
    program = program_of(wp.TumblingEventTimeWindows.of(10), aggregates={"n": wp.sum("v")})
    assert program.engine == "slices"
    row = pa.table({"k": ["JFK"], "v": [1], TIME: [1], PARTITION: [0], POSITION: [0]})
    store = MemoryBlobStore()
    begun(make_engine(program), store, [row], Past.below(5))
    with pytest.raises(ChangedPlanError, match=r"result\.start\(\.\.\.\) knows of"):
        make_engine(program).run(store, [row.drop_columns([TIME])], Clock(MIN, 0))


def test_rows_that_a_history_has_stay_passed_over_behind_a_change_that_cuts_windows() -> None:
    old, new = (program_of(wp.TumblingEventTimeWindows.of(size), aggregates={"n": wp.count()}) for size in (10, 4))

    def rows_at(*times: int) -> pa.Table:
        columns = {"k": ["JFK"] * len(times), "v": [1] * len(times), "w": [1] * len(times)}
        return pa.table({**columns, TIME: times, PARTITION: [0] * len(times), POSITION: range(len(times))})

    store = MemoryBlobStore()
    begun(make_engine(old), store, [rows_at(1, 12, 13)], Past.below(14))
    make_engine(old).run(store, [rows_at(15)], Clock(13, 0))
    headers = [(name, store.get(name) or b"") for name in store if name.endswith("header")]
    going_on, _ = continued(new, present(Held.of(headers, 13, 15), "it was written"))
    found = [make_engine(going_on).run(store, [rows_at(13, at)], Clock(at - 3, 0)) for at in (17, 30, 60)]
    assert [each.counters.before_cut for each in found] == [1, 1, 1]
    assert [each.counters.late_elements for each in found] == [0, 0, 0]
    assert [(row["window_start"].microsecond, row["n"]) for row in rows(found)] == [(10, 4), (16, 1), (28, 1)]
