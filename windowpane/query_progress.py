"""Progress: what the operators of a streaming query have counted, in one form on classic Spark and on Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowpane.malformed import MalformedRow


@dataclass(frozen=True)
class Progress(Mapping[str, Any]):
    """The counters of a query: a mapping by the name of the counter, of all its operators together.

    Attributes:
        operators: the same by the name of each operator, as ``wp.stream(..., name=...)`` gives it.
        malformed: some of the rows of its sources that could not be read, each with source, position, column, value and reason;
            the counter ``malformed`` says how many there are.
    """

    operators: Mapping[str, Mapping[str, Any]]
    malformed: Sequence[MalformedRow] = ()

    def __getitem__(self, counter: str) -> Any:
        found = [counters[counter] for counters in self.operators.values() if counter in counters]
        if not found:
            raise KeyError(counter)
        return sum(found) if all(isinstance(each, int) for each in found) else found[0]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(counter for counters in self.operators.values() for counter in counters))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"Progress({dict(self)})"


def progress(query: Any) -> Progress:
    """Return what the operators of a streaming query have counted so far, each with every counter.

    What counts rows and firings is added up over the batches of this run. Spark remembers the last 100 of them
    (``spark.sql.streaming.numRecentProgressUpdates``), and a query remembers what an earlier call has seen. What has a size
    (``open_windows``, ``state_bytes``) is that of the last batch. Before the first batch, and while no rows come, all counters
    are there as well.

    Args:
        query: a ``StreamingQuery`` of ``result.start(...)`` or of ``result.df.writeStream``, running or ended, classic or
            Connect; or the progress of one batch, as of ``query.recentProgress`` or a ``StreamingQueryListener``.

    Returns:
        The counters, see ``Progress``. A query without an operator of windowpane's has none.

    Example:
        >>> late = wp.progress(query)["late_dropped"]
        >>> firings = wp.progress(query).operators["windowpane"]["firings"]
        >>> reasons = [row.reason for row in wp.progress(query).malformed]
    """
    from windowpane.spark.queries.counted import counted

    found = counted(query)
    malformed = [row for counters in found.values() for row in counters.pop("malformed_rows", ())]
    return Progress(found, malformed)
