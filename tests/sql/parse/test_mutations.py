"""A small part of the mutations; ``tests.sql.mutations`` runs many."""

from __future__ import annotations

import pytest

from tests.sql.mutations import run


@pytest.mark.parametrize("seed", [11, pytest.param(12, marks=pytest.mark.slow), pytest.param(13, marks=pytest.mark.slow)])
def test_a_mutated_statement_is_refused_or_runs_and_the_session_goes_on(seed: int) -> None:
    outcome = run(seed, 150)
    assert outcome.crashes == []
    assert outcome.counts["ran"] > 15
    assert outcome.counts["refused"] > 60
