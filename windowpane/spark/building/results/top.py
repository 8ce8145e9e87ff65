"""Build a Top-N of windows: the first rows of each window over the results of a window program, in the same query.

A result has the event time of the last microsecond of its window. So the rows of a window meet again in the window of that one
microsecond, by what the top is taken per, and leave it with the bounds of their own window.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as T

from windowpane.engines.panes.engine import PanesEngine
from windowpane.engines.program import WINDOW_END, WINDOW_START, Program
from windowpane.errors import InvalidSpecError, MistakeError, UnsupportedTypeError
from windowpane.hidden_columns import PREFIX, hidden
from windowpane.kernels.keys.ordered_codes import is_sortable
from windowpane.kernels.sorting.column_order import TopRows
from windowpane.planning.settings import Settings
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.spark.building.program import BuiltProgram
from windowpane.spark.building.windows import build_windows
from windowpane.spark.sources.source import Source
from windowpane.spark.stages.project import refuse_compared_collations
from windowpane.spark.stages.types import arrow_schema
from windowpane.windowing.aggregates.results import Select, Where
from windowpane.windowing.arrow_functions import ArrowWindowFunction
from windowpane.windowing.assigners import ClosedSessionWindows, TumblingEventTimeWindows
from windowpane.windowing.expressions import Name
from windowpane.windowing.functions import PassThrough
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.triggers import ProcessingTimeoutTrigger, PurgingTrigger

RANK = "rank"
_START = hidden("result_start")  # The start of the window of a result
_MICROSECOND = TumblingEventTimeWindows(1)


def build_top(source: Source, earlier: BuiltProgram, count: int, order: OrderColumn, per: Sequence[str]) -> BuiltProgram:
    plan, program = earlier.plan, earlier.operators[-1].program
    if not isinstance(plan, WindowPlan):
        raise MistakeError("the fluent API offers it on windows only")
    if not isinstance(program, Program):
        raise MistakeError("windows are run by one")
    results = source.dataframe.schema
    columns = [field for field in results.fields if not field.name.startswith(PREFIX)]
    names = [field.name for field in columns]
    by, *per = source.require((order.name, *per), "top")
    order = dataclasses.replace(order, name=by)
    _check(plan, names, per)
    newest = plan.settings.allowed_lateness > 0 or not program.spec.fires_at_window_end
    identity = _identity(plan, program, newest, per)
    _check_steps(earlier, names, identity, newest)
    refuse_compared_collations([results[order.name]], "top")
    kind = arrow_schema(T.StructType([results[order.name]]), "top").field(0).type
    if not is_sortable(kind):
        raise UnsupportedTypeError(f"top by={order.name!r}: a column of {kind} has no order. Order by a field of it.")
    rows = TopRows(count, order, (_START, *per), tuple(name for name in identity if name not in per), newest)
    others = [field for field in columns if field.name not in (WINDOW_START, WINDOW_END, *per)]
    function = FunctionPlan(
        "top",
        arrow=ArrowWindowFunction(_Top(rows), "top"),
        schema=T.StructType([*others, T.StructField(RANK, T.LongType(), False)]),
        text=f"top {count} results of {' and '.join(('each window', *per))} by {order}",
    )
    top = WindowPlan(
        keys=tuple(per),
        assigner=_MICROSECOND,
        function=function,
        settings=Settings(plan.settings.allowed_lateness, engine=PanesEngine.name),
    )
    renamed = source.dataframe.withColumnRenamed(WINDOW_START, _START).drop(WINDOW_END)
    return build_windows(dataclasses.replace(source, dataframe=renamed), top, tuple(per), ())


@dataclass(frozen=True)
class _Top:
    """The top of the results of windows, which leave with their own bounds."""

    rows: TopRows

    def __call__(self, results: pa.Table) -> pa.Table:
        top, ranks = self.rows.of(results)
        start = top.column_names.index(WINDOW_START)
        own = top.set_column(start, WINDOW_START, top[_START]).drop_columns([_START])
        return own.append_column(RANK, pa.array(ranks, pa.int64()))


def _check(plan: WindowPlan, names: Sequence[str], per: Sequence[str]) -> None:
    if not plan.assigner.is_event_time:
        raise InvalidSpecError(
            f"top takes the first rows of windows by event time, and {plan.assigner!r} makes none: there is no time at which "
            "all results of a window have been emitted."
        )
    if plan.merges or isinstance(plan.assigner, ClosedSessionWindows):
        raise InvalidSpecError(
            f"top takes the first of the rows that share a window, and with {plan.assigner!r} each key has sessions of its own. "
            "Put the sessions into a window first: sessions.window_all(wp.TumblingEventTimeWindows.of('1 day')).aggregate("
            "longest=wp.max('total'))."
        )
    if RANK in names:
        raise InvalidSpecError(f"top adds a column {RANK!r}, and there is one already: give that another name.")
    if bounds := sorted({WINDOW_START, WINDOW_END} & set(per)):
        raise InvalidSpecError(f"per={bounds!r}: every window has a top of its own anyway.")


def _check_steps(earlier: BuiltProgram, names: Sequence[str], identity: Sequence[str], newest: bool) -> None:
    if lacking := [name for name in (WINDOW_START, WINDOW_END, *identity) if name not in names]:
        raise InvalidSpecError(f"top needs the keys and windows of the results, and select has left out {lacking}: keep them.")
    steps = earlier.outputs["main"].steps
    kept = {WINDOW_START, WINDOW_END, *(identity if newest else ())}
    selected = [each for step in steps if isinstance(step, Select) for each in step.columns]
    if changed := [name for name, made in selected if name in kept and not (isinstance(made, Name) and made.name == name)]:
        raise InvalidSpecError(
            f"top needs the keys and windows of the results as they are, and select has put others under the names {changed}: "
            "give these names of their own."
        )
    if newest and any(isinstance(step, Where) for step in steps):
        raise InvalidSpecError(
            "top takes the newest result of each key, and behind where a later one that is left out would leave the one before "
            "in it: these windows fire again (early results, allowed lateness). Filter the top instead."
        )


def _identity(plan: WindowPlan, program: Program, newest: bool, per: Sequence[str]) -> tuple[str, ...]:
    """Return the keys, which distinguish the results of a window, as far as they have an order."""
    ordered = tuple(field.name for field in program.keys if is_sortable(field.type))
    if not newest:
        return ordered
    trigger = plan.effective_trigger
    while isinstance(trigger, ProcessingTimeoutTrigger):
        trigger = trigger.inner
    if isinstance(trigger, PurgingTrigger) or plan.panes.accumulation == "discarding":
        raise InvalidSpecError(
            "top compares whole results, and here each result has only the rows since the one before: say "
            ".accumulation('accumulating')."
        )
    function = plan.function
    processes = function.process is not None or not (function.spec is None or isinstance(function.spec.process, PassThrough))
    if processes or function.kind.startswith("apply") or len(ordered) < len(program.keys):
        raise InvalidSpecError(
            "top needs to know which result a later one replaces: of windows that fire again (early results, allowed lateness) "
            "it takes those of aggregate, reduce and fold, one for each key, by keys that have an order."
        )
    if changing := sorted(set(per) - set(ordered)):
        raise InvalidSpecError(
            f"per={changing!r}: these windows fire again (early results, allowed lateness), and a later result of a key may have "
            "another value there, while the one before stays in the top of its own. Take the top per keys."
        )
    return ordered
