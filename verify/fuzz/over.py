"""Kind ``over``: random OVER windows against DuckDB on the input so far, or against the reference, batch by batch."""

from __future__ import annotations

import warnings
from functools import cache

from verify.fuzz.outcome import Outcome, raised
from verify.fuzz.over_parts.inputs import Batch, Trial, random_trial
from verify.fuzz.over_parts.oracle import Oracle
from verify.fuzz.over_parts.run import MakeEngine, NotCoveredError, check_beside, check_trial
from verify.sizes import drawn_sizes
from windowpane.engines.over.program import OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.protocol import Engine
from windowpane.planning.engines import make_engine, with_engine


def _columnar(program: OverProgram) -> Engine:
    chosen = with_engine(program)
    if chosen.engine == OverReferenceEngine.name:
        raise NotCoveredError(chosen.engine_reason)
    return make_engine(chosen)


ENGINES: dict[str, MakeEngine] = {"reference": OverReferenceEngine, "columnar": _columnar}
"""What makes the engine of a program, by name."""


@cache
def _oracle() -> Oracle:
    return Oracle()


def run(seed: int, engine: str = "reference", against: str = "duckdb") -> Outcome:
    """Run the program of a seed on an engine and compare it with DuckDB, or with the ``reference``, which takes half the time."""
    trial = random_trial(seed)
    try:
        with drawn_sizes(seed), warnings.catch_warnings():
            warnings.simplefilter("error")
            differences = _checked(trial, ENGINES[engine], against)
    except NotCoveredError as reason:
        return Outcome(seed, described(trial), f"{engine} does not cover it ({reason})")
    except Exception as error:  # a program that raises is a finding like any other
        differences = [raised(error)]
    return Outcome(seed, described(trial), engine, differences)


def _checked(trial: Trial, make_engine: MakeEngine, against: str) -> list[str]:
    if against == "duckdb" and trial.beyond_duckdb and make_engine is ENGINES["reference"]:
        raise NotCoveredError(f"DuckDB does not say: {trial.beyond_duckdb}")
    if against == "duckdb" and not trial.beyond_duckdb:
        return check_trial(trial, make_engine, _oracle())
    return check_beside(trial, make_engine, ENGINES["reference"])


def described(trial: Trial) -> str:
    """Return the program and its batches as text."""
    program = trial.program
    order = {name: str(program.columns.field(name).type) for name in program.spec.order_names}
    batches = [f"  batch {number}: {_described(batch)}" for number, batch in enumerate(trial.batches)]
    return "\n".join([f"{program.mode.value}: {program.spec} {order}", *batches])


def _described(batch: Batch) -> str:
    return f"{batch.rows.num_rows} rows, watermark {batch.watermark}{', restart' if batch.restart else ''}"
