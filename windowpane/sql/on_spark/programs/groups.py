"""GROUP BY over TUMBLE, HOP, CUMULATE or SESSION of a source: a window program, as that of ``wp.stream``.

Groups are emitted once their windows are closed, with EMIT ON WINDOW CLOSE, or in each batch that changes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from windowpane.sql.bind.scope import Column
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.expressions.expr import Expr, build, quoted
from windowpane.sql.nodes import Aggregate, CloseSort, Filter, Node, Project, Scan, SessionWindows, TimeWindows
from windowpane.sql.on_spark.programs.calls import Call, engine_calls
from windowpane.sql.on_spark.programs.plan import (
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
from windowpane.sql.optimize.conditions import conjuncts
from windowpane.windowing.assigners.base import MergingWindowAssigner, WindowAssigner


@dataclass(frozen=True)
class StreamedGroups(StreamedPlan):
    """GROUP BY over windows of a source.

    Args:
        keys: the columns of GROUP BY beside the bounds of windows, with their types of Spark.
        bounds: the columns of the plan that are the start of a window, and its end; ``None`` for one that is not in GROUP BY.
    """

    keys: tuple[tuple[Column, str], ...]
    bounds: tuple[Column | None, Column | None]
    assigner: WindowAssigner
    calls: tuple[Call, ...]

    @property
    def has_sessions(self) -> bool:
        return isinstance(self.assigner, MergingWindowAssigner)

    @property
    def carried(self) -> tuple[Carried, ...]:
        keys = [Carried(f"k{number}", key.expr, kind) for number, (key, kind) in enumerate(self.keys)]
        arguments = [
            Carried(f"a{number}", build(call.result.type, f"CAST({{0}} AS {call.kind})", call.argument), call.spark)
            for number, call in enumerate(self.calls)
            if call.argument is not None
        ]
        return (*keys, *arguments)

    @property
    def results(self) -> tuple[tuple[str, Column], ...]:
        bounds = zip(("window_start", "window_end"), self.bounds, strict=True)
        found = [(name, column) for name, column in bounds if column is not None]
        found += [(f"k{number}", column) for number, (column, _) in enumerate(self.keys)]
        return (*found, *((f"r{number}", call.result) for number, call in enumerate(self.calls)))

    @property
    def operator_line(self) -> str:
        keys = ", ".join(column.name for column, _ in self.keys)
        engine = "engine sessions" if self.has_sessions else "engine slices" if self.closes else "engine panes"
        ways = "folded before the shuffle" if self.closes else "each batch takes back what it changes"
        return f"groups: window program, {engine}, by {f'{keys} and ' * bool(keys)}window, {ways}"

    @property
    def keeps(self) -> str:
        return "partial results of each group, until its window is closed"


@dataclass(frozen=True)
class GroupParts(Parts):
    """A plan of groups, taken apart: nodes of each part outermost first."""

    groups: Aggregate
    below: Sequence[Node]
    windows: TimeWindows | SessionWindows
    first: Sequence[Node]
    scan: Scan

    @classmethod
    def of(cls, node: Node) -> GroupParts:
        """Take a plan apart."""
        above, groups = chain(node, (Project, Filter, CloseSort), Aggregate)
        kinds: tuple[type[TimeWindows | SessionWindows], ...] = (TimeWindows, SessionWindows)
        below, windows = chain(groups.input, (Project, Filter), kinds)
        first, scan = chain(windows.input, (Project, Filter), Scan)
        return cls(above, groups, below, windows, first, scan)

    def rows_sql(self) -> str:
        time = quoted(str(self.windows.time))
        items = [quoted(column.id) for column in self.windows.columns[:-2]]
        items += [f"{time} AS {quoted(column.id)}" for column in self.windows.columns[-2:]]
        rows = applied(self.first, self.scan.sql(INPUT))
        return applied(self.below, f"SELECT {', '.join(items)} FROM ({rows}) WHERE {time} IS NOT NULL")


def group_program(parts: GroupParts, tables: Mapping[str, TableInfo]) -> StreamedGroups:
    """Return a plan of groups as a program over the rows of one of ``tables``."""
    groups, windows = parts.groups, parts.windows
    if windows.assigner is None:
        raise NotStreamed(f"windows of {windows.detail} stay with SQL")
    delay = watermark_delay(parts.scan, None if windows.time is None else windows.input.watermarks.get(windows.time), tables)
    bounds = _bounds_through(parts.below, windows)
    if isinstance(windows, SessionWindows):
        _check_partition(parts, windows, bounds)
    grouped = [name for name in bounds if name in groups.groups]
    closes = _closes(parts.above, grouped, _distinguishing(windows, bounds))
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
        unchanged([*parts.below, *parts.first], parts.scan),
        tuple((key, spark_type(key.type, f"GROUP BY {key.name!r}")) for key in keys),
        (start, end),
        windows.assigner,
        tuple(engine_calls(groups, bounds)),
    )


def distinguishing_bounds(groups: Aggregate) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the bounds of windows among the columns of groups, and those of all bounds that tell windows apart."""
    parts = GroupParts.of(groups)
    bounds = _bounds_through(parts.below, parts.windows)
    return tuple(name for name in bounds if name in groups.groups), frozenset(_distinguishing(parts.windows, bounds))


