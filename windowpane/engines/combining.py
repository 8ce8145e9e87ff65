"""Combining: whether rows of a program may fold before the shuffle, and if not, why."""

from __future__ import annotations

from windowpane.engines.columnar import fold_of
from windowpane.engines.combiner import Combiner
from windowpane.engines.program import Program, Upstream
from windowpane.engines.registry import WINDOW_ENGINES
from windowpane.engines.spec import named
from windowpane.windowing.arrow_functions import ArrowWindowFunction


def combiner_refusal(program: Program) -> str | None:
    """Return why the rows of a program must arrive whole, ``None`` if they may fold before the shuffle."""
    combining = named(WINDOW_ENGINES, program.engine).combining
    if combining is None:
        return f"the {program.engine} engine takes every row"
    if program.late_output is not None:
        return "late rows are asked for whole"
    if program.upstream is not Upstream.SOURCE:
        return "rows of an earlier window are judged one by one"
    if program.spec.evictor is not None:
        return "an evictor needs every row"
    if isinstance(program.arrow, ArrowWindowFunction):
        return "the function is given whole rows"
    fold = fold_of(program)
    if fold is not None and fold.is_ordered:
        return "an aggregate depends on the order of arrival"
    return combining.refusal(program)


def combiner_of(program: Program) -> Combiner | None:
    """Return what folds rows before the shuffle, ``None`` where they must arrive whole."""
    combining = named(WINDOW_ENGINES, program.engine).combining
    return None if combining is None or combiner_refusal(program) else combining.make(program)
