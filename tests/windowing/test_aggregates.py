"""The built-in aggregates: Spark SQL as oracle, closed forms, errors, and the laws every accumulator obeys."""

from __future__ import annotations

import math
import pickle
import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from windowpane import aggregates as agg
from windowpane.errors import AggregateOverflowError, AggregateTypeError, InvalidSpecError
from windowpane.windowing.aggregates import Aggregate, BoundAggregate, CombinedAggregate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = math.nan
DECIMAL = pa.decimal128(10, 2)
WIDE = pa.decimal128(38, 18)
DURATION = pa.duration("us")
ARRAY = pa.list_(pa.float64())
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])
MAP = pa.map_(pa.string(), pa.int32())


def added(bound: BoundAggregate, accumulator: Any, rows: Iterable[Sequence[Any]]) -> Any:
    for row in rows:
        accumulator = bound.add(accumulator, *row)
    return accumulator


def accumulated(bound: BoundAggregate, rows: Iterable[Sequence[Any]]) -> Any:
    return added(bound, bound.create_accumulator(), rows)


def pickled(value: Any) -> Any:
    """The value after a round trip through a snapshot."""
    return pickle.loads(pickle.dumps(value))


def result_of(aggregate: Aggregate, value_type: pa.DataType, values: Iterable[Any]) -> Any:
    bound = aggregate.bind([value_type])
    return bound.get_result(accumulated(bound, ((value,) for value in values)))


