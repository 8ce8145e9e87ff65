"""The columnar OVER engines as the operators that the vectors of RisingWave speak of: changes in, changes out, no watermark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from verify.conformance.reading.fields import NotUnderstoodError
from verify.conformance.reading.over_ops import SIGNS, WORDS
from windowpane.arrays.values import Row
from windowpane.engines.over.close import OverCloseEngine, OverCloser
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.over.update import OverUpdateEngine
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import TIME
from windowpane.state.entries import MemoryEntries
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.over.spec import OverSpec
from windowpane.windowing.times import MIN


class _Blobs:
    """A blob store over entries."""

    def __init__(self, entries: MemoryEntries) -> None:
        self._entries = entries

    def get(self, key: str) -> bytes | None:
        return self._entries.get(key.encode())

    def prefetch(self, keys: Sequence[str]) -> None:
        """Nothing is far away."""

    def put(self, key: str, blob: bytes) -> None:
        self._entries.put(key.encode(), blob)

    def remove(self, key: str) -> None:
        self._entries.delete(key.encode())


class ColumnarOver:
    """One of the two engines on its state."""

    def __init__(self, mode: str, spec: OverSpec, columns: pa.Schema, outputs: pa.Schema, entries: MemoryEntries) -> None:
        self._blobs = _Blobs(entries)
        self._program = OverProgram(spec, columns, outputs, Emit.UPDATE if mode == "general" else Emit.CLOSE, append_only=True)
        closes = self._program.mode is Emit.CLOSE
        reason = (OverCloseEngine if closes else OverUpdateEngine).refusal(self._program)
        if reason is not None:
            raise NotUnderstoodError(f"the columnar engine does not run it: {reason}")

    def process(self, changes: list[tuple[str, Row]]) -> list[tuple[str, Row]]:
        """Take changes, (sign, row), and return those that are emitted."""
        table = self._table(changes)
        if self._program.mode is Emit.CLOSE:
            done = OverCloser(OverCloseEngine(self._program), self._blobs).take(table.drop_columns([CHANGE_TYPE]), MIN)
            return [("+", row) for row in self._rows(done)]
        output = OverUpdateEngine(self._program).run(self._blobs, [table], Clock(MIN, 0))
        emitted = next((rows for number, rows in output.tables if number == MAIN), None)
        words = [] if emitted is None else emitted[CHANGE_TYPE].to_pylist()
        return list(zip([SIGNS[word] for word in words], self._rows(emitted), strict=True))

    def flush(self) -> None:
        """Everything is in the state already."""

    def _table(self, changes: list[tuple[str, Row]]) -> pa.Table:
        columns = [pa.array([row[field.name] for _, row in changes], field.type) for field in self._program.columns]
        table = pa.table(columns, schema=self._program.columns)
        table = table.append_column(TIME, pa.nulls(len(changes), pa.int64()))
        return table.append_column(CHANGE_TYPE, pa.array([WORDS[sign] for sign, _ in changes], pa.string()))

    def _rows(self, table: pa.Table | None) -> list[Row]:
        names = [*self._program.columns.names, *self._program.outputs.names]
        rows: list[Row] = [] if table is None else table.select(names).to_pylist()
        return rows
