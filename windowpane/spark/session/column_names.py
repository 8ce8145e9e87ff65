"""Names of columns as a session compares them: without regard to case, unless ``spark.sql.caseSensitive`` is set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from windowpane.errors import DuplicateColumnError, UnknownColumnError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CASE_SENSITIVE = "spark.sql.caseSensitive"
_WAY_OUT = (
    f"Spark takes names that differ by case alone for one, unless {_CASE_SENSITIVE} is true: give one of them another name."
)


def folding(spark: SparkSession) -> Callable[[str], str]:
    return str if str(spark.conf.get(_CASE_SENSITIVE, "false")).lower() == "true" else str.lower


def column_named(dataframe: DataFrame, name: str) -> str | None:
    """Return the column that a name means, as the DataFrame spells it; ``None`` if there is none."""
    return _named(dataframe.columns, name, dataframe.sparkSession)


def _named(columns: Iterable[str], name: str, spark: SparkSession) -> str | None:
    alike = [each for each in columns if each.lower() == name.lower()]
    if not alike or alike == [name]:
        return name if alike else None
    fold = folding(spark)
    found = [each for each in alike if fold(each) == fold(name)]
    if len(found) > 1:
        raise DuplicateColumnError(found, _WAY_OUT, "the input has")
    return found[0] if found else None


def column_in(dataframe: DataFrame, name: str, role: str) -> str:
    """Return the column that a name means, as the DataFrame spells it.

    Raises:
        UnknownColumnError: there is none.
    """
    return column_among(dataframe.columns, name, role, dataframe.sparkSession)


def column_among(columns: Sequence[str], name: str, role: str, spark: SparkSession) -> str:
    """Return the same for columns of a DataFrame that is still to come."""
    found = _named(columns, name, spark)
    if found is None:
        raise UnknownColumnError(name, role, columns)
    return found


def columns_needed(columns: Sequence[str], needs: Mapping[str, Iterable[str]], spark: SparkSession) -> tuple[str, ...]:
    """Return what ``column_among`` returns for each name that a ``KeyedSink`` needs."""
    return tuple(column_among(columns, name, role, spark) for role, names in needs.items() for name in names)


def refuse_alike(names: Iterable[str], spark: SparkSession) -> None:
    every = list(names)
    if len({name.lower() for name in every}) < len(every):
        DuplicateColumnError.refuse_alike(every, _WAY_OUT, fold=folding(spark))


def spelled_as(dataframe: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return a DataFrame with its columns spelled as ``names`` spell them, as far as it has those."""
    for name in names:
        found = column_named(dataframe, name)
        if found not in (None, name):
            dataframe = dataframe.withColumnRenamed(found, name)
    return dataframe
