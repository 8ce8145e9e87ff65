"""Materialized views: from a bound query to a job and a stored relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windowpane.sql.bind.bound_query import BoundQuery
from windowpane.sql.bind.build_plan import project
from windowpane.sql.bind.queries import QueryBinder
from windowpane.sql.bind.scope import Column
from windowpane.sql.catalog.relations import Relation, StoredColumn
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Join, Match, Node, Over, Watermark, every_node
from windowpane.sql.optimize import is_keyless, is_small, pruned
from windowpane.sql.parse.naming import check_columns
from windowpane.sql.parse.positions import Text
from windowpane.sql.parse.statements import CreateView
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.windowing.frames import Side, Units

_ONE_PARTITION = "Write PARTITION BY 1::int if one partition of all rows is meant, or filter row_number() to a Top-N."
_KEYLESS = (
    "Every row of one would meet every row of the other, and all are kept. Compare a column of one with = to one of the other; "
    "aggregate one to a single row, or bound it by LIMIT; or, if one has few rows for good, declare its table or view "
    "WITH (small = 'true')."
)
_MATCHES = "Add EMIT ON WINDOW CLOSE: a match comes once, when no row to come can change it."
_SESSION = "Add EMIT ON WINDOW CLOSE, or use the SESSION table function."


@dataclass(frozen=True)
class ViewPlan:
    """A materialized view before it is set up.

    Args:
        ids: the column of the plan for each stored column.
        reads: the names in its query, plain views among them.
        by_default: its columns of windows that have an ORDER BY and name no frame, with ``default_frame``.
    """

    relation: Relation
    node: Node
    ids: Mapping[str, str]
    reads: frozenset[str] = frozenset()
    by_default: Mapping[str, str] = field(default_factory=dict)


def view_plan(statement: CreateView, bound: BoundQuery, node: Node, text: Text) -> ViewPlan:
    """Return the view that a query makes; names that appear twice get a number."""
    names = _names(statement, bound, text)
    fresh = [(Column(f"{column.id}/{index}", column.name, column.type), column) for index, column in enumerate(bound.outputs)]
    items = [(new, old.expr) for new, old in fresh]
    shaped = project(node, items)
    visible = [StoredColumn(name, new.type) for name, (new, _) in zip(names, fresh, strict=True)]
    ids = dict(zip(names, (new.id for new, _ in fresh), strict=True))
    hidden: list[StoredColumn] = []
    by_id = {identity: name for name, identity in ids.items()}
    for identity in dict.fromkeys(shaped.key):
        if identity not in by_id:
            name = f"_key_{len(hidden)}"
            hidden.append(StoredColumn(name, shaped.column(identity).type, hidden=True))
            ids[name], by_id[identity] = identity, name
    watermarks: dict[str, Watermark] = {
        by_id[identity]: mark for identity, mark in shaped.watermarks.items() if identity in by_id
    }
    relation = Relation(
        statement.name,
        "materialized view",
        (*visible, *hidden),
        tuple(by_id[identity] for identity in dict.fromkeys(shaped.key)),
        shaped.append_only,
        f"main.{quoted(statement.name)}",
        watermarks,
        small=statement.small or is_small(shaped),
    )
    return ViewPlan(relation, pruned(shaped), ids)


def check_count(statement: CreateView, bound: BoundQuery, text: Text) -> None:
    """Refuse more or fewer names of columns than there are columns."""
    given, found = len(statement.column_names), len(bound.outputs)
    if statement.column_names and given != found:
        raise text.name_error(None, f"{statement.name!r} names {given} columns, but its query has {found}. Name each of them.")


def _names(statement: CreateView, bound: BoundQuery, text: Text) -> list[str]:
    check_count(statement, bound, text)
    given = statement.column_names or tuple(column.name for column in bound.outputs)
    names: list[str] = []
    for name in given:
        unique, number = name, 0
        while unique in names:
            number += 1
            unique = f"{name}_{number}"
        names.append(unique)
    check_columns(statement.name, names, statement.place)
    return names


def check_streamable(node: Node, query: QueryBinder, statement: CreateView, text: Text) -> None:
    """Refuse what a materialized view cannot keep up to date.

    Raises:
        SqlError: an OVER window without PARTITION BY, or with a SESSION frame, outside EMIT ON WINDOW CLOSE; a join without keys.
    """
    for each in every_node(node):
        if isinstance(each, Match) and not statement.on_window_close:
            raise text.unsupported(statement.query, "MATCH_RECOGNIZE in a view that emits on update", _MATCHES)
        if isinstance(each, Over):
            _check_window(each, query, statement, text)
        elif isinstance(each, Join) and is_keyless(each):
            place = next(
                (query.relation_places[name] for name in _names_of(each) if name in query.relation_places), statement.query
            )
            raise text.unsupported(place, "a join of two streams without an equality of their columns", _KEYLESS)


def _names_of(join: Join) -> list[str]:
    """Return the columns of a join, those of the right side first: it is the one that was added."""
    return [column.id for side in (join.right, join.left) for column in side.columns]


def _check_window(node: Over, query: QueryBinder, statement: CreateView, text: Text) -> None:
    place = query.window_places.get(node.columns[-1].id, statement.query)
    if not node.partition and not _is_whole(node):
        raise text.unsupported(place, "OVER without PARTITION BY in a materialized view", _ONE_PARTITION)
    sessions = any(call.frame is not None and call.frame.units is Units.SESSION for call in node.calls)
    if sessions and not node.closes:
        raise text.unsupported(place, "a SESSION frame in a materialized view that emits on update", _SESSION)


def _is_whole(node: Over) -> bool:
    """Whether every call sees the whole of its partition: it is an aggregate, joined back."""
    frames = [call.frame for call in node.calls]
    unbounded = (Side.UNBOUNDED_PRECEDING, Side.UNBOUNDED_FOLLOWING)
    return not node.order and all(frame is not None and (frame.start.side, frame.end.side) == unbounded for frame in frames)


def create(storage: Storage, plan: ViewPlan) -> None:
    columns = ", ".join(f"{quoted(column.name)} {column.type.duckdb}" for column in plan.relation.columns)
    storage.run(f"CREATE TABLE {plan.relation.storage} ({columns})")


def in_stored_names(plan_ids: Mapping[str, str], delta: str) -> str:
    items = ", ".join(f"{quoted(identity)} AS {quoted(name)}" for name, identity in plan_ids.items())
    return f"SELECT {items}, {quoted(WEIGHT)} FROM {delta}"
