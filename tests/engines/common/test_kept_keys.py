"""The runs of kept keys: beside a list of all that was added, on random programs, with the state read anew for each batch."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from tests.examples import seeds
from verify.sizes import drawn_sizes
from windowpane.engines.deduplication.kept_keys import KeptKeys
from windowpane.state.memory import MemoryBlobStore


@pytest.mark.parametrize("seed", seeds(40))
def test_every_row_that_is_not_forgotten_is_found_under_its_hash(seed: int) -> None:
    draw, store = Random(seed), MemoryBlobStore()
    added: list[tuple[int, int, str]] = []
    forgotten = 0
    for batch in range(draw.randrange(5, 40)):
        forgotten += draw.randrange(4)
        new = sorted((draw.randrange(20), forgotten + draw.randrange(1, 9), f"{batch}/{n}") for n in range(draw.randrange(9)))
        with drawn_sizes(seed):
            kept = KeptKeys(store)
            kept.forget(forgotten)
            asked = sorted(draw.sample(range(20), draw.randrange(1, 20)))
            found = [
                (asked_for, time, key)
                for numbers, times, keys in kept.with_hashes(np.array(asked, np.uint64))
                for time, key in zip(times.tolist(), keys["key"].to_pylist(), strict=True)
                for asked_for in [next(row[0] for row in added if row[2] == key)]
                if asked_for in {asked[number] for number in numbers.tolist()}
            ]
            living = [row for row in added if row[1] > forgotten]
            assert set(found) >= {row for row in living if row[0] in asked}
            assert set(found) <= {row for row in added if row[0] in asked}
            assert len(living) <= kept.rows <= 2 * len(living)
            hashes, times, keys = zip(*new, strict=True) if new else ((), (), ())
            kept.add(np.array(hashes, np.uint64), np.array(times, np.int64), pa.table({"key": pa.array(keys, pa.string())}))
            kept.commit(forgotten)
        added += new
    with drawn_sizes(seed):
        kept = KeptKeys(store)
        kept.forget(forgotten + 9)
        kept.commit(forgotten + 9)
        assert (kept.rows, kept.byte_size, store.keys()) == (0, 0, [])


def test_many_small_batches_leave_few_runs() -> None:
    store = MemoryBlobStore()
    for number in range(600):
        kept = KeptKeys(store)
        kept.add(np.array([number], np.uint64), np.array([number], np.int64), pa.table({"key": [str(number)]}))
        kept.commit(-1)
    runs = list(KeptKeys(store).with_hashes(np.arange(600, dtype=np.uint64)))
    assert len(runs) <= 7 * 4, "at most seven of each of the sizes 1, 8, 64 and 512"
    assert sorted(key for _, _, keys in runs for key in keys["key"].to_pylist()) == sorted(map(str, range(600)))
