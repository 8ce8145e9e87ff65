"""Names that are not there: what users of other APIs type, and what to write here.

The words are data: for each public class, or module, names as they are typed elsewhere and the way out. ``Guided`` classes and
their instances answer every name that they do not have from it. Words stand in snake_case, and match camelCase, too.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import difflib
import re
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from windowpane.errors import InvalidSpecError, NoDataFrameError, UnknownArgumentError, UnknownNameError

P = ParamSpec("P")
R = TypeVar("R")

_COLLECTING = "show collect count take head first tail to_pandas to_arrow to_local_iterator foreach is_empty display"
_RELATIONAL = (
    "select select_expr filter where with_column with_column_renamed with_columns drop drop_duplicates distinct union limit "
    "sort order_by group_by agg join alias schema columns dtypes print_schema is_streaming write write_stream write_to rdd cache "
    "persist repartition coalesce create_or_replace_temp_view create_temp_view spark_session sql_ctx na stat observe"
)
_AGGREGATES = "aggregate agg sum avg mean min max count reduce fold apply process min_by max_by"
_ENDS = f"df start run execute get_side_output {_COLLECTING} write write_stream"
_WATERMARKS = "with_watermark watermark assign_timestamps_and_watermarks set_watermark"
_SHAPING = "filter where select select_expr with_column with_columns with_column_renamed map flat_map union drop limit"

_WATERMARK_WAY = "the watermark is given where the program begins: wp.stream(df, event_time='at', watermark='10 minutes')."
_SHAPING_WAY = "rows are shaped before the program begins, by Spark: wp.stream(df.{camel}(...), event_time='at')."

WORDS: Mapping[str, Mapping[str, str]] = {
    "Runnable": {
        _COLLECTING: (
            "the rows are a DataFrame, .df: write result.df.{camel}. Of a stream, look at each "
            "batch: result.start(main=lambda df, batch_id: df.show())."
        ),
        _RELATIONAL: "the rows are a DataFrame, .df: write result.df.{camel}.",
        "execute run print sink_to add_sink execute_insert await_termination save insert_into": (
            "result.start(main='out/main', checkpoint='out/checkpoint') runs it, and returns Spark's StreamingQuery; result.df "
            "is the DataFrame for any other sink."
        ),
        "side_output get_output late": "a side output is a DataFrame: result.get_side_output('late').",
        "key_by window window_all over": "windows over these rows begin anew: wp.stream(result.df, event_time='at').",
        "": "It is ready to run: .df is the main output as a DataFrame, .start(main=...) writes it, .explain() says how it runs.",
    },
    "Stream": {
        "group_by group partition_by by": "rows are keyed by .key_by('user').",
        f"window {_AGGREGATES}": (
            "say first which keys have windows: .key_by('user').window(wp.TumblingEventTimeWindows.of('1 hour')), or "
            ".window_all(...) for none."
        ),
        "count_window": "say first which keys have windows: .key_by('user').count_window(100), or .count_window_all(100).",
        "over": "OVER windows begin with wp.over(df, event_time='at', key='id').",
        "join as_of connect co_group": "two streams are joined by wp.join(left, right) or wp.as_of(left, right).",
        _WATERMARKS: _WATERMARK_WAY,
        _SHAPING: _SHAPING_WAY,
        _ENDS: ("a stream has no results yet: .key_by('user').window(...).aggregate(n=wp.count())."),
    },
    "KeyedStream": {
        _AGGREGATES: (
            "say first over which windows: .window(wp.TumblingEventTimeWindows.of('1 hour')).aggregate(n=wp.count()); one "
            "window over all rows of a key is wp.GlobalWindows.create(), with a trigger."
        ),
        "key_by group_by partition_by": "several keys are given at once: .key_by('user', 'country').",
        "drop_duplicates drop_duplicates_within_watermark distinct": "near rows of a key are .deduplicate(within='1 hour').",
        "match_recognize pattern cep detect sequence followed_by not_followed_by": (
            "patterns of rows are .match('a -> !b', a=wp.col('kind') == 'order', b=wp.col('kind') == 'payment')."
        ),
        "interval_join join": "two streams are joined by wp.join(left, right).on('user').within('-5 minutes', '5 minutes').",
        _WATERMARKS: _WATERMARK_WAY,
        _SHAPING: _SHAPING_WAY,
        _ENDS: "it has no results yet: .window(wp.TumblingEventTimeWindows.of('1 hour')).aggregate(n=wp.count()).",
    },
    "Matching": {
        "followed_by next begin not_followed_by one_or_more times optional where": (
            "what follows what is said in the text of the pattern: .match('a -> b+ -> !c', a=..., b=..., c=...)."
        ),
        "measures aggregate agg process": "one row a match is .select(n=wp.count()), its rows are .all_rows('*').",
        "after_match_skip skip skip_past_last": "it is called after_match: .after_match('to next row').",
        _ENDS: "it has no results yet: .select(n=wp.count()) for one row a match, .all_rows('*') for its rows.",
    },
    "WindowedStream": {
        "agg": "it is called aggregate: .aggregate(n=wp.count(), total=wp.sum('amount')).",
        "sum avg mean min max count min_by max_by first last": (
            "built-in aggregates are given by the name of their column: .aggregate(total=wp.sum('amount'), n=wp.count())."
        ),
        "key_by group_by partition_by": "keys come before windows: wp.stream(df, ...).key_by('user').window(...).",
        "window": "it has windows. Windows over their results: .aggregate(...).window_all(...), or .key_by(...).window(...).",
        "with_trigger": "it is called trigger.",
        "side_output_late late_data": "late rows go to .side_output_late_data('late').",
        _WATERMARKS: _WATERMARK_WAY,
        _SHAPING: _SHAPING_WAY,
        _ENDS: "say first what is computed: .aggregate(n=wp.count()), or reduce, apply, process; its result has df and start.",
    },
    "OverStream": {
        "key_by group_by by": "it is called partition_by, as in SQL.",
        "sort sort_by": "it is called order_by.",
        "window rows range groups": (
            "a frame belongs to a call: .select(mean=wp.avg('price').rows(-10, -1)). Windows of time begin with wp.stream(df)."
        ),
        "with_column with_columns aggregate agg": "calls are columns of .select('*', step=wp.col('price') - wp.lag('price')).",
        _WATERMARKS: "the watermark is given where it begins: wp.over(df, event_time='at', watermark='10 minutes', key='id').",
        f"{_ENDS} emit_on_update emit_on_window_close": "say first what is computed: .select('*', before=wp.lag('price')).",
    },
    "OverSelection": {
        f"{_ENDS} emit explain": (
            "say first when rows are emitted: .emit_on_update() for a changelog, .emit_on_window_close() for each row once; the "
            "result has df and start."
        ),
        "partition_by order_by": "it comes before select: wp.over(df, ...).partition_by('user').order_by('at').select(...).",
    },
    "RollingStream": {
        "key_by group_by partition_by": "it is called by: .by('card').",
        f"over {_ENDS} emit at aggregate": "say first whose features they are: .by('card').over('1 hour', n=wp.count()).",
    },
    "RollingFeatures": {
        "aggregate agg window select": "windows and their aggregates are .over('1 hour', n=wp.count(), total=wp.sum('amount')).",
        f"{_ENDS} explain": (
            "say first which rows are emitted: .emit('changed') keeps an online store, .at(labels, time='at') makes training "
            "data; the result has df and start."
        ),
    },
    "JoinedStreams": {
        f"where equal_to key_by using within window between how select {_ENDS}": (
            "say first which columns are equal: .on('user'), or .on(('user', 'buyer')) where the names differ."
        ),
    },
    "KeyedStreams": {
        "between interval_join": "it is called within: .within('-5 minutes', '5 minutes').",
        f"where how select apply co_group {_ENDS}": (
            "say first which rows are near: .within('-5 minutes', '5 minutes'), or .window(wp.TumblingEventTimeWindows.of(...))."
        ),
    },
    "AsOfStreams": {f"match where by how select {_ENDS}": "say first which columns are equal: .on('sym')."},
    "KeyedAsOfStreams": {f"where how select {_ENDS}": "say first which row is taken: .match('backward', tolerance='5 seconds')."},
    "Join": {
        "apply process aggregate with": (
            "columns of pairs are computed by .select('*', gain=wp.right('price') - wp.left('cost')); a function over all rows "
            "of a window is .co_group of a window join."
        ),
        "on": "keys are given before: wp.join(left, right).on('user').",
    },
    "Expression": {
        "rows_between": "it is called rows: wp.avg('price').rows(-10, 0).",
        "range_between": "it is called range: wp.avg('price').range('-1 hour', '0 seconds').",
        "try_cast between isin like when otherwise substr": (
            "expressions have operators and few methods. Columns of Spark can be computed before, df.withColumn(...), and after, "
            "result.df.withColumn(...)."
        ),
        "name": "it is called alias.",
    },
    "Window": {
        "partition_by order_by rows_between range_between": (
            "OVER windows begin with rows: wp.over(df, event_time='at', key='id').partition_by('user').order_by('at')."
        ),
        "into every tumbling sliding": "windows of time are assigned: wp.TumblingEventTimeWindows.of('1 hour').",
    },
    "_SessionWindows": {"of": "it is made by with_gap: wp.{owner}.with_gap('15 minutes')."},
    "GlobalWindows": {"of": "there is one window: wp.GlobalWindows.create()."},
    "WindowAssigner": {
        "every on": "it is made by of: wp.{owner}.of('1 hour').",
        "with_offset offset_by": "an offset is given to of: wp.TumblingEventTimeWindows.of('1 day', '-8 hours').",
    },
    "Trigger": {"create": "it needs nothing: wp.{owner}().", "of": "it is made by itself: wp.{owner}()."},
    "Session": {
        "sql execute_sql exec": "session.run(text) runs statements, session.query(text) returns the rows of one.",
        "table read": "session.query('SELECT * FROM t') returns its rows.",
    },
    "windowpane": {
        "session sql sql_context table_environment stream_table_environment": "SQL is: from windowpane.sql import Session.",
        "time duration timedelta seconds minutes hours": "durations are text, such as '10 minutes', or a timedelta.",
        "window tumble tumbling tumbling_window tumbling_windows tumbling_time_windows": (
            "windows of one length are wp.TumblingEventTimeWindows.of('1 hour')."
        ),
        "hop hopping sliding slide sliding_window sliding_windows hopping_window": (
            "sliding windows are wp.SlidingEventTimeWindows.of('1 hour', '10 minutes')."
        ),
        "session_window session_windows": "sessions are wp.EventTimeSessionWindows.with_gap('15 minutes').",
        "mean average": "it is called wp.avg.",
        "percentile percentile_approx approx_percentile": "quantiles are wp.quantile('x', 0.9) and wp.approx_quantile('x', 0.9).",
        "listagg array_agg": "lists are wp.collect_list('x') and wp.string_agg('x', ',').",
        "lit expr": "constants and functions are Spark's: F.lit(1), F.expr('...').",
        "functions": "aggregates and calls are wp.count(), wp.sum('x'), wp.lag('x').",
        "kafka from_kafka kafka_source": (
            "Kafka is read by wp.read_kafka(spark, 'topic', servers=...). The documentation has a page on it."
        ),
        "stream_execution_environment": "a program begins with a DataFrame: wp.stream(df, event_time='at').",
        "watermark_strategy watermark": "a watermark is watermark='10 minutes' of wp.stream, or wp.Watermarks.",
        "temporal_join merge_asof asof asof_join": "it is called wp.as_of(left, right).",
        "event_time_session_window": "sessions are wp.EventTimeSessionWindows.with_gap('15 minutes').",
    },
    "windowpane.sinks": {
        "kafka_sink": "Kafka is written by wp.sinks.kafka('topic', servers=..., key='id').",
        "postgres postgresql postgre_sql jdbc duckdb duck_db table": (
            "tables of PostgreSQL and DuckDB are kept by wp.sinks.ChangeWriter('postgresql://...', ('id',), 'prices'), or "
            "wp.sinks.apply_changes(result.df, ...)."
        ),
        "redis redis_sink": "it is called wp.sinks.RedisHashes.",
        "delta": "it is called wp.sinks.DeltaTable.",
        "parquet csv json orc folder": "files are a path, start(main='out/main'), or wp.sinks.Files('out/main', format='json').",
        "iceberg console memory": "any other sink is a function: start(main=lambda df, batch_id: df.show()).",
    },
}
"""By class or module: words as they are typed elsewhere, and the way out; the empty word is for names that are in no list."""

_MADE_OF = {
    "pandas": "spark.createDataFrame(frame) makes one of it",
    "polars": "spark.createDataFrame(frame.to_arrow()) makes one of it",
    "pyarrow": "spark.createDataFrame(table) makes one of it",
    "duckdb": "spark.createDataFrame(relation.to_arrow_table()) makes one of it",
    "numpy": "spark.createDataFrame(array, ['user', 'at']) makes one of it",
    "pyspark": "a reader gives one by .load('in') or .table('name'), grouped rows do so by .agg(...)",
    "windowpane": "results of a program are one by .df, and windows over windows are result.key_by(...) or .window_all(...)",
    "str": "spark.readStream.schema(...).parquet('in') reads files as a stream, spark.table('name') a table",
    "": "spark.createDataFrame(rows, 'user string, at timestamp') makes one of rows",
}
"""By the package of what was given in place of a DataFrame, or its type: how one is had."""

_START = {
    "checkpoint_location checkpointlocation checkpoint_dir": "checkpoint='out/checkpoint'",
    "path sink output out": "main='out/main'",
    "queryname name": "query_name='...'",
    "processingtime processing_time": "trigger={'processingTime': '10 seconds'}",
    "availablenow available_now once": "trigger={'availableNow': True}",
    "format": "main=wp.sinks.Files('out/main', format='json')",
    "outputmode output_mode mode": "nothing: rows are appended, and a changelog says itself what changed",
}
"""Arguments of Spark's writers, and what to say to ``start``."""


