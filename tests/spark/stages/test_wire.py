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


def test_rows_of_the_main_output_become_the_blobs_that_a_function_makes_of_pieces_of_them(monkeypatch) -> None:
    monkeypatch.setattr(wire, "LARGEST_BLOB", 800)
    given: list[list[int]] = []

    def function(table: pa.Table) -> list[bytes]:
        given.append(table["n"].to_pylist())
        return [] if table["n"][0].as_py() == 100 else [b"first", b"second"]

    late = pa.table({"n": [7]})
    rows = wire.Wire(main_blobs=function).rows(BucketOutput([(MAIN, pa.table({"n": range(250)})), (1, late)]))
    assert given == [list(range(100)), list(range(100, 200)), list(range(200, 250))]
    assert rows["output"].to_pylist() == [MAIN] * 4 + [1, wire.COUNTER_ROW]
    assert rows["blob"].to_pylist()[:4] == [b"first", b"second"] * 2
    assert unpack(rows["blob"][4].as_py()).equals(late)


def test_tables_that_a_function_writes_to_files_are_not_cut(monkeypatch) -> None:
    monkeypatch.setattr(wire, "LARGEST_BLOB", 800)
    given: list[int] = []

    def function(table: pa.Table) -> list[bytes]:
        given.append(table.num_rows)
        return [b"path"]

    late = pa.table({"n": range(150)})
    output = BucketOutput([(MAIN, pa.table({"n": range(250)})), (1, late)])
    rows = wire.Wire(main_blobs=function, cuts_main=False).rows(output)
    assert given == [250]
    assert rows["output"].to_pylist() == [MAIN, 1, 1, wire.COUNTER_ROW]


def test_a_function_may_make_nothing_of_all_rows() -> None:
    rows = wire.Wire(main_blobs=lambda table: []).rows(BucketOutput([(MAIN, pa.table({"n": [1]}))]))
    assert rows["output"].to_pylist() == [wire.COUNTER_ROW]


def test_rows_that_travel_as_columns_do_so_in_pieces_and_in_order(monkeypatch) -> None:
    monkeypatch.setattr(wire, "LARGEST_BLOB", 8_000)
    table = pa.table({"names": [[f"{number:050}"] for number in range(1000)]})
    frames = list(wire.Wire(table.schema).frames(BucketOutput([(MAIN, table)])))
    assert len(frames) > 3
    assert max(frame.nbytes for frame in frames) < 24_000
    rows = pa.concat_tables(frames)
    assert rows["output"].to_pylist() == [MAIN] * 1000 + [wire.COUNTER_ROW]
    assert rows["c0"].to_pylist() == [*table["names"].to_pylist(), None]
