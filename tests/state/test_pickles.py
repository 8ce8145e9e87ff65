"""Pickles in state that name modules by where they were once."""

from __future__ import annotations

import importlib
import pickle

import pytest

from windowpane.operators.window.contents import ElementRun
from windowpane.state import pickles
from windowpane.windowing.aggregates.algorithms.combined import CombinedAggregate


def test_a_class_is_found_where_its_module_is_now() -> None:
    now = pickle.dumps(CombinedAggregate, protocol=0)
    then = now.replace(b"aggregates.algorithms.combined", b"aggregates.combined")
    assert then != now
    assert pickles.loads(then) is CombinedAggregate


@pytest.mark.parametrize(("before", "now"), pickles._MOVED.items())
def test_what_is_said_to_have_moved_is_there_and_nowhere_else(before: str, now: str) -> None:
    assert importlib.import_module(now)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(before)


def test_runs_of_elements_are_read_from_checkpoints() -> None:
    kept = (
        b"\x80\x05\x95Z\x00\x00\x00\x00\x00\x00\x00]\x94\x8c$windowpane.operators.window.contents\x94\x8c\nElementRun\x94"
        b"\x93\x94]\x94(}\x94\x8c\x01n\x94K\x01s}\x94h\x06K\x02se]\x94(K\x05K\x06e\x86\x94R\x94a."
    )
    assert pickles.loads(kept) == [ElementRun([{"n": 1}, {"n": 2}], [5, 6])]


def test_a_module_that_never_was_is_an_error() -> None:
    data = pickle.dumps(CombinedAggregate, protocol=0).replace(b"algorithms.combined", b"algorithms.forgotten")
    with pytest.raises(ModuleNotFoundError, match="forgotten"):
        pickles.loads(data)
