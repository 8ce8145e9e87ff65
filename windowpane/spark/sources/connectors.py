"""Connectors: what ``WITH (connector = ...)`` names, as a streaming DataFrame with the columns of a table.

Options are those of Spark's own sources and are passed on unchanged; but Kafka is read from the earliest offset where nobody says
another, as in RisingWave, so that views see the same rows whenever they were made. Text formats are read as text, so that the
table's types read it; Kafka's value is bytes, text, or, with ``encode = 'json'``, an object with the columns of the table. Rows
of texts say where they were read (``ORIGIN``), and a document that is no row comes as its text (``MISREAD``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.connectors.json_records import record_format
from windowpane.connectors.kafka_client import SERVERS, TopicOptions
from windowpane.connectors.message_formats import AsJson
from windowpane.errors import SqlRunError
from windowpane.hidden_columns import MISREAD, ORIGIN, SPLIT, WHY_MISREAD, hidden
from windowpane.malformed import NO_VALUE
from windowpane.spark.session.reasons import SPARK_ERRORS, reason
from windowpane.spark.sources.kafka import Read
from windowpane.spark.stages.documents import Fields
from windowpane.spark.stages.project import mapped_in_arrow, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PACKAGES = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13",
    "delta": "io.delta:delta-spark_2.13",
}
ABOUT_MESSAGES = ("key", "topic", "partition", "offset", "timestamp")
"""The columns of messages beside their value."""
_ORIGIN = "concat(topic, ', partition ', partition, ', offset ', offset)"
_AS_TEXT = ("json", "csv")
_WITH_MISREAD = "columnNameOfCorruptRecord"
_PARSERS = frozenset(
    {
        "multiline",
        "encoding",
        "charset",
        "mode",
        "allowcomments",
        "allowsinglequotes",
        "allowunquotedfieldnames",
        "allownumericleadingzeros",
        "allownonnumericnumbers",
        "allowbackslashescapinganycharacter",
        "allowunquotedcontrolchars",
        "wholetext",
    }
)
"""Options, in small letters, that say how Spark's reader of JSON parses: with one of them it reads the files."""
_BY_WIDTH: tuple[dict[str, T.DataType], ...] = (
    {"tinyint": T.ByteType(), "smallint": T.ShortType(), "integer": T.IntegerType(), "bigint": T.LongType()},
    {"real": T.FloatType(), "double": T.DoubleType()},
)
"""What SQL calls types that are read as each other's wider ones, the narrowest first."""
_DOCUMENT, _TOLD = hidden("document"), hidden("told")


