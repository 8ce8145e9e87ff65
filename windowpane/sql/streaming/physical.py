"""Which operator runs each node of a plan, what it keeps from batch to batch, and when that goes: what EXPLAIN says of a node.

On Spark state lies in pages by key, of which a batch reads those it touches: operators that keep all rows beside a smaller state,
to be fast where few of them change, have no use there (``paged``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windowpane.sql.embedded.storage import DuckBlobs, Storage
from windowpane.sql.nodes import Aggregate, ClockStamp, CloseSort, Join, Match, Node, Over, TemporalFilter, TopN, Values
from windowpane.sql.streaming.clock import Clock
from windowpane.sql.streaming.folding import Folded, folds
from windowpane.sql.streaming.folding_rows import FoldedWithRows, folds_with_rows
from windowpane.sql.streaming.freeing import freed_where
from windowpane.sql.streaming.joining import Joined
from windowpane.sql.streaming.matching import Matching
from windowpane.sql.streaming.operators import LINEAR, CloseSorter, Constant, Keyed, Linear, Operator
from windowpane.sql.streaming.over import over_on_blobs, runs_keyed
from windowpane.sql.streaming.temporal import ClockStamper, TemporalFilterer
from windowpane.sql.streaming.top_rows import TopRows, keeps_top


@dataclass(frozen=True)
class Physical:
    """How a node runs.

    Args:
        make: makes its operator of the node, the store, the name of its state, and the watermarks.
        state: what it keeps, empty for nothing.
        until: when a part of it goes, where that is not with its rows, or by a watermark of ``freeing``.
    """

    make: Callable[[Any, Storage, str, Clock], Operator]
    engine: str = "each row alone"
    state: str = ""
    until: str = ""

    def text(self, node: Node) -> str:
        """Return what EXPLAIN says, empty where it keeps nothing."""
        if not self.state:
            return ""
        ends = [self.until] if self.until else []
        if self.make not in _BY_TIME_ALONE and (freed := freed_where(node)):
            ends.append(freed)
        if not self.until and not all(source.append_only for source in node.inputs):
            ends.append("its rows are deleted")
        gone = f"until {', or '.join(ends)}" if ends else "for ever: no watermark, and no deleted row, ends it"
        return f"{self.engine}; keeps {self.state}, {gone}"


CONSTANT = Physical(lambda node, storage, owner, clock: Constant(node, storage), "the rows of the text, once")
ALONE = Physical(lambda node, storage, owner, clock: Linear(node, storage))
OVER = Physical(
    lambda node, storage, owner, clock: over_on_blobs(node, storage, DuckBlobs(storage, owner)),
    "engine over update",
    "rows with their results, by partition and order",
)
CLOSING_OVER = Physical(OVER.make, "engine over close", "the last rows of each partition", "no frame of a later row reaches them")
MATCH = Physical(
    lambda node, storage, owner, clock: Matching(node, storage, DuckBlobs(storage, owner), clock),
    "engine of patterns",
    "rows from the first open attempt on, by partition",
    "the watermark has decided the match",
)
TEMPORAL = Physical(
    lambda node, storage, owner, clock: TemporalFilterer(node, storage, owner),
    "by the clock",
    "rows that now() can still let in or out",
    "it cannot",
)
STAMPED = Physical(
    lambda node, storage, owner, clock: ClockStamper(node, storage, owner),
    "by the clock",
    "the time of each row",
    "it is deleted",
)
SORTED = Physical(CloseSorter, "sorted by event time", "rows that wait", "the watermark has passed them")
JOINED = Physical(Joined, "changes of each side with the rows of the other", "the rows of both sides")
ARRIVING = Physical(Joined, "rows of the left side with those of the right side", "the rows of the right side")
FOLDED = Physical(Folded, "folded", "a partial result of each group")
FOLDED_WITH_ROWS = Physical(FoldedWithRows, "folded", "a partial result of each group, and its rows")
TOP = Physical(TopRows, "compared with the top", "all rows, and the top of each partition")
SHORT_TOP = Physical(Keyed, "the touched partitions anew", "the top of each partition", "rows are beyond it")
KEYED = Physical(Keyed, "the touched keys anew", "the rows of its input")

_BY_TIME_ALONE = (OVER.make, MATCH.make, SORTED.make, TEMPORAL.make, STAMPED.make)
"""What makes operators whose state no watermark of ``freeing`` ends."""


def physical(node: Node, storage: Storage, *, paged: bool = False) -> Physical:
    """Return how a node runs; ``paged`` on Spark, where its state is in pages by key."""
    if isinstance(node, Over):
        return CLOSING_OVER if node.closes else KEYED if runs_keyed(node, storage) else OVER
    if isinstance(node, Join):
        return ARRIVING if node.by_arrival else JOINED
    if isinstance(node, Aggregate) and folds(node):
        return FOLDED
    if isinstance(node, Aggregate) and folds_with_rows(node) and not paged:
        return FOLDED_WITH_ROWS
    if isinstance(node, TopN) and keeps_top(node) and not paged:
        return TOP
    if isinstance(node, TopN) and node.input.append_only and node.limit is not None:
        return SHORT_TOP
    if isinstance(node, ClockStamp) and node.append_only:
        return Physical(STAMPED.make, STAMPED.engine)
    found = {Values: CONSTANT, Match: MATCH, TemporalFilter: TEMPORAL, ClockStamp: STAMPED, CloseSort: SORTED}.get(type(node))
    return found or (ALONE if isinstance(node, LINEAR) else KEYED)


def physical_lines(
    node: Node, storage: Storage, *, paged: bool = False, depth: int = 0, size: Callable[[Node], str] = lambda node: ""
) -> list[str]:
    """Return a plan as lines, inputs indented, each node with how it runs, and the ``size`` of its state."""
    indent, detail = "  " * depth, f": {node.detail}" if node.detail else ""
    said = physical(node, storage, paged=paged).text(node)
    runs = [f"{indent}  [{said}{f'; {now}' if (now := size(node)) else ''}]"] if said else []
    lines = [f"{indent}{node.label}{detail}", *runs]
    for source in node.inputs:
        lines += physical_lines(source, storage, paged=paged, depth=depth + 1, size=size)
    return lines
