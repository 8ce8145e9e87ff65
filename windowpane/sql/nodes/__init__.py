"""The logical plan: relational operators over columns with ids, each of which has a form in DuckDB's SQL.

The same plan is run as one query (``compile_plan``) and as operators over changelogs (``streaming``). Every node has

- ``columns``, among them all columns of
- ``key``: what identifies a row of its result (empty: there is at most one row),
- ``append_only``: whether rows of its result are never deleted,
- ``watermarks``: the columns with a watermark: no row below it is inserted any more.
"""

from windowpane.sql.nodes.base import (
    Node,
    Order,
    Unary,
    Watermark,
    Watermarks,
    changed_plan,
    compile_plan,
    every_node,
    explain_plan,
    form,
    structure,
)
from windowpane.sql.nodes.keyed import Aggregate, Fold, Join, SetOperation, TimeBound, TopN
from windowpane.sql.nodes.rowwise import (
    BRANCH_TYPE,
    IDENTITY_TYPE,
    Expand,
    Filter,
    OnTime,
    Project,
    Scan,
    TimeWindows,
    UnionAll,
    Unnest,
    Values,
    scanned,
)
from windowpane.sql.nodes.windowed import ClockStamp, CloseSort, Match, Over, SessionWindows, TemporalFilter

__all__ = [
    "BRANCH_TYPE",
    "IDENTITY_TYPE",
    "Aggregate",
    "ClockStamp",
    "CloseSort",
    "Expand",
    "Filter",
    "Fold",
    "Join",
    "Match",
    "Node",
    "OnTime",
    "Order",
    "Over",
    "Project",
    "Scan",
    "SessionWindows",
    "SetOperation",
    "TemporalFilter",
    "TimeBound",
    "TimeWindows",
    "TopN",
    "Unary",
    "UnionAll",
    "Unnest",
    "Values",
    "Watermark",
    "Watermarks",
    "changed_plan",
    "compile_plan",
    "every_node",
    "explain_plan",
    "form",
    "scanned",
    "structure",
]
