"""State of keys in other buckets: what is there, what is taken out, what is said of damage."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import windowpane as wp
from tests.engines.columnar_programs import program_of
from verify.fuzz.over_parts.inputs import random_trial
from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.engines.buckets import bucket_numbers
from windowpane.engines.program import Program
from windowpane.engines.protocol import Clock
from windowpane.errors import UnmovableStateError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.planning.rescaling.buckets import holds, problems, rescaled
from windowpane.state.codec import frame
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MIN

KEYS = ["ATL", "JFK", "LAX", None]
ASSIGNERS = {
    "slices": wp.TumblingEventTimeWindows.of(10),
    "sessions": wp.EventTimeSessionWindows.with_gap(10),
    "panes": wp.GlobalWindows.create(),
}


def filled(program: Program, buckets: int = 1) -> list[MemoryBlobStore]:
    """Return buckets in which each key has a row."""
    rows = pa.table({"k": KEYS, "v": [1, 2, 3, 4], TIME: [1, 2, 3, 4], PARTITION: [0] * 4, POSITION: [0, 1, 2, 3]})
    numbers = bucket_numbers(rows, ["k"], buckets)
    stores = [MemoryBlobStore() for _ in range(buckets)]
    for number, store in enumerate(stores):
        make_engine(program).run(store, [rows.filter(pa.array(numbers == number))], Clock(MIN, 0))
    return stores


def program_on(engine: str) -> Program:
    is_reference = engine == "reference"
    assigner = ASSIGNERS["sessions" if is_reference else engine]
    parts = {"trigger": wp.CountTrigger.of(5)} if engine == "panes" else {}
    return program_of(assigner=assigner, aggregates={"n": wp.sum("v")}, engine="reference" if is_reference else None, **parts)


@pytest.mark.parametrize("engine", [*ASSIGNERS, "reference"])
def test_a_key_that_is_forgotten_is_gone_and_the_others_stay(engine: str) -> None:
    program = program_on(engine)
    assert program.engine == engine
    (old,) = filled(program)
    before = old.snapshot()
    new = rescaled([old], 3, ("JFK",))
    assert [key for key in KEYS if any(holds(store, (key,)) for store in new)] == ["ATL", "LAX", None]
    assert [holds(old, key) for key in [("JFK",), ("of nobody",), ("JFK", 1)]] == [True, False, False]
    assert old.snapshot() == before


@pytest.mark.parametrize("engine", [*ASSIGNERS, "reference"])
def test_keys_are_where_rows_of_theirs_are_sent(engine: str) -> None:
    program = program_on(engine)
    new = rescaled(filled(program, 2), 5)
    places = bucket_numbers(pa.table({"k": KEYS}), ["k"], 5).tolist()
    assert [[number for number, store in enumerate(new) if holds(store, (key,))] for key in KEYS] == [[each] for each in places]


def test_keys_in_a_wrong_bucket_and_damaged_blobs_are_named() -> None:
    stores = filled(program_on("sessions"), 2)
    assert [problems(store, number, 2) for number, store in enumerate(stores)] == [[], []]
    number = next(each for each, store in enumerate(stores) if holds(store, ("JFK",)))
    (said,) = problems(stores[number], 1 - number, 2)
    assert said.startswith(f"bucket {1 - number}: it holds keys of other buckets: ")
    assert "'JFK'" in said
    stores[number].put("p.0", stores[number].get("p.0")[:40])  # type: ignore[index]
    (said,) = problems(stores[number], number, 2)
    assert said.startswith(f"bucket {number}: ")
    stores[number].put("p.0", b"no blob of ours")
    (said,) = problems(stores[number], number, 2)
    assert said.startswith("blob 'p.0': ")


def test_rows_of_all_keys_together_have_none_to_forget_and_are_in_the_first_bucket() -> None:
    program = program_of(assigner=ASSIGNERS["slices"], aggregates={"n": wp.count()}, keyed=False)
    store = MemoryBlobStore()
    rows = pa.table({"k": ["JFK"], "v": [1], TIME: [1], PARTITION: [0], POSITION: [0]})
    make_engine(program).run(store, [rows], Clock(MIN, 0))
    with pytest.raises(UnmovableStateError, match="rows of all keys together"):
        rescaled([store], 1, ("JFK",))
    assert [len(each.keys()) > 1 for each in rescaled([store], 3)] == [True, False, False]


def test_state_that_nothing_describes_is_refused_and_not_left_out() -> None:
    undescribed, over = MemoryBlobStore(), replace(random_trial(1).program, description={})
    batch = random_trial(1).batches[0].rows
    make_engine(replace(over, engine=with_engine(over).engine)).run(undescribed, [batch], Clock(MIN, 0))
    for store in (MemoryBlobStore(), undescribed):
        store.put("0", frame("hash-pages-page", b"a table"))
        assert problems(store, 0, 2) == ["bucket 0: it holds state, and nothing that says of which program it is"]
        with pytest.raises(UnmovableStateError, match="nothing that says of which program"):
            rescaled([store], 2)
        with pytest.raises(UnmovableStateError, match="nothing that says of which program"):
            holds(store, ("JFK",))


def test_what_buckets_have_counted_is_counted_once_and_a_key_that_is_forgotten_is_no_example() -> None:
    program = program_of(aggregates={"n": wp.sum("v")}, assigner=ASSIGNERS["sessions"], late=True, engine="reference")
    stores = filled(program, 2)
    late = pa.table({"k": KEYS, "v": [0] * 4, "w": [0] * 4, TIME: [1] * 4, PARTITION: [0] * 4, POSITION: [0, 1, 2, 3]})
    numbers = bucket_numbers(late, ["k"], 2)
    for number, store in enumerate(stores):
        make_engine(program).run(store, [late.filter(pa.array(numbers == number))], Clock(3_600_000_000, 0))
    for new in (rescaled(stores, 5), rescaled(stores, 1), rescaled(stores, 3, ("JFK",))):
        headers = [BucketHeader.of(store.get(HEADER) or b"") for store in new]
        assert sum(each.totals.get("late_dropped", 0) for each in headers) == 4
        assert sum(rows for each in headers for _, _, rows, _, _ in each.late) == 4
    assert [key for each in headers for *_, key in each.late] == [None]
