"""How the views of a session run on Spark: which sources each reads itself, which views read it, and its progress.

A view keeps the way it was made, which is written before its plan, in ``windowpane.streams``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from windowpane.errors import ChangedPlanError, MistakeError
from windowpane.sql.catalog.entries import Catalog, TableInfo, ViewInfo
from windowpane.sql.catalog.relations import PlainView
from windowpane.sql.failures.trying import tried_plan
from windowpane.sql.nodes import Node, Scan, changed_plan, every_node, explain_plan
from windowpane.sql.on_spark.pending_changes import PendingChanges
from windowpane.sql.on_spark.programs.groups import StreamedGroups
from windowpane.sql.on_spark.programs.groups_below import SpreadPlan, groups_below
from windowpane.sql.on_spark.programs.plan import StreamedPlan
from windowpane.sql.on_spark.programs.streamed import streamed
from windowpane.sql.on_spark.source_rows import Progress
from windowpane.sql.on_spark.spread_plan import read_directly
from windowpane.sql.on_spark.stages import Layout
from windowpane.sql.streaming.folding import has_distinct, with_rows_of_distinct
from windowpane.sql.windows.time_functions import instant_sql

_PROGRAM = "One streaming query, with a watermark of its own\n"
"""How the kept plan of a view begins that is a window or OVER program."""

_BY_DIGITS = "Sums in the digits of their values\n"
"""The next line, unless the state of the view has sums in all digits of Spark."""

_READS = "Reads sources itself: "
"""How the kept plan of a view begins that runs on the nodes of SQL and reads some."""

_BELOW = "Groups of windows in a program below\n"
"""The next line, unless the groups of the view run on the nodes of SQL, too."""

_VALUES = "Distinct values in place of rows\n"
"""The line before the plan where calls have DISTINCT, unless their groups keep rows, as in views of earlier versions."""


class ViewStreams:
    """The views of a catalog as streaming queries."""

    def __init__(self, catalog: Catalog, pending: PendingChanges) -> None:
        """Read the views of ``catalog``, and their progress from ``pending``."""
        self._catalog, self._pending = catalog, pending

    @property
    def tables(self) -> dict[str, TableInfo]:
        """All tables and sources, by name."""
        return {table.relation.name: table for table in self._catalog.tables()}

    def view(self, name: str) -> ViewInfo:
        """Return a view that exists."""
        view = self._catalog.entries[name]
        if not isinstance(view, ViewInfo):
            raise MistakeError("the name is that of a view")
        return view

    # --- a new view ------------------------------------------------------------------------------------

    def program(self, node: Node, runs: Node | None = None) -> StreamedPlan | str:
        """Return how a plan is a window or OVER program, or why it is none; ``runs`` is the plan whose SQL runs."""
        return streamed(node, self.tables, runs)

    def spread(self, node: Node, runs: Node | None = None) -> SpreadPlan:
        """Return how the plan of a new view is spread over Spark that is no program."""
        return groups_below(node, read_directly(node, self.tables), self.tables, runs)

    def read_by(self, node: Node) -> frozenset[str]:
        """Return the sources that a plan would read itself."""
        plan = self.program(node)
        return frozenset([plan.scan.relation]) if isinstance(plan, StreamedPlan) else read_directly(node, self.tables)

    def kept_plan(self, node: Node) -> str:
        """Return what is kept of the plan of a new view whose operators are spread over Spark."""
        own = self.read_by(node)
        is_program = isinstance(self.program(node), StreamedPlan)
        way = _PROGRAM + _BY_DIGITS if is_program else _reads(own) if own else ""
        has_below = not is_program and self.spread(node).groups is not None
        state = "" if is_program else Layout.NEW.value + _VALUES * _has_distinct(node)
        return way + _BELOW * has_below + state + plan_text(node)

    # --- a view that exists ----------------------------------------------------------------------------

    def is_program(self, name: str) -> bool:
        """Whether a view was made as a window or OVER program, which gets no change sets."""
        return self._pending.stream(name).plan.startswith(_PROGRAM)

    def program_of(self, view: ViewInfo) -> StreamedPlan:
        """Return the program of a view that was made as one, with the SQL that runs and the types of its state."""
        node = view.job.node
        plan = self.program(node, node if view.strict else tried_plan(node))
        if not isinstance(plan, StreamedPlan):
            raise MistakeError("check_plan has seen that it is one still")
        kept = self._pending.stream(view.relation.name).plan
        has_digits = kept.startswith(_PROGRAM + _BY_DIGITS)
        return plan.widened if isinstance(plan, StreamedGroups) and not has_digits else plan

    def spread_of(self, view: ViewInfo) -> SpreadPlan:
        """Return how a view is spread over Spark that was made as no program, with the SQL that runs."""
        node = view.job.node
        runs = node if view.strict else tried_plan(node)
        kept = self._pending.stream(view.relation.name).plan
        if not _has_values(kept):
            runs = changed_plan(runs, with_rows_of_distinct)
        if not _has_below(kept):
            return SpreadPlan(runs, layout=_layout_of(kept))
        found = self.spread(node, runs)
        if found.groups is None:
            raise MistakeError("check_plan has seen that there is a program still")
        return replace(found, layout=_layout_of(kept))

    def own_sources(self, view: ViewInfo) -> frozenset[str]:
        """Return the sources that a view reads itself."""
        plan = self._pending.stream(view.relation.name).plan
        if plan.startswith(_READS):
            return frozenset(json.loads(plan.splitlines()[0].removeprefix(_READS)))
        return view.reads if plan.startswith(_PROGRAM) else frozenset()

    def readers(self, source: str) -> list[str]:
        """Return the views that get the changes of a relation."""
        reading = [view for view in self._catalog.views() if source in view.reads]
        return [view.relation.name for view in reading if source not in self.own_sources(view)]

    def check_plan(self, view: ViewInfo) -> None:
        """Refuse state that another plan made: an operator would read the state of another one.

        Raises:
            ChangedPlanError: with both.
        """
        stream, node = self._pending.stream(view.relation.name), view.job.node
        has_values = _has_values(stream.plan) and _has_distinct(node)
        plan = _layout_of(stream.plan).value + _VALUES * has_values + plan_text(node)
        if stream.plan.startswith(_PROGRAM):
            way = _PROGRAM + _BY_DIGITS * stream.plan.startswith(_PROGRAM + _BY_DIGITS)
            plan = way * isinstance(self.program(node), StreamedPlan) + plan
        elif stream.plan.startswith(_READS):
            is_below = _has_below(stream.plan) and self.spread(node).groups is not None
            plan = _reads(read_directly(node, self.tables)) + _BELOW * is_below + plan
        if stream.spread and stream.plan != plan:
            raise ChangedPlanError({f"the plan of {view.relation.name!r}": (stream.plan, plan)})

    def progress(self, name: str) -> tuple[Progress, Progress]:
        """Return the progress of a view in the sources that it reads itself, before its last batch and behind it."""
        stream = self._pending.stream(name)
        before, after = stream.progress
        if after is not None:
            return Progress.of(before), Progress.of(after)
        if not self.is_program(name):
            return Progress(), Progress()
        found, (source,) = [], self.own_sources(self.view(name))
        # In stores of earlier versions the column of the watermarks holds the progress, too.
        for watermark, first_id in (("before", "first_id"), ("after", "next_id")):
            held = stream.clock.get(watermark)
            reached = {} if held is None else {source: int(held)}
            found.append(Progress(reached, {}, int(stream.clock.get(first_id, 0))))
        return found[0], found[1]

    # --- watermarks of change sets -------------------------------------------------------------------------

    def clock_of(self, view: ViewInfo) -> dict[str, str]:
        """Return the watermarks of the next change set for a view, as SQL: those of the rows that it then has."""
        clock = {}
        for base in _watched(view.job.node) - self.own_sources(view):
            seen = [self._seen(source, base) for source in sorted(view.reads) if base in self._bases(source)]
            known = sorted({value for value in seen if value is not None})
            if known and None not in seen:
                clock[base] = known[0] if len(known) == 1 else f"least({', '.join(known)})"
        return clock

    def _bases(self, source: str) -> set[str]:
        """Return the tables and sources whose watermarks those of the columns of a relation are made of."""
        found = self._catalog.find(source)
        if found is None or isinstance(found, PlainView):
            raise MistakeError("a view reads relations that exist")
        return {base for watermark in found.watermarks.values() for base, _ in watermark.parts}

    def _seen(self, source: str, base: str) -> str | None:
        """Return the watermark of ``base`` in the rows that a table or view has sent to its readers, as SQL."""
        view = self._catalog.entries[source]
        if not isinstance(view, ViewInfo):
            return self._pending.clock.get(source)
        stream, (_, progress) = self._pending.stream(source), self.progress(source)
        mark = self.tables[base].watermark if base in self.own_sources(view) else None
        if mark is not None:
            return None if base not in progress.reached else instant_sql(str(progress.reached[base]), mark.type)
        if stream.spread and stream.progress[1] is not None:
            return progress.others.get(base)
        return (
            stream.clock.get(base) if stream.done == stream.sent else None
        )  # the watermarks of a failed change set do not count


def clock_name(source: str, view: str) -> str:
    """Return the name of the watermark that a view has of a source it reads itself."""
    return f"{source} in {view}"


def plan_text(node: Node) -> str:
    """Return what is kept of a plan."""
    return "\n".join(explain_plan(node))


def scanned(node: Node) -> set[str]:
    """Return the relations that a plan reads."""
    return {each.relation for each in every_node(node) if isinstance(each, Scan)}


def _reads(sources: Iterable[str]) -> str:
    return f"{_READS}{json.dumps(sorted(sources))}\n"


def _has_below(plan: str) -> bool:
    """Whether a view was made with a program below the nodes of SQL."""
    return plan.startswith(_READS) and plan.partition("\n")[2].startswith(_BELOW)


def _layout_of(plan: str) -> Layout:
    """Return how the state of a view is laid out: what the line before its plan says, which earlier versions did not write."""
    return next((layout for layout in Layout if layout.value and f"\n{layout.value}" in f"\n{plan}"), Layout.HASHED)


def _has_values(plan: str) -> bool:
    """Whether the groups of a view keep the distinct values of calls in place of their rows."""
    return f"\n{_VALUES}" in f"\n{plan}"


def _has_distinct(node: Node) -> bool:
    return any(map(has_distinct, every_node(node)))


def _watched(node: Node) -> set[str]:
    """Return the base relations whose watermarks a plan can see."""
    found = {relation for watermark in node.watermarks.values() for relation, _ in watermark.parts}
    return found.union(*(_watched(source) for source in node.inputs))
