"""What a streaming DataFrame reads, where it is columns of a folder of files and a condition on them, by Spark's own plan.

PySpark has no public way to read that. The plan of a classic session is read through Py4J; whatever is not as expected, another
form of the plan in another Spark or a Spark Connect client, is answered by ``None``, and Spark reads the files. So it does where
it computes columns or conditions that only it knows; that is answered by the reason (``LeftToSpark``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from windowpane.spark.internals.file_conditions import UnknownConditionError, condition_of
from windowpane.spark.internals.plan_trees import (
    FILTERED,
    SELECTED,
    UNREADABLE,
    Steps,
    column_of,
    connect_nodes,
    dataframe_of,
    listed,
    number_of,
    sequence,
    tree_of,
)
from windowpane.spark.internals.session import is_classic, jvm_of
from windowpane.windowing.expressions import Expression, Operation

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

PARQUET = "parquet"

_RELATION = "StreamingRelation"
_OF_FILE = "__file_source_metadata_col"  # Metadata of the column in which Spark says of each row which file it is of
_CUT = {"maxfilespertrigger", "maxbytespertrigger"}  # Options that say how much of the files one batch takes


@dataclass(frozen=True)
class LeftToSpark:
    reason: str


@dataclass(frozen=True)
class FileRelation:
    format: str  # the source, such as ``parquet``
    path: str  # the folder or pattern
    files: DataFrame  # their rows; the last column is what Spark says of the file of each (``_metadata``, if that name is free)
    options: dict[str, str]  # of the source, by lower-case name, without the path
    is_local: bool  # whether the path is on the local file system
    schema: T.StructType  # the columns of the files, as the user declared them
    columns: Mapping[str, str]  # the column of the files that each column of the DataFrame is
    # on columns of the files; rows for which it does not hold are left out. ``None`` where all are read
    condition: Expression | None


def file_relation(dataframe: DataFrame, steps: Steps | None = None) -> FileRelation | LeftToSpark | None:
    """Return the files that a streaming DataFrame reads, ``None`` if it does more than select columns and rows of them."""
    if not is_classic(dataframe.sparkSession):
        return None
    try:
        return _relation(dataframe, steps or Steps.of(dataframe._jdf.queryExecution().analyzed()))
    except (*UNREADABLE, KeyError, ValueError, RecursionError):
        return None


def cut_folders(dataframe: DataFrame) -> Iterator[str]:
    """Yield the folders, or patterns, that a stream reads a number of files or bytes of at once; none where that is not known."""
    if not getattr(dataframe, "isStreaming", False):
        return
    try:
        found: list[tuple[dict[str, str], list[str]]]
        if is_classic(dataframe.sparkSession):
            leaves = listed(dataframe._jdf.queryExecution().analyzed().collectLeaves())
            found = [(_dictionary(leaf.dataSource().options()), []) for leaf in leaves if leaf.nodeName() == _RELATION]
        else:
            read = [node for node in connect_nodes(dataframe._plan) if type(node).__name__ == "DataSource"]
            found = [({k.lower(): v for k, v in node._options.items()}, list(node._paths or [])) for node in read]
        for options, paths in found:
            if _CUT & options.keys():
                yield from (*paths, *([options["path"]] if "path" in options else []))
    except UNREADABLE:
        return


def _relation(dataframe: DataFrame, steps: Steps) -> FileRelation | LeftToSpark | None:
    if steps.below.nodeName() != _RELATION:
        return None
    source = steps.below.dataSource()
    options = _dictionary(source.options())
    path = options.pop("path", None)
    if path is None or source.paths().size() or not source.userSpecifiedSchema().isDefined():
        return None
    schema = T.StructType.fromJson(json.loads(source.userSpecifiedSchema().get().json()))
    described = {field.name for field in schema.fields if field.metadata}
    selected = _selected(steps, described)
    if isinstance(selected, LeftToSpark):
        return selected
    columns, condition = selected
    spark = dataframe.sparkSession
    files = jvm_of(spark).org.apache.hadoop.fs.Path(path).getFileSystem(spark._jsc.hadoopConfiguration())
    is_local = str(files.getUri().getScheme()) == "file"
    rows = dataframe_of(_with_file(steps.below), spark)
    return FileRelation(_format(steps.below), path, rows, options, is_local, schema, columns, condition)


def of_one_source(dataframe: DataFrame) -> DataFrame:
    """Return a stream of Parquet files that has one source with another of the same files, whether Spark or Arrow reads them.

    Spark makes one source of all equal relations of a query, and its checkpoint knows sources by their numbers. Who reads files
    may be another at each start, and for each operator: so what Spark reads has the column, too, that places for Arrow are made
    of. Nothing reads it there.
    """
    if not getattr(dataframe, "isStreaming", False) or not is_classic(dataframe.sparkSession):
        return dataframe
    try:
        steps = Steps.of(dataframe._jdf.queryExecution().analyzed())
        if steps.below.nodeName() != _RELATION or _format(steps.below) != PARQUET or _has_file(steps.below):
            return dataframe
        jvm = jvm_of(dataframe.sparkSession)
        plan = jvm.org.apache.spark.sql.catalyst.plans.logical.Project(steps.below.output(), _with_file(steps.below))
        for step in reversed(steps.nodes):
            plan = step.withNewChildren(sequence([plan], jvm))
        return dataframe_of(plan, dataframe.sparkSession)
    except UNREADABLE:
        return dataframe


def _with_file(relation: JavaObject) -> JavaObject:
    return relation if _has_file(relation) else relation.withMetadataColumns()


def _has_file(relation: JavaObject) -> bool:
    return any(column.metadata().contains(_OF_FILE) for column in listed(relation.output())[-1:])


def _format(relation: JavaObject) -> str:
    return str(relation.dataSource().className()).lower()


def _selected(steps: Steps, described: Set[str]) -> tuple[dict[str, str], Expression | None] | LeftToSpark:
    """Return the columns that steps select of a relation, and the condition on rows.

    ``described`` columns of the relation have metadata, by which Spark may read or compare them otherwise.
    """
    *selecting, relation = steps.trees
    selected = [tree_of(each) for each in relation.fields["output"]]
    numbered = {number_of(column): str(column.fields["name"]) for column in selected if column.fields["name"] not in described}
    conditions: list[Expression] = []
    for step, node in zip(reversed(selecting), reversed(steps.nodes), strict=True):
        if step.kind == FILTERED:
            try:
                conditions.append(condition_of(tree_of(step.fields["condition"]), numbered))
            except UnknownConditionError:
                return LeftToSpark(f"Arrow may find other rows where {node.condition().sql()}")
        elif step.kind == SELECTED:
            selected = [tree_of(each) for each in step.fields["projectList"]]
            computed = [str(each.fields["name"]) for each in selected if column_of(each) is None]
            if computed:
                return LeftToSpark(f"column {computed[0]!r} is computed")
            numbered |= {number_of(each): numbered[number_of(column)] for each in selected if (column := column_of(each))}
    columns = {str(each.fields["name"]): numbered[number_of(each)] for each in selected}
    if len(columns) < len(selected):
        raise ValueError("two columns have one name")
    if not conditions:
        return columns, None
    return columns, reduce(lambda first, then: Operation("&", (first, then)), conditions)


def _dictionary(options: JavaObject) -> dict[str, str]:
    return {str(pair._1()).lower(): str(pair._2()) for pair in listed(options.toSeq())}
