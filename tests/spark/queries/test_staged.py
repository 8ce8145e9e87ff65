"""How what the stages of a staged query emit travels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Engine
from windowpane.spark.queries.staged import Inlet, Stage, wires


def rows(relation: str, table: pa.Table) -> Iterator[pa.Table]:
    yield table.append_column("relation", pa.array([relation] * table.num_rows))
    yield table.slice(0, 0)


def not_run() -> Engine:
    raise AssertionError("no engine runs here")


def stage(*sources: int | None) -> Stage:
    return Stage([Inlet(source, rows) for source in sources], "hash", not_run)


def test_a_stage_writes_files_of_what_only_the_result_reads() -> None:
    written: list[dict[str, list[object]]] = []

    def to_files(tables: Iterable[pa.Table]) -> Iterable[bytes]:
        written.extend(table.to_pydict() for table in tables)
        return [b"path"]

    first, second, both = wires(
        [stage(None), stage(None), stage(1)], [Inlet(0, rows), Inlet(1, rows), Inlet(2, rows)], "s", to_files
    )
    assert both.packed([(MAIN, pa.table({"n": [1, 2]}))]) == [(MAIN, b"path")]
    assert first.packed([(MAIN, pa.table({"n": [3]}))]) == [(MAIN, b"path")]
    assert written == [{"n": [1, 2], "relation": ["s", "s"]}, {"n": [3], "relation": ["s"]}]  # without tables that have no rows
    assert second.main_blobs is None  # another stage reads it
