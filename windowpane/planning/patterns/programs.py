"""Programs of row patterns: a plan resolved against the types of its input, with its engine, and what is refused on a stream.

This module reads the registry of engines, and is imported only where programs are made.
"""

from __future__ import annotations

import warnings

import pyarrow as pa

from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.program import Upstream
from windowpane.errors import NeverClosesError, UnboundedPatternWarning, UnboundedStateError
from windowpane.planning.description.programs import of_patterns
from windowpane.planning.engines import with_engine
from windowpane.planning.patterns.plan import PatternPlan
from windowpane.windowing.patterns.spec import PatternSpec
from windowpane.windowing.patterns.tree import Absence, Last, Passing, Repetition, every_part, longest, variables


def compile_pattern_program(
    plan: PatternPlan, columns: pa.Schema, keys: tuple[str, ...], measures: pa.Schema, passed: tuple[str, ...], upstream: Upstream
) -> PatternProgram:
    """Return the program of a plan; ``passed`` are the columns that are emitted with late rows and rows of matches.

    Raises:
        InvalidSpecError: the requested engine cannot run it, or there is none of that name.
    """
    program = PatternProgram(
        spec=plan.spec,
        keys=keys,
        columns=columns,
        measures=measures,
        passed=passed,
        event_time=plan.event_time,
        order_by=plan.order_by,
        allowed_lateness=plan.settings.allowed_lateness,
        retain=plan.retain,
        has_late_output=plan.settings.late_tag is not None,
        upstream=upstream,
    )
    return with_engine(program, plan.settings.engine, lambda chosen: of_patterns(chosen, plan.conditions))


def check_bounds(spec: PatternSpec) -> None:
    """Refuse on a stream what waits for ever or holds ever more, and warn of what holds as much as the data says.

    Raises:
        NeverClosesError: without a bound, nothing says that no further row comes.
        UnboundedStateError: without a bound, an attempt may wait with every row to come.
    """
    if spec.within is not None:
        return
    parts = list(every_part(spec.pattern))
    for part in parts:
        if isinstance(part, Last | Absence):
            raise NeverClosesError(
                f"pattern '{spec.pattern}'",
                "on a stream no watermark says that a key has no further row: add .within('30 minutes'), in SQL WITHIN",
            )
        if isinstance(part, Passing) or (isinstance(part, Repetition) and part.most is None and _takes_all(part, spec)):
            raise UnboundedStateError.of_pattern(spec.pattern, part)
    if longest(spec.pattern) is None:
        warnings.warn(UnboundedPatternWarning(str(spec.pattern)), stacklevel=2)


def _takes_all(part: Repetition, spec: PatternSpec) -> bool:
    return any(name not in spec.conditions for name in variables(part))