def comparable(value: Any) -> Any:
    """The value with NaN replaced by something that equals itself."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    return value


# --- Spark SQL as oracle ---------------------------------------------------------------------------------


class SparkCase(NamedTuple):
    aggregate: Aggregate
    sql: str
    columns: tuple[str, ...]


TYPES = {
    "t": pa.int8(),
    "i": pa.int64(),
    "d": pa.float64(),
    "f": pa.float32(),
    "m": DECIMAL,
    "w": WIDE,
    "s": pa.string(),
    "yes": pa.bool_(),
    "raw": pa.binary(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "gap": DURATION,
    "a": ARRAY,
    "r": STRUCT,
}

SCHEMA = """g string, t tinyint, i bigint, d double, f float, m decimal(10,2), w decimal(38,18), s string, yes boolean,
    raw binary, day date, at timestamp_ntz, gap interval day to second, a array<double>, r struct<a: int, b: string>"""


def _row(n: int, d: float, text: str, *, yes: bool = True) -> tuple[Any, ...]:
    return (
        n % 100,
        n * 10**12 + 7,
        d,
        struct.unpack("f", struct.pack("f", d / 2))[0],
        Decimal(n).scaleb(-2),
        Decimal(n * 10**15 + 1).scaleb(-18),
        text,
        yes,
        text.encode(),
        date(2024, 1, 1 + abs(n) % 28),
        datetime(2024, 3, 31, 1, 2, 3, abs(n)),
        timedelta(seconds=n, microseconds=n),
        [d, None],
        {"a": abs(n) % 3, "b": None if n % 2 else text},
    )


_NULLS = (None,) * len(TYPES)
DATA: dict[str, list[tuple[Any, ...]]] = {
    "many": [
        _row(17, 0.1, "pear"),
        _NULLS,
        _row(-3, 1e6 + 0.7, "fig"),
        _row(17, 0.1, "pear"),
        _row(5, -2.3, "Zürich", yes=False),
        _row(99, 1e6 + 0.7, ""),
        _row(17, 0.1, "pear"),
        _row(42, 3.14159, "𝄞"),
        _NULLS,
    ],
    "one": [_row(7, 2.5, "x")],
    "nulls": [_NULLS, _NULLS],
    "not a number": [
        _row(1, NAN, "a"),
        _row(2, 0.0, "b"),
        _row(2, -0.0, "b"),
        _row(3, math.inf, "c"),
        _row(1, NAN, "a"),
        _row(1, NAN, "a"),
    ],
}


def _cases(columns: Iterable[str], *pairs: tuple[Any, str], arguments: tuple[Any, ...] = (), end: str = "") -> list[SparkCase]:
    return [SparkCase(make(column, *arguments), f"{sql}({column}{end})", (column,)) for column in columns for make, sql in pairs]


NUMBERS = ("t", "i", "d", "f", "m", "w")
SPARK_CASES = [
    SparkCase(agg.count(), "count(*)", ()),
    *_cases((*NUMBERS, "gap"), (agg.sum, "sum"), (agg.avg, "avg"), (agg.median, "median")),
    *_cases((*NUMBERS, "gap"), (agg.quantile, "percentile"), arguments=(0.3,), end=", 0.3"),
    *_cases(("i", "d"), (agg.quantile, "percentile"), arguments=(0.9,), end=", 0.9"),
    *_cases(NUMBERS, (agg.var_pop, "var_pop"), (agg.var_samp, "var_samp"), (agg.variance, "variance")),
    *_cases(
        NUMBERS,
        (agg.stddev_pop, "stddev_pop"),
        (agg.stddev_samp, "stddev_samp"),
        (agg.stddev, "stddev"),
    ),
    *_cases(TYPES, (agg.min, "min"), (agg.max, "max"), (agg.mode, "mode"), (agg.count, "count")),
    *_cases(TYPES, (agg.first, "first"), (agg.last, "last"), (agg.any_value, "any_value")),
    *_cases(("s", "a"), (agg.first, "first"), (agg.last, "last"), arguments=(True,), end=", true"),
    *_cases(TYPES, (agg.collect_list, "collect_list"), (agg.collect_set, "array_sort(collect_set")),
    *_cases(("s",), (agg.string_agg, "string_agg"), arguments=("; ",), end=", '; '"),
    *_cases(("raw",), (agg.string_agg, "string_agg"), arguments=("-",), end=", X'2D'"),
    *_cases(("yes",), (agg.bool_and, "bool_and"), (agg.bool_or, "bool_or")),
    *_cases(("i", "d", "s", "m", "at"), (agg.approx_count_distinct, "approx_count_distinct")),
    *_cases(("i", "d", "m", "day", "at"), (agg.approx_quantile, "approx_percentile"), arguments=(0.4,), end=", 0.4"),
    SparkCase(agg.count_distinct("d"), "count(DISTINCT d)", ("d",)),
    SparkCase(agg.count_distinct("a"), "count(DISTINCT a)", ("a",)),
    SparkCase(agg.count_distinct("s", "d"), "count(DISTINCT s, d)", ("s", "d")),
    SparkCase(agg.arg_min("i", "d"), "min_by(i, d)", ("i", "d")),
    SparkCase(agg.arg_max("i", "d"), "max_by(i, d)", ("i", "d")),
    SparkCase(agg.arg_max("s", "r"), "max_by(s, r)", ("s", "r")),
]


def _closed(sql: str) -> str:
    return sql + ")" * (sql.count("(") - sql.count(")"))


def spark_name(arrow_type: pa.DataType) -> str:
    """The name Spark gives to an Arrow type."""
    if pa.types.is_decimal(arrow_type):
        return f"decimal({arrow_type.precision},{arrow_type.scale})"
    if pa.types.is_list(arrow_type):
        return f"array<{spark_name(arrow_type.value_type)}>"
    names = {
        pa.int8(): "tinyint",
        pa.int64(): "bigint",
        pa.float64(): "double",
        pa.float32(): "float",
        pa.string(): "string",
        pa.bool_(): "boolean",
        pa.binary(): "binary",
        pa.date32(): "date",
        pa.timestamp("us"): "timestamp_ntz",
        DURATION: "interval day to second",
        STRUCT: "struct<a:int,b:string>",
    }
    return names[arrow_type]


class SparkAnswers(NamedTuple):
    types: dict[str, str]
    rows: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def interpreted_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark without generated code: compiling it for so many aggregates would take most of the time."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, earlier in before.items():
        if earlier is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, earlier)


@pytest.fixture(scope="module")
def spark_answers(interpreted_spark: SparkSession) -> SparkAnswers:
    """Every case over every data set, in one query; the rows stay in order, since there is one partition."""
    rows = [(group, *row) for group, rows in DATA.items() for row in rows]
    frame = interpreted_spark.createDataFrame(rows, SCHEMA).coalesce(1)
    columns = [f"{_closed(case.sql)} as c{i}" for i, case in enumerate(SPARK_CASES)]
    frame.createOrReplaceTempView("aggregate_cases")
    answer = interpreted_spark.sql(f"select g, {', '.join(columns)} from aggregate_cases group by g")
    types = {field.name: field.dataType.simpleString() for field in answer.schema}
    return SparkAnswers(types, {row["g"]: row.asDict(recursive=True) for row in answer.collect()})


def _sorted_set(value: list[Any]) -> list[str]:
    return sorted(repr(comparable(item)) for item in value)


@pytest.mark.spark
@pytest.mark.parametrize("group", DATA)
def test_results_are_those_of_spark_sql(group: str, spark_answers: SparkAnswers) -> None:
    rows = [dict(zip(TYPES, row, strict=True)) for row in DATA[group]]
    got, expected = {}, {}
    for i, case in enumerate(SPARK_CASES):
        bound = case.aggregate.bind([TYPES[column] for column in case.columns])
        result = bound.get_result(accumulated(bound, ([row[c] for c in case.columns] for row in rows)))
        answer = spark_answers.rows[group][f"c{i}"]
        if case.aggregate.name == "collect_set":  # Spark leaves its order open
            result, answer = _sorted_set(result), _sorted_set(answer)
        got[_closed(case.sql)] = comparable(result)
        expected[_closed(case.sql)] = comparable(answer)
    assert got == expected


@pytest.mark.spark
def test_result_types_are_those_of_spark_sql(spark_answers: SparkAnswers) -> None:
    got = {}
    for i, case in enumerate(SPARK_CASES):
        bound = case.aggregate.bind([TYPES[column] for column in case.columns])
        got[f"c{i}"] = spark_name(bound.result_type)
    assert {"g": "string"} | got == spark_answers.types


# --- Closed forms: what Spark leaves open, and what has its own type rule --------------------------------


@pytest.mark.parametrize(
    ("aggregate", "value_type", "values", "expected"),
    [
        (agg.mode("x"), pa.int64(), [3, 1, 3, 1, 2], 1),
        (agg.mode("x"), pa.float64(), [NAN, 2.0, NAN, 2.0], 2.0),
        (agg.mode("x"), ARRAY, [[2.0], [1.0, None], [1.0]], [1.0]),
        (agg.mode("x"), MAP, [[("b", 1), ("a", 2)], [("a", 2), ("b", 1)], [("a", 0)]], [("a", 2), ("b", 1)]),
        (agg.collect_set("x"), pa.string(), ["b", "a", None, "b"], ["b", "a"]),
        (agg.collect_set("x"), MAP, [[("a", None)], [("a", None)]], [[("a", None)]]),
        (agg.count_distinct("x"), MAP, [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("a", 1)]], 2),
        (agg.approx_count_distinct("x"), pa.string(), ["", "a", "", None], 2),
        (agg.approx_count_distinct("x"), pa.float64(), [NAN, NAN, 0.0, -0.0, 1.0], 3),
        (agg.approx_count_distinct("x"), STRUCT, [{"a": 1, "b": None}, {"a": 1, "b": None}], 1),
        (agg.approx_count_distinct("x"), pa.uint64(), [2**64 - 1, 2**64 - 2], 2),
        (agg.min("x"), pa.float64(), [NAN, None, 1.0], 1.0),
        (agg.min("x"), ARRAY, [[1.0, 2.0], [1.0], [1.0, None]], [1.0]),
        (agg.max("x"), ARRAY, [[1.0, None], [1.0], [1.0, NAN], [1.0, math.inf]], [1.0, NAN]),
        (agg.sum("x"), pa.duration("s"), [timedelta(hours=1), timedelta(minutes=1)], timedelta(minutes=61)),
        (agg.avg("x"), pa.duration("s"), [timedelta(seconds=1), timedelta(seconds=2)], timedelta(seconds=1.5)),
        (agg.avg("x"), pa.decimal128(4, 0), [Decimal(1), Decimal(1), Decimal(0)], Decimal("0.6667")),
        (agg.avg("x"), pa.decimal128(4, 0), [Decimal(-1), Decimal(-1), Decimal(0)], Decimal("-0.6667")),
        (agg.avg("x"), pa.int64(), [2**62, 2**62 - 2], float(2**62 - 1)),
        (agg.sum("x"), pa.int64(), [2**63 - 1, 1, -1], 2**63 - 1),
        (agg.sum("x"), pa.decimal128(38, 0), [Decimal(10**38 - 1)] * 2 + [Decimal(1 - 10**38)], Decimal(10**38 - 1)),
        (agg.sum("x"), pa.dictionary(pa.int32(), pa.int64()), [1, 2], 3),
        (agg.first("x", ignore_nulls=True), pa.int64(), [None, 2, 3], 2),
        (agg.last("x"), pa.int64(), [1, None], None),
        (agg.string_agg("x"), pa.string(), ["b", None, "", "a"], "b,,a"),
        (agg.quantile("x", 0), pa.int64(), [3, 1, 2], 1.0),
        (agg.quantile("x", 1), pa.int64(), [3, 1, 2], 3.0),
        (agg.quantile("x", 0.5), DURATION, [timedelta(0), timedelta(microseconds=-3)], timedelta(microseconds=-1)),
    ],
)
def test_closed_forms(aggregate: Aggregate, value_type: pa.DataType, values: list[Any], expected: Any) -> None:
    assert comparable(result_of(aggregate, value_type, values)) == comparable(expected)


def test_variance_of_shifted_values_keeps_its_digits() -> None:
    # 4, 7, 13, 16: variance 30 for a sample; a sum of squares would lose it beside 1e9.
    values = [1e9 + offset for offset in (4, 7, 13, 16)]
    assert result_of(agg.var_samp("x"), pa.float64(), values) == 30.0


def test_of_rows_with_equal_by_the_last_counts_across_a_merge() -> None:
    bound = agg.arg_min("v", "by").bind([pa.string(), pa.int64()])
    earlier = accumulated(bound, [("a", 1), ("skipped", None), ("b", 1)])
    later = accumulated(bound, [("c", 1), ("d", 2)])
    assert bound.get_result(earlier) == "b"
    assert bound.get_result(bound.merge(earlier, later)) == "c"


def test_a_value_of_arg_max_may_be_null() -> None:
    bound = agg.arg_max("v", "by").bind([pa.string(), pa.float64()])
    assert bound.get_result(accumulated(bound, [("a", math.inf), (None, NAN)])) is None


# --- Sketches: the bounds they promise -------------------------------------------------------------------


def _merged_quarters(aggregate: Aggregate, value_type: pa.DataType, values: Sequence[Any]) -> Any:
    bound = aggregate.bind([value_type])
    merged = bound.create_accumulator()
    for start in range(4):
        part = accumulated(bound, ((value,) for value in values[start::4]))
        merged = bound.merge(merged, pickled(part))
    return bound.get_result(merged)


@pytest.mark.parametrize("rsd", [0.05, 0.01])
def test_approx_count_distinct_is_within_four_deviations(rsd: float) -> None:
    values = list(range(30_000)) * 2
    estimates = [
        result_of(agg.approx_count_distinct("x", rsd), pa.int64(), values),
        _merged_quarters(agg.approx_count_distinct("x", rsd), pa.int64(), values),
    ]
    assert estimates == pytest.approx([30_000, 30_000], rel=4 * rsd)


@pytest.mark.parametrize("rsd", [0.3, 0.05, 0.01])
@pytest.mark.parametrize("count", [3, 24, 25, 60, 400, 5_000])
def test_approx_count_distinct_is_one_number_however_its_values_come(rsd: float, count: int) -> None:
    bound = agg.approx_count_distinct("x", rsd).bind([pa.int64()])
    draw = Random(count)
    values = [draw.randrange(count * 2) for _ in range(count)]
    estimates = set()
    for parts in (1, 1, 2, 3, 7, 20):
        draw.shuffle(values)
        left = [accumulated(bound, ((value,) for value in values[start::parts])) for start in range(parts)]
        while len(left) > 1:
            one, other = (left.pop(draw.randrange(len(left))) for _ in range(2))
            left.append(pickled(bound.add(bound.merge(one, pickled(other)), values[0])))
        estimates.add(bound.get_result(left[0]))
    assert len(estimates) == 1
    assert estimates.pop() == pytest.approx(len(set(values)), rel=4 * rsd, abs=1)


@pytest.mark.parametrize("q", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_approx_quantile_is_within_its_error_in_rank(q: float) -> None:
    # 99 % of results are within 1 / accuracy; thrice that is never seen.
    values = [(n * 7_919) % 20_011 for n in range(20_011)]
    rank = _merged_quarters(agg.approx_quantile("x", q, accuracy=100), pa.int64(), values) / 20_011
    assert rank == pytest.approx(q, abs=0.03)


def test_approx_quantile_is_exact_up_to_twice_its_accuracy() -> None:
    values = [float((n * 37) % 199) for n in range(199)] + [NAN]
    assert result_of(agg.approx_quantile("x", 0.25, accuracy=100), pa.float64(), values) == 49.0
    assert math.isnan(result_of(agg.approx_quantile("x", 1.0, accuracy=100), pa.float64(), values))


# --- Laws ------------------------------------------------------------------------------------------------

# Halves of small integers add up exactly, so the order of additions cannot show.
halves = st.integers(-1000, 1000).map(lambda n: n / 2)
floats = st.one_of(halves, st.just(NAN), st.just(-0.0))
integers = st.integers(-(2**63), 2**63 - 1)
small = st.integers(-3, 3)
decimals = st.integers(-(10**10) + 1, 10**10 - 1).map(lambda n: Decimal(n).scaleb(-2))
durations = st.timedeltas(timedelta(days=-1000), timedelta(days=1000))
texts = st.text("aü𝄞 ", max_size=2)
arrays = st.lists(st.none() | floats, max_size=3)
structs = st.fixed_dictionaries({"a": st.none() | small, "b": st.none() | texts})
maps = st.dictionaries(texts, st.none() | small, max_size=3).map(lambda entries: list(entries.items()))

STRATEGIES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), small),
    (pa.float64(), floats),
    (DECIMAL, decimals),
    (DURATION, durations),
    (pa.string(), texts),
    (pa.bool_(), st.booleans()),
    (ARRAY, arrays),
    (STRUCT, structs),
    (MAP, maps),
]

ONE_ARGUMENT = [
    agg.count("x"),
    agg.count_distinct("x"),
    agg.sum("x"),
    agg.min("x"),
    agg.max("x"),
    agg.avg("x"),
    agg.first("x"),
    agg.first("x", ignore_nulls=True),
    agg.last("x"),
    agg.last("x", ignore_nulls=True),
    agg.any_value("x"),
    agg.bool_and("x"),
    agg.bool_or("x"),
    agg.collect_list("x"),
    agg.collect_set("x"),
    agg.string_agg("x"),
    agg.median("x"),
    agg.quantile("x", 0.9),
    agg.mode("x"),
    agg.approx_count_distinct("x"),
    agg.approx_quantile("x", 0.5),
]
MOMENTS = [agg.var_pop("x"), agg.var_samp("x"), agg.stddev_pop("x"), agg.stddev_samp("x")]


class Law(NamedTuple):
    bound: BoundAggregate
    rows: st.SearchStrategy[list[tuple[Any, ...]]]
    name: str


def _law(aggregate: Aggregate, *arguments: tuple[pa.DataType, st.SearchStrategy[Any]]) -> Law:
    types = [value_type for value_type, _ in arguments]
    row = st.tuples(*(st.none() | values for _, values in arguments))
    name = f"{aggregate} of {', '.join(map(str, types))}"
    return Law(aggregate.bind(types), st.lists(row, max_size=30), name)


def _takes(aggregate: Aggregate, value_type: pa.DataType) -> bool:
    try:
        aggregate.bind([value_type])
    except AggregateTypeError:
        return False
    return True


LAWS = [
    _law(agg.count()),
    _law(agg.count_distinct("x", "y"), STRATEGIES[0], STRATEGIES[6]),
    _law(agg.arg_min("x", "y"), STRATEGIES[4], STRATEGIES[1]),
    _law(agg.arg_max("x", "y"), STRATEGIES[6], STRATEGIES[7]),
    _law(agg.sum("x"), (pa.int64(), st.integers(-(2**58), 2**58))),
    _law(agg.avg("x"), (pa.int64(), integers)),
    _law(agg.first_n("x", 2), STRATEGIES[4]),
    _law(agg.last_n("x", 2), STRATEGIES[4]),
    _law(agg.top_n("x", 2, by="y"), STRATEGIES[4], STRATEGIES[0]),
    _law(agg.increase("x", "y"), STRATEGIES[1], (pa.timestamp("us"), st.datetimes())),
    _law(agg.rate("x", "y"), STRATEGIES[1], (pa.timestamp("us"), st.datetimes())),
    *(_law(aggregate, strategy) for aggregate in ONE_ARGUMENT for strategy in STRATEGIES if _takes(aggregate, strategy[0])),
]
names_of_laws = [law.name for law in LAWS]


def test_every_aggregate_has_a_law() -> None:
    covered = {law.name.split("(")[0] for law in LAWS} | {aggregate.name for aggregate in MOMENTS}
    aliases = {"stddev", "var", "variance", "Aggregate", "BoundAggregate", "CombinedAggregate"}
    assert covered == set(agg.__all__) - aliases


@pytest.mark.parametrize("law", LAWS, ids=names_of_laws)
def test_merging_parts_equals_adding_all(law: Law) -> None:
    bound = law.bound

    @settings(max_examples=examples(25), deadline=None, database=None)
    @given(rows=law.rows, data=st.data())
    def check(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
        cut = data.draw(st.integers(0, len(rows)))
        left, right = accumulated(bound, rows[:cut]), accumulated(bound, rows[cut:])
        of_right = comparable(bound.get_result(right))
        expected = comparable(bound.get_result(accumulated(bound, rows)))
        resumed = added(bound, pickled(left), rows[cut:])
        assert comparable(bound.get_result(resumed)) == expected
        merged = bound.merge(left, pickled(right))
        assert comparable(bound.get_result(pickled(merged))) == expected
        assert comparable(bound.get_result(merged)) == expected
        # The right accumulator stays as it was, even when the merged one is changed.
        added(bound, bound.merge(bound.create_accumulator(), right), rows)
        assert comparable(bound.get_result(right)) == of_right

    check()


@pytest.mark.parametrize("law", LAWS, ids=names_of_laws)
def test_results_fit_their_type_and_stay_as_they_are(law: Law) -> None:
    bound = pickled(law.bound)

    @settings(max_examples=10, deadline=None, database=None)
    @given(rows=law.rows)
    def check(rows: list[tuple[Any, ...]]) -> None:
        accumulator = accumulated(bound, rows)
        result = bound.get_result(accumulator)
        before = comparable(result)
        assert comparable(pa.array([result], bound.result_type).to_pylist()) == comparable([result])
        added(bound, accumulator, rows)
        assert comparable(result) == before

    check()


@pytest.mark.parametrize("aggregate", MOMENTS, ids=str)
@given(values=st.lists(st.none() | halves, max_size=30), cut=st.integers(0, 30))
def test_merging_moments_equals_adding_all(aggregate: Aggregate, values: list[float | None], cut: int) -> None:
    bound = aggregate.bind([pa.float64()])
    rows = [(value,) for value in values]
    left, right = accumulated(bound, rows[:cut]), accumulated(bound, rows[cut:])
    merged = bound.get_result(bound.merge(left, pickled(right)))
    expected = bound.get_result(accumulated(bound, rows))
    assert merged == (None if expected is None else pytest.approx(expected, rel=1e-9, abs=1e-6))


# --- Errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregate", "types"),
    [
        (agg.sum("x"), [pa.string()]),
        (agg.sum("x"), [pa.bool_()]),
        (agg.sum("x"), [pa.decimal256(50, 2)]),
        (agg.sum("x"), [pa.duration("ns")]),
        (agg.avg("x"), [pa.date32()]),
        (agg.min("x"), [MAP]),
        (agg.max("x"), [pa.list_(MAP)]),
        (agg.arg_min("x", "y"), [pa.int64(), pa.struct([("m", MAP)])]),
        (agg.var_samp("x"), [pa.string()]),
        (agg.stddev_pop("x"), [DURATION]),
        (agg.bool_and("x"), [pa.int64()]),
        (agg.string_agg("x"), [pa.int64()]),
        (agg.median("x"), [pa.timestamp("us")]),
        (agg.approx_quantile("x", 0.5), [MAP]),
        (agg.sum("x"), []),
        (agg.count(), [pa.int64()]),
    ],
)
def test_types_without_meaning_are_refused_by_name(aggregate: Aggregate, types: list[pa.DataType]) -> None:
    with pytest.raises(AggregateTypeError) as error:
        aggregate.bind(types)
    assert str(aggregate) in str(error.value)
    if len(types) == len(aggregate.arguments):
        assert str(types[-1]) in str(error.value)


@pytest.mark.parametrize(
    ("aggregate", "value_type", "values", "named"),
    [
        (agg.sum("x"), pa.int64(), [2**63 - 1, 1], "9223372036854775808"),
        (agg.sum("x"), pa.int64(), [-(2**63), -1], "-9223372036854775809"),
        (agg.sum("x"), pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(1)], "1" + "0" * 38),
        (agg.avg("x"), pa.decimal128(38, 10), [Decimal("1e27")], "1000000000000000000000000000.00000000000000"),
        (agg.sum("x"), DURATION, [timedelta(days=99_999_999)] * 2, "17279999827200000000 µs"),
    ],
)
def test_overflow_is_an_error_that_names_aggregate_and_value(
    aggregate: Aggregate, value_type: pa.DataType, values: list[Any], named: str
) -> None:
    with pytest.raises(AggregateOverflowError) as error:
        result_of(aggregate, value_type, values)
    assert f"{aggregate} is {named}," in str(error.value)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: agg.quantile("x", 1.5), "q=1.5"),
        (lambda: agg.quantile("x", NAN), "q=nan"),
        (lambda: agg.quantile("x", True), "q=True"),
        (lambda: agg.approx_quantile("x", -0.1), "q=-0.1"),
        (lambda: agg.approx_quantile("x", 0.5, accuracy=0), "accuracy=0"),
        (lambda: agg.approx_count_distinct("x", rsd=1), "rsd=1"),
        (lambda: agg.string_agg("x", separator=None), "separator=None"),  # type: ignore[arg-type]
        (lambda: agg.sum(cast("Any", 1)), "sum was given 1"),
        (lambda: agg.min(cast("Any", None)), "min was given None"),
        (lambda: Aggregate("summ", ("x",)), "'summ'"),
    ],
)
def test_wrong_constants_are_refused_at_once(make: Any, named: str) -> None:
    with pytest.raises(InvalidSpecError, match=named.replace("(", r"\(")):
        make()


# --- Specs and combination -------------------------------------------------------------------------------


class FakeColumn:
    """Stands for a Spark Column: == builds an expression that is neither true nor false, and it does not hash."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> FakeColumn:  # type: ignore[override]
        return self

    def __bool__(self) -> bool:
        raise ValueError("a column is not a boolean")

    def cast(self, _: str) -> FakeColumn:
        return self


