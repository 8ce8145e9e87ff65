"""An aggregate that is one module outside of the package, the one of docs/extending.md, runs wherever those of the package do."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import windowpane as wp
from tests.docs.documents import ROOT, python_blocks, run
from tests.engines.columnar_programs import columnar_engine, program_of
from windowpane.engines.over.program import OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.protocol import Clock, Engine
from windowpane.engines.rolling.engine import RollingEngine
from windowpane.engines.rolling.point_in_time import PointInTimeEngine
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.engines.rolling.reference import RollingReferenceEngine
from windowpane.errors import AggregateTypeError, InvalidSpecError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.sql import Session
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.aggregates import Aggregate, Definition, define, definition, definition_of
from windowpane.windowing.frames import CURRENT_ROW, RUNNING_ROWS, Frame, preceding
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow
from windowpane.windowing.times import MIN

VALUES = [("a", 3, 1), ("a", 40, 2), ("b", 7, 3), ("a", None, 4), ("b", 9, 5), ("a", 1, 12)]
"""Key, value and event time."""
ROLLED = [("a", 4, 37), ("a", 14, 0), ("a", 24, None), ("b", 4, 0), ("b", 9, 2), ("b", 14, 0), ("b", 19, None)]
"""The spread of the last 10 at each tick of 5 that changes it, by hand."""


@pytest.fixture(autouse=True)
def only_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the aggregates that a test defines."""
    monkeypatch.setattr(definition, "_DEFINITIONS", dict(definition._DEFINITIONS))


@pytest.fixture
def spread(only_here: None) -> Any:
    """Return the function of the page."""
    page, names = ROOT / "docs" / "extending.md", {"__name__": "spread", "wp": wp}
    block = next(block for block in python_blocks(page) if "class Spread" in block)
    run(block, page, names)
    return names["spread"]


def table(**columns: pa.Array) -> pa.Table:
    system = {PARTITION: pa.array([0] * len(VALUES), pa.int32()), POSITION: pa.array(range(len(VALUES)), pa.int64())}
    return pa.table({**columns, TIME: pa.array([time for _, _, time in VALUES], pa.int64()), **system})


def keys() -> pa.Array:
    return pa.array([key for key, _, _ in VALUES], pa.string())


def values() -> pa.Array:
    return pa.array([value for _, value, _ in VALUES], pa.int64())


