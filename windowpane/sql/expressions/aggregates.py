"""Aggregate functions: taken apart into primitive calls, and an expression over their results.

``avg`` of exact numbers is a sum and a count, divided exactly, as in RisingWave; the rest is one call each. A primitive runs
in GROUP BY and, where ``over`` names a function of the OVER engines, over windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import pyarrow as pa
from sqlglot import exp

from windowpane.errors import AggregateTypeError
from windowpane.sql.expressions.expr import Expr, MismatchError, as_text, build, convert, finite, settled
from windowpane.sql.expressions.jsonb import to_jsonb
from windowpane.sql.expressions.jsonb_functions import object_of_pairs, pair
from windowpane.sql.expressions.operators import by_value, is_of_jsonb
from windowpane.sql.expressions.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTERVAL,
    JSONB,
    QUOTIENT,
    REAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARCHAR,
    VARIANCE,
    SqlType,
    array_of,
    as_numeric,
    is_float,
    is_integer,
    is_number,
    is_text,
    numeric,
)
from windowpane.sql.numerics.arithmetic import divide, multiply
from windowpane.sql.numerics.kernels import called
from windowpane.sql.parse.positions import Text
from windowpane.sql.scalar.signatures import builder
from windowpane.sql.values.text_values import text_literal
from windowpane.windowing.aggregates import Aggregate, Call, Definition, Returns
from windowpane.windowing.aggregates.definition import definition_in_duckdb, definition_of, definitions

COUNTS_ROWS = "without an argument it is count(*). Write that."
"""What is said of ``count()``."""


@dataclass(frozen=True)
class Primitive:
    """One call of a function that DuckDB has.

    Args:
        arguments: bound arguments; none for ``count(*)``.
        in_engines: whether the OVER engines have the same function.
        constants: further arguments, as SQL.
        parameters: further arguments, as the OVER engines take them.
        is_count: whether it is 0 of no rows, not NULL.
    """

    function: str
    arguments: tuple[Expr, ...]
    type: SqlType
    in_engines: bool = False
    constants: tuple[str, ...] = ()
    parameters: tuple[tuple[str, float | str], ...] = ()
    is_count: bool = False

    @property
    def definition(self) -> Definition | None:
        return definition_in_duckdb(self.function)

    @property
    def over(self) -> str | None:
        """The name of the same function in the OVER engines, ``None`` if they have none."""
        definition = self.definition
        return definition.name if self.in_engines and definition is not None else None

    @property
    def is_invertible(self) -> bool:
        """Whether a value can be taken away from its result again."""
        definition, kinds = self.definition, tuple(_arrow(argument.type) or pa.null() for argument in self.arguments)
        return definition is not None and definition.is_invertible(Call(self.function, kinds, {}))


@dataclass(frozen=True)
class Parts:
    """What an aggregate is made of.

    Args:
        finish: makes the result of theirs.
        of_distinct: ``None`` if each call can have DISTINCT, else what to write instead.
        only: the condition of the rows that count over a window, where DuckDB's groups skip the others by themselves.
    """

    primitives: tuple[Primitive, ...]
    finish: Callable[[Sequence[Expr]], Expr]
    of_distinct: str | None = None
    only: Expr | None = None


Binder = Callable[[Sequence[Expr]], Parts]


@dataclass(frozen=True)
class SqlAggregate:
    """An aggregate as SQL calls it.

    Args:
        of: the aggregate of the package whose properties it has, ``None`` where the package has none such.
        is_within_group: whether it is written with WITHIN GROUP.
        sorts_by: the place of the argument that it takes its rows in the order of, ``None`` for none.
    """

    bind: Binder
    of: Definition | None = None
    is_within_group: bool = False
    sorts_by: int | None = None

    @property
    def is_sorted(self) -> bool:
        """Whether an ORDER BY inside the call changes its result."""
        return self.of is not None and self.of.is_by_place

    @property
    def joins_all(self) -> bool:
        """Whether its result is made of all values, one behind the other."""
        return self.is_sorted and self.of is not None and self.of.holistic

    @property
    def is_array(self) -> bool:
        return self.of is not None and self.of.returns is Returns.LIST


_OF_PAIRS = ("count", "avgx", "avgy", "sxx", "syy", "sxy")
_SXX = "windowpane_pair_sum({sxx}, {avgx} * 0)"
_SYY = "windowpane_pair_sum({syy}, {avgy} * 0)"
_SXY = "windowpane_pair_sum({sxy}, {avgx} * 0 + {avgy} * 0)"


def _one(primitive: Primitive) -> Parts:
    return Parts((primitive,), lambda results: results[0])


def _only(arguments: Sequence[Expr], count: int = 1) -> tuple[Expr, ...]:
    if len(arguments) != count:
        raise MismatchError(f"it takes {count} argument{'s' if count != 1 else ''}, not {len(arguments)}.")
    return tuple(settled(argument) for argument in arguments)


def _count(arguments: Sequence[Expr]) -> Parts:
    return _one(_counted(*map(settled, arguments)))


def _counted(*values: Expr) -> Primitive:
    return Primitive("count", values, BIGINT, in_engines=True, is_count=True)


def _summed(value: Expr) -> Primitive:
    """The primitive sum: of smallint and int a bigint, of bigint and numeric a numeric."""
    if is_integer(value.type):
        kind = numeric(0) if value.type == BIGINT else BIGINT
        return Primitive("sum", (convert(value, kind),), kind, in_engines=True)
    if value.type.name == "numeric":
        kind = numeric(value.type.scale)
        return Primitive("sum", (convert(value, kind),), kind, in_engines=True)
    if is_float(value.type):
        return Primitive("sum", (convert(value, DOUBLE),), value.type, in_engines=value.type == DOUBLE)
    raise MismatchError(f"it takes a number or an interval, not {value.type}. Cast the argument.")


def _sum(arguments: Sequence[Expr]) -> Parts:
    (value,) = _only(arguments)
    return _interval_sum(value) if value.type == INTERVAL else _one(_summed(value))


_DISTINCT_FIRST = "Take the values of SELECT DISTINCT in a subquery."
_MONTHS = "CAST(datepart('year', {0}) * 12 + datepart('month', {0}) AS BIGINT)"
_DAYS = "CAST(datepart('day', {0}) AS BIGINT)"
_MICROS = "CAST(datepart('hour', {0}) * 3600000000 + datepart('minute', {0}) * 60000000 + datepart('microsecond', {0}) AS BIGINT)"
_INTERVAL_OF = "(to_months(CAST({0} AS INTEGER)) + to_days(CAST({1} AS INTEGER)) + to_microseconds({2}))"


def _interval_sum(value: Expr) -> Parts:
    """Months, days and microseconds are summed apart."""
    fields = tuple(Primitive("sum", (build(BIGINT, part, value),), BIGINT, in_engines=True) for part in (_MONTHS, _DAYS, _MICROS))
    return Parts(fields, lambda parts: build(INTERVAL, _INTERVAL_OF, *parts), _DISTINCT_FIRST)


def _interval_avg(value: Expr) -> Parts:
    total, number = _interval_sum(value), _counted(value)
    template = "CASE WHEN {1} > 0 THEN windowpane_divide_interval({0}, CAST({1} AS DOUBLE)) END"
    return Parts(
        (*total.primitives, number),
        lambda parts: build(INTERVAL, template, total.finish(parts[:3]), parts[3]),
        _DISTINCT_FIRST,
    )


def _avg(arguments: Sequence[Expr]) -> Parts:
    (value,) = _only(arguments)
    if value.type == INTERVAL:
        return _interval_avg(value)
    if is_float(value.type):
        return _one(Primitive("avg", (convert(value, DOUBLE),), DOUBLE, in_engines=True))
    total, number = _summed(value), _counted(value)
    return Parts((total, number), lambda parts: divide(parts[0], build(BIGINT, "nullif({0}, 0)", parts[1])))


@builder
def _moment(arguments: Sequence[Expr], name: str) -> Parts:
    (value,) = _only(arguments)
    if not is_number(value.type):
        raise MismatchError(f"it takes a number, not {value.type}. Cast the argument.")
    return _float_moment(name, value) if is_float(value.type) else _exact_moment(name, value)


def _float_moment(name: str, value: Expr) -> Parts:
    """The moment of floats; of one value DuckDB's ``var_pop`` is 0 even where that is NaN or infinite, PostgreSQL's NaN."""
    wide = convert(value, DOUBLE)
    moment = Primitive(name, (wide,), DOUBLE, in_engines=True)
    if name.endswith("_samp"):
        return _one(moment)
    zero_or_nan = Primitive("max", (build(DOUBLE, "({0} * 0)", wide),), DOUBLE, in_engines=True)
    return Parts((moment, zero_or_nan), lambda parts: build(DOUBLE, "({0} + {1})", *parts))


def _exact_moment(name: str, value: Expr) -> Parts:
    """The moment of exact numbers: of their sum, the sum of their squares and their count, as in PostgreSQL and RisingWave."""
    if is_integer(value.type) and value.type != BIGINT:
        square = build(BIGINT, "({0} * {0})", convert(value, BIGINT))
    else:
        wide = convert(value, as_numeric(value.type))
        square = multiply(wide, wide)
    total, squares = _summed(value), _summed(square)
    number, squared = _counted(value), _counted(square)

    def finish(parts: Sequence[Expr]) -> Expr:
        sums = [convert(part, as_numeric(part.type)) for part in parts[:2]]
        kind = VARIANCE if name.startswith("var") else QUOTIENT
        return build(kind, called(name, "{0}", "{1}", "{2}", "{3}"), *sums, *parts[2:])

    return Parts((total, squares, number, squared), finish, _DISTINCT_FIRST)


@builder
def _same(arguments: Sequence[Expr], function: str) -> Parts:
    (value,) = _only(arguments)
    return _one(Primitive(function, (value,), value.type))


def _mode(arguments: Sequence[Expr]) -> Parts:
    (value,) = map(by_value, _only(arguments))
    return _one(Primitive("mode", (value,), value.type))


_MOST = "nullif(list_slice(list_sort(list_filter({{0}}, lambda x: x IS NOT NULL), '{order}', 'NULLS LAST'), 1, {count}), [])"


@builder
def _extreme(arguments: Sequence[Expr], name: str) -> Parts:
    (value,) = _only(arguments[:1] if len(arguments) == 2 else arguments)
    if is_of_jsonb(value.type):
        raise MismatchError(f"it compares no {value.type}. Compare an element of it.")
    if len(arguments) == 2:
        count = _constant(arguments[1])
        if count is None or not count.isdecimal() or not int(count):
            raise MismatchError("how many values it takes is a whole number from 1 on, such as 3.")
        picked = _MOST.format(order="DESC" if name == "max" else "ASC", count=count)
        listed = Primitive("list", (value,), array_of(value.type))
        return Parts((listed,), lambda results: build(listed.type, picked, results[0]))
    return _one(Primitive(name, (value,), value.type, in_engines=value.type not in (REAL, DOUBLE)))


_KNOWN = "list_filter({0}, lambda value: value IS NOT NULL)"
_STEP = "CASE WHEN pair[1] < pair[2] THEN pair[1] ELSE pair[1] - pair[2] END"
_STEPS = f"list_transform(list_zip({{0}}[2:], {{0}}[:-2]), lambda pair: {_STEP})"
_GROWN = f"CASE WHEN {{2}} > {{1}} THEN [list_sum({_STEPS}), (epoch_us({{2}}) - epoch_us({{1}})) / 1000000.0] END"
"""What a counter grew by, and in how many seconds: values in the order of time, the first and the last time."""


def _counter_agg(arguments: Sequence[Expr]) -> Parts:
    """Timescale's summary of a counter, of which ``delta`` and ``rate`` are asked: a lower value is a restart at 0."""
    at, value = _only(arguments, 2)
    if at.type not in (TIMESTAMP, TIMESTAMPTZ) or not is_number(value.type):
        raise MismatchError(f"it takes a timestamp and a number, not {at.type} and {value.type}. Cast the arguments.")
    both = "CASE WHEN {0} IS NOT NULL THEN {1} END"
    values = Primitive("array_agg", (build(DOUBLE, both, at, convert(value, DOUBLE)),), array_of(DOUBLE))
    times = tuple(Primitive(name, (build(at.type, both, value, at),), at.type) for name in ("min", "max"))

    def finish(results: Sequence[Expr]) -> Expr:
        return build(array_of(DOUBLE), _GROWN, build(array_of(DOUBLE), _KNOWN, results[0]), *results[1:])

    return Parts((values, *times), finish, _DISTINCT_FIRST)


