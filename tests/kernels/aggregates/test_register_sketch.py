"""A sketch made of registers is the one that the library makes of all the values."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasketches import hll_sketch, hll_union, tgt_hll_type

import windowpane as wp
from windowpane.aggregates.sketches.distinct import DistinctSketch
from windowpane.aggregates.sketches.registers import _ranks
from windowpane.kernels.aggregates.protocol import SegmentAggregate, columnar_form
from windowpane.kernels.keys.murmur import murmur_of_texts
from windowpane.kernels.segments import Segments

DRAWN: list[tuple[pa.DataType, Callable[[int], Any]]] = [
    (pa.string(), lambda n: "é" * (n % 40) + str(n)),
    (pa.int64(), lambda n: n * 2**40 - 2**62),
    (pa.int16(), lambda n: n % 2**15),
    (pa.float64(), lambda n: [0.0, -0.0, float("nan"), float("inf")][n % 4] if n % 50 == 0 else n / 3),
    (pa.date32(), lambda n: date(1900, 1, 1) + timedelta(days=n)),
    (pa.decimal128(18, 2), lambda n: Decimal(n) / 100),
    (pa.bool_(), lambda n: n % 2 == 0),
    (pa.list_(pa.int64()), lambda n: [n, None]),
]


@pytest.mark.parametrize(("kind", "value"), DRAWN, ids=[str(kind) for kind, _ in DRAWN])
@pytest.mark.parametrize("rsd", [0.05, 0.02])
def test_a_sketch_is_that_of_all_values(kind: pa.DataType, value: Callable[[int], Any], rsd: float) -> None:
    aggregate = wp.approx_count_distinct("v", rsd=rsd)
    form = columnar_form(aggregate, "p", ("v",), [kind])
    assert isinstance(form, SegmentAggregate)
    drawn = random.Random(20)
    for _ in range(3):
        # Groups with few and with many values, of few and of many distinct ones, about the limits of 512 and 4,096 registers.
        sizes = [drawn.choice([1, 100, 511, 513, 700, 4_097, 6_000]) for _ in range(5)]
        ranges = [drawn.choice([3, 60, 130, 1_100, 30_000]) for _ in sizes]
        groups = [
            [None if drawn.random() < 0.05 else value(drawn.randrange(spread)) for _ in range(size)]
            for size, spread in zip(sizes, ranges, strict=True)
        ]
        rows = pa.table({"v": pa.array([each for group in groups for each in group], kind)})
        held = iter(rows["v"].to_pylist())
        groups = [list(islice(held, size)) for size in sizes]
        # In the table the rows of the groups stand in any order, among rows that belong to none.
        places = np.array(drawn.sample(range(sum(sizes) + 900), sum(sizes)))
        mixed = np.arange(sum(sizes) + 900) % len(rows)
        mixed[places] = np.arange(len(rows))
        segments = Segments(places, np.concatenate(([0], np.cumsum(sizes))))
        partials = pa.table(dict(form.fold(pa.table(dict(form.lift(rows.take(mixed)))), segments)))
        bound = aggregate.bind([kind])
        for image, group in zip(partials["pb"].to_pylist(), groups, strict=True):
            whole = bound.create_accumulator()
            for each in group:
                whole = bound.add(whole, each)
            sketch = DistinctSketch.from_bytes(image)
            # An estimate of a sketch goes by its registers once it was merged.
            assert bound.get_result(sketch) == bound.get_result(whole)
            more = bound.add(bound.create_accumulator(), value(7))
            assert bound.get_result(bound.merge(sketch, more)) == bound.get_result(bound.merge(whole, more))


@pytest.mark.parametrize("rsd", [0.09, 0.05, 0.005])
def test_many_values_are_stored_as_the_library_stores_a_merged_sketch(rsd: float) -> None:
    aggregate = wp.approx_count_distinct("v", rsd=rsd)
    form = columnar_form(aggregate, "p", ("v",), [pa.int64()])
    assert isinstance(form, SegmentAggregate)
    values = list(range(200_000))
    rows = pa.table({"v": pa.array(values)})
    partials = form.fold(pa.table(dict(form.lift(rows))), Segments(np.arange(len(values)), np.array([0, len(values)])))
    bound = aggregate.bind([pa.int64()])
    library = hll_sketch(bound.create_accumulator().hll.lg_config_k, tgt_hll_type.HLL_8)
    for value in values:
        library.update(value)
    union = hll_union(library.lg_config_k)
    union.update(library)
    union.update(library)
    assert partials["pb"].to_pylist() == [bytes(union.get_result(tgt_hll_type.HLL_8).serialize_compact())]


def test_hashes_of_texts_are_those_of_the_library() -> None:
    texts = [chr(97 + n % 26) * (n % 37) + "ü" * (n % 3) + str(n) for n in range(500)]
    first, second = murmur_of_texts(pa.array(texts), 9001)
    for text, low, high in zip(texts, first.tolist(), second.tolist(), strict=True):
        sketch = hll_sketch(12, tgt_hll_type.HLL_8)
        sketch.update(text)
        # A sketch of one value holds its coupon: 26 bits of the first half, and the rank of the second.
        coupon = int.from_bytes(bytes(sketch.serialize_compact())[8:12], "little")
        assert coupon == (min(64 - high.bit_length(), 62) + 1) << 26 | low & 0x3FFFFFF


def test_ranks_are_the_leading_zeros_of_words_and_one_but_63_at_most() -> None:
    drawn = random.Random(3)
    words = [0, 1, 2, 2**10, 2**11 - 1, 2**11, 2**11 + 1, 2**63, 2**64 - 1, *(drawn.getrandbits(64) >> n for n in range(64))]
    ranks = _ranks(np.array(words, np.uint64)).tolist()
    assert ranks == [min(64 - word.bit_length() + 1, 63) for word in words]
    assert _ranks(np.zeros(0, np.uint64)).tolist() == []
