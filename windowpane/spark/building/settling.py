"""Settle a changelog for those who take rows: an operator that emits the rows that stay, in front of them in the same query."""

from __future__ import annotations

import dataclasses

from pyspark.sql import types as T

from windowpane.engines.program import LATE, MAIN
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import PARTITION, POSITION, SYSTEM
from windowpane.planning.engines import state_text
from windowpane.planning.settling.plan import SettlingPlan
from windowpane.planning.settling.programs import compile_settling
from windowpane.spark.building.operator_input import SourceRows, add_clock
from windowpane.spark.building.outputs import Output, time_marks
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.sources.source import Source
from windowpane.spark.stages.project import Projection
from windowpane.spark.stages.types import arrow_schema, spark_schema
from windowpane.windowing.expressions import Name
from windowpane.windowing.outputs import CHANGE_TYPE, OutputTag

LATE_CHANGES = "late_changes"  # The output of changes of rows that were emitted already, or left out


def settled(source: Source, taker: str, *, is_event_time: bool = True, role: str = "settled") -> Source:
    """Return the source of rows for ``taker``; of a changelog that of the rows that stay, each once, when it is final.

    ``role`` is what tells the operator by name from others in front of the same one.
    """
    if CHANGE_TYPE not in source.dataframe.columns:
        return source
    _check(source, taker, is_event_time)
    built = _built(source, role)
    if source.upstream is not None or source.own_watermark is not None:
        return dataclasses.replace(built.followed_by(source.name), event_time=source.event_time)
    return Source.of(built.output("main"), source.event_time, None, None, source.name)


def _check(source: Source, taker: str, is_event_time: bool) -> None:
    refused = f"{taker}: the input is a changelog (it has {CHANGE_TYPE!r}), and "
    if not is_event_time:
        raise InvalidSpecError(
            f"{refused}what goes by the clock, by count or by arrival would see a row before a change takes it back. Go by event "
            "time, where a row counts when it is final; or drop that column if all rows are inserts."
        )
    kind = source.dataframe.schema[CHANGE_TYPE].dataType
    if not isinstance(kind, T.StringType):
        raise InvalidSpecError(f"{taker}: {CHANGE_TYPE!r} is {kind.simpleString()}, but a changelog has it as string.")
    if source.event_time is None and source.upstream is None:
        raise InvalidSpecError(
            f"{refused}a row of it is final when the watermark has passed its event time: name that column with event_time=, or "
            "drop the column if all rows are inserts."
        )
    if source.watermark is not None and source.watermark.of_each_key:
        raise InvalidSpecError(
            f"{refused}watermark={source.watermark!r} is one of each key, while changes of all keys settle by one. Leave per_key "
            "out."
        )
    if source.is_streaming and not source.has_watermark:
        raise InvalidSpecError(
            f"{refused}nothing says when a row of it is final. An operator passes no watermark on where a change may concern a "
            "row of any age (its explain() says why): write its changes to a table with apply_changes, and read that. To a "
            "changelog that is read, give watermark='10 minutes'."
        )


def _built(source: Source, role: str) -> BuiltProgram:
    rows = source.rows
    projection = Projection(rows)
    projection.add_system()
    names = [name for name in source.columns if name != CHANGE_TYPE]
    for name in (*names, CHANGE_TYPE):
        projection.add(name, "changelog", "")
    add_clock(projection, source)
    columns = arrow_schema(rows.select(*[projection.columns[name] for name in names]).schema, "changelog")
    program = compile_settling(columns, source.kind)
    kept = {*names, CHANGE_TYPE, *SYSTEM, PARTITION, POSITION}
    plan = SettlingPlan(source.event_time)
    selected = tuple((name, Name(name)) for name in names)
    main_types = spark_schema(program.main_schema, rows.schema)
    main = Output("main", MAIN, program.main_schema, main_types, selected, time_marks(source, selected, 0))
    late = Output.late(OutputTag(LATE_CHANGES), program.late_schema, rows.schema, source.numbered_from + LATE)
    return BuiltProgram(
        (dataclasses.replace(source, name=f"{source.name}_{role}"),),
        plan,
        operators=(Operator(program, SourceRows.of(source, projection.select(), projection, program.keys, kept)),),
        outputs={"main": main, **late},
        explained=lambda buckets: plan.explain(program, state_text(program), buckets),
    )