@builder
def _boolean(arguments: Sequence[Expr], name: str) -> Parts:
    (value,) = _only(arguments)
    if value.type not in (BOOLEAN, UNKNOWN):
        raise MismatchError(f"it takes boolean, not {value.type}.")
    return _one(Primitive(name, (convert(value, BOOLEAN),), BOOLEAN, in_engines=True))


@builder
def _bits(arguments: Sequence[Expr], name: str) -> Parts:
    (value,) = _only(arguments)
    if not is_integer(value.type):
        raise MismatchError(f"it takes an integer, not {value.type}. Cast the argument.")
    return _one(Primitive(name, (value,), value.type))


@builder
def _arg(arguments: Sequence[Expr], name: str) -> Parts:
    values = _only(arguments, 2)
    by = values[1].type
    if by == JSONB or by.element is not None:
        raise MismatchError(f"it compares no {by}. Compare an element of it.")
    skips_nulls = build(BOOLEAN, "({0} IS NOT NULL)", values[0])  # as in RisingWave
    return Parts((Primitive(name, values, values[0].type, in_engines=True),), lambda results: results[0], only=skips_nulls)


def _string_agg(arguments: Sequence[Expr]) -> Parts:
    if len(arguments) != 2 or arguments[1].literal is None:
        raise MismatchError("it takes a text and a separator that is a text literal.")
    if not is_text(arguments[0].type):
        raise MismatchError(f"it takes text, not {arguments[0].type}. Cast the argument.")
    separator = arguments[1].literal
    value = as_text(settled(arguments[0]))
    constants = (text_literal(separator),)
    return _one(Primitive("string_agg", (value,), VARCHAR, True, constants, (("separator", separator),)))


