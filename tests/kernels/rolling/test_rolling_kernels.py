"""Features of many questions at once, from rows and from pieces, beside a loop over all rows."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.examples import seeds
from windowpane.aggregates import avg, collect_list, count, max, min, sum
from windowpane.kernels.rolling import FeatureKernel, PieceFeatures, piece_refusal, span_refusal
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.rolling import RollingCall, RollingSpec, RollingWindow

COLUMNS = pa.schema([("value", pa.int64()), ("flag", pa.bool_())])
WINDOWS = (RollingWindow(4, 2, is_exact=True), RollingWindow(12, 2, is_exact=True))
CALLS: tuple[tuple[Aggregate, str | None], ...] = (
    (count(), None),
    (count(), "flag"),
    (sum("value"), None),
    (sum("value"), "flag"),
    (min("value"), None),
    (max("value"), None),
    (avg("value"), None),
)
SPEC = RollingSpec(
    tuple(
        RollingCall(f"f{number}_{window.length}", aggregate, window, condition)
        for number, (aggregate, condition) in enumerate(CALLS)
        for window in WINDOWS
    ),
    step=2,
)


def one_by_one(rows: list[dict[str, Any]], key: int, instant: int) -> list[Any]:
    found: list[Any] = []
    for call in SPEC.calls:
        seen = [row for row in rows if row["key"] == key and instant - call.window.length < row["time"] <= instant]
        seen = [row for row in seen if call.condition is None or row["flag"]]
        values = [row["value"] for row in seen if row["value"] is not None]
        name = call.aggregate.name
        if name == "count":
            found.append(len(seen))
        elif not values:
            found.append(None)
        else:
            whole = np.sum(values)
            found.append({"sum": whole, "min": np.min(values), "max": np.max(values), "avg": whole / len(values)}[name])
    return found


def drawn(seed: int) -> tuple[pa.Table, list[dict[str, Any]], list[tuple[int, int]]]:
    random = Random(seed)
    rows = [
        {
            "key": random.randrange(3),
            "time": random.randrange(-10, 40),
            "value": random.choice([None, -5, 0, 2, 7]),
            "flag": random.choice([None, True, False]),
        }
        for _ in range(random.choice([0, 1, 40]))
    ]
    rows.sort(key=lambda row: (row["key"], row["time"]))
    schema = pa.schema([("key", pa.int64()), ("time", pa.int64()), *COLUMNS])
    questions = [(random.randrange(4), random.randrange(-12, 60)) for _ in range(30)]
    return pa.Table.from_pylist(rows, schema), rows, questions


def asked_of(questions: list[tuple[int, int]]) -> tuple[Any, Any]:
    keys, instants = zip(*questions, strict=True)
    return np.array(keys), np.array(instants)


@pytest.mark.parametrize("seed", seeds(6))
def test_features_of_sorted_rows(seed: int) -> None:
    table, rows, questions = drawn(seed)
    keys, instants = asked_of(questions)
    found = FeatureKernel(SPEC, COLUMNS).values(
        table.select(COLUMNS.names), table["key"].to_numpy(), table["time"].to_numpy(), keys, instants
    )
    expected = [one_by_one(rows, key, instant) for key, instant in questions]
    assert list(zip(*(column.to_pylist() for column in found), strict=True)) == [tuple(row) for row in expected]


@pytest.mark.parametrize("seed", seeds(6))
def test_features_of_pieces(seed: int) -> None:
    table, rows, questions = drawn(seed)
    keys, instants = asked_of(questions)
    kernel = PieceFeatures(SPEC, COLUMNS)
    folded = kernel.fold.fold(kernel.prepared(table), ["key", "time"], "rows", [])
    folded = folded.sort_by([("key", "ascending"), ("time", "ascending")])
    partials = folded.select(list(kernel.fold.columns)).combine_chunks()
    found, is_empty = kernel.values(partials, folded["key"].to_numpy(), folded["time"].to_numpy(), keys, instants)
    expected = [one_by_one(rows, key, instant) for key, instant in questions]
    assert list(zip(*(column.to_pylist() for column in found), strict=True)) == [tuple(row) for row in expected]
    assert is_empty.tolist() == [row[1] == 0 for row in expected]  # no row in the longest window


def test_what_depends_on_order_has_no_pieces() -> None:
    call = RollingCall("all", collect_list("value"), WINDOWS[0])
    spec = RollingSpec((call,), step=2)
    assert "collect_list" in str(span_refusal(spec, COLUMNS))
    assert piece_refusal(spec, COLUMNS) is not None
    assert span_refusal(SPEC, COLUMNS) is None
    assert piece_refusal(SPEC, COLUMNS) is None