def beside(connector: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns beside those of the table that the rows of a source have."""
    encoding = options.get("encode", "json" if SERVERS in options else None)
    if connector == "kafka" and SERVERS in options:
        return (ORIGIN, SPLIT) if encoding == "bytes" else (ORIGIN, MISREAD, WHY_MISREAD, SPLIT)
    is_json = connector == "json" or (connector == "kafka" and encoding == "json")
    if not is_json and connector not in ("csv", "kafka"):
        return ()
    return (ORIGIN, MISREAD) if is_json else (ORIGIN,)


def connector_rows(spark: SparkSession, connector: str, options: Mapping[str, str], columns: Mapping[str, str]) -> DataFrame:
    """Return the rows of a source as a streaming DataFrame of ``columns``, and those that are ``beside`` them.

    Args:
        spark: the session.
        connector: the name of the source.
        options: those of the source.
        columns: the columns of the table, and what SQL calls their types.
    """
    given = dict(options)
    if connector == "kafka" and SERVERS in given:
        return _rows_of_topic(spark, given, tuple(columns))
    if connector == "kafka":
        given.setdefault("startingOffsets", "earliest")
    encoding = given.pop("encode", None)
    try:
        rows = _rows(spark, connector, given, columns)
        if connector == "kafka" and encoding == "json":
            rows = _fields(rows.select(ORIGIN, F.col("value").cast("string").alias(_DOCUMENT)), tuple(columns))
        elif encoding is not None:
            raise SqlRunError(
                f"encode = {encoding!r} of connector {connector!r}: only kafka takes it, and its one value is 'json'."
            )
    except SPARK_ERRORS as error:
        raise SqlRunError(_refusal(spark, connector, error)) from None
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        raise SqlRunError(f"connector {connector!r} has no column {missing[0]!r}; it has {', '.join(rows.columns)}.")
    return rows.select(*[F.col(quoted(name)) for name in (*columns, *beside(connector, options))])


def _fields(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return rows with fields of the objects in their last column as texts; what is no object there is ``MISREAD``.

    Names match whatever their case, one of the very spelling first, as in RisingWave.
    """
    others = rows.schema.fields[:-1]
    schema = T.StructType([*others, *_texts(columns).fields, T.StructField(rows.columns[-1], T.StringType())])
    return mapped_in_arrow(rows, Fields(tuple(columns)), schema).withColumnRenamed(rows.columns[-1], MISREAD)


def messages(spark: SparkSession, options: Mapping[str, str], value: AsJson | Literal["bytes"] = "bytes") -> DataFrame:
    """Return the messages of a topic in RisingWave's words, read without Spark's connector: ``value`` and all about them."""
    topic = TopicOptions(options)
    read = Read(topic.connection, topic.topics, value, include=ABOUT_MESSAGES, starting=topic.starting, group=topic.group)
    return read.rows(spark, streaming=True)


def _rows_of_topic(spark: SparkSession, options: Mapping[str, str], columns: Sequence[str]) -> DataFrame:
    """Return the rows of a topic of FORMAT PLAIN: its records as objects of JSON, whose fields are texts."""
    included = TopicOptions(options).included
    of_message = [
        (F.col(what) if what in ("key", "timestamp") else F.col(what).cast("string")).alias(name)
        for name, what in included.items()
    ]
    rest = [name for name in columns if name not in included]
    origin, split = F.expr(_ORIGIN).alias(ORIGIN), F.expr("concat(topic, '/', partition)").alias(SPLIT)
    encoding = options.get("encode", "json").lower()
    if encoding == "bytes":
        if len(rest) != 1:
            raise SqlRunError(f"encode = 'bytes': a message is one column, and the table has {', '.join(rest) or 'none'}.")
        found = messages(spark, options).select(origin, *of_message, F.col("value").alias(rest[0]), split)
        return found.select(*columns, ORIGIN, SPLIT)
    record = record_format(options)
    found = messages(spark, options, "bytes" if record is None else AsJson(record))
    if record is None:
        is_tombstone = F.col("value").isNull()
        found = found.withColumns({MISREAD: F.when(is_tombstone, ""), WHY_MISREAD: F.when(is_tombstone, NO_VALUE)})
    document, told = F.col("value").cast("string").alias(_DOCUMENT), F.col(MISREAD).alias(_TOLD)
    found = _fields(found.select(origin, *of_message, told, WHY_MISREAD, split, document), rest)
    fields = [F.col(quoted(name)) for name in columns]
    return found.select(*fields, ORIGIN, F.coalesce(_TOLD, MISREAD).alias(MISREAD), WHY_MISREAD, SPLIT)


def numbered(rows: DataFrame, columns: Sequence[str], name: str) -> DataFrame:
    """Return some columns of rows, and the number of their partition: the same wherever in a plan they are read."""
    return rows.select(*[F.col(quoted(column)) for column in columns], F.spark_partition_id().alias(name))


def _rows(spark: SparkSession, connector: str, options: dict[str, str], types: Mapping[str, str]) -> DataFrame:
    columns: Sequence[str] = tuple(types)
    is_lines = connector == "json" and _PARSERS.isdisjoint(map(str.lower, options))
    reader = spark.readStream.format("text" if is_lines else connector)
    path = options.pop("path", None)
    if connector == "csv":
        # Spark matches columns by their order, not by their names, and says so only where the schema is not enforced.
        options = {"header": "true", "enforceSchema": "false", **options}
        columns = _heading(spark, path, options) or columns
    if connector in _AS_TEXT and not is_lines:
        reader = reader.schema(_texts([*columns, MISREAD] if connector == "json" else columns))
        options = {_WITH_MISREAD: MISREAD, **options} if connector == "json" else options
    if connector == "parquet" and path is not None:
        reader = reader.schema(as_wide(spark.read.parquet(path).schema, types))
    reader = reader.options(**options)
    rows = reader.load() if path is None else reader.load(path)
    if is_lines:
        of_folders = [name for name in columns if name in rows.columns[1:]]
        origin, document = F.col("_metadata.file_path").alias(ORIGIN), F.col("value").alias(_DOCUMENT)
        lines = rows.select(*map(quoted, of_folders), origin, document).filter(F.trim(_DOCUMENT) != "")
        of_lines = [name for name in columns if name not in of_folders]
        return _fields(lines, of_lines)
    if connector == "kafka":
        return rows.withColumn(ORIGIN, F.expr(_ORIGIN))
    return rows.withColumn(ORIGIN, F.col("_metadata.file_path")) if connector in _AS_TEXT else rows


def as_wide(schema: T.StructType, types: Mapping[str, str]) -> T.StructType:
    """Return the schema of a file, where the table has wider integers or floats with those: later files may have them, too."""
    wanted_of = {name.lower(): kind for name, kind in types.items()}

    def widened(kind: T.DataType, wanted: str | None) -> T.DataType:
        for kinds in _BY_WIDTH:
            names, each = list(kinds), list(kinds.values())
            if wanted in names and kind in each:
                return each[max(names.index(wanted), each.index(kind))]
        return kind

    return T.StructType(
        [
            T.StructField(each.name, widened(each.dataType, wanted_of.get(each.name.lower())), metadata=each.metadata)
            for each in schema
        ]
    )


def _texts(names: Sequence[str]) -> T.StructType:
    return T.StructType([T.StructField(name, T.StringType()) for name in names])


def _heading(spark: SparkSession, path: str | None, options: Mapping[str, str]) -> list[str]:
    """Return the columns that the heading of CSV files names; none where there is no heading, or no file yet."""
    if path is None or options["header"].lower() != "true":
        return []
    try:
        return list(spark.read.options(**options).csv(path).columns)
    except AnalysisException:
        return []


def _refusal(spark: SparkSession, connector: str, error: BaseException) -> str:
    condition = error.getCondition() if isinstance(error, AnalysisException) else None
    if connector in _PACKAGES and ("DATA_SOURCE_NOT_FOUND" in f"{condition} {error}" or "Failed to find" in str(error)):
        package = f"{_PACKAGES[connector]}:<version>"
        version = f" (this is Spark {spark.version})"
        return (
            f"connector {connector!r}: its jar is not there. Start Spark with it, as in spark-submit --packages {package} or "
            f".config('spark.jars.packages', '{package}'){version}."
        )
    if connector == "parquet" and condition == "UNABLE_TO_INFER_SCHEMA":
        return (
            "connector 'parquet': the folder has no Parquet file yet, from which Spark reads the types that columns have there; "
            "they may be others than those of the table. Write one first; it needs no rows."
        )
    said = reason(error)
    if "No FileSystem for scheme" in said:
        said += (
            ". Spark reads these files and needs a jar: hadoop-aws, and s3a:// in the path; a session without Spark needs none"
        )
    return f"connector {connector!r}: {said}"