def _listagg(arguments: Sequence[Expr]) -> Parts:
    """Flink's ``LISTAGG``: the separator is a comma unless one is given."""
    return _string_agg(arguments if len(arguments) > 1 else (*arguments, Expr.of_text(",")))


def _array_agg(arguments: Sequence[Expr]) -> Parts:
    (value,) = _only(arguments)
    return _one(Primitive("array_agg", (value,), array_of(value.type)))


def as_jsonb(listed: Parts) -> Parts:
    """Return ``array_agg`` as ``jsonb_agg``: NULL is its ``null``."""
    return Parts(listed.primitives, lambda results: to_jsonb(listed.finish(results)))


def _jsonb_object_agg(arguments: Sequence[Expr]) -> Parts:
    key, value = _only(arguments, 2)
    listed = _array_agg([pair(key, value)])
    distinct = "Take the pairs in a subquery with DISTINCT."
    return Parts(listed.primitives, lambda results: object_of_pairs(listed.finish(results)), distinct)


def _pair(template: str, kind: SqlType = DOUBLE) -> SqlAggregate:
    """Return an aggregate of pairs of a dependent and an independent number; pairs with a NULL do not count.

    Args:
        template: SQL of the result over DuckDB's ``regr_sxx``, ``regr_count``, ..., each named by what stands behind ``regr_``.
        kind: its type.
    """
    parts = [part for part in _OF_PAIRS if f"{{{part}}}" in template]
    placed = template.format(**{part: f"{{{place}}}" for place, part in enumerate(parts)})

    def bind(arguments: Sequence[Expr]) -> Parts:
        _only(arguments, 2)
        for each in arguments:
            if each.type != UNKNOWN and not is_number(each.type):
                raise MismatchError(f"it takes two numbers, not {each.type}. Cast the argument.")
        pair = tuple(convert(each, DOUBLE) for each in arguments)
        counts = [part == "count" for part in parts]
        primitives = tuple(
            Primitive(f"regr_{part}", pair, BIGINT if count else DOUBLE, is_count=count)
            for part, count in zip(parts, counts, strict=True)
        )
        return Parts(primitives, lambda results: build(kind, placed, *results))

    return SqlAggregate(bind)


