"""Views that are one streaming query, from their source to their result: which plans are, and what of them runs where.

Today that is GROUP BY over TUMBLE, HOP, CUMULATE or SESSION of a source, with EMIT ON WINDOW CLOSE or as groups change, and OVER
with EMIT ON WINDOW CLOSE where calls look back by rows. What handles each row alone runs as DuckDB on Spark's tasks, before and
behind; the groups are the window program of ``wp.stream``, the calls the OVER program of ``wp.over``.
A plan is taken only where the result is the one of the embedded engine; for every other the reason is given.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from windowpane.sql.bind.scope import Column
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.embedded.macros import NOW
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import BIGINT, SqlType
from windowpane.sql.nodes import (
    Aggregate,
    CloseSort,
    Filter,
    Fold,
    Node,
    Over,
    Project,
    Scan,
    SessionWindows,
    TimeWindows,
    Watermark,
)
from windowpane.sql.on_spark.stages import INPUT
from windowpane.sql.optimize.conditions import conjuncts
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.sql.streaming.over import over_spec
from windowpane.windowing.assigners.base import MergingWindowAssigner, WindowAssigner
from windowpane.windowing.over.frames import Units

_SPARK_TYPES = {
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

_KEPT_TYPES = {"double": "double", "real": "float"}
"""Further types that the OVER engines keep as SQL does."""

_ROOM = 9
"""Digits that a sum needs beside those of its values: it has room for a billion rows of a group and slice."""

_CAST = re.compile(r'CAST\("([^"]+)" AS [A-Z]+(?:\(\d+, ?\d+\))?\)')


class NotStreamed(Exception):  # noqa: N818 - passes no boundary: ``streamed`` takes it
    """A plan is not one streaming query, and why."""


@dataclass(frozen=True)
class Call:
    """A built-in aggregate of the window engines.

    Args:
        function: its name.
        argument: SQL of its argument over the rows, ``None`` for ``count(*)``.
        kind: the DuckDB type of the argument.
        spark: the same of Spark.
        result: the column of the plan.
    """

    function: str
    argument: str | None
    kind: str
    spark: str
    result: Column

    @property
    def widened(self) -> Call:
        """The call with its argument in all digits of Spark, as views have it that were made before sums took fewer."""
        if self.function != "sum" or not self.spark.startswith("decimal"):
            return self
        return replace(self, kind=self.result.type.duckdb, spark=f"decimal(38, {self.result.type.scale})")


class Carried(NamedTuple):
    """A column of the rows that travel to the operator.

    Args:
        name: its name there.
        sql: what it is of the rows.
        spark: its type of Spark.
    """

    name: str
    sql: str
    spark: str


@dataclass(frozen=True)
class StreamedPlan(ABC):
    """A plan that is one streaming query.

    Args:
        scan: what is read of the source.
        rows: the rows for the operator, as SQL over ``INPUT``; the bounds of windows in it are the time of the row.
        time: the column in ``rows`` with the time of the row.
        delay: microseconds that the watermark stays behind it.
        result: the result with weights, as SQL over ``INPUT``, which has the columns of the operator.
        closes: whether a row comes out once, when it is final; else in each batch that changes it.
        unchanged: the columns of ``rows``, as SQL, that are columns of the source, by their names there.
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
        """The columns that the operator gives, by name, and those of the plan that they are."""

    @property
    @abstractmethod
    def operator_line(self) -> str:
        """What EXPLAIN says of the operator."""

    @property
    def lines(self) -> list[str]:
        """What EXPLAIN says."""
        return [
            f"One streaming query on Spark from source {self.scan.relation!r}; its rows are not stored",
            "  rows: DuckDB on the tasks",
            f"  {self.operator_line}",
            "  result: DuckDB on the tasks",
        ]


