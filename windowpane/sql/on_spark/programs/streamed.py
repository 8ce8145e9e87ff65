"""Which plans of views are one streaming query, from their source to their result; for every other the reason is given.

A plan is taken only where the result is the one of the embedded engine: groups of windows (``groups``), or rows with the results
of calls (``over``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.nodes import Aggregate, CloseSort, Filter, Node, Over, Project
from windowpane.sql.on_spark.programs.groups import GroupParts, group_program
from windowpane.sql.on_spark.programs.over import OverParts, over_program
from windowpane.sql.on_spark.programs.plan import NotStreamed, StreamedPlan


def streamed(node: Node, tables: Mapping[str, TableInfo], runs: Node | None = None) -> StreamedPlan | str:
    """Return how a plan is one streaming query, or why it is none.

    Args:
        node: the plan.
        tables: tables and sources by name.
        runs: the same plan with the SQL that is to run, where this is another.
    """
    is_over = isinstance(_first_of(node, (Over, Aggregate, CloseSort)), Over)
    try:
        found = over_program(OverParts.of(node), tables) if is_over else group_program(GroupParts.of(node), tables)
    except NotStreamed as reason:
        return str(reason)
    if runs is None:
        return found
    parts = OverParts.of(runs) if is_over else GroupParts.of(runs)
    return replace(found, rows=parts.rows_sql(), result=parts.result_sql())


def _first_of(node: Node, kinds: tuple[type[Node], ...]) -> Node | None:
    """Return the first node of some kinds below those that handle each row alone."""
    while not isinstance(node, kinds):
        if not isinstance(node, Project | Filter):
            return None
        node = node.input
    return node
