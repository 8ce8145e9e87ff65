"""Tables as blobs."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa

from windowpane.hidden_columns import PARTITION, POSITION
from windowpane.spark.stages.blobs import pack
from windowpane.spark.stages.messages import HEARTBEAT, unpacked


def rows(partition: int, *positions: int) -> bytes:
    names = [str(-number) for number in positions]
    return pack(pa.table({"name": names, PARTITION: [partition] * len(names), POSITION: positions}))


def test_rows_of_blobs_in_any_order_are_in_that_of_the_input() -> None:
    blobs = [rows(0, 0, 1), rows(0, 4, 7), rows(0, 300, 301), rows(1, 2, 9), HEARTBEAT]
    for arrived in permutations(blobs):
        heartbeat, *tables = unpacked(arrived)
        assert heartbeat.num_columns == 0
        assert [table[POSITION].to_pylist() for table in tables] == [[0, 1], [4, 7], [300, 301], [2, 9]]


def test_blobs_without_a_place_in_the_input_are_in_one_order() -> None:
    blobs = [pack(pa.table({"n": [number], "sum": [0.1 * number]})) for number in range(4)]
    found = {tuple(table["n"][0].as_py() for table in unpacked(arrived)) for arrived in permutations(blobs)}
    assert len(found) == 1
