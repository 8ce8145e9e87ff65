"""Another query for a materialized view, CREATE OR REPLACE and ALTER ... AS, while views and sinks read it.

Planning writes nothing: it compares the view with the new one, part by part, by the rules of ``engines.changes``, and plans the
views that read it once more. Where the new view has the operators of the old one, and columns of its rows, state goes on: the
rows are rewritten. Otherwise it is built beside the old one from what it reads, under a name of its own (``entries.beside``), and
so is each reader that has another plan then, or cannot take back what it has read.

The swap is one transaction: rows and state get the names of the old ones, definitions are read again, and the readers that go on
and the sinks get what has changed, as of a flush. A crash before it leaves the old views; a session that opens removes what was
built beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from windowpane.sql.catalog.relations import PlainView, Relation, shape
from windowpane.sql.catalog.renaming import drop_stored, move_stored
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.nodes import Aggregate, Filter, Node, Project, Scan, every_node, structure
from windowpane.sql.parse.positions import Text
from windowpane.sql.parse.reader import read_script
from windowpane.sql.parse.statements import CreateSink, CreateView
from windowpane.sql.streaming.deltas import Delta, difference, kept
from windowpane.sql.upkeep.deliveries import Deliveries
from windowpane.sql.upkeep.view_runner import Swap, ViewRunner


@dataclass(frozen=True)
class Replacement:
    """What taking the place of a view means.

    Args:
        readers: what reads the view, in the order of the catalog.
        built: the views that are built beside the old ones, in their order; none where state goes on.
        columns: where state goes on, the column of the old rows for each of the new ones.
    """

    statement: CreateView
    plan: views.ViewPlan
    report: Report
    readers: tuple[str, ...]
    built: tuple[str, ...]
    columns: Mapping[str, str] = field(default_factory=dict)

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
        found = _changes(old, plan)
        columns = _columns(old, plan) if max((each.outcome.verdict for each in found), default=0) <= Verdict.SAFE else None
        goes_on = columns is not None and not self._deliveries.needs_another_table(old, plan.relation)
        goes_on = goes_on and self._runner.goes_on(old, plan.node)
        built = self._built(statement, plan, readers, is_built=not goes_on)
        if built and goes_on:
            built = self._built(statement, plan, readers, is_built=True)
        report = Report(found, None, None)
        return Replacement(statement, plan, report, readers, built, columns if columns is not None and not built else {})

    def _readers(self, name: str) -> tuple[str, ...]:
        """Return what reads a relation, and what reads that, in the order of the catalog."""
        found = {name}
        for other, entry in self._catalog.entries.items():
            if read_by(entry) & found:
                found.add(other)
        return tuple(other for other in self._catalog.entries if other in found and other != name)

    def _built(self, statement: CreateView, plan: views.ViewPlan, readers: tuple[str, ...], *, is_built: bool) -> tuple[str, ...]:
        """Return the views that must be built, of one and those that read it."""
        name, place = statement.name, statement.place
        built, unfit = [name] if is_built else [], dict[str, str]()
        before = {name: self._catalog.view(name).relation}
        self._catalog.instead = {name: plan.relation}
        try:
            for reader in readers:
                entry = self._catalog.entries[reader]
                try:
                    if isinstance(entry, ViewInfo):
                        again = self._planned(reader)
                        if not _goes_on(entry.node, again.node, before if is_built else {}):
                            built.append(reader)
                            before[reader] = entry.relation
                            self._catalog.instead[reader] = again.relation
                    elif isinstance(entry, PlainView):
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
        if name == statement.name:
            new = replace(statement, name=beside(name))
            plan, strict = self._definitions.plan(new, text), self._definitions.strictness(new.name, is_new=True)
        else:
            made, text = self._definition(name)
            new, strict = replace(made, name=beside(name)), self._catalog.view(name).strict
            with self._definitions.made_as(_defined_by(name)):
                plan = self._definitions.plan(new, text, is_new=False)
            if strict:
                self._storage.run("INSERT INTO windowpane.strict VALUES (?)", [new.name])
        self._definitions.add(new.name, plan, new.text, strict=strict, is_new=True)
        self._catalog.instead[name] = plan.relation

    def swap(self, planned: Replacement) -> None:
        """Put the new views in the place of the old ones, and let those that read them go on with what has changed."""
        name, deltas, reshaped, tables = planned.statement.name, dict[str, Delta](), list[str](), list[str]()
        if not planned.built:
            self._runner.settle(name)
            self._rewrite(planned)
            self._storage.run("DELETE FROM windowpane.strict WHERE view = ?", [name])
            self._definitions.strictness(name, is_new=True)
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
        made_by.remember(self._storage, self._catalog.views())
        names = {each: beside(each) for each in planned.built} or {name: name}
        self._runner.swapped(Swap(names, deltas, reshaped))
        for each in tables:
            self._deliveries.add_view(self._catalog.view(each), replaces=True)

    def abandon(self, planned: Replacement) -> None:
        for name in reversed(planned.built):
            if beside(name) in self._catalog.entries:
                self._definitions.remove(beside(name))

    def _rewrite(self, planned: Replacement) -> None:
        relation, columns = planned.plan.relation, planned.columns
        items = ", ".join(f"{quoted(columns[each.name])} AS {quoted(each.name)}" for each in relation.columns)
        rows = self._storage.temporary(f"SELECT {items} FROM {relation.storage}")
        self._storage.run(f"DROP TABLE {relation.storage}")
        views.create(self._storage, planned.plan)
        self._storage.run(f"INSERT INTO {relation.storage} SELECT * FROM {rows}")

    def _take_place(self, name: str) -> Delta | None:
        """Let the view that was built beside another one take its place; return what changes for those that go on."""
        old, new = self._catalog.view(name), self._catalog.view(beside(name))
        delta = None
        common = {each: kind for each, kind in new.relation.types.items() if old.relation.types.get(each) == kind}
        if old.relation.key == new.relation.key and common.keys() >= set(new.relation.key):
            delta = difference(self._storage, old.relation.storage, new.relation.storage, common)
            delta = None if delta is None else kept(self._storage, delta)
        self._runner.drop(old)
        self._storage.run(f"DROP TABLE {old.relation.storage}")
        made_by.forget(self._storage, name)
        self._storage.run("DELETE FROM windowpane.strict WHERE view = ?", [name])
        move_stored(self._storage, beside(name), name)
        return delta


def _defined_by(view: str) -> str:
    return sink_of_query(view) or view


def _goes_on(old: Node, new: Node, built: Mapping[str, Relation]) -> bool:
    """Whether a view that reads others can take what changes in them: its plan stays, and so do no rows that it has read."""
    read = [each for each in every_node(old) if isinstance(each, Scan) and each.relation in built]
    return _is_same(old, new) and not any(each.append_only or each.watermarks for each in read)


def _is_same(one: Node, other: Node) -> bool:
    if one != other or structure(one) != structure(other):
        return False
    return all(mine.watermarks == others.watermarks for mine, others in zip(every_node(one), every_node(other), strict=True))


def _shown(relation: Relation) -> str:
    columns = ", ".join(f"{column.name} {column.type}" for column in relation.visible)
    return f"{columns} by {', '.join(relation.key) or 'no key'}"


# --- what differs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """A plan taken apart: the values of its columns, and the conditions above its operators, over what these emit."""

    values: Mapping[str, Expr]
    conditions: tuple[Expr, ...]
    operators: Node

    @classmethod
    def of(cls, node: Node) -> _Parts:
        values, conditions = {column.id: column.expr for column in node.columns}, list[Expr]()
        while type(node) in (Project, Filter):
            if isinstance(node, Project):
                items = {column.id: item for column, item in zip(node.columns, node.items, strict=True)}
                values = {name: value.over(items) for name, value in values.items()}
                conditions = [condition.over(items) for condition in conditions]
            elif isinstance(node, Filter):
                conditions.append(node.condition)
            (node,) = node.inputs
        return cls(values, tuple(conditions), node)


def _columns(old: ViewInfo, new: views.ViewPlan) -> dict[str, str] | None:
    """Return the column of the old rows for each of the new ones, where both have the same operators; else ``None``."""
    was, now = _Parts.of(old.node), _Parts.of(new.node)
    if not _is_same(was.operators, now.operators) or was.conditions != now.conditions:
        return None
    by_value = {was.values[identity]: name for name, identity in old.ids.items()}
    found = {name: by_value.get(now.values[identity]) for name, identity in new.ids.items()}
    columns = {name: of for name, of in found.items() if of is not None and old.relation.types[of] == new.relation.types[name]}
    return columns if len(columns) == len(found) else None


def _changes(old: ViewInfo, new: views.ViewPlan) -> tuple[Change, ...]:
    found = changes(_description(old.node, old.relation, old.ids), _description(new.node, new.relation, new.ids))
    if all(each.outcome.verdict <= Verdict.SAFE for each in found) and _columns(old, new) is None:
        return (*found, Change("operators", "as before", "planned in another way", Outcome(Verdict.REFUSED, ANOTHER_STATE)))
    return found


def _description(node: Node, relation: Relation, ids: Mapping[str, str]) -> Description:
    parts = _Parts.of(node)
    names = {column.id: column.name for each in every_node(node) for column in each.columns}
    columns = [
        {"name": column.name, "type": str(column.type), "value": parts.values[ids[column.name]].sql}
        for column in relation.visible
    ]
    found: dict[str, Any] = {"kind": "view", "columns": columns}
    if parts.conditions:
        found["having"] = [condition.shown(names) for condition in parts.conditions]
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