@dataclass(frozen=True)
class StreamedGroups(StreamedPlan):
    """GROUP BY over windows of a source.

    Args:
        keys: the columns of GROUP BY beside the bounds of windows, with their types of Spark.
        bounds: the columns of the plan that are the start of a window, and its end; ``None`` for one that nobody groups by.
        assigner: the windows.
        calls: the aggregates.
    """

    keys: tuple[tuple[Column, str], ...]
    bounds: tuple[Column | None, Column | None]
    assigner: WindowAssigner
    calls: tuple[Call, ...]

    @property
    def widened(self) -> StreamedGroups:
        """The plan with sums in all digits of Spark."""
        return replace(self, calls=tuple(call.widened for call in self.calls))

    @property
    def has_sessions(self) -> bool:
        """Whether the windows are sessions."""
        return isinstance(self.assigner, MergingWindowAssigner)

    @property
    def carried(self) -> tuple[Carried, ...]:
        """The columns that travel to the operator, beside the time."""
        keys = [Carried(f"k{number}", quoted(key.id), kind) for number, (key, kind) in enumerate(self.keys)]
        arguments = [
            Carried(f"a{number}", f"CAST({call.argument} AS {call.kind})", call.spark)
            for number, call in enumerate(self.calls)
            if call.argument is not None
        ]
        return (*keys, *arguments)

    @property
    def results(self) -> tuple[tuple[str, Column], ...]:
        """The columns that the operator gives, by name, and those of the plan that they are."""
        bounds = zip(("window_start", "window_end"), self.bounds, strict=True)
        found = [(name, column) for name, column in bounds if column is not None]
        found += [(f"k{number}", column) for number, (column, _) in enumerate(self.keys)]
        return (*found, *((f"r{number}", call.result) for number, call in enumerate(self.calls)))

    @property
    def operator_line(self) -> str:
        """What EXPLAIN says of the operator."""
        keys = ", ".join(column.name for column, _ in self.keys)
        engine = "engine sessions" if self.has_sessions else "engine slices" if self.closes else "engine updates"
        ways = "folded before the shuffle" if self.closes else "each batch takes back what it changes"
        return f"groups: window program, {engine}, by {f'{keys} and ' * bool(keys)}window, {ways}"


@dataclass(frozen=True)
class StreamedOver(StreamedPlan):
    """Calls OVER the rows of a source, once a row is final.

    Args:
        over: the node of the calls.
        kinds: the types of Spark of its input's columns.
    """

    over: Over
    kinds: tuple[str, ...]

    @property
    def carried(self) -> tuple[Carried, ...]:
        """The columns that travel to the operator, beside the time."""
        columns = zip(self.over.input.columns, self.kinds, strict=True)
        return tuple(Carried(f"c{number}", quoted(column.id), kind) for number, (column, kind) in enumerate(columns))

    @property
    def results(self) -> tuple[tuple[str, Column], ...]:
        """The columns that the operator gives, by name, and those of the plan that they are."""
        width = len(self.over.input.columns)
        names = [f"c{number}" for number in range(width)] + [f"r{number}" for number in range(len(self.over.calls))]
        return tuple(zip(names, self.over.columns, strict=True))

    def name_of(self, column_id: str) -> str:
        """Return the name that a column of the input travels by."""
        return next(f"c{number}" for number, column in enumerate(self.over.input.columns) if column.id == column_id)

    @property
    def operator_line(self) -> str:
        """What EXPLAIN says of the operator."""
        calls = ", ".join(call.text for call in self.over.calls)
        keys = ", ".join(self.over.input.column(name).name for name in self.over.partition)
        return f"rows: OVER program, {calls}{f' by {keys}' if keys else ''}, once a row is final"


def streamed(node: Node, tables: Mapping[str, TableInfo], runs: Node | None = None) -> StreamedPlan | str:
    """Return how a plan is one streaming query, or why it is none.

    Args:
        node: the plan.
        tables: tables and sources by name.
        runs: the same plan with the SQL that is to run, where this is another.
    """
    is_over = isinstance(_first_of(node, (Over, Aggregate, CloseSort)), Over)
    try:
        found = _over(_OverParts.of(node), tables) if is_over else _groups(_Parts.of(node), tables)
    except NotStreamed as reason:
        return str(reason)
    if runs is None:
        return found
    parts = _OverParts.of(runs) if is_over else _Parts.of(runs)
    return replace(found, rows=parts.rows_sql(), result=parts.result_sql())


