"""Expressions that give NULL where they fail: each node of a tree that may fail is wrapped in DuckDB's ``TRY``.

As in RisingWave (``src/expr/core/src/expr/wrapper/non_strict.rs``) every node of an expression is NULL by itself where it fails,
so ``coalesce(x::int, 0)`` is 0 where ``x`` is no number. The rows on which ``e`` fails are found by ``TRY([e]) IS NULL``: a list
of NULL is not NULL.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import duckdb

from windowpane.errors import WindowpaneError
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import Expr, build
from windowpane.sql.expressions.types import BOOLEAN
from windowpane.sql.nodes import Filter, Join, Node, Project, TemporalFilter, TimeWindows, Unnest, changed_plan

_TOTAL = frozenset(
    {
        "AND",
        "OR",
        "NOT",
        "IS",
        "IS NULL",
        "IN",
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "IS DISTINCT FROM",
        "IS NOT DISTINCT FROM",
        "LAMBDA",
    }
)
"""The operators that fail only where an operand does."""


@dataclass(frozen=True)
class Attempt:
    """A node of an expression that may fail.

    Args:
        fails: whether it is computed, and fails by itself, though its operands did not.
    """

    expr: Expr
    fails: Expr

    @property
    def columns(self) -> tuple[str, ...]:
        """The ids of the columns in it, in their order there."""
        return tuple(dict.fromkeys(_columns(self.expr)))


def _columns(expr: Expr) -> Iterator[str]:
    if expr.column:
        yield expr.column
    for part in expr.parts:
        yield from _columns(part)


@dataclass(frozen=True)
class Tried:
    expr: Expr
    attempts: tuple[Attempt, ...]


@lru_cache(4096)
def tried_expr(expr: Expr) -> Tried:
    walk = _Walk()
    return Tried(walk.tried(expr), tuple(walk.attempts))


class _Walk:
    def __init__(self) -> None:
        self._guards: list[Expr] = []
        self.attempts: list[Attempt] = []

    def tried(self, expr: Expr) -> Expr:
        if not expr.columns:
            is_value = not expr.free and expr.operator != "LAMBDA"
            return self._attempted(expr, expr) if is_value and _fails(expr) else expr
        if not expr.parts:
            return expr
        if expr.operator == "CASE":
            return self._case(expr)
        if expr.operator == "COALESCE":
            return self._coalesce(expr)
        inside = dataclasses.replace(expr, parts=tuple(map(self.tried, expr.parts)))
        return inside if expr.free or expr.operator in _TOTAL else self._attempted(expr, inside)

    def _attempted(self, expr: Expr, inside: Expr) -> Expr:
        failed = build(BOOLEAN, "TRY([{0}]) IS NULL", inside)
        for guard in reversed(self._guards):  # AND would compute both sides for all rows
            failed = build(BOOLEAN, "CASE WHEN {0} THEN {1} ELSE false END", guard, failed)
        self.attempts.append(Attempt(expr, failed))
        return dataclasses.replace(build(expr.type, "TRY({0})", inside), name=expr.name, rises_with=expr.rises_with)

    def _case(self, expr: Expr) -> Expr:
        """Try a CASE: a failure in a branch counts for the rows that take it."""
        held, parts = len(self._guards), list[Expr]()
        for condition, value in zip(expr.parts[::2], expr.parts[1::2], strict=False):
            parts.append(self.tried(condition))
            self._guards.append(build(BOOLEAN, "({0}) IS TRUE", parts[-1]))
            parts.append(self.tried(value))
            self._guards[-1] = build(BOOLEAN, "({0}) IS NOT TRUE", parts[-2])
        parts += map(self.tried, expr.parts[len(parts) :])
        del self._guards[held:]
        return dataclasses.replace(expr, parts=tuple(parts))

    def _coalesce(self, expr: Expr) -> Expr:
        """Try a COALESCE: a failure in an argument counts for the rows in which those before it are NULL."""
        held, parts = len(self._guards), list[Expr]()
        for part in expr.parts:
            parts.append(self.tried(part))
            self._guards.append(build(BOOLEAN, "({0}) IS NULL", parts[-1]))
        del self._guards[held:]
        return dataclasses.replace(expr, parts=tuple(parts))


@cache
def scratch() -> tuple[Storage, threading.Lock]:
    """Return a store to compute single values in: in the store of a session an error would end the transaction of the flush.

    It is one connection, and batches of streaming queries run in threads.
    """
    return Storage(":memory:"), threading.Lock()


def why_it_fails(query: str) -> str | None:
    """Return the error of a query over nothing stored, in one line; ``None`` if it has none."""
    storage, lock = scratch()
    try:
        with lock, storage.transaction():
            storage.run(query)
    except (WindowpaneError, duckdb.Error) as error:
        return str(error).split("\n")[0]
    return None


def computed(sql: str) -> str:
    """Return a query that computes an expression, but returns a number instead of its value.

    Python cannot hold every value: no time delta is as long as an interval of 2147483647 days.
    """
    return f"SELECT hash({sql})"


def _fails(constant: Expr) -> bool:
    return bool(constant.parts) and why_it_fails(computed(constant.sql)) is not None


def expressions(node: Node) -> Sequence[Expr]:
    """Return the expressions that a node computes on each row by itself."""
    if isinstance(node, Project):
        return node.items
    if isinstance(node, Filter | TemporalFilter):
        return [node.condition]
    if isinstance(node, TimeWindows):
        return [node.start, node.end, node.condition]
    return [node.elements] if isinstance(node, Unnest) else []


def tried(node: Node) -> Node:
    """Return a node whose own expressions give NULL where they fail; its inputs stay as they are."""
    if isinstance(node, Project):
        return dataclasses.replace(node, items=tuple(tried_expr(item).expr for item in node.items))
    if isinstance(node, Filter):
        return dataclasses.replace(node, condition=tried_expr(node.condition).expr)
    if isinstance(node, TemporalFilter):
        condition, possible, undecided = (tried_expr(each).expr for each in (node.condition, node.possible, node.undecided))
        return dataclasses.replace(node, condition=condition, possible=possible, undecided=undecided)
    if isinstance(node, TimeWindows):
        start, end, condition = (tried_expr(each).expr for each in expressions(node))
        return dataclasses.replace(node, start=start, end=end, condition=condition)
    if isinstance(node, Unnest):
        found = tried_expr(node.elements)
        # A series between constants that is too long is no bad value, and not all of its rows may be left out.
        return node if any(not each.expr.columns for each in found.attempts) else dataclasses.replace(node, elements=found.expr)
    if isinstance(node, Join) and node.residual is not None:
        return dataclasses.replace(node, residual=tried_expr(node.residual).expr)
    return node


def tried_plan(node: Node) -> Node:
    return changed_plan(node, tried)