def jsonb_by_value(value: Expr) -> Expr:
    """Return a text of a jsonb that sorts as the value does, and has the value behind a tab."""
    template = "(windowpane_jsonb_rank(CAST({0} AS VARCHAR)) || chr(9) || windowpane_jsonb_key(CAST({0} AS VARCHAR)))"
    return build(VARCHAR, template, value)


def sorted_jsonb(value: Expr) -> Parts:
    """Return ``array_agg(DISTINCT value ORDER BY value)`` of jsonb, as DuckDB sorts distinct values by themselves alone."""
    values = "list_transform({0}, lambda item: CAST(split_part(item, chr(9), 2) AS JSON))"
    texts = Primitive("array_agg", (jsonb_by_value(value),), array_of(VARCHAR))
    return Parts((texts,), lambda results: build(array_of(JSONB), values, results[0], name="array_agg"))


def _approx_count_distinct(arguments: Sequence[Expr]) -> Parts:
    return _one(Primitive("approx_count_distinct", _only(arguments), BIGINT, is_count=True))


def percentile(name: str, fraction: Expr, value: Expr) -> Parts:
    """Return ``percentile_cont`` or ``percentile_disc`` of a fraction over an ordered value.

    Raises:
        MismatchError: the fraction is no literal from 0 to 1.
    """
    written = _fraction(fraction)
    if name == "percentile_cont":
        return _one(Primitive("quantile_cont", (convert(value, DOUBLE),), DOUBLE, constants=(written,)))
    return _one(Primitive("quantile_disc", (value,), value.type, constants=(written,)))


