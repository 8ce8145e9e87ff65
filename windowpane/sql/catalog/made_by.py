"""What a store was made by: the plan of each view, and the types of what is stored.

State is read by the plan that wrote it. A session that would plan a view in another way, or store a column in another type, as
another version of windowpane may, refuses the store before it reads a row of it.

Layout: ``windowpane.plans`` has the structure of the plan of each view as JSON, written in the transaction that makes the view.
It has no generated SQL: how an expression is written may change. ``windowpane.kept`` has what the operators of a view keep in the
store, for people who look into it; nothing else reads that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from windowpane.errors import StoreVersionError
from windowpane.sql.catalog.entries import TableInfo, ViewInfo
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.nodes import structure


def remember(storage: Storage, views: Sequence[ViewInfo]) -> None:
    """Keep the plans of views, in place of what was kept under their names."""
    for view in views:
        forget(storage, view.relation.name)
        storage.run("INSERT INTO windowpane.plans VALUES (?, ?)", [view.relation.name, _text(view)])
        if view.job is not None:
            storage.run("INSERT INTO windowpane.kept VALUES (?, ?)", [view.relation.name, json.dumps(view.job.kept())])


def _text(view: ViewInfo) -> str:
    return json.dumps(structure(view.node))


def forget(storage: Storage, view: str) -> None:
    for table in ("plans", "kept"):
        storage.run(f"DELETE FROM windowpane.{table} WHERE view = ?", [view])


def check(storage: Storage, tables: Sequence[TableInfo], views: Sequence[ViewInfo]) -> None:
    """Refuse a store that another version made."""
    plans = dict(storage.run("SELECT view, plan FROM windowpane.plans"))
    differences: dict[str, tuple[str | None, str | None]] = {}
    for view in views:
        name, plan = view.relation.name, _text(view)
        if plans.get(name) != plan:
            differences[f"the plan of {name!r}"] = plans.get(name), plan
    query = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'main'"
    stored = {(table, column): kind for table, column, kind in storage.run(query)}
    for relation in [each.relation for each in tables] + [each.relation for each in views]:
        for column in relation.columns:
            was, kind = stored.get((relation.name, column.name)), storage.type_name(column.type.duckdb)
            if was != kind:
                differences[f"column {column.name!r} of {relation.name!r}"] = was, kind
    if differences:
        raise StoreVersionError(storage.path, differences)
