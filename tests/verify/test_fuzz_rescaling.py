"""Random programs go on in other buckets, and keys that stay in the wrong one would be seen."""

from __future__ import annotations

from typing import Any

import pytest

from tests.examples import first
from verify.fuzz import rescaling
from windowpane.planning.rescaling.buckets import rescaled
from windowpane.state.memory import MemoryBlobStore


def test_random_programs_go_on_in_other_buckets() -> None:
    # Keys of lists and structs; staggers; timers of a global window that is cut into shards; a stagger beside NULL as a key.
    outcomes = [rescaling.run(seed) for seed in (*range(first(10) or 60), 1057, 1094, 1135, 20_339, 910_046, 920_071)]
    assert [each.seed for each in outcomes if each.differences] == []
    assert len({each.engine for each in outcomes}) > 10


def test_keys_that_stay_in_the_wrong_bucket_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(stores: Any, count: int) -> list[MemoryBlobStore]:
        first, *others = rescaled(stores, count)
        return [*others, first]

    monkeypatch.setattr(rescaling, "rescaled", turned)
    assert any(rescaling.run(seed).differences for seed in range(20))
