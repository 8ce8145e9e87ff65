"""Coded texts fold as the texts do, and are spelled where nobody counts codes."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.keys.coded_texts import CODED, CodedTexts, are_coded, is_coded, spelled, together
from windowpane.windowing.aggregates import Aggregate

TEXTS = ["b", "", None, "ž", "b", "a" * 40]


def coded(values: list[str | None], *others: str) -> pa.ChunkedArray:
    """Return texts as a file may hold them: with texts that no row has, in no order."""
    texts = [*others, *sorted({value for value in values if value is not None}, reverse=True)]
    codes = pa.array([None if value is None else texts.index(value) for value in values], pa.int32())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.string()))])


def test_codes_stand_for_the_texts_and_null_is_one_of_them() -> None:
    held = CodedTexts.of(coded(TEXTS, "unused"))
    assert held.codes.null_count == 0
    assert held.spelled(held.codes).to_pylist() == TEXTS


def test_codes_in_order_compare_as_the_texts_do() -> None:
    assert CodedTexts.in_order(coded(TEXTS)) is None
    texts = TEXTS * 10
    held = CodedTexts.in_order(coded(texts, "c", "unused"))
    assert held is not None
    assert held.spelled(held.codes).to_pylist() == texts
    pairs = [(code, text) for code, text in zip(held.codes.to_pylist(), texts, strict=True) if text is not None]
    assert sorted(pairs) == sorted(pairs, key=lambda pair: str(pair[1]).encode())


def test_tables_of_other_codes_are_one_table_and_texts_among_codes_are_spelled_in_all() -> None:
    first, second = pa.table({"k": coded(["a", None], "x")}), pa.table({"k": coded(["x", "b"])})
    assert together([first, second])["k"].to_pylist() == ["a", None, "x", "b"]
    assert are_coded(together([first, second]).schema.field("k").type)
    mixed = together([first, pa.table({"k": ["a"]})])
    assert (mixed.schema.field("k").type, mixed["k"].to_pylist()) == (pa.string(), ["a", None, "a"])
    assert spelled(first)["k"].to_pylist() == ["a", None]
    assert spelled(first.slice(0, 0)).schema.field("k").type == pa.string()


@pytest.mark.parametrize(
    ("texts", "is_so"), [(["a", "b", "c"], True), (["a", "b", "a"], False), (["a", "b", None], False), ([], True)]
)
def test_a_text_that_stands_twice_is_not_told_by_its_code(texts: list[str | None], is_so: bool) -> None:
    codes = pa.array(range(len(texts)), pa.int32())
    assert is_coded(pa.chunked_array([pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.string()))])) is is_so
    assert not is_coded(pa.chunked_array([pa.array(texts, pa.string())]))


AGGREGATES = {
    "n": wp.count(),
    "present": wp.count("t"),
    "first": wp.min("t"),
    "last": wp.max("t"),
    "total": wp.sum("v"),
    "some": wp.approx_count_distinct("t"),
    "few": wp.approx_count_distinct("t", rsd=0.4),
    "distinct": wp.count_distinct("t"),
    "list": wp.collect_list("t"),
    "set": wp.collect_set("t"),
    "joined": wp.string_agg("t", "+"),
    "start": wp.first("t"),
    "end": wp.last("t", ignore_nulls=True),
    "best": wp.arg_max("t", "v"),
}


@pytest.mark.parametrize(
    "names",
    [
        ("n", "total"),
        ("present", "first", "last"),
        ("some", "distinct"),
        ("list", "set", "joined"),
        ("start", "end", "best"),
        tuple(AGGREGATES),
    ],
)
@pytest.mark.parametrize(("rows", "spread"), [(1, 1), (100, 3), (100, 3000), (10_000, 100), (10_000, 3000)])
def test_a_fold_of_coded_texts_is_that_of_the_texts(names: tuple[str, ...], rows: int, spread: int) -> None:
    drawn = random.Random(rows)
    kinds = pa.schema([("t", pa.string()), ("v", pa.int64())])
    chosen: list[tuple[str, Aggregate, tuple[str, ...]]] = [
        (name, AGGREGATES[name], tuple(AGGREGATES[name].arguments)) for name in names
    ]
    fold = GroupedFold.of(chosen, kinds)
    assert fold is not None
    assert all("t" in aggregate.coded_slots for aggregate in fold.aggregates if "t" in aggregate.slots)
    draw = {name: [drawn.choice([None, "", *"abcdefgh"]) for _ in range(rows)] for name in "kt"}
    texts = [drawn.choice([None, str(drawn.randrange(spread))]) for _ in range(rows)]
    values = pa.array([drawn.randrange(-9, 9) for _ in range(rows)])
    others = {"v": values, ARRIVAL: pa.array(range(rows), pa.int64())}
    plain = pa.table({"k": pa.array(draw["k"], pa.string()), "t": pa.array(texts, pa.string()), **others})
    held = pa.table({"k": coded(draw["k"], "unused"), "t": coded(texts, "zz", "0"), **others})
    assert held.schema.field("t").type == CODED
    wanted, found = (fold.fold(table, ["k"], counted="rows").sort_by("k") for table in (plain, held))
    assert found.schema.field("k").type == pa.string()
    assert found.to_pydict() == wanted.to_pydict()
    # In two parts with codes of their own, as the row groups of a file have them.
    middle = rows // 2
    other = {"k": coded(draw["k"][middle:]), "t": coded(texts[middle:], "another")}
    halves = pa.concat_tables([held.slice(0, middle), pa.table(other | {name: held[name][middle:] for name in others})])
    assert fold.fold(halves, ["k"], counted="rows").sort_by("k").to_pydict() == wanted.to_pydict()


def test_aggregates_that_compare_texts_one_by_one_take_them_spelled() -> None:
    kinds = pa.schema([("t", pa.string()), ("v", pa.int64())])
    fold = GroupedFold.of([("m", wp.mode("t"), ("t",)), ("a", wp.arg_max("v", "t"), ("v", "t"))], kinds)
    assert fold is not None
    assert all("t" not in aggregate.coded_slots for aggregate in fold.aggregates)
