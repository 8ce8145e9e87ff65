"""What handles each row alone on a task: an error in it is that of the row, and the next batch runs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windowpane.errors import InvalidTextError
from windowpane.sql.on_spark.rowwise import Rowwise
from windowpane.sql.on_spark.stages import INPUT, Flow
from windowpane.sql.streaming.deltas import WEIGHT

NUMBERS = Rowwise((Flow(None, "texts", (("v", "VARCHAR"),), f"SELECT CAST(v AS INTEGER) AS n, {WEIGHT} FROM {INPUT}"),))


def changes(value: str) -> pa.Table:
    return pa.table({"v": [value], WEIGHT: pa.array([1], pa.int64())})


def test_a_value_that_fails_is_named_and_the_next_batch_runs() -> None:
    with pytest.raises(InvalidTextError, match=r'^invalid input syntax for type integer: "one"\.$'):
        list(NUMBERS("texts", changes("one")))
    (made,) = NUMBERS("texts", changes("1"))
    assert made.to_pydict() == {"n": [1], WEIGHT: [1]}
    assert made.schema.types == [pa.int32(), pa.int32()]
