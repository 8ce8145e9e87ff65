"""Groups by codes: what Arrow's group_by gives, found by the address of each group."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.examples import seeds
from verify.sizes import given_sizes
from windowpane.kernels.grouping import grouped_fold
from windowpane.kernels.grouping.coded_groups import coded_groups
from windowpane.kernels.grouping.grouped_fold import FEW_WITH_NULLS, GroupedFold
from windowpane.kernels.grouping.hashed_groups import BITS, MANY_ROWS, hashed_groups
from windowpane.kernels.segments import Segments
from windowpane.windowing.times import MAX, MIN

ROWS = 40_000
SEEDS = seeds(3)


@pytest.fixture(autouse=True)
def rows_enough_to_sort_hashes():
    """Let as many rows as the tests have be many."""
    with given_sizes({MANY_ROWS: 1 << 15}):
        yield


def groups_of(table: pa.Table) -> dict[tuple[object, ...], list[int]]:
    """Return the row numbers of each group as Arrow finds them."""
    numbered = table.append_column("row", pa.array(np.arange(table.num_rows)))
    found = numbered.group_by(table.column_names, use_threads=False).aggregate([("row", "list")])
    keys = zip(*(found[name].to_pylist() for name in table.column_names), strict=True)
    return dict(zip(keys, found["row_list"].to_pylist(), strict=True))


def rows_of(segments: Segments, table: pa.Table) -> dict[tuple[object, ...], list[int]]:
    """Return the row numbers of each group as segments have them."""
    firsts = table.take(pa.array(segments.members))
    rows = np.split(segments.order, segments.offsets[1:-1])
    keys = zip(*(firsts[name].to_pylist() for name in table.column_names), strict=True)
    return {key: row.tolist() for key, row in zip(keys, rows, strict=True)}


def columns(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    slices = pa.array(random.integers(0, 5, ROWS) * 10_000_000 + 1_704_067_200_000_000)
    keys = random.integers(-20_000, 20_000, ROWS)
    small = pa.array(random.integers(-100, 100, ROWS).astype(np.int8))
    return pa.table({"s": slices.cast(pa.timestamp("us", "UTC")), "k": keys, "b": small})


def far_apart(seed: int) -> pa.Table:
    """Return many groups, of numbers that span much more than there are rows."""
    random = np.random.default_rng(seed)
    ids = random.integers(MIN // 8, MAX // 8, ROWS * 4)[random.integers(0, ROWS * 4, ROWS)]
    return columns(seed).append_column("id", pa.array(ids))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("names", [["id"], ["b", "k", "s"], ["k", "s"]])
def test_groups_of_numbers_that_are_far_apart_are_those_of_arrow(seed, names):
    table = far_apart(seed).select(names)
    groups = coded_groups([table[name] for name in names])
    assert groups is not None, f"seed {seed}"
    assert coded_groups([table["id"] if "id" in names else table["k"]] * 2, is_numbered=False) is None
    keys = zip(*(table.take(pa.array(groups.members))[name].to_pylist() for name in names), strict=True)
    found = dict(zip(keys, zip(groups.sizes.tolist(), groups.total(np.arange(ROWS)).tolist(), strict=True), strict=True))
    assert found == {key: (len(rows), sum(rows)) for key, rows in groups_of(table).items()}, f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("names", [["k"], ["b"], ["s", "b"], ["b", "s"]])
def test_groups_of_numbers_are_those_of_arrow(seed, names):
    table = columns(seed).select(names)
    groups = coded_groups([table[name] for name in names])
    assert groups is not None, f"seed {seed}"
    members = table.take(pa.array(groups.members))
    totals = groups.total(np.arange(ROWS)).tolist()
    least, greatest = groups.least(np.arange(ROWS)).tolist(), groups.greatest(np.arange(ROWS)).tolist()
    found = zip(groups.sizes.tolist(), totals, least, greatest, strict=True)
    keys = zip(*(members[name].to_pylist() for name in names), strict=True)
    expected = {key: (len(rows), sum(rows), min(rows), max(rows)) for key, rows in groups_of(table).items()}
    assert dict(zip(keys, found, strict=True)) == expected, f"seed {seed}"
    assert groups.count == len(expected)
    segments = groups.segments()
    assert segments is not None
    assert rows_of(segments, table) == groups_of(table), f"seed {seed}"
    assert table.take(pa.array(segments.members)).equals(members)


def test_rows_of_so_many_groups_are_not_brought_together():
    numbers = np.random.default_rng(1).permutation(1 << 16)
    few, many = (coded_groups([pa.chunked_array([pa.array(each)])]) for each in (numbers, np.append(numbers, 1 << 16)))
    assert few is not None
    assert many is not None
    segments = few.segments()
    assert segments is not None
    assert segments.order.tolist() == np.argsort(numbers).tolist()
    assert many.segments() is None


LEFT_TO_BYTES = {
    "too wide": pa.array([MIN, MAX, 0, -1] * ROWS),
    "too wide together": pa.array(np.arange(ROWS) * 1_000_003 % (1 << 40)),
    "few groups far apart": pa.array(np.array([0, 1, 10**9 + 7, 10**10 + 19, 10**11 + 3])[np.arange(ROWS) % 5]),
    "with a null": pa.array(np.arange(ROWS), mask=np.arange(ROWS) == 7),
    "texts": pa.array(np.arange(ROWS).astype(str)),
    "unsigned": pa.array(np.arange(ROWS, dtype=np.uint32)),
    "few rows": pa.array(np.arange(100)),
}


@pytest.mark.parametrize("values", LEFT_TO_BYTES.values(), ids=LEFT_TO_BYTES)
def test_what_has_no_codes(values):
    assert coded_groups([pa.chunked_array([values])] * 2) is None


def test_a_step_that_does_not_hold_for_all_is_not_taken_for_granted():
    values = pa.chunked_array([pa.array(np.where(np.arange(ROWS) == 7, 1, np.arange(ROWS) * 1000))])
    assert coded_groups([values], is_numbered=False) is None
    groups = coded_groups([values])
    assert groups is not None
    assert groups.count == ROWS


def texts(seed: int, distinct: int) -> pa.Table:
    random = np.random.default_rng(seed)
    lengths, numbers = random.integers(8, 70, distinct), random.integers(0, distinct, ROWS)
    words = [f"{number * 7919:0{lengths[number]}}" for number in numbers.tolist()]
    short = pa.array(random.integers(0, 10**9, ROWS).astype(str)).cast(pa.binary())
    initials = pa.array(np.where(random.random(ROWS) < 0.5, "", "ž").tolist())
    days = pa.array(random.integers(0, 3, ROWS) * 86_400_000_000).cast(pa.timestamp("us", "UTC"))
    return pa.table({"t": words, "short": short, "day": days, "one": initials})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("names", [["t"], ["short"], ["t", "day"], ["day", "one", "t"], ["short", "t"]])
@pytest.mark.parametrize("distinct", [ROWS * 2, ROWS * 50])
def test_groups_by_sorted_hashes_are_those_of_arrow_and_keep_the_order_of_rows(seed, names, distinct):
    table = texts(seed, distinct).select(names)
    table = pa.concat_tables([table.slice(0, 1000), table.slice(1000)])
    segments = hashed_groups([table[name] for name in names])
    assert segments is not None, f"seed {seed}"
    assert rows_of(segments, table) == groups_of(table), f"seed {seed}"


def test_rows_that_all_differ_stay_where_they_are():
    segments = hashed_groups([pa.chunked_array([np.arange(ROWS).astype(str)])])
    assert segments is not None
    assert segments.order.tolist() == list(range(ROWS))


@pytest.mark.parametrize(
    "values",
    [
        pa.array(np.arange(ROWS) % 100).cast(pa.string()),
        pa.array(np.arange(ROWS).astype(str), mask=np.arange(ROWS) == 7),
        pa.array(np.arange(ROWS) / 3),
        pa.array(np.arange(ROWS, dtype=np.uint32)),
        pa.array(np.arange(100).astype(str)),
    ],
    ids=["few groups", "a null", "doubles", "unsigned", "few rows"],
)
def test_what_is_left_to_a_hash_table(values):
    assert hashed_groups([pa.chunked_array([values])]) is None


def test_texts_of_one_hash_are_told_apart():
    # They differ where no word of eight bytes is taken from: behind the first one.
    alike = [f"{number // 2:08}{number % 2}{'x' * 91}" for number in range(ROWS)]
    assert hashed_groups([pa.chunked_array([alike])]) is None
    twice = hashed_groups([pa.chunked_array([alike[::2], alike[::2]])])
    assert twice is not None
    assert twice.sizes.tolist() == [2] * (ROWS // 2)
    # Of so few bits some are the same by chance.
    with given_sizes({BITS: 20, MANY_ROWS: 1 << 15}):
        assert hashed_groups([pa.chunked_array([[f"{number:08}" for number in range(ROWS)]])]) is None


def test_numbers_in_texts_do_not_cancel():
    texts = [f"{number:08}{'a' * 50}{number % 2}{'b' * 50}{number % 7919:08}" for number in range(ROWS)]
    segments = hashed_groups([pa.chunked_array([texts])])
    assert segments is not None
    assert segments.count == ROWS


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


@pytest.mark.slow_but("names0-0", "names1-0", "names2-0")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("names", [["n", "c", "s", "lo", "hi", "mean", "spread", "all"], ["n", "texts"], ["s", "middle"]])
def test_folds_and_merges_are_the_same_by_codes_and_by_bytes(seed, names, monkeypatch):
    def results(table: pa.Table, ways: tuple[str, ...]) -> list[tuple[object, ...]]:
        with monkeypatch.context() as patched, given_sizes({FEW_WITH_NULLS: 0, MANY_ROWS: 1 << 15}):
            for way in {"coded_groups", "hashed_groups"}.difference(ways):
                patched.setattr(grouped_fold, way, lambda columns, is_numbered=True: None)
            asked = [(name, AGGREGATES[name], AGGREGATES[name].arguments) for name in names]
            fold = GroupedFold.of(asked, table.schema)
            assert fold is not None
            halves = [fold.fold(half, ["k"], counted="rows") for half in (table.slice(0, ROWS // 2), table.slice(ROWS // 2))]
            whole = fold.fold(table, ["k"], counted="rows")
            merged = fold.merge([whole, *halves], ["k"], [("rows", "sum")])
            finished = [merged["k"], merged["rows"], *fold.finish(merged)]
            return sorted(zip(*(column.to_pylist() for column in finished), strict=True), key=repr)

    for factor in (1, 1_000_003 * 7919):
        table = rows(seed)
        table = table.set_column(0, "k", pa.array(table["k"].to_numpy() * factor + np.arange(ROWS) % 2))
        by_table = results(table, ())
        for way in ("coded_groups", "hashed_groups"):
            pairs = zip(results(table, (way,)), by_table, strict=True)
            assert [pair for pair in pairs if pair[0] != pair[1] and pair[0] != pytest.approx(pair[1], nan_ok=True)] == [], seed