def telling_bounds(groups: Aggregate) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the bounds of windows among the columns of groups, and those of all bounds that tell windows apart.

    Raises:
        NotStreamed: they are no groups of windows.
    """
    parts = _Parts.of(groups)
    bounds = _bounds_through(parts.below, parts.windows)
    return tuple(name for name in bounds if name in groups.groups), frozenset(_telling(parts.windows, bounds))


def _telling(windows: TimeWindows | SessionWindows, bounds: tuple[str, str]) -> tuple[str, ...]:
    """Return the bounds of which one tells windows apart: windows of CUMULATE share their start."""
    return bounds[1:] if windows.kind == "CUMULATE" else bounds


def _first_of(node: Node, kinds: tuple[type[Node], ...]) -> Node | None:
    """Return the first node of some kinds below those that handle each row alone."""
    while not isinstance(node, kinds):
        if not isinstance(node, Project | Filter):
            return None
        node = node.input
    return node


@dataclass(frozen=True)
class _Above:
    """What stands above the operator of a plan, outermost first."""

    above: Sequence[Node]

    def result_sql(self) -> str:
        """Return the result as SQL, with weights."""
        return _applied(self.above, f"SELECT * FROM {INPUT}", f", {quoted(WEIGHT)}")


@dataclass(frozen=True)
class _OverParts(_Above):
    """A plan of OVER with EMIT ON WINDOW CLOSE, taken apart: nodes of each part outermost first."""

    over: Over
    sort: CloseSort
    first: Sequence[Node]
    scan: Scan

    @classmethod
    def of(cls, node: Node) -> _OverParts:
        """Take a plan apart.

        Raises:
            NotStreamed: it is of another form.
        """
        above, over = _chain(node, (Project, Filter), Over)
        if not over.closes:
            raise NotStreamed("OVER without EMIT ON WINDOW CLOSE stays with SQL")
        sort = over.input
        if not isinstance(sort, CloseSort):
            raise NotStreamed("OVER has windows of several kinds")
        first, scan = _chain(sort.input, (Project, Filter), Scan)
        return cls(above, over, sort, first, scan)

    def rows_sql(self) -> str:
        """Return the rows as SQL; those without a time are never final."""
        rows = _applied(self.first, self.scan.sql(INPUT))
        return f"SELECT * FROM ({rows}) WHERE {quoted(self.sort.by[0])} IS NOT NULL"


@dataclass(frozen=True)
class _Parts(_Above):
    """A plan of groups, taken apart: nodes of each part outermost first."""

    groups: Aggregate
    below: Sequence[Node]
    windows: TimeWindows | SessionWindows
    first: Sequence[Node]
    scan: Scan

    @classmethod
    def of(cls, node: Node) -> _Parts:
        """Take a plan apart.

        Raises:
            NotStreamed: it is of another form.
        """
        above, groups = _chain(node, (Project, Filter, CloseSort), Aggregate)
        kinds: tuple[type[TimeWindows | SessionWindows], ...] = (TimeWindows, SessionWindows)
        below, windows = _chain(groups.input, (Project, Filter), kinds)
        first, scan = _chain(windows.input, (Project, Filter), Scan)
        return cls(above, groups, below, windows, first, scan)

    def rows_sql(self) -> str:
        """Return the rows that are grouped as SQL; bounds of windows are the time of the row."""
        time = quoted(str(self.windows.time))
        items = [quoted(column.id) for column in self.windows.columns[:-2]]
        items += [f"{time} AS {quoted(column.id)}" for column in self.windows.columns[-2:]]
        rows = _applied(self.first, self.scan.sql(INPUT))
        return _applied(self.below, f"SELECT {', '.join(items)} FROM ({rows}) WHERE {time} IS NOT NULL")


def _applied(steps: Sequence[Node], sql: str, extra: str = "") -> str:
    for step in reversed(steps):
        sql = step.sql(f"({sql})", extra=extra)
    return sql


def _unchanged(steps: Sequence[Node], scan: Scan) -> dict[str, str]:
    """Return the columns behind steps, outermost first, that are columns of the source: their SQL, and their names there."""
    found = {quoted(column.id): stored for stored, column in zip(scan.stored, scan.columns, strict=True)}
    for step in reversed(steps):
        if isinstance(step, Project):
            found = {
                quoted(column.id): found[item] for item, column in zip(step.items, step.columns, strict=True) if item in found
            }
    return found


def _over(parts: _OverParts, tables: Mapping[str, TableInfo]) -> StreamedOver:
    over, (time,) = parts.over, parts.sort.by
    delay = _delay(parts.scan, parts.sort.input.watermarks.get(time), tables)
    for call, asked in zip(over_spec(over).calls, over.calls, strict=True):
        reach = call.reach
        if reach.units is not Units.ROWS or reach.end.steps is None or reach.end.steps > 0:
            raise NotStreamed(
                f"{asked.text} looks behind the current row: there the watermark would complete a row, in SQL rows do"
            )
    for name in over.partition:
        _spark_type(over.input.column(name).type, f"PARTITION BY {over.input.column(name).name!r}")
    kinds = tuple(_kept_type(column) for column in over.input.columns)
    unchanged = _unchanged(parts.first, parts.scan)
    return StreamedOver(parts.scan, parts.rows_sql(), time, delay, parts.result_sql(), True, unchanged, over, kinds)


def _kept_type(column: Column) -> str:
    """Return the type that Spark keeps a column in."""
    if column.type.name == "numeric":
        return column.type.duckdb.lower()
    found = (_SPARK_TYPES | _KEPT_TYPES).get(column.type.name)
    if found is None:
        raise NotStreamed(f"column {column.name!r} is of type {column.type}, which Spark does not keep as SQL does")
    return found


def _groups(parts: _Parts, tables: Mapping[str, TableInfo]) -> StreamedGroups:
    groups, windows = parts.groups, parts.windows
    if windows.assigner is None:
        raise NotStreamed(f"windows of {windows.detail} stay with SQL")
    delay = _delay(parts.scan, None if windows.time is None else windows.input.watermarks.get(windows.time), tables)
    bounds = _bounds_through(parts.below, windows)
    if isinstance(windows, SessionWindows):
        _check_partition(parts, windows, bounds)
    grouped = [name for name in bounds if name in groups.groups]
    closes = _closes(parts.above, grouped, _telling(windows, bounds))
    if not closes:
        _check_times(parts)
    keys = tuple(groups.column(name) for name in groups.groups if name not in bounds)
    start, end = (groups.column(name) if name in groups.groups else None for name in bounds)
    return StreamedGroups(
        parts.scan,
        parts.rows_sql(),
        grouped[0],
        delay,
        parts.result_sql(),
        closes,
        _unchanged([*parts.below, *parts.first], parts.scan),
        tuple((key, _spark_type(key.type, f"GROUP BY {key.name!r}")) for key in keys),
        (start, end),
        windows.assigner,
        tuple(_calls(groups, bounds)),
    )


_N = TypeVar("_N", bound=Node)


def _chain(node: Node, steps: tuple[type[Node], ...], last: type[_N] | tuple[type[_N], ...]) -> tuple[list[Node], _N]:
    """Return the nodes above the first of a kind, outermost first, and that one."""
    passed: list[Node] = []
    while not isinstance(node, last):
        if not isinstance(node, steps):
            forms = "GROUP BY over TUMBLE, HOP, CUMULATE or SESSION of one source, OVER with EMIT ON WINDOW CLOSE"
            raise NotStreamed(f"{node.label} is none of the plans that are: {forms}")
        passed.append(node)
        node = node.inputs[0]
    return passed, node


def _check_partition(parts: _Parts, windows: SessionWindows, bounds: tuple[str, str]) -> None:
    """Refuse sessions that are made of other rows than those of their group."""
    if any(isinstance(step, Filter) for step in parts.below):
        raise NotStreamed("rows are left out behind SESSION, and its windows are made of all of them")
    names = {quoted(name): quoted(name) for name in windows.partition}
    for step in reversed(parts.below):
        if isinstance(step, Project):
            items = {item: quoted(column.id) for item, column in zip(step.items, step.columns, strict=True)}
            names = {name: items.get(at, "") for name, at in names.items()}
    keys = {quoted(name) for name in parts.groups.groups if name not in bounds}
    if keys != set(names.values()):
        raise NotStreamed("GROUP BY has other columns than SESSION has in PARTITION BY")


def _delay(scan: Scan, held: Watermark | None, tables: Mapping[str, TableInfo]) -> int:
    """Return the delay of the watermark, where the rows of a source are such as a stream can have; ``held``: that of the time."""
    table = tables.get(scan.relation)
    if table is None or "connector" not in table.options:
        raise NotStreamed(f"{scan.relation!r} is no source with a connector")
    relation, watermark = table.relation, table.watermark
    if relation.kind != "source":
        raise NotStreamed(f"{scan.relation!r} is a table, whose rows are stored; those of a CREATE SOURCE are not")
    if not table.has_row_id or NOW in " ".join(table.generated.values()):
        raise NotStreamed(f"{scan.relation!r} has a primary key, or a column that the clock makes")
    delay = None if watermark is None else watermark.delay
    if watermark is None or delay is None:
        raise NotStreamed(f"{scan.relation!r} has no WATERMARK FOR a column AS that column less an interval")
    if held is None or held.parts != ((scan.relation, "{w}"),):
        raise NotStreamed("the windows are not made by the column of the watermark")
    if watermark.type.name not in ("timestamp", "timestamptz"):
        raise NotStreamed(f"the time is of type {watermark.type}")
    return delay


def _bounds_through(below: Sequence[Node], windows: TimeWindows | SessionWindows) -> tuple[str, str]:
    """Return the ids that the bounds of windows have above some nodes, which must let them pass unread."""
    start, end = (column.id for column in windows.columns[-2:])
    for step in reversed(below):
        if isinstance(step, Project):
            renamed: dict[str, str] = {}
            for item, column in zip(step.items, step.columns, strict=True):
                if item in (quoted(start), quoted(end)):
                    renamed[item] = column.id
                elif _mentions(item, start, end):
                    raise NotStreamed("a column is computed from window_start or window_end before the groups")
            start, end = renamed.get(quoted(start), start), renamed.get(quoted(end), end)
        elif isinstance(step, Filter) and any(
            _mentions(part.sql, start, end) and part.sql not in (_is_there(start), _is_there(end))
            for part in conjuncts(step.condition)
        ):
            raise NotStreamed("rows are filtered by window_start or window_end before the groups")
    return start, end


def _check_times(parts: _Parts) -> None:
    """Refuse windows among which rows without a time are a group that changes: of TUMBLE, where no filter drops these."""
    if parts.windows.kind != "TUMBLE":
        return
    start, end = (column.id for column in parts.windows.columns[-2:])
    there = {_is_there(name) for name in (str(parts.windows.time), start, end)}
    filters = [step for step in (*parts.below, *parts.first) if isinstance(step, Filter)]
    if not any(part.sql in there for step in filters for part in conjuncts(step.condition)):
        time = parts.windows.input.column(str(parts.windows.time)).name
        raise NotStreamed(f"TUMBLE keeps rows without a time as a group of their own; WHERE {time} IS NOT NULL leaves them out")


def _is_there(name: str) -> str:
    """Return how a plan has the condition that a column is not NULL."""
    return f"(NOT ({quoted(name)} IS NULL))"


def _mentions(sql: str | None, *ids: str) -> bool:
    return sql is not None and any(quoted(name) in sql for name in ids)


def _closes(above: Sequence[Node], bounds: Collection[str], telling: Collection[str]) -> bool:
    """Return whether a plan emits each group once its window is closed; else it does as the group changes.

    Args:
        above: the nodes above the groups, outermost first.
        bounds: the bounds of windows among the groups.
        telling: those of which one tells windows apart, and when one is closed.
    """
    if not bounds:
        raise NotStreamed("GROUP BY has neither window_start nor window_end")
    if not set(bounds) & set(telling):
        raise NotStreamed("windows of CUMULATE share their start: GROUP BY window_end, too")
    held, tells, closes = set(bounds), set(telling), False
    for step in reversed(above):
        if isinstance(step, Project):
            held, tells = _passed(step, held), _passed(step, tells)
        elif isinstance(step, CloseSort):
            if closes or not set(step.by) <= held or not tells & set(step.by):
                raise NotStreamed("it closes by other columns than those of its windows")
            closes = True
    return closes


def _passed(step: Project, ids: set[str]) -> set[str]:
    """Return the ids that columns have behind a node."""
    items = {quoted(name) for name in ids}
    return {column.id for item, column in zip(step.items, step.columns, strict=True) if item in items}


def _calls(groups: Aggregate, bounds: Sequence[str]) -> list[Call]:
    made = []
    results = groups.columns[len(groups.groups) :]
    for fold, sql, column in zip(groups.folds, groups.calls, results, strict=True):
        if fold is None:
            raise NotStreamed(f"the window engines have no call with the result of {sql}")
        if _mentions(fold.argument, *bounds) or _mentions(fold.condition, *bounds):
            raise NotStreamed(f"{sql} reads window_start or window_end")
        made.append(_call(groups, fold, sql, column))
    return made


def _call(groups: Aggregate, fold: Fold, sql: str, column: Column) -> Call:
    if fold.function == "count":
        if fold.argument is None and fold.condition is None:
            return Call("count", None, "", "", column)
        counted = " AND ".join(
            part for part in (fold.condition, f"{fold.argument} IS NOT NULL" if fold.argument else None) if part
        )
        return Call("count", f"CASE WHEN {counted} THEN TRUE END", "BOOLEAN", "boolean", column)
    argument = fold.argument if fold.condition is None else f"CASE WHEN {fold.condition} THEN {fold.argument} END"
    if fold.function == "sum":
        return _sum(groups, fold, sql, column, argument)
    if fold.function in ("min", "max"):
        return Call(fold.function, argument, column.type.duckdb, _spark_type(column.type, sql), column)
    raise NotStreamed(f"{sql} of floats depends on the order of rows")


def _sum(groups: Aggregate, fold: Fold, sql: str, column: Column, argument: str | None) -> Call:
    if column.type.name == "double" or column.type.name == "real":
        raise NotStreamed(f"{sql} of floats depends on the order of rows")
    if column.type == BIGINT:
        return Call("sum", argument, "BIGINT", "bigint", column)
    digits, scale = _digits(groups.input, str(fold.argument), column.type.scale), column.type.scale
    if digits is None or digits + scale + _ROOM > 38:
        raise NotStreamed(f"{sql} may need more than 38 digits; numeric(precision, scale) says how many there are")
    # Sums of up to 28 digits are added up in half as many bytes, see kernels/aggregates/sums.py.
    kind = f"decimal({digits + scale}, {scale})"
    return Call("sum", argument, kind.upper(), kind, column)


def _digits(node: Node, argument: str, scale: int) -> int | None:
    """Return how many digits before the point the values of a column have at most, ``None`` where it is not known.

    Args:
        node: has the column.
        argument: its id, as SQL.
        scale: the digits behind the point that are asked for: where there are more, rounding may add one before it.
    """
    while True:
        column = next((column for column in node.columns if quoted(column.id) == argument), None)
        if column is None:
            return None
        if column.type == BIGINT:
            return 19
        if column.type.name != "numeric" or column.type.scale > scale:
            return None
        if column.type.whole + column.type.scale < 38:
            return column.type.whole
        if not isinstance(node, Project):
            return None
        item = next(item for item, each in zip(node.items, node.columns, strict=True) if each is column)
        cast = _CAST.fullmatch(item)
        argument, node = (item if cast is None else quoted(cast[1])), node.input


def _spark_type(kind: SqlType, what: str) -> str:
    if kind.name == "numeric":
        return f"decimal(38, {kind.scale})"
    found = _SPARK_TYPES.get(kind.name)
    if found is None:
        raise NotStreamed(f"{what}: the window engines do not compare {kind} as SQL does")
    return found
