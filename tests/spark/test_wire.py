"""What an operator emitted travels in blobs that are not too large for the JVM."""

from __future__ import annotations

import pyarrow as pa

from windowpane.engines.program import MAIN
from windowpane.engines.protocol import BucketOutput
from windowpane.spark.stages import wire
from windowpane.spark.stages.blobs import unpack


def test_a_large_table_travels_in_pieces_and_in_order(monkeypatch) -> None:
    monkeypatch.setattr(wire, "LARGEST_BLOB", 800)
    table, late = pa.table({"n": range(1050)}), pa.table({"why": ["late"]})
    rows = wire.Wire().rows(BucketOutput([(MAIN, table), (1, late)]), [(2, pa.table({}))])
    assert rows["output"].to_pylist() == [MAIN] * 11 + [1, 2, wire.COUNTER_ROW]
    pieces = [unpack(blob) for blob in rows["blob"].to_pylist()[:-1]]
    assert [piece.num_rows for piece in pieces[:11]] == [100] * 10 + [50]
    assert pa.concat_tables(pieces[:11]).equals(table)
    assert pieces[11:] == [late, pa.table({})]
