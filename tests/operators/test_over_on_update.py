"""The general OVER operator: merging, moved rows, deletes, unsound input. Values are compared in ``test_fuzz_over.py``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from windowpane import aggregates as agg
from windowpane.arrays.values import Row
from windowpane.errors import InconsistentChangeError
from windowpane.operators.over.on_update import OverOnUpdate
from windowpane.state.entries import MemoryEntries
from windowpane.state.keyed import KeyedState
from windowpane.windowing.frames import Frame, preceding
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema

COLUMNS = pa.schema([("part", pa.string()), ("ord", pa.int64()), ("id", pa.int64()), ("x", pa.float64())])
LAG = OverCall("lag", ("x",))


class Window:
    """The operator on state in memory, with changes as ``(word, part, ord, id, x)``."""

    def __init__(self, *calls: OverCall, tolerant: bool = False) -> None:
        self.spec = OverSpec(("part",), (OrderColumn("ord", nulls_first=False),), ("id",), calls or (LAG,))
        self.errors: list[InconsistentChangeError] = []
        self.entries = MemoryEntries()
        self.state = KeyedState(self.entries)
        self.tolerant = tolerant
        outputs = output_schema(self.spec, COLUMNS, [f"c{number}" for number in range(len(self.spec.calls))])
        self.operator = OverOnUpdate(self.spec, COLUMNS, outputs, self.state, self._report)

    def _report(self, error: InconsistentChangeError) -> None:
        if not self.tolerant:
            raise error
        self.errors.append(error)

    def process(self, *changes: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        emitted = self.operator.process((word, row(*cells)) for word, *cells in changes)
        self.state.flush()
        return [(word, *cells.values()) for change in emitted for word, cells in change.entries()]


def row(part: Any, order: Any, identity: int, x: Any) -> Row:
    return {"part": part, "ord": order, "id": identity, "x": x}


def inserts(*rows: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
    return [(INSERT, *cells) for cells in rows]


def test_equal_maps_are_one_partition() -> None:
    """A map has no order: whichever entry was written first, it is the same one."""
    columns = COLUMNS.set(0, pa.field("part", pa.map_(pa.string(), pa.int64())))
    operator = OverOnUpdate(Window().spec, columns, pa.schema([("c0", pa.float64())]), KeyedState(MemoryEntries()), print)
    one, other = [("a", 1), ("b", 2)], [("b", 2), ("a", 1)]
    emitted = operator.process([(INSERT, row(one, 1, 1, 5.0)), (INSERT, row(other, 2, 2, 6.0))])
    assert [change.after["c0"] for change in emitted if change.after] == [None, 5.0]


def test_a_zero_that_gets_a_sign_is_a_change() -> None:
    window = Window()
    window.process(*inserts(("p", 1, 1, 0.0), ("p", 2, 2, 5.0)))

    changed = window.process((UPDATE_PREIMAGE, "p", 1, 1, 0.0), (UPDATE_POSTIMAGE, "p", 1, 1, -0.0))
    assert repr(changed) == repr(
        [
            (UPDATE_PREIMAGE, "p", 1, 1, 0.0, None),
            (UPDATE_POSTIMAGE, "p", 1, 1, -0.0, None),
            (UPDATE_PREIMAGE, "p", 2, 2, 5.0, 0.0),
            (UPDATE_POSTIMAGE, "p", 2, 2, 5.0, -0.0),
        ]
    )


def test_an_insert_changes_the_row_after_it() -> None:
    window = Window()
    window.process(*inserts(("p", 1, 1, 1.0), ("p", 5, 2, 2.0)))

    assert window.process((INSERT, "p", 3, 3, 9.0)) == [
        (INSERT, "p", 3, 3, 9.0, 1.0),
        (UPDATE_PREIMAGE, "p", 5, 2, 2.0, 1.0),
        (UPDATE_POSTIMAGE, "p", 5, 2, 2.0, 9.0),
    ]


def test_changes_of_a_batch_are_merged_by_key() -> None:
    window = Window()
    window.process(*inserts(("p", 1, 1, 1.0), ("p", 2, 2, 2.0), ("p", 3, 3, 3.0)))

    emitted = window.process(
        (INSERT, "p", 9, 9, 9.0),
        (DELETE, "p", 9, 9, 9.0),
        (DELETE, "p", 3, 3, 3.0),
        (INSERT, "p", 3, 3, 4.0),
        (UPDATE_PREIMAGE, "p", 3, 3, 4.0),
        (UPDATE_POSTIMAGE, "p", 3, 3, 5.0),
        (UPDATE_PREIMAGE, "p", 1, 1, 1.0),
        (UPDATE_POSTIMAGE, "p", 1, 1, 1.0),
    )

    assert emitted == [(UPDATE_PREIMAGE, "p", 3, 3, 3.0, 2.0), (UPDATE_POSTIMAGE, "p", 3, 3, 5.0, 2.0)]


def test_a_row_that_moves_inside_its_partition_is_one_update() -> None:
    window = Window()
    window.process(*inserts(("p", 1, 1, 1.0), ("p", 2, 2, 2.0), ("p", 3, 3, 3.0)))

    emitted = window.process((UPDATE_PREIMAGE, "p", 1, 1, 1.0), (UPDATE_POSTIMAGE, "p", 9, 1, 1.0))

    assert emitted == [
        (UPDATE_PREIMAGE, "p", 2, 2, 2.0, 1.0),
        (UPDATE_POSTIMAGE, "p", 2, 2, 2.0, None),
        (UPDATE_PREIMAGE, "p", 1, 1, 1.0, None),
        (UPDATE_POSTIMAGE, "p", 9, 1, 1.0, 3.0),
    ]


def test_a_row_that_moves_to_another_partition_is_deleted_and_inserted() -> None:
    window = Window()
    window.process(*inserts(("p", 1, 1, 1.0), ("q", 1, 2, 2.0)))

    emitted = window.process((UPDATE_PREIMAGE, "p", 1, 1, 1.0), (UPDATE_POSTIMAGE, "q", 5, 1, 1.0))

    assert emitted == [(DELETE, "p", 1, 1, 1.0, None), (INSERT, "q", 5, 1, 1.0, 2.0)]


def test_half_an_update_stands_for_itself() -> None:
    """The other half is in another bucket."""
    window = Window()

    assert window.process((UPDATE_POSTIMAGE, "p", 1, 1, 1.0)) == [(INSERT, "p", 1, 1, 1.0, None)]
    assert window.process((UPDATE_PREIMAGE, "p", 1, 1, 1.0)) == [(DELETE, "p", 1, 1, 1.0, None)]


def test_deleting_every_row_of_a_partition_leaves_nothing() -> None:
    window = Window(OverCall.of(agg.sum("x"), Frame.rows(preceding(1))))
    window.process(*inserts(("p", 1, 1, 1.0), ("p", 2, 2, 2.0)))

    emitted = window.process((DELETE, "p", 2, 2, 2.0), (DELETE, "p", 1, 1, 1.0))

    assert emitted == [(DELETE, "p", 1, 1, 1.0, 1.0), (DELETE, "p", 2, 2, 2.0, 3.0)]
    assert len(window.entries) == 0


def test_a_null_partition_is_a_partition() -> None:
    window = Window()
    window.process((INSERT, None, 1, 1, 1.0))

    assert window.process((INSERT, None, 2, 2, 2.0)) == [(INSERT, None, 2, 2, 2.0, 1.0)]


def test_a_value_that_is_written_the_same_is_no_change() -> None:
    window = Window()
    window.process((INSERT, "p", 1, 1, float("nan")))

    assert window.process((UPDATE_PREIMAGE, "p", 1, 1, float("nan")), (UPDATE_POSTIMAGE, "p", 1, 1, -float("nan"))) == []


UNSOUND = [
    pytest.param([(INSERT, "p", 1, 1, 7.0)], "already has", id="double insert"),
    pytest.param([(DELETE, "p", 9, 9, 7.0)], "no such row", id="delete of an absent row"),
    pytest.param([(INSERT, "p", 8, 8, 1.0), (INSERT, "p", 8, 8, 2.0)], "same batch", id="double insert in a batch"),
    pytest.param([(DELETE, "p", 1, 1, 1.0), (DELETE, "p", 1, 1, 1.0)], "same batch", id="double delete in a batch"),
    pytest.param([(DELETE, "p", 1, 1, 1.0), (UPDATE_PREIMAGE, "p", 1, 1, 1.0)], "same batch", id="update after delete"),
]


@pytest.mark.parametrize(("changes", "reason"), UNSOUND)
def test_a_change_that_cannot_be_is_refused(changes: list[tuple[Any, ...]], reason: str) -> None:
    window = Window()
    window.process((INSERT, "p", 1, 1, 1.0))

    with pytest.raises(InconsistentChangeError, match=reason) as refused:
        window.process(*changes)
    assert "on_inconsistent" in str(refused.value)


@pytest.mark.parametrize(("changes", "reason"), UNSOUND)
def test_or_it_is_counted_and_the_newest_row_counts(changes: list[tuple[Any, ...]], reason: str) -> None:
    window = Window(tolerant=True)
    window.process((INSERT, "p", 1, 1, 1.0))

    window.process(*changes)

    assert len(window.errors) == 1
    left = {1: 1.0} | {cells[3]: cells[4] for cells in changes if cells[0] == INSERT}
    expected = sorted(left.items()) if changes[0][0] == INSERT or changes[0][3] == 9 else []
    window.state.set_current_key(("p",))
    assert [(stored["id"], stored["x"]) for _, stored in window.state.get(None, "rows") or []] == expected


def test_a_word_that_is_no_change_type_is_refused_whatever_is_tolerated() -> None:
    with pytest.raises(InconsistentChangeError, match="'upsert'"):
        Window(tolerant=True).process(("upsert", "p", 1, 1, 1.0))
