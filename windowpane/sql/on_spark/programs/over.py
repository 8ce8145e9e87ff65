"""OVER with EMIT ON WINDOW CLOSE, where calls look back by rows: an OVER program, as that of ``wp.over``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windowpane.sql.bind.scope import Column
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import CloseSort, Filter, Node, Over, Project, Scan
from windowpane.sql.on_spark.programs.plan import (
    SPARK_TYPES,
    Carried,
    NotStreamed,
    Parts,
    StreamedPlan,
    applied,
    chain,
    spark_type,
    unchanged,
    watermark_delay,
)
from windowpane.sql.on_spark.stages import INPUT
from windowpane.sql.streaming.over import over_spec
from windowpane.sql.windows.emit_on_close import looks_back

_KEPT_TYPES = {"double": "double", "real": "float"}
"""Further types that the OVER engines keep as SQL does."""


@dataclass(frozen=True)
class StreamedOver(StreamedPlan):
    """Calls OVER the rows of a source, once a row is final."""

    over: Over
    kinds: tuple[str, ...]

    @property
    def carried(self) -> tuple[Carried, ...]:
        columns = zip(self.over.input.columns, self.kinds, strict=True)
        return tuple(Carried(f"c{number}", column.expr, kind) for number, (column, kind) in enumerate(columns))

    @property
    def results(self) -> tuple[tuple[str, Column], ...]:
        width = len(self.over.input.columns)
        names = [f"c{number}" for number in range(width)] + [f"r{number}" for number in range(len(self.over.calls))]
        return tuple(zip(names, self.over.columns, strict=True))

    def name_of(self, column_id: str) -> str:
        return next(f"c{number}" for number, column in enumerate(self.over.input.columns) if column.id == column_id)

    @property
    def operator_line(self) -> str:
        calls = ", ".join(call.text for call in self.over.calls)
        keys = ", ".join(self.over.input.column(name).name for name in self.over.partition)
        by = f" by {keys}" if keys else ""
        return f"rows: OVER program, {calls}{by}, once a row is final"

    @property
    def keeps(self) -> str:
        return "rows that are not final, and the last ones of each partition, until no frame of a later row reaches them"


@dataclass(frozen=True)
class OverParts(Parts):
    """A plan of OVER with EMIT ON WINDOW CLOSE, taken apart: nodes of each part outermost first."""

    over: Over
    sort: CloseSort
    first: Sequence[Node]
    scan: Scan

    @classmethod
    def of(cls, node: Node) -> OverParts:
        """Take a plan apart."""
        above, over = chain(node, (Project, Filter), Over)
        if not over.closes:
            raise NotStreamed("OVER without EMIT ON WINDOW CLOSE stays with SQL")
        sort = over.input
        if not isinstance(sort, CloseSort):
            raise NotStreamed("OVER has windows of several kinds")
        first, scan = chain(sort.input, (Project, Filter), Scan)
        return cls(above, over, sort, first, scan)

    def rows_sql(self) -> str:
        """Return the rows as SQL; those without a time are never final."""
        rows = applied(self.first, self.scan.sql(INPUT))
        return f"SELECT * FROM ({rows}) WHERE {quoted(self.sort.by[0])} IS NOT NULL"


def over_program(parts: OverParts, tables: Mapping[str, TableInfo]) -> StreamedOver:
    """Return a plan of OVER as a program over the rows of one of ``tables``."""
    over, (time,) = parts.over, parts.sort.by
    delay = watermark_delay(parts.scan, parts.sort.input.watermarks.get(time), tables)
    for call, asked in zip(over_spec(over).calls, over.calls, strict=True):
        if not looks_back(call):
            raise NotStreamed(
                f"{asked.text} looks behind the current row: there the watermark would complete a row, in SQL rows do"
            )
    for name in over.partition:
        spark_type(over.input.column(name).type, f"PARTITION BY {over.input.column(name).name!r}")
    kinds = tuple(_kept_type(column) for column in over.input.columns)
    columns = unchanged(parts.first, parts.scan)
    return StreamedOver(parts.scan, parts.rows_sql(), time, delay, parts.result_sql(), True, columns, over, kinds)


def _kept_type(column: Column) -> str:
    """Return the type that Spark keeps a column in."""
    if column.type.name == "numeric":
        return column.type.duckdb.lower()
    found = (SPARK_TYPES | _KEPT_TYPES).get(column.type.name)
    if found is None:
        raise NotStreamed(f"column {column.name!r} is of type {column.type}, which Spark does not keep as SQL does")
    return found