def test_specs_print_compare_hash_and_pickle() -> None:
    assert repr(agg.sum("x")) == "sum('x')"
    assert repr(agg.string_agg("x")) == "string_agg('x', separator=',')"
    assert repr(agg.count()) == "count()"
    assert agg.variance("x") == agg.var("x") == agg.var_samp("x") != agg.var_pop("x")
    assert agg.stddev("x") == agg.stddev_samp("x")
    assert len({agg.quantile("x", 0.5), agg.quantile("x", 0.5), agg.quantile("x", 0.9)}) == 2
    assert pickled(agg.quantile("x", 0.9)) == agg.quantile("x", 0.9)
    assert agg.quantile("x", 0.9).parameters == (("q", 0.9),)


def test_specs_over_columns_compare_by_identity() -> None:
    one: Any = FakeColumn()
    other: Any = FakeColumn()
    assert agg.sum(one) == agg.sum(one)
    assert agg.sum(one) != agg.sum(other)
    assert len({agg.sum(one), agg.sum(one), agg.sum(other)}) == 2


@pytest.fixture
def combined() -> CombinedAggregate:
    return CombinedAggregate.of(
        {
            "flights": agg.count(),
            "delay": agg.avg("dep_delay"),
            "worst": agg.arg_max("flight", "dep_delay"),
            "carriers": agg.collect_set("carrier"),
        },
        slots={"flights": [], "delay": ["d"], "worst": ["f", "d"], "carriers": ["c"]},
        types={"d": pa.int64(), "f": pa.string(), "c": pa.string()},
    )