def approx_percentile(constants: Sequence[Expr], value: Expr) -> Parts:
    """Return ``approx_percentile`` of a fraction, with a relative error (0.01 if left out): RisingWave's value of the same rows.

    Raises:
        MismatchError: the fraction is no literal from 0 to 1, or the error none between 0 and 1.
    """
    if not 1 <= len(constants) <= 2:
        raise MismatchError("it takes a fraction, and perhaps a relative error.")
    fraction, error = _fraction(constants[0]), _constant(constants[1]) if len(constants) == 2 else "0.01"
    if error is None or not 0 < Decimal(error) < 1:
        raise MismatchError("its relative error is a number between 0 and 1, such as 0.01.")
    listed = Primitive("list", (convert(value, DOUBLE),), array_of(DOUBLE))
    picked = f"windowpane_nth_least(list_filter({{0}}, lambda x: x IS NOT NULL), {fraction}::DOUBLE)"
    return Parts((listed,), lambda results: build(DOUBLE, f"windowpane_bucket_value({picked}, {error}::DOUBLE)", results[0]))


def _fraction(argument: Expr) -> str:
    written = _constant(argument)
    if written is None or Decimal(written) > 1:
        raise MismatchError("its fraction is a number from 0 to 1, such as 0.5.")
    return written


def _constant(argument: Expr) -> str | None:
    value = finite(argument.literal) if argument.literal is not None else argument.value
    return f"{value:f}" if isinstance(value, Decimal) and value >= 0 else None


_ARROW = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double": pa.float64(),
    "varchar": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def _arrow(kind: SqlType) -> pa.DataType | None:
    return pa.decimal128(38, kind.scale) if kind.name == "numeric" else _ARROW.get(kind.name)


def _defined(definition: Definition, arguments: Sequence[Expr]) -> Parts:
    """An aggregate of a user's: its row form over the list of the values of a group or frame."""
    (value,) = _only(arguments)
    if definition.ordered:
        raise MismatchError("its result depends on the order of rows, which SQL's groups do not have.")
    kind = _arrow(value.type)
    if kind is None:
        raise MismatchError(f"an aggregate that is none of SQL's own takes no {value.type}. Cast the argument.")
    try:
        result = Aggregate(definition.name, ("value",)).bind([kind]).result_type
    except AggregateTypeError as error:
        raise MismatchError(f"{error}") from None
    types = {each: SqlType(name) for name, each in _ARROW.items()}
    found = numeric(result.scale) if pa.types.is_decimal(result) else types.get(result)
    if found is None:
        raise MismatchError(f"its result is {result}, which has no type in SQL.")
    listed = Primitive("list", (value,), array_of(value.type))
    template = f"CAST(windowpane_aggregate('{definition.module}', '{definition.name}', {{0}}) AS {found.duckdb})"
    return Parts((listed,), lambda results: build(found, template, results[0]))