_BEGIN = {
    "eventtime time time_column timestamp timestamp_column rowtime ts at": "event_time='at'",
    "delay lateness with_watermark max_out_of_orderness watermark_delay": "watermark='10 minutes'",
    "allowed_lateness": ".allowed_lateness('1 hour') before the function",
    "key keys key_by partition_by by group_by": "keys to the next step: .key_by('user'), .partition_by('user') or .by('user')",
    "window windows trigger evictor": "it to a step behind the keys, as .key_by('user').window(...).trigger(...)",
    "df data rows source": "the DataFrame first, without a name",
    "checkpoint checkpoint_location main sink sinks output": "it to the result: result.start(main='out/main', checkpoint='...')",
    "query_name operator_name": "name='hours'",
}
"""Arguments that ``wp.stream``, ``wp.over`` and ``wp.rolling`` do not have, and what to give."""


def _table(words: Mapping[str, str]) -> dict[str, str]:
    return {word: way for several, way in words.items() for word in several.split(" ")}


_WAYS = {owner: _table(words) for owner, words in WORDS.items()}
_START_WAYS, _BEGIN_WAYS = _table(_START), _table(_BEGIN)


def unknown_name(owner: str, name: str, known: Iterable[str], kinds: Iterable[str] = ()) -> UnknownNameError:
    """Return the error of a name that something does not have.

    Args:
        owner: its name, or that of its class.
        name: as it was typed.
        known: the names that it has.
        kinds: under which names words for it are found, the nearest first.
    """
    names, word = [each for each in known if not each.startswith("_")], snake_case(name)
    same = next((each for each in names if _letters(each) == _letters(name)), None)
    ways = [_WAYS.get(kind, {}) for kind in kinds]
    way = next((each[word] for each in ways if word in each), None)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.75)
    if way is not None:
        text = way.format(camel=_camel_case(word), owner=owner)
    elif same is not None:
        text = f"it is written {same!r}."
    elif close:
        text = f"did you mean {close[0]!r}?"
    else:
        text = next((each[""] for each in ways if "" in each), f"it has {', '.join(names)}." if len(names) < 30 else "")
    return UnknownNameError(owner, name, text)


