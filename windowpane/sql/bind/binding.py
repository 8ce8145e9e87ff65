"""What the parts of a query need of those who bind it: SELECTs hold queries, which hold SELECTs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sqlglot import exp

from windowpane.sql.bind.bound_query import BoundQuery, Tables
from windowpane.sql.bind.correlation import Inner
from windowpane.sql.bind.scope import Ids, Scope
from windowpane.sql.bind.selects import Groups
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.nodes import Node
from windowpane.sql.parse.positions import Text


class Binding(Protocol):
    """Binds a query: ``QueryBinder``, where the methods are described."""

    text: Text
    ids: Ids
    streaming: bool
    now: str
    default_frame: str
    by_default: dict[str, str]
    window_places: dict[str, exp.Expr]
    arrival_times: set[str]

    def bind_inner(self, tree: exp.Expr, tables: Tables, around: Scope, rows: Node, *, by_keys: bool = False) -> Inner:
        """Return a subquery as a plan, and what ties it to the query around it, which has these rows."""

    def evaluate(self, tree: exp.Expr, kind: SqlType | None = None) -> Any:
        """Return the value of a constant expression, as a type if one is given."""

    def relation(self, tree: exp.Expr, tables: Tables, rows: Node | None = None) -> tuple[Node, Scope]:
        """Return the rows of FROM, and the names that can be used of them; a call may be one of columns of ``rows``."""

    def aliased(self, scope: Scope, alias: exp.Expr | None) -> Scope:
        """Return a scope under the names of an alias."""

    def limited(self, bound: BoundQuery, tree: exp.Expr, partition: Sequence[str] = ()) -> BoundQuery:
        """Return a query with the LIMIT and OFFSET of ``tree``, of each partition."""


class Selecting(Protocol):
    """A SELECT on its way to a plan, as its subqueries see it: ``SelectPlan``."""

    query: Binding
    tables: Tables
    node: Node
    scope: Scope
    groups: Groups | None
