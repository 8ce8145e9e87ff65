"""Questions about the catalog: SHOW and DESCRIBE."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from windowpane.errors import SqlNameError, UnsupportedSqlError
from windowpane.sql.bind.queries import QueryBinder
from windowpane.sql.catalog.entries import Catalog, TableInfo, ViewInfo, sink_of_query
from windowpane.sql.catalog.relations import PlainView
from windowpane.sql.catalog.renaming import without_secrets
from windowpane.sql.expressions.binder import name_of
from windowpane.sql.parse.positions import Place
from windowpane.sql.parse.statements import Show, Statement

_KINDS = {
    "TABLES": "table",
    "SOURCES": "source",
    "MATERIALIZED VIEWS": "materialized view",
    "VIEWS": "view",
    "SINKS": "sink",
    "INDEXES": "index",
}


def tables_in(query: exp.Expr) -> set[str]:
    names = {name_of(table.this) for table in query.find_all(exp.Table) if isinstance(table.this, exp.Identifier)}
    calls = [table.this for table in query.find_all(exp.Table) if isinstance(table.this, exp.Anonymous)]
    read = [_relation_of(call) for call in calls]
    return names | {name_of(tree.this) for tree in read if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier)}


def read_by(catalog: Catalog, statement: Statement) -> set[str]:
    """Return the names of what the queries of a statement read, through plain views."""
    waiting = {name for value in vars(statement).values() if isinstance(value, exp.Expr) for name in tables_in(value)}
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        entry = catalog.entries.get(name)
        if name not in found and isinstance(entry, PlainView):
            waiting |= entry.reads
        found.add(name)
    return found


def _relation_of(call: exp.Expr) -> exp.Expr | None:
    """Return the relation that a window table function is called on: its first argument, or the one named DATA."""
    for argument in call.expressions:
        if isinstance(argument, exp.Kwarg) and str(argument.this.name).upper() == "DATA":
            named: exp.Expr = argument.expression
            return named
    return call.expressions[0] if call.expressions else None


def show(catalog: Catalog, parameters: Mapping[str, str], statement: Show) -> dict[str, list[str]]:
    """Return what SHOW asks for, as columns by name."""
    what = statement.what.upper()
    if what in _KINDS:
        found = [name for name in catalog.entries if catalog.kind(name) == _KINDS[what]]
        return {"Name": [name for name in found if sink_of_query(name) is None]}
    if what == "ALL":
        return {"Name": list(parameters), "Setting": list(parameters.values())}
    if what.startswith("CREATE "):
        return _definition(catalog, statement)
    name = "timezone" if what == "TIME ZONE" else statement.what.lower()
    if name in parameters:
        return {name: [parameters[name]]}
    place = statement.place
    known = f"SHOW ERRORS, WATERMARKS, {', '.join(_KINDS)}, CREATE kind name, ALL and a parameter are."
    raise place.error(UnsupportedSqlError, f"SHOW {statement.what} is not supported. {known}")


def _definition(catalog: Catalog, statement: Show) -> dict[str, list[str]]:
    name = statement.what.split()[-1].lower()
    entry = catalog.entries.get(name)
    if entry is None:
        raise SqlNameError(f"there is no {name!r}; there are {', '.join(catalog.entries) or 'none'}.", statement.place.line, 1)
    return {"Name": [name], "Create Sql": [without_secrets(entry.text)]}


def describe(catalog: Catalog, name: str, place: Place, binder: QueryBinder) -> dict[str, list[str]]:
    """Return the columns of a relation: name, type, and what is special about them."""
    entry = catalog.entries.get(name)
    if isinstance(entry, PlainView):
        outputs = binder.bind(entry.query).outputs
        return {"Name": [column.name for column in outputs], "Type": [str(column.type) for column in outputs]}
    if not isinstance(entry, TableInfo | ViewInfo):
        raise place.error(SqlNameError, f"there is no table or view {name!r}; there are {', '.join(catalog.names()) or 'none'}.")
    relation = entry.relation
    notes = []
    for column in relation.visible:
        marks = ["primary key"] if column.name in relation.key else []
        marks += ["watermark"] if column.name in relation.watermarks else []
        marks += ["not null"] if column.not_null else []
        notes.append(", ".join(marks))
    names, types = [column.name for column in relation.visible], [str(column.type) for column in relation.visible]
    return {"Name": names, "Type": types, "Notes": notes}
