"""Whether the rows of a task fold is told by its first ones, however small the batches are that Spark hands them over in."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.encoders import encoder
from windowpane.hidden_columns import TIME
from windowpane.spark.stages.blobs import unpack

ROWS = 200_000


def sent(keys: int, a_batch: int) -> tuple[int, int]:
    """Return how many rows and partials a task sends, and the sum of v over all of them."""
    table = pa.table({"k": [f"key {row % keys}" for row in range(ROWS)], "v": pa.array([1] * ROWS, pa.int64())})
    table = table.append_column(TIME, pa.array(range(ROWS), pa.int64()))
    rows = total = 0
    for batch in encoder(pa.string(), wp.TumblingEventTimeWindows.of("10 s"), 2)(table.to_batches(a_batch)):
        for content in map(unpack, batch["blob"].to_pylist()):
            rows += content.num_rows
            # Partials of a sum are its high and low halves; these are small.
            column = "v" if "v" in content.column_names else next(n for n in content.column_names if n.endswith("0_l"))
            total += sum(content[column].to_pylist()) if content.num_rows else 0
    return rows, total


@pytest.mark.parametrize("a_batch", [20_000, 100_000])
@pytest.mark.parametrize(("keys", "expected"), [(10, None), (5_000, 5_000), (ROWS, ROWS)])
def test_rows_fold_where_they_are_few_groups(keys: int, expected: int | None, a_batch: int) -> None:
    rows, total = sent(keys, a_batch)
    assert total == ROWS
    # Partials of large batches are sent batch by batch.
    assert rows == expected if expected is not None else rows <= ROWS // a_batch * keys
