"""Columns of PARTITION BY whose equal values are written differently: each row is emitted, and deleted, as it arrived."""

from typing import Any

import pyarrow as pa
import pytest

from tests.engines.columnar_programs import columnar_engine
from windowpane.engines.over.program import OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.frames import WHOLE_PARTITION
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.times import MIN


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("make", [columnar_engine, OverReferenceEngine])
def test_rows_of_one_partition_keep_the_sign_of_their_zeros(make: Any, kind: pa.DataType) -> None:
    """A text beside the column makes the place of a partition a hash; its values are stored once for a run of rows."""
    columns = pa.schema([("word", pa.string()), ("p", kind), ("t", pa.int64()), ("id", pa.int64())])
    spec = OverSpec(("word", "p"), (OrderColumn("t", nulls_first=False),), ("id",), (OverCall("count", (), WHOLE_PARTITION),))
    program = OverProgram(spec, columns, output_schema(spec, columns, ["n"]))
    engine, store = make(program), MemoryBlobStore()
    values = [0.0, -0.0, -0.0, 0.0]

    def run(places: list[int], word: str) -> dict[str, list[tuple]]:
        rows = [{"word": "w", "p": values[place], "t": place, "id": place} for place in places]
        table = pa.Table.from_pylist(rows, schema=columns).append_column(TIME, pa.array([None] * len(rows), pa.int64()))
        for name in (PARTITION, POSITION):
            table = table.append_column(name, pa.array(range(len(rows)), pa.int64()))
        table = table.append_column(CHANGE_TYPE, pa.array([word] * len(rows)))
        changes = [
            row for number, part in engine.run(store, [table], Clock(MIN, 0)).tables if number == MAIN for row in part.to_pylist()
        ]
        return {
            each: [(row["id"], repr(row["p"]), row["n"]) for row in changes if row[CHANGE_TYPE] == each]
            for each in dict.fromkeys(row[CHANGE_TYPE] for row in changes)
        }

    shown = [repr(value) for value in values]
    assert run([0, 1, 2], "insert") == {"insert": [(place, shown[place], 3) for place in range(3)]}
    assert run([3], "insert") == {
        "update_preimage": [(place, shown[place], 3) for place in range(3)],
        "update_postimage": [(place, shown[place], 4) for place in range(3)],
        "insert": [(3, shown[3], 4)],
    }
    assert run([0, 1, 2, 3], "delete") == {"delete": [(place, shown[place], 4) for place in range(4)]}
