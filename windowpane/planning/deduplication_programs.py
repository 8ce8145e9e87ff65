"""Programs of deduplication: a plan resolved against the types of its input, with its engine.

As ``window_programs``, this module reads the registry of engines, and is imported only where programs are made.
"""

from __future__ import annotations

import pyarrow as pa

from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.program import Upstream
from windowpane.planning.deduplication import DeduplicationPlan
from windowpane.planning.description.programs import of_deduplication
from windowpane.planning.engines import with_engine


def compile_deduplication(
    plan: DeduplicationPlan,
    columns: pa.Schema,
    keys: tuple[str, ...],
    passed: tuple[str, ...],
    upstream: Upstream,
    instant: pa.DataType,
) -> DeduplicationProgram:
    """Return the program of a plan; the columns that are ``passed`` are emitted, ``instant`` is the type of event time.

    Raises:
        InvalidSpecError: there is no engine of the requested name.
    """
    program = DeduplicationProgram(
        keys=keys,
        columns=columns,
        passed=passed,
        within=plan.within,
        keep=plan.keep,
        is_event_time=plan.is_event_time,
        allowed_lateness=plan.settings.allowed_lateness,
        order_by=plan.order_by,
        has_late_output=plan.settings.late_tag is not None,
        upstream=upstream,
        instant=instant,
    )
    return with_engine(program, plan.settings.engine, lambda chosen: of_deduplication(chosen, plan.event_time))
