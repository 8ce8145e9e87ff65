"""Combining: whether rows of a program may fold before the shuffle, and if not, why."""

from __future__ import annotations

from windowpane.engines.columnar import fold_of
from windowpane.engines.combiner import Combiner
from windowpane.engines.panes.timed import TimedPanesEngine
from windowpane.engines.program import Program, Upstream
from windowpane.engines.sessions.engine import SessionsEngine
from windowpane.engines.slices.engine import SlicesEngine, refines_each
from windowpane.engines.slicing import SharedSlices
from windowpane.engines.staggering import is_staggered
from windowpane.windowing.arrow_functions import ArrowWindowFunction

_COMBINING: dict[str, type[SlicesEngine | SessionsEngine | TimedPanesEngine]] = {
    engine.name: engine for engine in (SlicesEngine, SessionsEngine, TimedPanesEngine)
}


def combiner_refusal(program: Program) -> str | None:
    """Return why the rows of a program must arrive whole, ``None`` if they may fold before the shuffle."""
    if program.engine not in _COMBINING:
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
    return _refusal_by_windows(program)


def _refusal_by_windows(program: Program) -> str | None:
    """Return why the windows of a row are not known outside its bucket."""
    assigner = program.spec.assigner
    if program.engine == SessionsEngine.name:
        if program.order_by:
            return "order_by tells which rows of a session come late"
        return None if assigner.is_event_time else "sessions begin by the clock of the bucket"
    slices = SharedSlices.of(assigner)
    if is_staggered(assigner):
        return "a bucket shifts its windows when its first rows come"
    if slices is not None and slices.has_gaps and assigner.is_event_time:
        return "rows between windows are judged by their own time"
    if refines_each(program.spec):
        return "late rows fire one by one"
    if program.engine == TimedPanesEngine.name and program.order_by:
        return "order_by tells which row of a key comes first"
    return None


def combiner_of(program: Program) -> Combiner | None:
    """Return what folds rows before the shuffle, ``None`` where they must arrive whole."""
    if combiner_refusal(program):
        return None
    engine = _COMBINING[program.engine](program)
    return Combiner(engine.fold_rows, engine.folding) if isinstance(engine, SlicesEngine) else Combiner(engine.fold_rows)
