"""Packed groups: what Arrow's group_by gives, found by sorting words."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.kernels import grouped_fold, packed_groups
from windowpane.kernels.grouped_fold import GroupedFold
from windowpane.windowing.times import MAX, MIN

ROWS = 40_000
SEEDS = range(3)


def groups_of(table: pa.Table) -> dict[tuple[object, ...], list[int]]:
    """Return the row numbers of each group as Arrow finds them."""
    numbered = table.append_column("row", pa.array(np.arange(table.num_rows)))
    found = numbered.group_by(table.column_names, use_threads=False).aggregate([("row", "list")])
    keys = zip(*(found[name].to_pylist() for name in table.column_names), strict=True)
    return dict(zip(keys, found["row_list"].to_pylist(), strict=True))


def columns(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    slices = pa.array(random.integers(0, 5, ROWS) * 10_000_000 + 1_704_067_200_000_000)
    keys = random.integers(-20_000, 20_000, ROWS)
    small = pa.array(random.integers(-100, 100, ROWS).astype(np.int8))
    return pa.table({"s": slices.cast(pa.timestamp("us", "UTC")), "k": keys, "b": small})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("names", [["k"], ["s", "k"], ["b", "k"], ["s", "b", "k"]])
def test_groups_are_those_of_arrow_and_keep_the_order_of_rows(seed, names):
    table = columns(seed).select(names)
    segments = packed_groups.packed_groups([table[name] for name in names])
    assert segments is not None, f"seed {seed}"
    firsts = table.take(pa.array(segments.order[segments.offsets[:-1]]))
    rows = np.split(segments.order, segments.offsets[1:-1])
    keys = zip(*(firsts[name].to_pylist() for name in names), strict=True)
    assert {key: row.tolist() for key, row in zip(keys, rows, strict=True)} == groups_of(table), f"seed {seed}"


@pytest.mark.parametrize(
    "values",
    [
        pa.array([MIN, MAX, 0, -1] * ROWS),
        pa.array(np.arange(ROWS), mask=np.arange(ROWS) == 7),
        pa.array(np.arange(ROWS).astype(str)),
        pa.array(np.arange(ROWS) % 10),
        pa.array(np.arange(100)),
    ],
    ids=["too wide", "with a null", "texts", "few groups", "few rows"],
)
def test_what_is_left_to_hashing(values):
    assert packed_groups.packed_groups([pa.chunked_array([values])]) is None


AGGREGATES = {
    "n": wp.count(),
    "c": wp.count("v"),
    "s": wp.sum("v"),
    "lo": wp.min("v"),
    "hi": wp.max("d"),
    "mean": wp.avg("v"),
    "spread": wp.stddev_samp("v"),
    "all": wp.bool_and("f"),
    "texts": wp.max("t"),
    "middle": wp.median("v"),
}


def rows(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    values = pa.array(random.integers(-(2**40), 2**40, ROWS), mask=random.random(ROWS) < 0.3)
    doubles = pa.array(random.normal(size=ROWS), mask=random.random(ROWS) < 0.3)
    flags = pa.array(random.random(ROWS) < 0.5, mask=random.random(ROWS) < 0.3)
    texts = pa.array(random.integers(0, 9, ROWS).astype(str))
    return pa.table({"k": random.integers(0, 30_000, ROWS), "v": values, "d": doubles, "f": flags, "t": texts})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("names", [["n", "c", "s", "lo", "hi", "mean", "spread", "all"], ["n", "texts"], ["s", "middle"]])
def test_folds_and_merges_are_those_of_hashed_groups(seed, names, monkeypatch):
    def results() -> list[tuple[object, ...]]:
        table = rows(seed)
        asked = [(name, AGGREGATES[name], AGGREGATES[name].arguments) for name in names]
        fold = GroupedFold.of(asked, table.schema)
        assert fold is not None
        halves = [fold.fold(half, ["k"], counted="rows") for half in (table.slice(0, ROWS // 2), table.slice(ROWS // 2))]
        whole = fold.fold(table, ["k"], counted="rows")
        merged = fold.merge([whole, *halves], ["k"], [("rows", "sum")])
        finished = [merged["k"], merged["rows"], *fold.finish(merged)]
        return sorted(zip(*(column.to_pylist() for column in finished), strict=True), key=repr)

    sorted_groups = results()
    monkeypatch.setattr(grouped_fold, "packed_groups", lambda columns: None)
    assert sorted_groups == [pytest.approx(row, nan_ok=True) for row in results()], f"seed {seed}"
