"""Project: the columns a program needs, computed by Spark before the operator, as few as the plan allows.

Keys, aggregate arguments and ordering columns may be names or PySpark Columns. A name stays a name; a Column gets a column
of its own under a reserved name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.errors import InvalidSpecError, UnsupportedTypeError
from windowpane.hidden_columns import PREFIX, SYSTEM, TIME
from windowpane.planning.windows import FunctionPlan
from windowpane.spark.internals.column_trees import column_name
from windowpane.spark.internals.file_relation import of_one_source
from windowpane.spark.session.column_names import column_in, column_named
from windowpane.spark.stages.encode import BUCKET, LATEST, SCHEMA
from windowpane.spark.stages.types import foreign_collation
from windowpane.windowing.expressions import ColumnLike

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass
class Projection:
    """The columns to select from a DataFrame, by name in the projected one."""

    dataframe: DataFrame
    columns: dict[str, Column] = field(default_factory=dict)
    computed: list[str] = field(default_factory=list)  # What Spark has to compute: the roles of Columns

    def add(self, expression: ColumnLike, role: str, reserved: str) -> str:
        """Select a name or Column and return its name in the projection; ``reserved`` names a Column."""
        if isinstance(expression, str):
            found = column_in(self.dataframe, expression, role)
            self.columns.setdefault(found, F.col(quoted(found)))
            return found
        if not hasattr(expression, "cast"):
            raise InvalidSpecError(f"{role}: expected a column name or a PySpark Column, got {expression!r}.")
        name = PREFIX + reserved
        self.computed.append(role)
        self.columns[name] = expression.alias(name)
        return name

    def add_keys(self, keys: Sequence[ColumnLike]) -> tuple[tuple[str, ...], T.StructType]:
        """Select the key columns; return their names in the projection and their fields as the output has them."""
        if not keys:
            return (), T.StructType([])
        keys = [self._key(key) for key in keys]
        names = tuple(self.add(key, "key_by", f"key_{number}") for number, key in enumerate(keys))
        given = self.dataframe.select(*[F.col(quoted(key)) if isinstance(key, str) else key for key in keys])
        if len(set(given.columns)) != len(given.columns):
            raise InvalidSpecError(f"key_by: two keys have one name, {given.columns}; give them names with alias.")
        refuse_key_collations(given.schema, "key_by")
        return names, given.schema

    def _key(self, key: ColumnLike) -> ColumnLike:
        """Return a key by the name that the rows spell; a Column that computes something as it is."""
        written = key if isinstance(key, str) else column_name(key)
        found = None if written is None else column_named(self.dataframe, written)
        return key if found in (None, written) else found

    def add_event_time(self, name: str) -> None:
        """Select the event time: as the microseconds that the operator counts in, unless the program needs the column itself.

        A column of timestamps takes a fifth longer than one of integers on its way to Python.
        """
        is_instant = isinstance(self.dataframe.schema[name].dataType, T.TimestampType)
        if name in self.columns or TIME in self.columns or not is_instant:
            self.add(name, "input", "")
        else:
            self.columns[TIME] = F.unix_micros(F.col(quoted(name))).alias(TIME)

    def add_arguments(self, function: FunctionPlan) -> dict[str, tuple[str, ...]]:
        """Select the arguments of built-in aggregates; return their columns by output name."""
        slots: dict[str, tuple[str, ...]] = {}
        for name, aggregate in function.aggregates:
            role = f"aggregate {name}={aggregate}"
            slots[name] = tuple(
                self.add(argument, role, f"argument_{name}_{number}") for number, argument in enumerate(aggregate.arguments)
            )
        return slots

    def add_system(self) -> None:
        for name in SYSTEM:
            if name in self.dataframe.columns:
                self.columns[name] = F.col(name)

    def select(self) -> DataFrame:
        return self.dataframe.select(*self.columns.values())


def refuse_key_collations(keys: T.StructType, role: str) -> None:
    """Refuse keys with a collation under which texts of different bytes are equal."""
    for column in keys.fields:
        collation = foreign_collation(column.dataType)
        if collation is not None:
            raise UnsupportedTypeError(
                f"{role}: column {column.name!r} is {column.dataType.simpleString()}. Under {collation} texts of different bytes "
                "can be equal, but keys are compared by bytes: use collation_key(...) of it, and carry the text in the rows."
            )


def refuse_compared_collations(columns: Iterable[T.StructField], role: str) -> None:
    """Refuse columns whose values are compared by bytes, where Spark compares them by a collation."""
    for column in columns:
        collation = foreign_collation(column.dataType)
        if collation is not None:
            named = "it" if column.name.startswith(PREFIX) else f"column {column.name!r}"
            raise UnsupportedTypeError(
                f"{role}: {named} is {column.dataType.simpleString()}. Texts are compared by bytes here, and {collation} orders "
                "them otherwise, or has different ones equal: cast it to string where bytes will do, or use collation_key(...)."
            )


def mapped_in_arrow(
    dataframe: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str | T.StructType
) -> DataFrame:
    """Return ``dataframe.mapInArrow(function, schema)``, whatever its columns are called.

    PySpark looks the columns up by their names without quotes, and finds none with dots or backticks in them.
    """
    names = tuple(dataframe.columns)
    if not any("." in name or "`" in name for name in names):
        return dataframe.mapInArrow(function, schema)
    numbered = dataframe.toDF(*[f"{PREFIX}column_{number}" for number in range(len(names))])
    return numbered.mapInArrow(partial(_renamed, function, names), schema)


def encoded(
    dataframe: DataFrame, encoding: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], watermark: str | None
) -> DataFrame:
    """Return what an encoder makes of a DataFrame as ``encode.SCHEMA``; ``watermark`` is a delay as Spark takes it."""
    dataframe = of_one_source(dataframe)
    if watermark is None:
        return mapped_in_arrow(dataframe, encoding, SCHEMA)
    blobs = mapped_in_arrow(dataframe, encoding, f"{SCHEMA}, {LATEST} timestamp")
    return blobs.withWatermark(LATEST, watermark).select(BUCKET, "blob")


def _renamed(
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    names: Sequence[str],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    return function(batch.rename_columns(list(names)) for batch in batches)


def quoted(name: str) -> str:
    """Return a column name so that dots and spaces in it mean themselves."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
