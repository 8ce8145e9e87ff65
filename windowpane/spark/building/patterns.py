"""Build a row pattern: a request of the fluent API and a source -> one operator on a DataFrame, and its outputs.

A condition is computed by Spark as far as it is of the current row alone. What it asks of rows before or of the match so far is
computed by the operator, as the leaves of measures are; expressions over these are Spark's again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, cast

import pyarrow as pa
from pyspark.sql import types as T

from windowpane.arrays.values import Value
from windowpane.engines.patterns.program import PATTERN_COUNTERS, TIMEOUTS, PatternProgram
from windowpane.engines.program import LATE, MAIN
from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.hidden_columns import PARTITION, POSITION, PREFIX, SYSTEM
from windowpane.planning.engines import combiner_of_patterns
from windowpane.planning.patterns.binding import Unbound, bound_spec, measure_types, refuse_no_conditions
from windowpane.planning.patterns.plan import PatternPlan, PatternRequest
from windowpane.planning.patterns.programs import check_bounds, compile_pattern_program
from windowpane.spark.building.expressions import column_of
from windowpane.spark.building.operator_input import SourceRows, next_watermark_for
from windowpane.spark.building.outputs import Output, time_marks
from windowpane.spark.building.program import BuiltProgram, Operator
from windowpane.spark.building.settling import settled
from windowpane.spark.building.windows import order_columns
from windowpane.spark.sources.source import Source
from windowpane.spark.stages.project import Projection
from windowpane.spark.stages.types import arrow_schema, spark_schema
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.calls import WindowCall
from windowpane.windowing.expressions import (
    Applied,
    Argument,
    ColumnLike,
    Constant,
    Expression,
    Final,
    Name,
    Operation,
    is_column,
    names_in,
)
from windowpane.windowing.patterns.spec import Measure, PatternSpec
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.tree import looked_for, variables
from windowpane.windowing.patterns.values import Classifier, MatchNumber, MatchTime, Moved, Picked

if TYPE_CHECKING:
    from pyspark.sql import Column


def build_pattern(source: Source, keys: tuple[ColumnLike, ...], request: PatternRequest) -> BuiltProgram:
    """Return a row pattern on the DataFrame of a source."""
    source = settled(source, "match")
    event_time = _checked(source)
    names = _Names(source, keys, request, event_time)
    spec = names.spec
    if source.is_streaming:
        check_bounds(spec)
    conditions = {name: str(condition) if is_column(condition) else repr(condition) for name, condition in request.define.items()}
    keyed_by = tuple(names.key_fields.names)
    plan = PatternPlan(spec, conditions, keyed_by, event_time, names.order, request.timeouts, request.retain, request.settings)
    program = compile_pattern_program(plan, names.arrow, names.keys, names.measure_types, names.passed, source.kind)
    kept = {*names.arrow.names, *SYSTEM, PARTITION, POSITION}
    combiner = combiner_of_patterns(program, foresees_watermark=source.foresees_watermark)
    next_watermark = next_watermark_for(combiner, source)
    options = {"combiner": combiner, "next_watermark": next_watermark}
    reads = SourceRows.of(source, names.projected, names.projection, names.keys, kept, **options)
    return BuiltProgram(
        (source,),
        plan,
        operators=(Operator(program, reads, next_watermark=next_watermark),),
        outputs=_outputs(source, plan, program, names),
        explained=partial(plan.explain, program),
        held_back=program.spec.passed_on,
        counters=PATTERN_COUNTERS,
    )


def _checked(source: Source) -> str:
    if source.upstream is not None and source.event_time is None:
        raise InvalidSpecError(
            "match takes rows of a DataFrame. For the results of a window, continue with them: "
            "wp.stream(result.df, event_time='window_end').key_by(...).match(...)."
        )
    if source.event_time is None:
        raise InvalidSpecError(
            "match needs event time, which orders the rows, and none is named: wp.stream(df, event_time='at', watermark='5 min')."
        )
    if source.watermark is not None and source.watermark.of_each_key:
        raise InvalidSpecError(
            f"watermark={source.watermark!r}: row patterns have one watermark for all keys. Leave per_key out, or use "
            ".per_source('column') for sources of which one is behind."
        )
    if source.is_streaming and not source.has_watermark:
        raise InvalidSpecError(
            "a pattern on a stream needs a watermark, else no row's place in the order is ever final: "
            f"wp.stream(df, event_time={source.event_time!r}, watermark='10 minutes')."
        )
    return source.event_time


class _Names:
    """What a request comes to over one DataFrame: the columns that Spark computes before the operator, and the spec over them."""

    def __init__(self, source: Source, keys: tuple[ColumnLike, ...], request: PatternRequest, event_time: str) -> None:
        self._rows, self._request = source.rows, request
        self._pattern = parse_pattern(request.text)
        self._variables = {*variables(self._pattern), *looked_for(self._pattern)}
        self.projection = Projection(self._rows)
        self.keys, self.key_fields = self.projection.add_keys(keys)
        self.projection.add(event_time, "event_time", "")
        self.order = order_columns(self.projection, request.order_by)
        self.input = tuple(source.columns)
        self._check()
        self.columns = self._chosen()
        late = request.settings.late_tag is not None
        self.passed = tuple(self.projection.add(name, "input", "") for name in (self.input if late else self.columns))
        conditions = {name: self._condition(name, condition) for name, condition in request.define.items()}
        self._measures: dict[str, tuple[str, Expression, bool]] = {}
        self.measured = [(name, self._measured(expression, False)) for name, expression in request.measures]
        self.key_columns = [(name, Name(key)) for name, key in zip(self.key_fields.names, self.keys, strict=True)]
        self.shown = self.key_columns if request.rows == "one" else [(name, Name(name)) for name in self.columns]
        self._refuse_twice()
        self._finish(source)
        spec = PatternSpec(
            self._pattern,
            conditions,
            request.subsets,
            tuple(Measure(*measure) for measure in self._measures.values()),
            request.rows,
            request.after_match,
            request.on_error,
            request.within,
            request.timeouts is not None,
            request.most_rows,
            request.most_steps,
        )
        self.spec = bound_spec(spec, self.arrow)
        time = self.arrow.field(event_time).type
        refuse_no_conditions(self.spec, self.arrow, time)
        self.measure_types = measure_types(self.spec, self.arrow, time)

    def _check(self) -> None:
        request = self._request
        for name in request.define:
            if name not in self._variables:
                raise InvalidSpecError(
                    f"{name}=...: {name!r} is not in the pattern {request.text!r}; its variables are {_listed(self._variables)}."
                )
        for name, of in request.subsets.items():
            unknown = of - self._variables
            if name in self._variables or unknown or not of:
                reason = (
                    f"{name!r} is a variable" if name in self._variables else f"{_listed(unknown)} is no variable of the pattern"
                )
                raise InvalidSpecError(f"subset({name}={sorted(of)}): {reason}, whose variables are {_listed(self._variables)}.")
        target = request.after_match.variable
        if target is not None and target not in self._variables | request.subsets.keys():
            raise InvalidSpecError(
                f"after_match(({request.after_match.to!r}, {target!r})): there is no variable {target!r}; there are "
                f"{_listed(self._variables | request.subsets.keys())}."
            )

    def _chosen(self) -> tuple[str, ...]:
        found: list[str] = []
        for column in self._request.columns:
            if not isinstance(column, str):
                raise InvalidSpecError(f"all_rows was given {column!r}: columns are chosen by name, '*' for all.")
            found += self.input if column == "*" else [self.projection.add(column, "all_rows", "")]
        return tuple(dict.fromkeys(found))

    def _refuse_twice(self) -> None:
        names = [name for name, _ in (*self.shown, *self.measured)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidSpecError(f"the result has two columns of the name {_listed(twice)}; give measures names of their own.")

    def _finish(self, source: Source) -> None:
        columns = tuple(self.projection.columns)
        self.projection.add_system()
        own = source.own_watermark
        for system in (source.heartbeat, None if own is None else own.source):
            if system is not None:
                self.projection.add(system, "input", "")
        self.projected = self.projection.select()
        schema = T.StructType([self.projected.schema[name] for name in columns])
        self.arrow: pa.Schema = arrow_schema(schema, "row pattern")

    # Expressions.

    def _condition(self, variable: str, condition: Argument) -> Expression:
        if is_column(condition):
            return self._computed(cast("Column", condition), variable)
        if not isinstance(condition, Expression):
            raise InvalidSpecError(
                f"{variable}={condition!r}: expected a condition, such as wp.col('price') > wp.lag('price'), or a PySpark Column."
            )
        return self._value(condition, variable)

    def _computed(self, column: Column, role: str) -> Picked:
        return Picked("last", None, self._named(column, role))

    def _named(self, column: Column, role: str) -> str:
        """Return the column that Spark computes; its name is that of what it computes, since rows of it wait in state."""
        name = f"computed_{sha256(str(column).encode()).hexdigest()[:16]}"
        return PREFIX + name if PREFIX + name in self.projection.columns else self.projection.add(column, role, name)

    def _value(self, expression: Expression, role: str) -> Expression:
        """Return an expression of a condition over values of the match; what is of the current row alone is one column."""
        if self._is_of_row(expression):
            return self._picked(expression) if isinstance(expression, Name) else self._computed(column_of(expression), role)
        if isinstance(expression, Constant):
            return self._computed(expression.value, role) if is_column(expression.value) else expression
        if isinstance(expression, Operation):
            return Operation(expression.operator, tuple(self._value(part, role) for part in expression.parts))
        if isinstance(expression, Applied | Final):
            raise InvalidSpecError(
                f"{role}={expression!r}: in a condition, functions are of the current row alone. Compute it as a column before: "
                "wp.stream(df.withColumn('x', ...))."
            )
        return self._leaf(expression, role)

    def _is_of_row(self, expression: Expression) -> bool:
        """Whether an expression is of columns of the current row alone."""
        if isinstance(expression, Name):
            return self._split(expression.name)[0] is None
        if isinstance(expression, Constant):
            return is_column(expression.value)
        parts = expression.operands
        if not isinstance(expression, Operation | Applied) or not any(names_in(part) for part in parts):
            return False
        return all(isinstance(part, Constant) or self._is_of_row(part) for part in parts)

    def _measured(self, expression: Expression, is_final: bool) -> Expression:
        """Return an expression of measures over columns of the operator's output."""
        if isinstance(expression, Final):
            return self._measured(expression.part, expression.is_final)
        if isinstance(expression, Constant):
            return expression
        if isinstance(expression, Operation):
            return Operation(expression.operator, tuple(self._measured(part, is_final) for part in expression.parts))
        if isinstance(expression, Applied):
            return Applied(expression.function, tuple(self._measured(part, is_final) for part in expression.parts))
        leaf = self._leaf(expression, "a measure")
        key = f"{leaf!r} {is_final}"
        if key not in self._measures:
            self._measures[key] = (f"{PREFIX}measure_{len(self._measures)}", leaf, is_final)
        return Name(self._measures[key][0])

    def _leaf(self, expression: Expression, role: str) -> Expression:
        if isinstance(expression, Name):
            return self._picked(expression)
        if isinstance(expression, WindowCall):
            return self._moved(expression, role)
        if isinstance(expression, Aggregate):
            return self._aggregate(expression)
        if isinstance(expression, Classifier):
            if expression.variable is not None:
                self._known(expression.variable)
            return expression
        if isinstance(expression, MatchNumber | MatchTime) and role == "a measure":
            return expression
        raise InvalidSpecError(f"{role}: {expression!r} has no meaning in a row pattern.")

    def _picked(self, name: Name, end: Literal["first", "last"] = "last", offset: int = 0) -> Picked:
        variable, column = self._split(name.name)
        return Picked(end, variable, self.projection.add(column, name.name, ""), offset)

    def _split(self, name: str) -> tuple[str | None, str]:
        variable, dot, column = name.partition(".")
        if dot and variable in self._variables | self._request.subsets.keys():
            return variable, column
        if dot and name not in self._rows.columns:
            raise UnknownColumnError(
                name, "row pattern", [*self._rows.columns, *(f"{each}.…" for each in sorted(self._variables))]
            )
        return None, name

    def _known(self, variable: str) -> None:
        if variable not in self._variables | self._request.subsets.keys():
            raise InvalidSpecError(f"there is no variable {variable!r}; there are {_listed(self._variables)}.")

    def _moved(self, call: WindowCall, role: str) -> Moved:
        plain = WindowCall(call.function, call.arguments, offset=call.offset)
        if call.function not in ("lag", "lead") or repr(plain) != repr(call):
            raise InvalidSpecError(
                f"{role}: {call!r}: a row pattern knows wp.lag and wp.lead of a column, without default, frame and window of "
                "their own; the rows of the match are asked for by wp.first, wp.last and aggregates."
            )
        (argument,) = call.arguments
        of = self._leaf(argument, role) if isinstance(argument, Name | Aggregate) else self._computed(column_of(argument), role)
        if not isinstance(of, Picked):
            raise InvalidSpecError(f"{role}: {call!r}: wp.lag and wp.lead are of a column, or of wp.first and wp.last of one.")
        offset = call.offset or 0
        return Moved(of, -offset if call.function == "lag" else offset)

    def _aggregate(self, aggregate: Aggregate) -> Expression:
        split = [(None, each) if is_column(each) else self._split(each) for each in aggregate.arguments]
        named = {variable for variable, _ in split}
        if len(named) > 1:
            raise InvalidSpecError(f"{aggregate!r}: its arguments are of different variables; it is over the rows of one.")
        parameters: dict[str, Value] = dict(aggregate.parameters)
        if aggregate.name in ("first", "last") and not parameters.get("ignore_nulls"):
            end: Literal["first", "last"] = "first" if aggregate.name == "first" else "last"
            ((variable, column),) = split
            return Picked(end, variable, self._column(column, repr(aggregate)), int(parameters.get("offset", 0)))
        columns = tuple(self._column(column, repr(aggregate)) for _, column in split)
        return Unbound(next(iter(named), None), columns, aggregate)

    def _column(self, column: ColumnLike, role: str) -> str:
        return self._computed(column, role).column if not isinstance(column, str) else self.projection.add(column, role, "")


def _outputs(source: Source, plan: PatternPlan, program: PatternProgram, names: _Names) -> dict[str, Output]:
    rows, arrow, behind = names.projected.schema, program.main_schema, program.spec.passed_on
    times = [measure.name for measure in plan.spec.measures if isinstance(measure.value, MatchTime)]
    event_time = next(iter(times), None) if plan.spec.rows == "one" else plan.event_time
    delay = None if behind is None else behind + plan.settings.allowed_lateness
    selected = (*names.shown, *names.measured)
    main = Output("main", MAIN, arrow, spark_schema(arrow, rows), selected, time_marks(source, selected, delay, event_time))
    late = program.late_schema if plan.settings.late_tag else None
    found = {
        "main": main,
        **Output.late(plan.settings.late_tag, late, rows, source.numbered_from + LATE),
    }
    if plan.timeouts is not None:
        arrow, selected = program.timeout_schema, (*names.key_columns, *names.measured)
        number = source.numbered_from + TIMEOUTS
        found[plan.timeouts.name] = Output(plan.timeouts.name, number, arrow, spark_schema(arrow, rows), selected)
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(names)))