def emitted(engine: Engine, rows: pa.Table, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    store = MemoryBlobStore()
    outputs = [engine.run(store, [rows], Clock(MIN, 0)), engine.run(store, [], Clock(100, 0))]
    return sorted(tuple(map(row.get, columns)) for each in outputs for _, found in each.tables for row in found.to_pylist())


@pytest.mark.parametrize("engine", ["row", "slices"])
def test_it_runs_in_windows(spread: Any, engine: str) -> None:
    assigner = wp.TumblingEventTimeWindows.of(10)
    program = program_of(assigner, late=False, aggregates={"s": spread("v")}, engine=engine)
    rows = table(k=keys(), v=values(), w=pa.array([0] * len(VALUES), pa.int32()))
    assert emitted(make_engine(program), rows, ["s"]) == [(0,), (2,), (37,)]


def over_program(aggregate: Aggregate, frame: Frame) -> OverProgram:
    columns = pa.schema([("k", pa.string()), ("v", pa.int64()), ("t", pa.int64())])
    order = (OrderColumn("t", nulls_first=True),)
    spec = OverSpec(("k",), order, ("t",), (OverCall(aggregate.name, aggregate.arguments, frame),))
    return OverProgram(spec, columns, output_schema(spec, columns, ["s"]))


@pytest.mark.parametrize("frame", [Frame.rows(preceding(1), CURRENT_ROW), RUNNING_ROWS], ids=str)
def test_it_runs_over_frames(spread: Any, frame: Frame) -> None:
    program = over_program(spread("v"), frame)
    rows = table(k=keys(), v=values(), t=pa.array([time for _, _, time in VALUES], pa.int64()))
    wanted = {1: 0, 2: 37, 3: 0, 4: 37 if frame is RUNNING_ROWS else 0, 5: 2, 12: 39 if frame is RUNNING_ROWS else 0}
    for engine in (columnar_engine(program), OverReferenceEngine(program)):
        output = engine.run(MemoryBlobStore(), [rows], Clock(MIN, 0))
        assert {row["t"]: row["s"] for _, found in output.tables for row in found.to_pylist()} == wanted


def test_it_runs_in_rolling_features(spread: Any) -> None:
    spec = RollingSpec((RollingCall("s", spread("v"), RollingWindow(10, 5, False)),), 5, RollingEmit.TICK)
    columns, keyed = pa.schema([("v", pa.int64())]), pa.schema([("k", pa.string())])
    program = RollingProgram(spec, keyed, ("k",), columns, pa.int64())
    assert with_engine(program).engine == "rolling"
    for engine in (RollingEngine(program), RollingReferenceEngine(program)):
        assert emitted(engine, table(k=keys(), v=values()), ("k", "as_of", "s")) == ROLLED


def test_the_kernels_of_static_labels_refuse_it_by_name(spread: Any) -> None:
    spec = RollingSpec((RollingCall("s", spread("v"), RollingWindow(10, 1, True)),), 1, RollingEmit.BATCH)
    keyed, columns = pa.schema([("k", pa.string())]), pa.schema([("v", pa.int64())])
    program = PointInTimeProgram(spec, keyed, columns, pa.schema([(TIME, pa.int64())]), ("at",), True)
    assert "no kernel computes spread('v')" in str(PointInTimeEngine.refusal(program))


def test_it_runs_in_sql(spread: Any) -> None:
    session = Session(store=":memory:")
    session.run("CREATE TABLE d (id INT PRIMARY KEY, k VARCHAR, v INT)")
    session.run("CREATE MATERIALIZED VIEW s AS SELECT k, spread(v) AS s FROM d GROUP BY k")
    session.run("INSERT INTO d VALUES (1, 'a', 3), (2, 'a', 40), (3, 'b', 7), (4, 'a', NULL), (5, 'b', 9)")
    session.run("DELETE FROM d WHERE id = 2")
    session.run("FLUSH")
    assert session.query("SELECT s FROM s ORDER BY k").columns.column(0).to_pylist() == [0, 2]
    over = "SELECT spread(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM d ORDER BY id"
    assert session.query(over).columns.column(0).to_pylist() == [0, 0, 0, 2]
    with pytest.raises(Exception, match=r"spread.* takes an integer"):
        session.query("SELECT spread(k) FROM d")


@pytest.mark.spark
@pytest.mark.slow
def test_it_runs_in_a_view_on_spark_whose_workers_import_its_module(
    spark: Any, tmp_path: Path, only_here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "extending.md"
    (tmp_path / "spread.py").write_text(next(block for block in python_blocks(page) if "class Spread" in block))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("spread")
    spark.sparkContext.addPyFile(str(tmp_path / "spread.py"))
    with Session(spark) as session:
        session.run("CREATE TABLE d (id INT PRIMARY KEY, k VARCHAR, v INT)")
        session.run("CREATE MATERIALIZED VIEW s AS SELECT k, spread(v) AS s FROM d GROUP BY k")
        session.run("INSERT INTO d VALUES (1, 'a', 3), (2, 'a', 40), (3, 'b', 7), (4, 'a', NULL), (5, 'b', 9); FLUSH")
        session.run("DELETE FROM d WHERE id = 2; FLUSH")
        assert session.query("SELECT k, s FROM s ORDER BY k").rows() == [("a", 0), ("b", 2)]


def test_what_has_no_columnar_form_is_refused_by_name(spread: Any) -> None:
    known = definition_of("spread")
    define(Definition(**{**vars(known), "name": "slow_spread", "columnar": None, "sql": None}))
    aggregate = Aggregate.of("slow_spread", "v")
    assigner = wp.TumblingEventTimeWindows.of(10)
    assert program_of(assigner, late=False, aggregates={"s": aggregate}).engine == "row"
    with pytest.raises(InvalidSpecError, match=r"slow_spread\('v'\) has no columnar form"):
        program_of(assigner, late=False, aggregates={"s": aggregate}, engine="slices")
    with pytest.raises(Exception, match="no function 'slow_spread'"):
        Session(store=":memory:").query("SELECT slow_spread(1)")


def test_no_property_has_a_default() -> None:
    """A new aggregate that keeps its values is never taken for one that does not."""
    said = r"'holistic', 'ordered', 'exact', 'idempotent', 'invertible', 'returns', and 'compared_from'"
    with pytest.raises(TypeError, match=said):
        Definition(name="spread", bind=lambda call: None)  # type: ignore[call-arg, arg-type, return-value]


def test_it_travels_with_what_uses_it(spread: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = cloudpickle.dumps((spread("v"), OverCall("spread", ("v",), RUNNING_ROWS)))
    monkeypatch.delitem(definition._DEFINITIONS, "spread")
    with pytest.raises(InvalidSpecError, match="there is no aggregate 'spread'"):
        Aggregate.of("spread", "v")
    aggregate, call = pickle.loads(sent)
    assert aggregate.bind([pa.int32()]).result_type == pa.int64()
    assert call.aggregate.definition.name == "spread"


def test_the_name_of_a_built_in_one_is_refused_and_so_are_types_that_it_does_not_take(spread: Any) -> None:
    known = definition_of("spread")
    with pytest.raises(InvalidSpecError, match="max is a built-in aggregate"):
        define(Definition(**{**vars(known), "name": "max"}))
    with pytest.raises(AggregateTypeError, match="an integer"):
        spread("v").bind([pa.string()])
