"""What an import brings along: every Python worker of Spark pays for it again, if it is not forked from our daemon."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import windowpane as wp
from tests.engines.columnar_programs import program_of
from tests.golden.checkpoints import FOLDER, extract
from windowpane.engines.over.program import OverProgram
from windowpane.engines.program import Program
from windowpane.engines.protocol import Engine
from windowpane.planning.engines import engine_of
from windowpane.planning.engines import engine_of as over_engine_of
from windowpane.windowing.frames import RUNNING_ROWS
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec

NOT_FOR_WORKERS = {"datasketches", "duckdb", "prompt_toolkit", "psycopg", "rich", "sqlglot", "typer"}
"""What we depend on and workers need only where an aggregate, or SQL, is made with it."""

TEN_MINUTES = wp.TumblingEventTimeWindows.of("10 minutes")
ENGINES = {
    "windowpane.engines.over.close",
    "windowpane.engines.over.update",
    "windowpane.engines.over.reference",
    "windowpane.engines.panes.engine",
    "windowpane.engines.row.engine",
    "windowpane.engines.sessions.engine",
    "windowpane.engines.slices.engine",
}


def modules_after(code: str) -> set[str]:
    """Return the modules that a fresh process has after running ``code``."""
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


def over_program(engine: str) -> OverProgram:
    spec = OverSpec(("p",), (OrderColumn("t", nulls_first=False),), ("t",), (OverCall("sum", ("p",), RUNNING_ROWS),))
    columns = pa.schema([("p", pa.int64()), ("t", pa.int64())])
    return OverProgram(spec, columns, pa.schema([("s", pa.int64())]), engine=engine)


def test_the_package_needs_neither_spark_nor_an_engine() -> None:
    loaded = modules_after("import windowpane")
    assert "windowpane.planning.windows" in loaded
    assert loaded & (NOT_FOR_WORKERS | {"pandas", "pyspark"}) == set()
    assert loaded & ENGINES == set()


def test_no_engine_needs_pandas_before_it_runs() -> None:
    loaded = modules_after("import windowpane.engines.registry, windowpane.inspect.inspection")
    assert loaded >= ENGINES
    assert loaded & (NOT_FOR_WORKERS | {"pandas", "pyspark"}) == set()


def test_looking_at_a_checkpoint_needs_no_more_than_a_terminal(tmp_path: Path) -> None:
    extract(FOLDER / "sessions.tar.xz", tmp_path)
    loaded = modules_after(
        f"import sys\nfrom windowpane.cli import main\nsys.argv = ['windowpane', 'inspect', {str(tmp_path)!r}]\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code, ended.code"
    )
    assert {"windowpane.inspect.windows", "rich", "typer"} <= loaded
    assert loaded & (NOT_FOR_WORKERS | {"pandas", "pyspark", "starlette"}) <= {"rich", "typer", "datasketches"}


def test_a_worker_imports_what_every_worker_needs() -> None:
    loaded = modules_after("import windowpane.spark.stages.process, windowpane.spark.stages.encode")
    assert {"pyspark", "windowpane.engines.program"} <= loaded
    assert loaded & NOT_FOR_WORKERS == set()
    assert loaded & ENGINES == set()


def test_the_worker_that_looks_at_a_program_on_the_driver_needs_no_pandas() -> None:
    assert "pandas" not in modules_after("import windowpane.spark.stages.process")


def test_a_warmed_up_worker_has_what_every_query_needs() -> None:
    loaded = modules_after("from windowpane.spark.internals.worker import imported\nassert list(imported([])) == []")
    assert {"pandas", "windowpane.spark.stages.process", "windowpane.spark.stages.encode"} <= loaded
    assert loaded & NOT_FOR_WORKERS == set()


def sent(program: Program) -> partial[Engine]:
    return partial(engine_of(program), program)


def sent_over(engine: str) -> partial[Engine]:
    program = over_program(engine)
    return partial(over_engine_of(program), program)


@pytest.mark.parametrize(
    "maker",
    [
        sent(program_of(TEN_MINUTES, late=False)),
        sent(program_of(TEN_MINUTES, engine="row")),
        sent_over("over update"),
        sent_over("over reference"),
    ],
    ids=lambda maker: maker.func.__name__,
)
def test_a_worker_that_is_sent_an_engine_imports_no_other(maker: partial[Engine], tmp_path: Path) -> None:
    pickled = tmp_path / "engine"
    pickled.write_bytes(cloudpickle.dumps(maker))
    loaded = modules_after(f"import pathlib, pickle\npickle.loads(pathlib.Path({str(pickled)!r}).read_bytes())()")
    assert loaded & ENGINES == {maker.func.__module__}
    assert loaded & NOT_FOR_WORKERS == set()
