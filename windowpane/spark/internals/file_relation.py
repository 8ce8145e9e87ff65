"""What a streaming DataFrame reads, where it is nothing but the columns of a folder of files, by Spark's own plan.

PySpark has no public way to read that. The plan of a classic session is read through Py4J; whatever is not as expected, another
form of the plan in another Spark or a Spark Connect client, is answered by ``None``, and Spark reads the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError

from windowpane.spark.internals.session import is_classic

_RELATION = "StreamingRelation"
_RENAMED = "SubqueryAlias"
_SELECTED = "Project"
_COLUMN = ".AttributeReference"


@dataclass(frozen=True)
class FileRelation:
    """Files that a DataFrame reads.

    Args:
        format: the source, such as ``parquet``.
        path: the folder or pattern.
        options: of the source, by lower-case name, without the path.
        is_local: whether the path is on the local file system.
    """

    format: str
    path: str
    options: dict[str, str]
    is_local: bool


def file_relation(dataframe: Any) -> FileRelation | None:
    """Return the files that a streaming DataFrame reads, ``None`` if it does more than select columns of them."""
    if not is_classic(dataframe.sparkSession):
        return None
    try:
        return _relation(dataframe)
    except (Py4JError, AttributeError, TypeError):
        return None


def _relation(dataframe: Any) -> FileRelation | None:
    plan = dataframe._jdf.queryExecution().analyzed()
    while plan.nodeName() == _RENAMED or (plan.nodeName() == _SELECTED and _only_columns(plan)):
        plan = plan.child()
    if plan.nodeName() != _RELATION:
        return None
    source = plan.dataSource()
    options = _dictionary(source.options())
    path = options.pop("path", None)
    if path is None or source.paths().size() or not source.userSpecifiedSchema().isDefined():
        return None
    return FileRelation(str(source.className()).lower(), path, options, _is_local(dataframe.sparkSession, path))


def _only_columns(project: Any) -> bool:
    columns = project.projectList()
    return all(columns.apply(place).getClass().getName().endswith(_COLUMN) for place in range(columns.size()))


def _dictionary(options: Any) -> dict[str, str]:
    pairs = options.toSeq()
    found = (pairs.apply(place) for place in range(pairs.size()))
    return {str(pair._1()).lower(): str(pair._2()) for pair in found}


def _is_local(spark: Any, path: str) -> bool:
    hadoop_path = spark._jvm.org.apache.hadoop.fs.Path(path)
    return str(hadoop_path.getFileSystem(spark._jsc.hadoopConfiguration()).getUri().getScheme()) == "file"
