"""The rule of two that belong together: in step where the taker has the last batch that was settled, or the one begun since."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from windowpane.errors import AbsentRowError, MisplacedStateError
from windowpane.state.pairs import NONE, Pair
from windowpane.stores import Batch, open_store

PAIR = Pair("checkpoint 'ck'", "table 't'", "Put copies back.")


@pytest.mark.parametrize(
    ("taken", "settled", "begun", "has"),
    [(NONE, NONE, 0, False), (0, NONE, 0, True), (4, 4, 5, False), (5, 4, 5, True), (4, 4, 4, True), (NONE, NONE, NONE, True)],
)
def test_a_crash_between_both_commits_is_no_gap(taken: int, settled: int, begun: int, has: bool) -> None:
    assert PAIR.has_begun(taken, settled, begun) is has


@pytest.mark.parametrize(
    ("taken", "settled", "begun", "words"),
    [
        (2, 4, 5, "table 't' has batch 2 as the last one of checkpoint 'ck', which knows batch 4 to be taken and gives batch 5"),
        (NONE, 4, 5, "has no batch of checkpoint 'ck', which knows batch 4 to be taken and gives batch 5"),
        (7, 4, 5, "has batch 7 as the last one"),
        (3, NONE, 0, "which has given it none so far and gives batch 0"),
        (5, 4, 4, "knows batch 4 to be taken. One of the two"),
    ],
)
def test_a_gap_is_an_error_with_both_numbers_and_the_way_out(taken: int, settled: int, begun: int, words: str) -> None:
    with pytest.raises(MisplacedStateError) as raised:
        PAIR.has_begun(taken, settled, begun)
    assert words in str(raised.value)
    assert "Put copies back." in str(raised.value)


@pytest.fixture(params=["duckdb", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "t.duckdb") if request.param == "duckdb" else str(request.getfixturevalue("postgres_url"))


def changes(*cells: tuple[int | None, str, str]) -> pa.Table:
    keys, values, words = zip(*cells, strict=True)
    return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.string()), "_change_type": words})


def test_a_store_takes_the_next_batch_of_its_giver_and_no_other(address: str) -> None:
    store = open_store(address)

    def apply(number: int, settled: int) -> bool:
        rows = changes((number, "a", "insert"))
        return store.apply(Batch("t", ("k",), rows, number, "s", pair=PAIR, settled=settled))

    assert [apply(0, NONE), apply(0, NONE), apply(1, 0), apply(1, 0)] == [True, False, True, False]
    assert store.taken("s") == 1
    assert store.taken("another") == NONE
    for number, settled in ((3, 2), (0, NONE)):
        with pytest.raises(MisplacedStateError, match="batch 1"):
            apply(number, settled)
    assert sorted(store.read("SELECT k FROM t")) == [(0,), (1,)]
    store.close()


@pytest.mark.parametrize(
    "cells",
    [
        ((2, "b", "delete"),),
        ((2, "b", "update_preimage"), (2, "c", "update_postimage")),
        ((None, "n", "delete"),),
        ((2, "b", "insert"), (2, "b", "delete"), (2, "c", "delete")),
        ((3, "c", "insert"), (2, "b", "update_preimage"), (4, "b", "update_postimage")),
    ],
)
def test_a_row_that_is_taken_back_must_be_there(address: str, cells: tuple[tuple[int | None, str, str], ...]) -> None:
    store = open_store(address)
    store.apply(Batch("t", ("k",), changes((1, "a", "insert")), 0, "s"))
    with pytest.raises(AbsentRowError, match=r"row .*k.* of table 't', which does not have it") as raised:
        store.apply(Batch("t", ("k",), changes(*cells), 1, "s"))
    assert raised.value.key == {"k": None if cells[0][0] is None else 2}
    assert store.read("SELECT k, v FROM t") == [(1, "a")]
    assert store.taken("s") == 0
    store.close()


def test_a_row_of_the_same_batch_may_be_taken_back(address: str) -> None:
    store = open_store(address)
    store.apply(Batch("t", ("k",), changes((1, "a", "insert"), (2, "b", "insert"), (2, "b", "delete")), 0, "s"))
    back = changes(
        (1, "a", "update_preimage"), (3, "a", "update_postimage"), (3, "a", "update_preimage"), (1, "a", "update_postimage")
    )
    store.apply(Batch("t", ("k",), back, 1, "s"))
    assert store.read("SELECT k, v FROM t") == [(1, "a")]
    with pytest.raises(AbsentRowError):
        store.apply(Batch("one", (), changes((1, "a", "delete")), 0, "one"))
    store.close()


def test_no_row_that_others_removed_is_taken_back(tmp_path: Path) -> None:
    path = str(tmp_path / "t.duckdb")
    store = open_store(path)
    store.apply(Batch("t", ("k",), changes((1, "a", "insert")), 0, "s"))
    store.close()
    with duckdb.connect(path) as others:
        others.execute("DELETE FROM t")
    store = open_store(path)
    with pytest.raises(AbsentRowError):
        store.apply(Batch("t", ("k",), changes((1, "a", "delete")), 1, "s"))
    store.close()
