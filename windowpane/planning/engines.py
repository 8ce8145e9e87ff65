"""Which engine runs a program: chosen once, and kept with its reason in it; and whether its rows fold before the shuffle."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import cast

from windowpane.engines.changes import Description
from windowpane.engines.changing import WindowsAfterCut
from windowpane.engines.combiner import Combiner
from windowpane.engines.common.columnar import fold_of
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.program import Program, Upstream
from windowpane.engines.protocol import Engine
from windowpane.engines.registry import P, engines_for
from windowpane.engines.spec import BucketEngine, Combining, choose
from windowpane.windowing.arrow_functions import ArrowWindowFunction


def with_engine(program: P, wanted: str | None = None, described: Callable[[P], Description] | None = None) -> P:
    """Return the program with the fastest engine that covers it exactly, or the requested one, and what a restart compares."""
    choice = choose(engines_for(program), program, wanted)
    chosen = dataclasses.replace(program, engine=choice.engine.name, engine_reason=choice.reason)
    return chosen if described is None else dataclasses.replace(chosen, description=described(chosen))


def engine_of(program: P) -> Callable[[P], Engine]:
    """Return the class of the engine that runs ``program``: a worker that is sent it imports no other engine."""
    if isinstance(program, Program) and program.generation:
        make = cast("Callable[[Program], Engine]", _class_of(program))
        return partial(WindowsAfterCut, make, [_class_of(each) for each in program.earlier])
    return _class_of(program)


def make_engine(program: P) -> Engine:
    return engine_of(program)(program)


def state_text(program: P) -> str:
    return _class_of(program).state


def _class_of(program: P) -> type[BucketEngine[P]]:
    return next(each for each in engines_for(program) if each.name == program.engine)


def combiner_refusal(program: Program) -> str | None:
    """Return why the rows of a program must arrive whole, ``None`` if they may fold before the shuffle."""
    combining = _class_of(program).combining
    return f"the {program.engine} engine takes every row" if combining is None else _refusal(program, combining)


def combiner_of(program: Program) -> Combiner | None:
    """Return what folds rows before the shuffle, ``None`` where they must arrive whole."""
    combining = _class_of(program).combining
    return None if combining is None or _refusal(program, combining) else combining.combiner(program)


def combiner_of_patterns(program: PatternProgram, *, foresees_watermark: bool) -> Combiner | None:
    """Return what leaves out rows of a pattern before the shuffle, ``None`` where all are sent."""
    combining = _class_of(program).combining
    if combining is None or combining.refusal(program) or (program.has_late_output and not foresees_watermark):
        return None
    return combining.combiner(program)


def _refusal(program: Program, combining: Combining[Program]) -> str | None:
    if program.earlier:
        return "an earlier program finishes its windows, and takes every row"
    if program.late_output is not None and not combining.folds_punctual:
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
    if fold is not None and fold.is_ordered and not combining.folds_ordered:
        return "an aggregate depends on the order of arrival"
    return combining.refusal(program)
