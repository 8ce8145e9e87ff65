"""Joins without keys: every change of one side meets every row of the other, so one of them must be small.

Small is what has a bounded number of rows by its query (an aggregate without GROUP BY, a LIMIT, rows written in the SQL text,
groups of booleans), and what was declared so: a table or view ``WITH (small = 'true')``, and what is made of such alone. Source
of the rule: RisingWave refuses a nested-loop join in a streaming plan.
"""

from __future__ import annotations

from windowpane.sql.expressions.types import BOOLEAN
from windowpane.sql.nodes import Aggregate, Join, Node, Scan, TopN

MOST_ROWS = 10_000
"""The highest LIMIT whose rows count as few."""


def is_small(node: Node) -> bool:
    """Whether a node has few rows, however long its view is kept up to date."""
    if isinstance(node, Scan):
        return node.small
    if isinstance(node, Aggregate) and all(node.column(group).type == BOOLEAN for group in node.groups):
        return True
    if isinstance(node, TopN) and not node.partition and not node.with_ties and (node.limit or MOST_ROWS + 1) <= MOST_ROWS:
        return True
    if isinstance(node, Join) and node.kind in ("semi", "anti"):
        return is_small(node.left)
    return all(is_small(source) for source in node.inputs)


def is_keyless(join: Join) -> bool:
    """Whether a join has no keys, and no side that is small."""
    return not join.keys and not any(is_small(side) for side in join.inputs)