ROWS: list[dict[str, Any]] = [
    {"d": 5, "f": "UA1", "c": "UA", "unused": 0},
    {"d": None, "f": "AA1", "c": "AA"},
    {"d": 40, "f": "AA2", "c": "AA"},
]


def test_combined_aggregates_make_one_row(combined: CombinedAggregate) -> None:
    accumulator = combined.create_accumulator()
    for row in ROWS:
        accumulator = combined.add(row, accumulator)
    expected = {"flights": 3, "delay": 22.5, "worst": "AA2", "carriers": ["UA", "AA"]}
    assert combined.get_result(accumulator) == expected
    assert list(expected) == combined.result_schema.names
    assert combined.result_schema.types == [pa.int64(), pa.float64(), pa.string(), pa.list_(pa.string())]


def test_combined_aggregates_of_nothing(combined: CombinedAggregate) -> None:
    result = combined.get_result(combined.create_accumulator())
    assert result == {"flights": 0, "delay": None, "worst": None, "carriers": []}


def test_combined_aggregates_merge_and_pickle(combined: CombinedAggregate) -> None:
    left = combined.add(ROWS[0], combined.create_accumulator())
    right = combined.create_accumulator()
    for row in ROWS[1:]:
        right = combined.add(row, right)
    copy = pickled(combined)
    merged = copy.merge(left, pickled(right))
    assert copy.get_result(merged) == {"flights": 3, "delay": 22.5, "worst": "AA2", "carriers": ["UA", "AA"]}
    assert combined.get_result(right) == {"flights": 2, "delay": 40.0, "worst": "AA2", "carriers": ["AA"]}


def test_combined_aggregates_refuse_types_by_name() -> None:
    with pytest.raises(AggregateTypeError, match=r"sum\('x'\) got string"):
        CombinedAggregate.of({"total": agg.sum("x")}, slots={"total": ["x"]}, types={"x": pa.string()})