def begins(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that begins a program: it answers arguments that it does not have with the way out.

    Raises:
        UnknownArgumentError: it was given one.
    """
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def begun(*given: P.args, **named: P.kwargs) -> R:
        for name in named:
            if name not in known:
                word = snake_case(name)
                close = difflib.get_close_matches(word, known, n=1, cutoff=0.75)
                way = f"{close[0]}=..." if close else _BEGIN_WAYS.get(word, f"one of {', '.join(known)}")
                raise UnknownArgumentError(function.__name__, name, way)
        return function(*given, **named)

    return begun


def no_dataframe(given: object) -> NoDataFrameError:
    """Return the error of something that is no DataFrame of Spark's."""
    kind = type(given)
    package = kind.__module__.partition(".")[0]
    name = kind.__name__ if package == "builtins" else f"{package}.{kind.__name__}"
    return NoDataFrameError(name, _MADE_OF.get(package, _MADE_OF.get(kind.__name__, _MADE_OF[""])))


def instead_of_argument(name: str) -> str:
    """Return what to say to ``start`` where an argument of Spark's writer was given, else nothing."""
    return _START_WAYS.get(name.lower(), _START_WAYS.get(snake_case(name), ""))


def snake_case(name: str) -> str:
    """Return a name in snake_case.

    Example:
        >>> snake_case("withColumnRenamed")
        'with_column_renamed'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _camel_case(word: str) -> str:
    first, *rest = word.split("_")
    return first + "".join(each.title() for each in rest)


def _reads_durations(method: object) -> bool:
    return "Duration" in getattr(method, "__annotations__", {}).values()


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


class Guided:
    """A public class whose instances answer names that they do not have with the way out."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            kind = type(self)
            if name.startswith("_"):
                raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
            if name in dir(kind):
                return object.__getattribute__(self, name)  # a property that raised an AttributeError: raise it again
            raise unknown_name(kind.__name__, name, dir(kind), [each.__name__ for each in kind.__mro__])


class GuidedType(ABCMeta):
    """The class of public classes that answer unknown names themselves."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
            raise unknown_name(cls.__name__, name, dir(cls), [each.__name__ for each in cls.__mro__])


class SpecType(GuidedType):
    """The class of specs (assigners, triggers, evictors): it answers words in place of numbers, too."""

    def __call__(cls, *args: object, **named: object) -> Any:
        """Make a spec.

        Raises:
            InvalidSpecError: text, a fraction or a timedelta where a field is a whole number.
        """
        fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
        given = dict(zip((field.name for field in fields if field.init and not field.kw_only), args, strict=False)) | named
        for field in fields:
            value = given.get(field.name)
            if str(field.type).startswith("int") and isinstance(value, str | float | dt.timedelta):
                maker = next((each for each in ("of", "with_gap") if _reads_durations(getattr(cls, each, None))), None)
                read = "" if maker is None else f" Durations are read by {cls.__name__}.{maker}('1 hour')."
                raise InvalidSpecError(f"{cls.__name__}: {field.name} is a whole number, but {value!r} was given.{read}")
        return super().__call__(*args, **named)
