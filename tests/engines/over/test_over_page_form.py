"""Pages of rows as bytes: what was written is read again, whatever the types, NULLs, cuts and runs."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.state.test_codec import of_version
from verify.sizes import drawn_sizes
from windowpane.engines.over.page_form import PageForm, PageWriter
from windowpane.errors import UnknownStateFormatError, UnreadableStateError
from windowpane.state.codec import frame

INSTANT = pa.timestamp("us", tz="UTC")
COLUMNS: list[tuple[pa.Field, Callable[[random.Random], Any]]] = [
    (pa.field("near", pa.int64()), lambda rng: 2**62 + rng.randint(0, 200)),
    (pa.field("far", pa.int64()), lambda rng: rng.choice([-(2**63), 0, 2**63 - 1])),
    (pa.field("wide", pa.int64()), lambda rng: rng.randint(-(2**31), 2**31 - 1)),
    (pa.field("at", INSTANT), lambda rng: dt.datetime(2024, 1, 1, microsecond=rng.randint(0, 70_000), tzinfo=dt.UTC)),
    (pa.field("long", pa.duration("us")), lambda rng: dt.timedelta(microseconds=rng.randint(-9, 9))),
    (pa.field("text", pa.string()), lambda rng: rng.choice(["", "a", "ü\0"])),
    (pa.field("number", pa.float64()), lambda rng: rng.choice([-0.0, 1.5, float("inf")])),
    (pa.field("flag", pa.bool_()), lambda rng: rng.random() < 0.5),
    (pa.field("list", pa.list_(pa.int32())), lambda rng: [rng.randint(0, 9)] * rng.randint(0, 2)),
]


def rows(rng: random.Random, count: int, runs: int) -> pa.RecordBatch:
    """Return random rows; the first ``runs`` columns repeat, a key of four bytes first."""
    picked = rng.sample(COLUMNS, rng.randint(1, len(COLUMNS) - max(runs - 1, 0)))
    repeated = [each for each in COLUMNS if each not in picked][: runs - 1] if runs else []
    number = sorted(rng.randint(0, 3) for _ in range(count))
    columns = [pa.array([b"k%03d" % each for each in number], pa.binary(4))] if runs else []
    for field, value in repeated:
        values = [None if rng.random() < 0.3 else value(rng) for _ in range(4)]
        columns.append(pa.array([values[each] for each in number], field.type))
    for field, value in picked:
        share = rng.choice([0, 0.3, 1])
        columns.append(pa.array([None if rng.random() < share else value(rng) for _ in range(count)], field.type))
    fields = [*([pa.field("key", pa.binary(4))] if runs else []), *(field for field, _ in (*repeated, *picked))]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def writer_of(form: PageForm, batch: pa.RecordBatch) -> PageWriter:
    """Return what makes pages of rows whose runs the first column separates."""
    keys = batch.column(0).to_pylist()
    firsts = [row for row in range(batch.num_rows) if not row or keys[row] != keys[row - 1]] if form.runs else []
    repeated = [column.take(pa.array(firsts, pa.int64())) for column in batch.columns[: form.runs]]
    return PageWriter(form, batch.columns[form.runs :], np.array(firsts, np.int64), repeated)


@pytest.mark.parametrize("seed", range(60))
def test_pages_hold_what_was_written(seed: int) -> None:
    rng = random.Random(seed)
    runs = rng.choice([0, 1, 2, 3])
    batch = rows(rng, rng.randint(1, 30), runs)
    form = PageForm(batch.schema, min(runs, len(batch.schema) - 1))
    cuts = sorted({0, batch.num_rows, *(rng.randint(0, batch.num_rows) for _ in range(3))})
    with drawn_sizes(seed):
        writer = writer_of(form, batch)
        blobs = [writer.blob(low, high) for low, high in pairwise(cuts)]
    read = form.table([form.from_blob(blob) for blob in blobs])
    assert read.to_pylist() == batch.to_pylist()
    assert read.schema == batch.schema
    assert all(column.num_chunks <= 1 for column in read.columns)


def test_integers_close_together_take_few_bytes() -> None:
    batch = pa.record_batch({"at": pa.array(random.Random(1).choices(range(10**15, 10**15 + 60_000), k=4000))})
    blob = writer_of(PageForm(batch.schema), batch).blob(0, 4000)
    assert len(blob) < 4000 * 2 + 500
    assert len(pa.Codec("lz4").compress(batch.serialize())) > 4000 * 4


def test_what_cannot_be_read_is_refused() -> None:
    form = PageForm(pa.schema([("v", pa.int64())]))
    whole = writer_of(form, pa.record_batch({"v": [1, 2]})).blob(0, 2)
    for damaged in (whole[:-4], frame("row-pages-page", b""), frame("row-pages-page", b"\x07")):
        with pytest.raises(UnreadableStateError, match="damaged"):
            form.from_blob(damaged)
    with pytest.raises(UnknownStateFormatError, match="version 2"):
        form.from_blob(of_version(2, whole))
