"""State without classes of the user's: values come back as they were, and nothing else that a pickle names is imported."""

import pickle
import uuid
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from windowpane import pickles
from windowpane.aggregates.sketches.distinct import DistinctSketch
from windowpane.errors import UnsafeStateError
from windowpane.state.column_runs import ColumnRun
from windowpane.windowing.windows import TimeWindow

VALUES = [
    None,
    {"a": [1, 2.5, "three", b"four", True], ("k", 1): {1, 2}, "f": frozenset([3])},
    [Decimal("1.50"), uuid.UUID(int=7), complex(1, 2), range(3), bytearray(b"x")],
    [date(2013, 1, 1), time(8, tzinfo=UTC), timedelta(days=1), datetime(2013, 1, 1, tzinfo=timezone(timedelta(hours=2)))],
    [datetime(2013, 1, 1, 8, tzinfo=ZoneInfo("America/New_York"))],
    [Counter("aab"), deque([1, 2], maxlen=3)],
    [np.int64(3), np.float32(1.5), np.bool_(True)],
    TimeWindow(0, 60_000_000),
]


class Sets:
    """What an attacker writes: to read it calls a function."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> Any:
        return self.call, self.arguments


@dataclass
class Cart:
    total: int = 0


@pytest.fixture
def only_values() -> Iterator[None]:
    pickles.values_only(True)
    yield
    pickles.values_only(False)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_as_they_were(only_values: None, value: Any) -> None:
    assert pickles.loads(pickles.dumps(value)) == value


def test_arrays_and_runs_come_back(only_values: None) -> None:
    run = ColumnRun(2, ("a",), (("v", ["x", None]),), None)
    array, read = pickles.loads(pickles.dumps([np.arange(3), run]))
    assert array.tolist() == [0, 1, 2]
    assert read.values == [{"a": "x"}, {"a": None}]


def test_sketches_come_back(only_values: None) -> None:
    from datasketches import hll_sketch

    sketch = DistinctSketch(hll_sketch(12))
    assert pickles.loads(pickles.dumps({"s": sketch}))["s"].to_bytes() == sketch.to_bytes()


@pytest.mark.parametrize(
    "named",
    [
        Sets(exec, "raise SystemError('it ran')"),
        Sets(__import__, "this"),
        Sets(getattr, int, "from_bytes"),
        Sets(Path, "/tmp"),
    ],
    ids=["exec", "import", "getattr", "a class of others"],
)
def test_what_a_pickle_names_is_not_run(only_values: None, named: Sets) -> None:
    written = pickle.dumps(["before", named], protocol=5)
    with pytest.raises(UnsafeStateError, match=r"windowpane\.safe_state is set"):
        pickles.loads(written)


@pytest.mark.parametrize("name", ["io.open", "pickle.loads", "os.system", "loads"])
def test_what_a_module_of_the_package_imports_is_no_class_of_its(only_values: None, name: str) -> None:
    """Protocol 4 names attributes of attributes, too: a module that imports another one would open the way to it."""
    written = (
        b"\x80\x04"
        + b"".join(b"\x8c" + bytes([len(each)]) + each.encode() for each in ("windowpane.state.compact", name))
        + b"\x93."
    )
    with pytest.raises(UnsafeStateError):
        pickles.loads(written)


def test_a_class_of_the_users_is_refused_when_it_is_written(only_values: None) -> None:
    with pytest.raises(UnsafeStateError, match=r"test_safe_state\.Cart.*Let functions keep values"):
        pickles.dumps({"cart": Cart(3)})


def test_without_the_setting_classes_of_the_users_are_kept() -> None:
    assert pickles.loads(pickles.dumps({"cart": Cart(3)})) == {"cart": Cart(3)}
