"""Which plans of views are one streaming query, from their source to their result, and in which others groups of windows are.

A plan is a program only where the result is the one of the embedded engine: groups of windows (``groups``), or rows with the
results of calls (``over``); for every other the reason is given. Where groups of windows stand below other nodes, the groups are
a window program, and the nodes above read its results in the same query.

The program is in the plan as the scan of a relation, ``GROUPS``. Where the view emits on window close, the wait for the watermark
moves from above the nodes to the groups, if each of the nodes groups rows of one window alone (a Top-N of each window, groups of
its groups). All groups of a window close in one batch. So the nodes above get a window whole and once, in the batch that closes
it, emit their last result then, and keep nothing of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from windowpane.sql.bind.build_plan import close_sort
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.nodes import Aggregate, CloseSort, Filter, Node, Over, Project, Scan, TopN, every_node
from windowpane.sql.on_spark.programs.groups import GroupParts, StreamedGroups, distinguishing_bounds, group_program
from windowpane.sql.on_spark.programs.over import OverParts, over_program
from windowpane.sql.on_spark.programs.plan import NotStreamed, StreamedPlan

GROUPS = "windowpane groups"
"""The relation that the groups of a program are for the nodes above it."""


@dataclass(frozen=True)
class SpreadPlan:
    """A plan as it is spread over Spark."""

    node: Node
    groups: StreamedGroups | None = None

    @property
    def lines(self) -> list[str]:
        return [] if self.groups is None else [f"  {self.groups.operator_line}", f"    [keeps {self.groups.keeps}]"]


def streamed(node: Node, tables: Mapping[str, TableInfo], runs: Node | None = None) -> StreamedPlan | str:
    """Return how a plan is one streaming query, or why it is none.

    Args:
        node: the plan.
        tables: tables and sources by name.
        runs: the same plan with the SQL that is to run, where this is another.
    """
    is_over = isinstance(_first_of(node, (Over, Aggregate, CloseSort)), Over)
    try:
        found = over_program(OverParts.of(node), tables) if is_over else group_program(GroupParts.of(node), tables)
    except NotStreamed as reason:
        return str(reason)
    if runs is None:
        return found
    parts = OverParts.of(runs) if is_over else GroupParts.of(runs)
    return replace(found, rows=parts.rows_sql(), result=parts.result_sql())


def _first_of(node: Node, kinds: tuple[type[Node], ...]) -> Node | None:
    """Return the first node of some kinds below those that handle each row alone."""
    while not isinstance(node, kinds):
        if not isinstance(node, Project | Filter):
            return None
        node = node.input
    return node


def groups_below(node: Node, read: Collection[str], tables: Mapping[str, TableInfo], runs: Node | None = None) -> SpreadPlan:
    """Return a plan with the groups of windows in it as a program, or as it is, where they are none.

    Args:
        node: the plan.
        read: the sources that its query reads itself.
        tables: tables and sources by name.
        runs: the same plan with the SQL that is to run, where this is another.
    """
    whole = SpreadPlan(node if runs is None else runs)
    path = _path(node, read)
    lowest = path[-1] if path else node
    if not isinstance(lowest, Aggregate):
        return whole
    try:
        by = _closing(path, lowest)
    except NotStreamed:
        return whole
    run = path if runs is None else _along(path, runs)
    groups = streamed(_closed(lowest, by), tables, _closed(run[-1], by))
    if not isinstance(groups, StreamedGroups) or (groups.has_sessions and by):
        return whole  # sessions that begin together end apart
    return SpreadPlan(_above(run, _scan(_closed(lowest, by)), has_moved=bool(by)), groups)


def _path(node: Node, read: Collection[str]) -> Sequence[Node]:
    """Return the nodes from the plan down to the lowest groups of the one source that its query reads itself, once; or none."""
    paths = list(_down(node, read))
    if len(paths) != 1:
        return ()
    return paths[0][: max((number for number, each in enumerate(paths[0], 1) if isinstance(each, Aggregate)), default=0)]


def _down(node: Node, read: Collection[str]) -> Iterator[tuple[Node, ...]]:
    """Yield the nodes from one down to a scan of some sources, for each scan."""
    if isinstance(node, Scan) and node.relation in read:
        yield (node,)
    for source in node.inputs:
        yield from ((node, *below) for below in _down(source, read))


def _along(path: Sequence[Node], other: Node) -> list[Node]:
    """Return the nodes of the same path in a plan of the same form."""
    found = [other]
    for node, below in pairwise(path):
        found.append(next(there for there, source in zip(found[-1].inputs, node.inputs, strict=True) if source is below))
    return found


def _closing(path: Sequence[Node], groups: Aggregate) -> tuple[str, ...]:
    """Return the bounds of windows by which the groups at the end of a path may close; none where the view emits at once.

    Raises:
        NotStreamed: the view emits on window close, and a node below that wait puts rows of several windows together.
    """
    waiting = [each for each in every_node(path[0]) if isinstance(each, CloseSort)]
    if not waiting:
        return ()
    number = next((number for number, node in enumerate(path) if not isinstance(node, Project | Filter)), 0)
    if path[number] is not waiting[0] or len(waiting) > 1:
        raise NotStreamed("further nodes stand above the one that waits for the watermark")
    bounds, distinguishing = distinguishing_bounds(groups)
    held = {name: name for name in bounds}
    for node in reversed(path[number + 1 : -1]):
        held = _through(node, held, distinguishing)
    by = waiting[0].by
    if not set(by) <= held.keys() or not distinguishing & {held[name] for name in by}:
        raise NotStreamed("it closes by other columns than those of its windows")
    return bounds


def _through(node: Node, held: Mapping[str, str], distinguishing: Collection[str]) -> dict[str, str]:
    """Return the columns behind a node that are bounds of windows, and those of the groups that they are.

    Raises:
        NotStreamed: the node puts rows of several windows together.
    """
    if isinstance(node, Project):
        return {name: held[of] for name, of in node.unchanged.items() if of in held}
    if isinstance(node, Filter):
        return dict(held)
    if not isinstance(node, TopN | Aggregate):
        raise NotStreamed(f"{node.label} stands above the groups")
    keys = node.partition if isinstance(node, TopN) else node.groups
    if not {held[name] for name in keys if name in held} & set(distinguishing):
        raise NotStreamed(f"{node.label} puts groups of several windows together")
    return {name: bound for name, bound in held.items() if isinstance(node, TopN) or name in keys}


def _closed(groups: Node, by: Sequence[str]) -> Node:
    return close_sort(groups, by) if by else groups


def _scan(groups: Node) -> Scan:
    """Return groups as the scan of the results of a program."""
    ids = tuple(column.id for column in groups.columns)
    return Scan(groups.columns, groups.key, groups.append_only, groups.watermarks, relation=GROUPS, stored=ids)


def _above(path: Sequence[Node], scan: Scan, *, has_moved: bool) -> Node:
    """Return the plan of a path with a scan at its end; without the wait for the watermark, if that has moved there."""
    made: Node = scan
    for node, below in zip(reversed(path[:-1]), reversed(path), strict=False):
        if isinstance(node, CloseSort) and has_moved:
            continue
        made = node.with_inputs(*(made if source is below else source for source in node.inputs))
    return made
