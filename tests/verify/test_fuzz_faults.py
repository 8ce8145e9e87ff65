"""Programs go through faults of what is below them, and one that does not would be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import first
from verify.fuzz import faults
from windowpane.engines.protocol import BucketOutput, Clock, Engine
from windowpane.planning.engines import make_engine
from windowpane.state.blob_store import BlobStore


def test_random_programs_go_through_faults() -> None:
    outcomes = [faults.run(seed) for seed in range(first(14) or 40)]
    assert [each.seed for each in outcomes if each.differences] == []
    assert len({each.engine for each in outcomes}) > 6


class _Remembers:
    """An engine that keeps a part of what it is given in itself, as if a batch that ran were always committed."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._seen = engine, set[int]()

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        output = self._engine.run(store, rows, clock)
        is_new = clock.watermark not in self._seen
        self._seen.add(clock.watermark)
        return output if is_new else BucketOutput(counters=output.counters)


def test_an_engine_that_remembers_a_batch_that_was_not_committed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def remembering(program: Any) -> Any:
        return _Remembers(make_engine(program))

    monkeypatch.setattr(faults, "make_engine", remembering)
    assert any(faults.run(seed).differences for seed in range(40))
