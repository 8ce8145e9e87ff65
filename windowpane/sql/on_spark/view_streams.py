"""How the views of a session run on Spark: which sources each reads itself, which views read it, and its progress.

A view keeps the way it was made, a ``ViewPlan``, in ``windowpane.streams``.
"""

from __future__ import annotations

from collections.abc import Collection

from windowpane.errors import ChangedPlanError, MistakeError
from windowpane.sql.catalog.entries import Catalog, TableInfo, ViewInfo, sink_of_query
from windowpane.sql.catalog.relations import PlainView
from windowpane.sql.failures.trying import tried_plan
from windowpane.sql.nodes import Aggregate, Node, Values, every_node, scanned
from windowpane.sql.on_spark.pending_changes import PendingChanges, ViewPlan
from windowpane.sql.on_spark.programs.groups_below import SpreadPlan, groups_below, streamed
from windowpane.sql.on_spark.programs.plan import StreamedPlan
from windowpane.sql.on_spark.source_rows import Progress
from windowpane.sql.on_spark.spread_plan import read_directly
from windowpane.sql.windows.time_functions import instant_sql


class ViewStreams:
    def __init__(self, catalog: Catalog, pending: PendingChanges) -> None:
        self._catalog, self._pending = catalog, pending

    @property
    def tables(self) -> dict[str, TableInfo]:
        return {table.relation.name: table for table in self._catalog.tables()}

    # --- a new view ------------------------------------------------------------------------------------

    def program(self, node: Node, runs: Node | None = None) -> StreamedPlan | str:
        """Return how a plan is a window or OVER program, or why it is none; ``runs`` is the plan whose SQL runs."""
        return streamed(node, self.tables, runs)

    def spread(self, node: Node, runs: Node | None = None) -> SpreadPlan:
        """Return how the plan of a new view is spread over Spark that is no program."""
        return groups_below(node, read_directly(node, self.tables), self.tables, runs)

    def read_by(self, node: Node) -> frozenset[str]:
        plan = self.program(node)
        return frozenset([plan.scan.relation]) if isinstance(plan, StreamedPlan) else read_directly(node, self.tables)

    def plan(self, node: Node) -> ViewPlan:
        program = self.program(node)
        if isinstance(program, StreamedPlan):
            return ViewPlan(is_program=True, sources=(program.scan.relation,), takes_change_sets=False)
        tables = self.tables
        direct = read_directly(node, tables)
        has_groups_below = groups_below(node, direct, tables).groups is not None
        return ViewPlan(
            sources=tuple(sorted(direct)), has_groups_below=has_groups_below, takes_change_sets=_takes_change_sets(node, direct)
        )

    # --- a view that exists ----------------------------------------------------------------------------

    def is_program(self, name: str) -> bool:
        return self._pending.stream(name).plan.is_program

    def takes_change_sets(self, name: str) -> bool:
        return self._pending.stream(name).plan.takes_change_sets

    def only_passes_on(self, view: ViewInfo) -> bool:
        """Whether nobody reads the rows of a view but a sink: it is the query of one over sources, and no row changes later."""
        name = view.relation.name
        return sink_of_query(name) is not None and view.relation.append_only and not self.takes_change_sets(name)

    def program_of(self, view: ViewInfo) -> StreamedPlan:
        """Return the program of a view that was made as one, with the SQL that runs."""
        plan = self.program(view.node, _running(view))
        if not isinstance(plan, StreamedPlan):
            raise MistakeError("check_plan has seen that it is one still")
        return plan

    def spread_of(self, view: ViewInfo) -> SpreadPlan:
        """Return how a view is spread over Spark that was made as no program, with the SQL that runs."""
        return self.spread(view.node, _running(view))

    def own_sources(self, view: ViewInfo) -> frozenset[str]:
        return frozenset(self._pending.stream(view.relation.name).plan.sources)

    def readers(self, source: str) -> list[str]:
        known = set(self._pending.names())
        reading = [view for view in self._catalog.views() if source in view.reads and view.relation.name in known]
        return [view.relation.name for view in reading if source not in self.own_sources(view)]

    def check_plan(self, view: ViewInfo) -> None:
        """Refuse state that is spread over Spark in another way: an operator would read the state of another one.

        Raises:
            ChangedPlanError: with both.
        """
        stream, plan = self._pending.stream(view.relation.name), self.plan(view.node)
        if stream.plan != plan:
            raise ChangedPlanError({f"the plan of {view.relation.name!r}": (stream.plan.text(), plan.text())})

    def progress(self, name: str) -> tuple[Progress, Progress]:
        """Return the progress of a view in the sources that it reads itself, before its last batch and behind it."""
        before, after = self._pending.stream(name).progress
        return Progress.of(before), Progress.of(after)

    # --- watermarks of change sets -------------------------------------------------------------------------

    def clock_of(self, view: ViewInfo) -> dict[str, str]:
        """Return the watermarks of the next change set for a view, as SQL: those of the rows that it then has."""
        clock = {}
        for base in _watched(view.node) - self.own_sources(view):
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
        if stream.progress[1] is not None:
            return progress.others.get(base)
        return (
            stream.clock.get(base) if stream.done == stream.sent else None
        )  # the watermarks of a failed change set do not count


def clock_name(source: str, view: str) -> str:
    """Return the name of the watermark that a view has of a source it reads itself."""
    return f"{source} in {view}"


def _takes_change_sets(node: Node, direct: Collection[str]) -> bool:
    """Whether a plan needs more than its own sources: changes of others, or rows that it has before the first of any."""
    begins = any(isinstance(each, Values) or (isinstance(each, Aggregate) and not each.groups) for each in every_node(node))
    return begins or not scanned(node) <= set(direct)


def _running(view: ViewInfo) -> Node:
    """Return the plan of a view with the SQL that runs."""
    return view.node if view.strict else tried_plan(view.node)


def _watched(node: Node) -> set[str]:
    """Return the base relations whose watermarks a plan can see."""
    found = {relation for watermark in node.watermarks.values() for relation, _ in watermark.parts}
    return found.union(*(_watched(source) for source in node.inputs))
