"""Expressions that give NULL where they fail: each call and cast inside is wrapped in DuckDB's ``TRY``.

As in RisingWave (``src/expr/core/src/expr/wrapper/non_strict.rs``) every node of an expression is NULL by itself where it fails,
so ``coalesce(x::int, 0)`` is 0 where ``x`` is no number. The tree is DuckDB's own, from ``json_serialize_sql``. The rows on which
``e`` fails are found by ``TRY([e]) IS NULL``: a list of NULL is not NULL.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import duckdb

from windowpane.sql.embedded.macros import MACROS
from windowpane.sql.expressions.expr import Expr
from windowpane.sql.nodes import Filter, Join, Node, Project, TemporalFilter, TimeWindows, Unnest, changed_plan

_UNTRIED = frozenset({"unnest", "error", "random", "uuid", "gen_random_uuid", "now", "getvariable", "windowpane_now"})
"""What DuckDB does not allow in TRY."""


@dataclass(frozen=True)
class Attempt:
    """A call or cast that may fail.

    Args:
        sql: the expression as written in the plan.
        fails: SQL of whether it is computed, and fails by itself, though its parts did not.
        columns: the ids of the columns in it.
        needs: the ids of the columns in ``fails``.
    """

    sql: str
    fails: str
    columns: tuple[str, ...]
    needs: frozenset[str]


@dataclass(frozen=True)
class Tried:
    """An expression that gives NULL where it fails, and its parts that may fail."""

    sql: str
    attempts: tuple[Attempt, ...]


_LOCK = threading.Lock()
"""The parser is one connection, and batches of streaming queries run in threads."""


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for statement in ("SET TimeZone = 'UTC'", *MACROS):
        connection.execute(statement)
    return connection


@lru_cache(4096)
def tried_sql(sql: str) -> Tried:
    """Return an expression with every call and cast in it in TRY; one that DuckDB cannot take apart stays as it is."""
    with _LOCK:
        found = json.loads(_parser().execute("SELECT json_serialize_sql(?)", [f"SELECT {sql}"]).fetchall()[0][0])
        if found.get("error"):
            return Tried(sql, ())
        walk = _Walk(_parser(), found)
        tree = walk.tried(_item(found))
        return Tried(walk.text(tree), tuple(walk.attempts))


def _item(found: dict[str, Any]) -> dict[str, Any]:
    item: dict[str, Any] = found["statements"][0]["node"]["select_list"][0]
    return item


class _Walk:
    """One expression, from its leaves to its root."""

    def __init__(self, parser: duckdb.DuckDBPyConnection, statement: dict[str, Any]) -> None:
        self._parser, self._statement = parser, statement
        self._guards: list[tuple[str, frozenset[str]]] = []
        self.attempts: list[Attempt] = []

    def text(self, tree: dict[str, Any]) -> str:
        """Return a tree as SQL."""
        self._statement["statements"][0]["node"]["select_list"] = [tree]
        written = self._parser.execute("SELECT json_deserialize_sql(?)", [json.dumps(self._statement)]).fetchall()[0][0]
        return str(written).removeprefix("SELECT ")

    def tried(self, tree: dict[str, Any]) -> dict[str, Any]:
        """Return a tree with every call and cast in TRY."""
        if tree["class"] in ("LAMBDA", "CONSTANT", "COLUMN_REF"):
            return tree
        if tree["class"] == "CASE":
            return self._case(tree)
        if tree["type"] == "OPERATOR_COALESCE":
            return self._coalesce(tree)
        inside = {name: self._parts(value) for name, value in tree.items()}
        if not _may_fail(tree):
            return inside
        columns = tuple(dict.fromkeys(_columns(tree)))
        if not columns and not self._fails(tree):
            return tree
        fails = " AND ".join([*(guard for guard, _ in self._guards), f"TRY([{self.text(inside)}]) IS NULL"])
        needs = frozenset(columns).union(*(names for _, names in self._guards))
        self.attempts.append(Attempt(self.text(tree), fails, columns, needs))
        return {"class": "OPERATOR", "type": "OPERATOR_TRY", "alias": "", "query_location": 0, "children": [inside]}

    def _case(self, tree: dict[str, Any]) -> dict[str, Any]:
        """Try a CASE: a failure in a branch counts for the rows that take it."""
        held, checks = len(self._guards), []
        for check in tree["case_checks"]:
            condition = self.tried(check["when_expr"])
            self._guards.append((f"({self.text(condition)}) IS TRUE", frozenset(_columns(condition))))
            checks.append({**check, "when_expr": condition, "then_expr": self.tried(check["then_expr"])})
            self._guards[-1] = (f"({self.text(condition)}) IS NOT TRUE", frozenset(_columns(condition)))
        otherwise = self.tried(tree["else_expr"])
        del self._guards[held:]
        return {**tree, "case_checks": checks, "else_expr": otherwise}

    def _coalesce(self, tree: dict[str, Any]) -> dict[str, Any]:
        """Try a COALESCE: a failure in an argument counts for the rows in which those before it are NULL."""
        held, children = len(self._guards), []
        for child in tree["children"]:
            children.append(self.tried(child))
            self._guards.append((f"({self.text(children[-1])}) IS NULL", frozenset(_columns(child))))
        del self._guards[held:]
        return {**tree, "children": children}

    def _parts(self, value: object) -> Any:
        if isinstance(value, list):
            return [self._parts(part) for part in value]
        if not isinstance(value, dict):
            return value
        if "class" in value and value["class"] not in ("TYPE",):
            return self.tried(value)
        return {name: self._parts(part) for name, part in value.items()}

    def _fails(self, constant: dict[str, Any]) -> bool:
        try:
            self._parser.execute(computed(self.text(constant))).fetchall()
        except duckdb.Error:
            return True
        return False


def computed(sql: str) -> str:
    """Return a query that computes an expression, but returns a number instead of its value.

    Python cannot hold every value: no time delta is as long as an interval of 2147483647 days.
    """
    return f"SELECT hash({sql})"


def _may_fail(tree: dict[str, Any]) -> bool:
    if tree["class"] == "FUNCTION":
        return tree["function_name"].lower() not in _UNTRIED
    return tree["class"] == "CAST" or tree["type"] in ("ARRAY_EXTRACT", "ARRAY_SLICE")


def _columns(tree: object) -> Iterator[str]:
    if isinstance(tree, list):
        for part in tree:
            yield from _columns(part)
    elif isinstance(tree, dict):
        if tree.get("class") == "COLUMN_REF":
            yield tree["column_names"][-1]
        else:
            for part in tree.values():
                yield from _columns(part)


def expressions(node: Node) -> list[str]:
    """Return the expressions that a node computes on each row by itself."""
    if isinstance(node, Project):
        return list(node.items)
    if isinstance(node, Filter | TemporalFilter):
        return [node.condition.sql]
    if isinstance(node, TimeWindows):
        return [node.start, node.end, node.condition]
    return [node.elements] if isinstance(node, Unnest) else []


def tried(node: Node) -> Node:
    """Return a node whose own expressions give NULL where they fail; its inputs stay as they are."""
    if isinstance(node, Project):
        return dataclasses.replace(node, items=tuple(tried_sql(item).sql for item in node.items))
    if isinstance(node, Filter):
        return dataclasses.replace(node, condition=_tried(node.condition))
    if isinstance(node, TemporalFilter):
        possible, undecided = tried_sql(node.possible).sql, tried_sql(node.undecided).sql
        return dataclasses.replace(node, condition=_tried(node.condition), possible=possible, undecided=undecided)
    if isinstance(node, TimeWindows):
        start, end, condition = (tried_sql(sql).sql for sql in expressions(node))
        return dataclasses.replace(node, start=start, end=end, condition=condition)
    if isinstance(node, Unnest):
        found = tried_sql(node.elements)
        return node if any(map(_finds_no_room, found.attempts)) else dataclasses.replace(node, elements=found.sql)
    if isinstance(node, Join) and node.residual is not None:
        return dataclasses.replace(node, residual=_tried(node.residual))
    return node


def _finds_no_room(attempt: Attempt) -> bool:
    """Whether a series between constants is too long: that is no bad value, and not all of its rows may be left out."""
    return not attempt.columns and attempt.sql.startswith("windowpane_room(")


def _tried(expr: Expr) -> Expr:
    return dataclasses.replace(expr, sql=tried_sql(expr.sql).sql)


def tried_plan(node: Node) -> Node:
    """Return a plan all of whose expressions give NULL where they fail."""
    return changed_plan(node, tried)
