"""A plan that is one streaming query, and how plans of both kinds are taken apart: rows, the operator, the result.

What handles each row alone runs as DuckDB on Spark's tasks, before the operator (``rows``) and behind it (``result``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from windowpane.sql.bind.scope import Column
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.nodes import Node, Project, Scan, Watermark
from windowpane.sql.on_spark.stages import INPUT
from windowpane.sql.streaming.deltas import WEIGHT

SPARK_TYPES = {
    "boolean": "boolean",
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "varchar": "string",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
}
"""Types whose equality and order are the same in the window engines."""


class NotStreamed(Exception):  # noqa: N818 - never leaves this room: ``streamed`` catches it
    """A plan is not one streaming query, and why."""


class Carried(NamedTuple):
    """A column of the rows that travel to the operator."""

    name: str
    value: Expr
    spark: str


@dataclass(frozen=True)
class StreamedPlan(ABC):
    """A plan that is one streaming query.

    Args:
        rows: the rows for the operator, as SQL over ``INPUT``; the bounds of windows in it are the time of the row.
        time: the column in ``rows`` with the time of the row.
        delay: microseconds that the watermark stays behind it.
        result: the result with weights, as SQL over ``INPUT``, which has the columns of the operator.
        closes: whether a row is emitted once, when it is final; else in each batch that changes it.
        unchanged: the ids of columns of ``rows`` that are columns of the source, and their names there.
    """

    scan: Scan
    rows: str
    time: str
    delay: int
    result: str
    closes: bool
    unchanged: Mapping[str, str]

    @property
    @abstractmethod
    def carried(self) -> tuple[Carried, ...]:
        """The columns that travel to the operator, beside the time."""

    @property
    @abstractmethod
    def results(self) -> tuple[tuple[str, Column], ...]:
        """The columns of the operator's result, by name, and those of the plan that they are."""

    @property
    @abstractmethod
    def operator_line(self) -> str:
        """What EXPLAIN says of the operator."""

    @property
    @abstractmethod
    def keeps(self) -> str:
        """What the operator keeps, and until when."""

    @property
    def lines(self) -> list[str]:
        return [
            f"One streaming query on Spark from source {self.scan.relation!r}; its rows are not stored",
            "  rows: DuckDB on the tasks",
            f"  {self.operator_line}",
            f"    [keeps {self.keeps}]",
            "  result: DuckDB on the tasks",
        ]


@dataclass(frozen=True)
class Parts:
    above: Sequence[Node]

    def result_sql(self) -> str:
        return applied(self.above, f"SELECT * FROM {INPUT}", f", {quoted(WEIGHT)}")


def applied(steps: Sequence[Node], sql: str, extra: str = "") -> str:
    """Return nodes, outermost first, applied to the rows of a query, as SQL with ``extra`` columns."""
    for step in reversed(steps):
        sql = step.sql(f"({sql})", extra=extra)
    return sql


def unchanged(steps: Sequence[Node], scan: Scan) -> dict[str, str]:
    """Return the ids of columns behind steps, outermost first, that are columns of the source, and their names there."""
    found = {column.id: stored for stored, column in zip(scan.stored, scan.columns, strict=True)}
    for step in reversed(steps):
        if isinstance(step, Project):
            found = {name: found[of] for name, of in step.unchanged.items() if of in found}
    return found


_N = TypeVar("_N", bound=Node)


def chain(node: Node, steps: tuple[type[Node], ...], last: type[_N] | tuple[type[_N], ...]) -> tuple[list[Node], _N]:
    """Return the nodes above the first of a kind, outermost first, and that one."""
    above: list[Node] = []
    while not isinstance(node, last):
        if not isinstance(node, steps):
            forms = "GROUP BY over TUMBLE, HOP, CUMULATE or SESSION of one source, OVER with EMIT ON WINDOW CLOSE"
            raise NotStreamed(f"{node.label} is none of the plans that are: {forms}")
        above.append(node)
        node = node.inputs[0]
    return above, node


def watermark_delay(scan: Scan, held: Watermark | None, tables: Mapping[str, TableInfo]) -> int:
    """Return the delay of the watermark of a source, if a program can read it; ``held``: the watermark of the time column."""
    table = tables.get(scan.relation)
    if table is None or "connector" not in table.options:
        raise NotStreamed(f"{scan.relation!r} is no source with a connector")
    relation, watermark = table.relation, table.watermark
    if table.keeps_late_rows:
        raise NotStreamed(f"{scan.relation!r} was made with late_rows = 'open_windows'")
    if relation.kind != "source":
        raise NotStreamed(f"{scan.relation!r} is a table, whose rows are stored; those of a CREATE SOURCE are not")
    if not table.has_row_id or table.reads_clock:
        raise NotStreamed(f"{scan.relation!r} has a primary key, or a column that the clock makes")
    delay = None if watermark is None else watermark.delay
    if watermark is None or delay is None:
        raise NotStreamed(f"{scan.relation!r} has no WATERMARK FOR a column AS that column less an interval")
    if held is None or held.parts != ((scan.relation, "{w}"),):
        raise NotStreamed("the windows are not made by the column of the watermark")
    if watermark.type.name not in ("timestamp", "timestamptz"):
        raise NotStreamed(f"the time is of type {watermark.type}")
    return delay


def spark_type(kind: SqlType, what: str) -> str:
    """Return the type of Spark in which the window engines compare values of a type as SQL does."""
    if kind.name == "numeric":
        return f"decimal(38, {kind.scale})"
    found = SPARK_TYPES.get(kind.name)
    if found is None:
        raise NotStreamed(f"{what}: the window engines do not compare {kind} as SQL does")
    return found