def _distinguishing(windows: TimeWindows | SessionWindows, bounds: tuple[str, str]) -> tuple[str, ...]:
    """Return the bounds of which one tells windows apart: windows of CUMULATE share their start."""
    return bounds[1:] if windows.kind == "CUMULATE" else bounds


def _bounds_through(below: Sequence[Node], windows: TimeWindows | SessionWindows) -> tuple[str, str]:
    """Return the ids that the bounds of windows have above some nodes, which must not read them."""
    start, end = (column.id for column in windows.columns[-2:])
    for step in reversed(below):
        if isinstance(step, Project):
            read = [item for item in step.items if not item.is_column and item.columns & {start, end}]
            if read:
                raise NotStreamed("a column is computed from window_start or window_end before the groups")
            renamed = {of: name for name, of in step.unchanged.items()}
            start, end = renamed.get(start, start), renamed.get(end, end)
        elif isinstance(step, Filter) and any(
            part.columns & {start, end} and _never_null(part) is None for part in conjuncts(step.condition)
        ):
            raise NotStreamed("rows are filtered by window_start or window_end before the groups")
    return start, end


def _closes(above: Sequence[Node], bounds: Collection[str], distinguishing: Collection[str]) -> bool:
    """Return whether a plan emits each group once its window is closed; else it does as the group changes.

    Args:
        above: the nodes above the groups, outermost first.
        bounds: the bounds of windows among the groups.
        distinguishing: those of which one tells windows apart, and when one is closed.
    """
    if not bounds:
        raise NotStreamed("GROUP BY has neither window_start nor window_end")
    if not set(bounds) & set(distinguishing):
        raise NotStreamed("windows of CUMULATE share their start: GROUP BY window_end, too")
    held, distinct, closes = set(bounds), set(distinguishing), False
    for step in reversed(above):
        if isinstance(step, Project):
            held, distinct = _ids_behind(step, held), _ids_behind(step, distinct)
        elif isinstance(step, CloseSort):
            if closes or not set(step.by) <= held or not distinct & set(step.by):
                raise NotStreamed("it closes by other columns than those of its windows")
            closes = True
    return closes


def _ids_behind(step: Project, ids: set[str]) -> set[str]:
    """Return the ids that columns have behind a node."""
    return {name for name, of in step.unchanged.items() if of in ids}


def _check_partition(parts: GroupParts, windows: SessionWindows, bounds: tuple[str, str]) -> None:
    """Refuse sessions that are made of other rows than those of their group."""
    if any(isinstance(step, Filter) for step in parts.below):
        raise NotStreamed("rows are left out behind SESSION, and its windows are made of all of them")
    names = {name: name for name in windows.partition}
    for step in reversed(parts.below):
        if isinstance(step, Project):
            renamed = {of: name for name, of in step.unchanged.items()}
            names = {name: renamed.get(at, "") for name, at in names.items()}
    if {name for name in parts.groups.groups if name not in bounds} != set(names.values()):
        raise NotStreamed("GROUP BY has other columns than SESSION has in PARTITION BY")


def _check_times(parts: GroupParts) -> None:
    """Refuse TUMBLE if no filter drops rows without a time: they are a group that changes."""
    if parts.windows.kind != "TUMBLE":
        return
    start, end = (column.id for column in parts.windows.columns[-2:])
    there = {str(parts.windows.time), start, end}
    filters = [step for step in (*parts.below, *parts.first) if isinstance(step, Filter)]
    if not any(_never_null(part) in there for step in filters for part in conjuncts(step.condition)):
        time = parts.windows.input.column(str(parts.windows.time)).name
        raise NotStreamed(f"TUMBLE keeps rows without a time as a group of their own; WHERE {time} IS NOT NULL leaves them out")


def _never_null(condition: Expr) -> str | None:
    """Return the column that a condition says is not NULL, ``None`` where it says something else."""
    if condition.operator != "NOT" or condition.parts[0].operator != "IS NULL":
        return None
    return condition.parts[0].parts[0].column or None
