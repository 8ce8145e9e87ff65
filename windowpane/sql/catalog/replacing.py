"""Another query for a materialized view, CREATE OR REPLACE and ALTER ... AS, while views and sinks read it.

Planning writes nothing: it compares the view with the new one, part by part, and plans the views that read it once more. Where
its rows and its state are all that the new one needs (``going_on``), it goes on, and its rows are rewritten. Otherwise it is
built beside the old one from what it reads, under a name of its own (``entries.beside``), and so is each reader that has another
plan then, or cannot take back what it has read.

The swap is one transaction: rows and state get the names of the old ones, definitions are read again, and the readers that go on
and the sinks get what has changed, as of a flush. A crash before it leaves the old views; a session that opens removes what was
built beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from windowpane.engines.changes import ANOTHER_STATE, Change, Description, Outcome, Verdict, changes
from windowpane.errors import SqlError, SqlNameError, UnsupportedSqlError
from windowpane.planning.changing import Report
from windowpane.sql.catalog import made_by, views
from windowpane.sql.catalog.definitions import Definitions, view_of
from windowpane.sql.catalog.entries import (
    Catalog,
    IndexInfo,
    SinkInfo,
    ViewInfo,
    beside,
    read_by,
    replaced_by,
    shown_name,
    sink_of_query,
)
from windowpane.sql.catalog.going_on import GoingOn, Parts, is_same
from windowpane.sql.catalog.relations import PlainView, Relation, held_types, shape
from windowpane.sql.catalog.renaming import drop_stored, move_stored
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import declaration
from windowpane.sql.nodes import Aggregate, Filter, Node, Project, Scan, every_node
from windowpane.sql.parse.positions import Text
from windowpane.sql.parse.reader import read_script
from windowpane.sql.parse.statements import CreateSink, CreateView
from windowpane.sql.streaming.deltas import Delta, difference, kept
from windowpane.sql.streaming.folding import FOLDED
from windowpane.sql.streaming.operators import state_name
from windowpane.sql.upkeep.deliveries import Deliveries
from windowpane.sql.upkeep.stored_changes import Swap
from windowpane.sql.upkeep.view_runner import ViewRunner


@dataclass(frozen=True)
class Replacement:
    """What taking the place of a view means.

    Args:
        readers: what reads the view, in the order of the catalog.
        built: the views that are built beside the old ones, in their order; none where state goes on.
        way: how it goes on; ``None`` where it is built.
    """

    statement: CreateView
    plan: views.ViewPlan
    report: Report
    readers: tuple[str, ...]
    built: tuple[str, ...]
    way: GoingOn | None = None

    @property
    def lines(self) -> list[str]:
        name, verdict = self.statement.name, self.report.verdict
        lines = [f"changes: {verdict.name.lower()}", *([name] if self.report.parts else []), *self.report.lines()]
        read = ", ".join(sorted(self.plan.reads)) or "nothing"
        if not self.built:
            lines.append(f"{name} goes on with its state")
        else:
            lines.append(f"{name} is built beside the old one, from {read}; they swap when it has caught up")
        for reader in self.readers:
            lines.append(f"  {shown_name(reader)}, which reads it, {'is built, too' if reader in self.built else 'goes on'}")
        return lines


class Replacing:
    def __init__(
        self, definitions: Definitions, storage: Storage, catalog: Catalog, runner: ViewRunner, deliveries: Deliveries
    ) -> None:
        self._definitions, self._storage, self._catalog = definitions, storage, catalog
        self._runner, self._deliveries = runner, deliveries

    def open(self) -> None:
        """Remove what was built beside views that a crash left."""
        with self._storage.transaction():
            for (name,) in self._storage.run("SELECT view FROM windowpane.plans"):
                if replaced_by(name) is not None:
                    drop_stored(self._storage, name)

    # --- planning --------------------------------------------------------------------------------------

    def plan(self, statement: CreateView, text: Text) -> Replacement:
        """Return what a statement would do; nothing is written.

        Raises:
            SqlNameError: there is no such view; or it would read itself.
            UnsupportedSqlError: something that reads it could not read the new one.
        """
        name, place = statement.name, statement.place
        self._definitions.check_kind("materialized view", name, place)
        old, readers = self._catalog.view(name), self._readers(name)
        plan = self._definitions.plan(statement, text)
        own = sorted(plan.reads & {name, *readers})
        if own:
            message = f"{name!r} would read itself, {'' if own == [name] else 'through '}{', '.join(map(repr, own))}."
            raise place.error(SqlNameError, message)
        is_stopped = self._deliveries.needs_another_table(old, plan.relation) or not self._runner.goes_on(old, plan.node)
        is_stopped |= self._definitions.is_strict and not old.strict and self._has_failed(name)
        way = None if is_stopped else GoingOn.of(old, plan, self._storage)
        found = _changes(old, plan, way)
        built = self._built(statement, plan, readers, way)
        if built and way is not None:
            way, built = None, self._built(statement, plan, readers, None)
        return Replacement(statement, plan, Report(found, None, None), readers, built, way)

    def _has_failed(self, name: str) -> bool:
        """Whether expressions of a view have failed on rows, which a strict one made fresh would not have taken."""
        return bool(self._storage.run("SELECT 1 FROM windowpane.errors WHERE view = ? LIMIT 1", [name]))

    def _readers(self, name: str) -> tuple[str, ...]:
        """Return what reads a relation, and what reads that, in the order of the catalog."""
        found = {name}
        for other, entry in self._catalog.entries.items():
            if read_by(entry) & found:
                found.add(other)
        return tuple(other for other in self._catalog.entries if other in found and other != name)

    def _built(
        self, statement: CreateView, plan: views.ViewPlan, readers: tuple[str, ...], way: GoingOn | None
    ) -> tuple[str, ...]:
        """Return the views that must be built, of one, if there is no way in which it goes on, and those that read it."""
        name, place = statement.name, statement.place
        built, unfit = [name] if way is None else [], dict[str, str]()
        before = {} if way is not None and way.keeps_rows else {name: self._catalog.view(name).relation}
        self._catalog.instead = {name: plan.relation}
        try:
            for reader in readers:
                entry = self._catalog.entries[reader]
                try:
                    if isinstance(entry, ViewInfo):
                        again = self._planned(reader)
                        if not _goes_on(entry.node, again.node, before):
                            built.append(reader)
                            before[reader] = entry.relation
                            self._catalog.instead[reader] = again.relation
                    elif isinstance(entry, PlainView):
                        with self._definitions.made_as(reader):
                            self._definitions.binder(Text(entry.script)).bind(entry.query)
                    elif not isinstance(entry, SinkInfo | IndexInfo):
                        continue
                    elif (why := self._why_unfit(entry)) is not None:
                        unfit[reader] = why
                except SqlError as error:
                    unfit[shown_name(reader)] = str(error)
        finally:
            self._catalog.instead = {}
        if unfit:
            reasons = "; ".join(f"{reader!r}, {why}" for reader, why in unfit.items())
            message = f"replacing {name!r} by another view is not supported, as these read it: {reasons}. DROP them first."
            raise place.error(UnsupportedSqlError, message)
        return tuple(built)

    def _why_unfit(self, entry: SinkInfo | IndexInfo) -> str | None:
        """Return why a sink or an index cannot follow what its relation becomes, ``None`` if it can."""
        followed = entry.source if isinstance(entry, SinkInfo) else entry.relation
        new = self._catalog.instead.get(followed)
        if new is None:
            return None
        if isinstance(entry, IndexInfo):
            gone = [column for column in entry.columns if column not in [each.name for each in new.visible]]
            return f"an index on {', '.join(gone)}" if gone else None
        old = self._catalog.relation(followed)
        is_same = shape(old) == shape(new)
        return None if is_same else f"a sink of rows with {_shown(old)}, which would have {_shown(new)}"

    def _planned(self, name: str) -> views.ViewPlan:
        with self._definitions.made_as(_defined_by(name)):
            return self._definitions.plan(*self._definition(name), is_new=False)

    def _definition(self, name: str) -> tuple[CreateView, Text]:
        text = Text(self._catalog.view(name).text)
        statement = read_script(text.text)[0]
        if isinstance(statement, CreateSink) and statement.query is None:
            raise text.unsupported(None, "a sink of the late rows of a view that is replaced", "DROP it.")
        return view_of(statement), text

    # --- in transactions -------------------------------------------------------------------------------

    def begin(self, statement: CreateView, text: Text) -> Replacement:
        self._definitions.flush()
        planned = self.plan(statement, text)
        self._runner.check_swap(planned.readers, statement.place)
        try:
            for name in planned.built:
                self._make_beside(name, statement, text)
        finally:
            self._catalog.instead = {}
        return planned

    def _make_beside(self, name: str, statement: CreateView, text: Text) -> None:
        is_own = name == statement.name
        made, text = (statement, text) if is_own else self._definition(name)
        new = replace(made, name=beside(name))
        with nullcontext() if is_own else self._definitions.made_as(_defined_by(name)):
            plan = self._definitions.plan(new, text, is_new=is_own)
            self._definitions.add(new.name, plan, new.text, is_new=True)
        self._catalog.instead[name] = plan.relation

    def swap(self, planned: Replacement) -> None:
        """Put the new views in the place of the old ones, and let those that read them go on with what has changed."""
        name, deltas, reshaped, tables = planned.statement.name, dict[str, Delta](), list[str](), list[str]()
        state: str | None = None
        if planned.way is not None:
            self._runner.settle(name)
            delta = self._rewrite(planned, planned.way)
            if delta is not None:
                deltas[name] = delta
            state = self._taken_out(name, planned.way)
            reshaped += [name] * (shape(self._catalog.view(name).relation) != shape(planned.plan.relation))
        for each in planned.built:
            old, new = self._catalog.view(each), self._catalog.view(beside(each))
            reshaped += [each] * (shape(old.relation) != shape(new.relation))
            if self._deliveries.needs_another_table(old, new.relation):
                self._deliveries.drop_view(old)
                tables.append(each)
            delta = self._take_place(each)
            if delta is not None:
                deltas[each] = delta
        self._definitions.redefine(name, planned.statement.text, planned.readers)
        if state is not None:
            self._put_in(name, state)
        made_by.remember(self._storage, self._catalog.views())
        names = {each: beside(each) for each in planned.built} or {name: name}
        self._runner.swapped(Swap(names, deltas, reshaped))
        for each in tables:
            self._deliveries.add_view(self._catalog.view(each), replaces=True)

    def abandon(self, planned: Replacement) -> None:
        for name in reversed(planned.built):
            if beside(name) in self._catalog.entries:
                self._definitions.remove(beside(name))

    def _rewrite(self, planned: Replacement, way: GoingOn) -> Delta | None:
        """Give a view that goes on its new rows; return what changes for those that read it."""
        relation, old = planned.plan.relation, self._catalog.view(planned.statement.name).relation
        rows = self._storage.temporary(way.rows_sql)
        before = None if way.keeps_rows else self._storage.temporary(f"SELECT * FROM {old.storage}")
        self._storage.run(f"DROP TABLE {relation.storage}")
        views.create(self._storage, planned.plan)
        names = ", ".join(quoted(each.name) for each in relation.columns)
        self._storage.run(f"INSERT INTO {relation.storage} ({names}) SELECT {names} FROM {rows}")
        return None if before is None else self._differing(old, before, relation)

    def _differing(self, old: Relation, rows: str, new: Relation) -> Delta | None:
        """Return what is different in the columns that two views have in common, the first of whose rows are given."""
        types, others = held_types(old), held_types(new)
        common = {each: kind for each, kind in new.types.items() if types.get(each) == others[each]}
        if old.key != new.key or not common.keys() >= set(new.key):
            return None
        delta = difference(self._storage, rows, new.storage, common)
        return None if delta is None else kept(self._storage, delta)

    def _taken_out(self, name: str, way: GoingOn) -> str | None:
        """Return the state of the groups of a view as that of the new ones, and drop it; ``None`` where it stays."""
        if way.moved is None:
            return None
        job = self._catalog.view(name).operators
        state = self._storage.temporary(way.moved.state_sql(job))
        job.drop()
        return state

    def _put_in(self, name: str, state: str) -> None:
        """Fill the state of the groups of a view."""
        view = self._catalog.view(name)
        table = state_name(view.operators.owner(Parts.of(view.node).operators), FOLDED)
        self._storage.run(f"INSERT INTO {table} SELECT * FROM {state}")

    def _take_place(self, name: str) -> Delta | None:
        """Let the view that was built beside another one take its place; return what changes for those that go on."""
        old, new = self._catalog.view(name), self._catalog.view(beside(name))
        delta = self._differing(old.relation, old.relation.storage, new.relation)
        self._runner.drop(old)
        self._storage.run(f"DROP TABLE {old.relation.storage}")
        made_by.forget(self._storage, name)
        move_stored(self._storage, beside(name), name)
        return delta


def _defined_by(view: str) -> str:
    return sink_of_query(view) or view


def _goes_on(old: Node, new: Node, built: Mapping[str, Relation]) -> bool:
    """Whether a view that reads others can take what changes in them: its plan stays, and so do no rows that it has read."""
    read = [each for each in every_node(old) if isinstance(each, Scan) and each.relation in built]
    return is_same(old, new) and not any(each.append_only or each.watermarks for each in read)


def _shown(relation: Relation) -> str:
    columns = ", ".join(f"{column.name} {declaration(column.type)}" for column in relation.visible)
    return f"{columns} by {', '.join(relation.key) or 'no key'}"


# --- what differs --------------------------------------------------------------------------------------


def _changes(old: ViewInfo, new: views.ViewPlan, way: GoingOn | None) -> tuple[Change, ...]:
    """Return the parts of two views that differ."""
    found = changes(_description(old.node, old.relation, old.ids), _description(new.node, new.relation, new.ids))
    if way is not None:
        return tuple(replace(each, outcome=Outcome(Verdict.SAFE, way.effect(each.part))) for each in found)
    found = tuple(replace(each, outcome=Outcome(Verdict.REFUSED, _reason(each))) for each in found)
    return found or (Change("operators", "as before", "planned in another way", Outcome(Verdict.REFUSED, ANOTHER_STATE)),)


def _reason(change: Change) -> str:
    """Return why a view does not go on where a part differs."""
    if change.part == "having" and change.was is not None:
        return "rows that it left out are not stored"
    if change.part.startswith("call ") and change.was is None:
        return "rows of before are not in it, and a view has no results that are complete later"
    return ANOTHER_STATE


def _description(node: Node, relation: Relation, ids: Mapping[str, str]) -> Description:
    """Return a view as parts, with the words of its query."""
    parts = Parts.of(node)
    names = {column.id: column.name for each in every_node(node) for column in each.columns}
    columns = [
        {"name": column.name, "type": str(column.type), "value": parts.values[ids[column.name]].sql}
        for column in relation.visible
    ]
    found: dict[str, Any] = {"kind": "view", "columns": columns}
    if parts.conditions:
        part = "having" if isinstance(parts.operators, Aggregate) else "where"
        found[part] = [condition.shown(names) for condition in parts.conditions]
    for each in every_node(parts.operators):
        for part, value in _described(each, names):
            number = sum(known.partition(" #")[0] == part for known in found)
            found[f"{part} #{number + 1}" if number else part] = value
    return found


def _described(node: Node, names: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Scan):
        yield "from", node.relation
    elif isinstance(node, Filter):
        yield "where", node.condition.shown(names)
    elif isinstance(node, Aggregate):
        yield "groups", [names[group] for group in node.groups]
        for call, column in zip(node.calls, node.columns[len(node.groups) :], strict=True):
            yield f"call {column.name}", call.shown(names)
    elif not isinstance(node, Project):
        yield node.label, node.detail or "as it is"