def _of(name: str, bind: Binder, is_within_group: bool = False) -> SqlAggregate:
    return SqlAggregate(bind, definition_of(name), is_within_group)


class _Aggregates(dict[str, SqlAggregate]):
    """The aggregates of SQL by name; behind them those that users have defined with a name in SQL."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or any(each.sql == name for each in definitions())

    def __missing__(self, name: str) -> SqlAggregate:
        definition = next(each for each in definitions() if each.sql == name)
        return SqlAggregate(partial(_defined, definition), definition)


AGGREGATES: dict[str, SqlAggregate] = _Aggregates(
    {
        "count": _of("count", _count),
        "sum": _of("sum", _sum),
        "avg": _of("avg", _avg),
        "min": _of("min", _extreme("min")),
        "max": _of("max", _extreme("max")),
        **{name: _of(name, _moment(name)) for name in ("stddev_samp", "stddev_pop", "var_samp", "var_pop")},
        "stddev": _of("stddev_samp", _moment("stddev_samp")),
        "variance": _of("var_samp", _moment("var_samp")),
        "bool_and": _of("bool_and", _boolean("bool_and")),
        "bool_or": _of("bool_or", _boolean("bool_or")),
        "every": _of("bool_and", _boolean("bool_and")),
        **{name: SqlAggregate(_bits(name)) for name in ("bit_and", "bit_or", "bit_xor")},
        "arg_min": _of("arg_min", _arg("arg_min")),
        "arg_max": _of("arg_max", _arg("arg_max")),
        "counter_agg": SqlAggregate(_counter_agg, sorts_by=0),
        "string_agg": _of("string_agg", _string_agg),
        "listagg": _of("string_agg", _listagg),
        "array_agg": _of("collect_list", _array_agg),
        "jsonb_agg": _of("collect_list", lambda arguments: as_jsonb(_array_agg(arguments))),
        "jsonb_object_agg": _of("collect_list", _jsonb_object_agg),
        "corr": _pair(f"(CASE WHEN {_SXX} <> 0 AND {_SYY} <> 0 THEN {_SXY} / sqrt({_SXX} * {_SYY}) END)"),
        "covar_pop": _pair(f"(CASE WHEN {{count}} > 0 THEN {_SXY} / {{count}} END)"),
        "covar_samp": _pair(f"(CASE WHEN {{count}} > 1 THEN {_SXY} / ({{count}} - 1) END)"),
        "regr_avgx": _pair("{avgx}"),
        "regr_avgy": _pair("{avgy}"),
        "regr_count": _pair("{count}", BIGINT),
        "regr_intercept": _pair(f"(CASE WHEN {_SXX} <> 0 THEN {{avgy}} - {{avgx}} * {_SXY} / {_SXX} END)"),
        "regr_r2": _pair(f"(CASE WHEN {_SXX} = 0 THEN NULL WHEN {_SYY} = 0 THEN 1 ELSE {_SXY} * {_SXY} / ({_SXX} * {_SYY}) END)"),
        "regr_slope": _pair(f"(CASE WHEN {_SXX} <> 0 THEN {_SXY} / {_SXX} END)"),
        "regr_sxx": _pair(_SXX),
        "regr_sxy": _pair(_SXY),
        "regr_syy": _pair(_SYY),
        "first_value": _of("first", _same("first")),
        "last_value": _of("last", _same("last")),
        "any_value": _of("any_value", _same("any_value")),
        "mode": _of("mode", _mode, is_within_group=True),
        "approx_count_distinct": _of("approx_count_distinct", _approx_count_distinct),
        "percentile_cont": _of("quantile", _count, is_within_group=True),
        "percentile_disc": _of("quantile", _count, is_within_group=True),
        "approx_percentile": _of("approx_quantile", _count, is_within_group=True),
    }
)


def distinct_arguments(tree: exp.Distinct, text: Text, call: exp.Expr) -> list[exp.Expr]:
    """Return what ``DISTINCT`` of a call is about.

    Raises:
        SqlSyntaxError: it is about nothing, or about ``*``.
    """
    if not tree.expressions or any(isinstance(argument, exp.Star) for argument in tree.expressions):
        raise text.syntax_error(call, "DISTINCT in a call is about values: name the columns, as in count(DISTINCT a).")
    return list(tree.expressions)
