"""Which engine runs a program: chosen once, and kept with its reason in it; and whether its rows fold before the shuffle."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from windowpane.engines.combiner import Combiner
from windowpane.engines.common.columnar import fold_of
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.over.program import OverProgram
from windowpane.engines.program import Program, Upstream
from windowpane.engines.protocol import Engine
from windowpane.engines.registry import engines_for
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.engines.spec import EngineSpec, choose
from windowpane.windowing.arrow.functions import ArrowWindowFunction

P = TypeVar("P", Program, OverProgram, RollingProgram, PointInTimeProgram, DeduplicationProgram, JoinProgram)


def with_engine(program: P, wanted: str | None = None) -> P:
    """Return the program with the fastest engine that covers it exactly, or the requested one.

    Raises:
        InvalidSpecError: the requested engine cannot run the program, or no engine has that name.
    """
    choice = choose(engines_for(program), program, wanted)
    return dataclasses.replace(program, engine=choice.engine.name, engine_reason=choice.reason)


def engine_of(program: P) -> Callable[[P], Engine]:
    """Return the class of the engine that runs ``program``: a worker that is sent it imports no other engine."""
    return _spec_of(program).make


def make_engine(program: Any) -> Engine:
    """Return the engine that runs ``program``."""
    return engine_of(program)(program)


def state_text(program: Any) -> str:
    """Return what the state of a program's engine is, for people."""
    return _spec_of(program).state


def _spec_of(program: Any) -> EngineSpec[Any]:
    return next(each for each in engines_for(program) if each.name == program.engine)


def combiner_refusal(program: Program) -> str | None:
    """Return why the rows of a program must arrive whole, ``None`` if they may fold before the shuffle."""
    engine = _spec_of(program)
    if engine.combining_refusal is None:
        return f"the {program.engine} engine takes every row"
    if program.late_output is not None and not engine.folds_punctual:
        return "late rows are an output, and needed whole"
    if program.late_output is not None and not program.foresees_watermark:
        return "late rows are an output, and needed whole: no task knows a bound of the watermark"
    if program.upstream is not Upstream.SOURCE:
        return "rows of an earlier window are late one by one"
    if program.spec.evictor is not None:
        return "an evictor needs every row"
    if isinstance(program.arrow, ArrowWindowFunction):
        return "the function is given whole rows"
    fold = fold_of(program)
    if fold is not None and fold.is_ordered and not engine.folds_ordered:
        return "an aggregate depends on the order of arrival"
    return engine.combining_refusal(program)


def combiner_of(program: Program) -> Combiner | None:
    """Return what folds rows before the shuffle, ``None`` where they must arrive whole."""
    combiner: Combiner | None = None if combiner_refusal(program) else make_engine(program).combiner  # type: ignore[attr-defined]
    return combiner
