"""Grouped fold: rows -> one row of partials a group -> fewer rows of partials -> results, each step one pass of group_by.

Invariant: a table of partials has the group columns, then every partial column of every aggregate, normalised; folding rows in
any number of parts and merging gives what folding them at once does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from windowpane.kernels.partial_aggregates import ColumnarAggregate, Partial


@dataclass(frozen=True)
class GroupedFold:
    """Several aggregates over the same groups."""

    aggregates: tuple[ColumnarAggregate, ...]

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The partial columns of all aggregates."""
        return tuple(chain.from_iterable(aggregate.partials for aggregate in self.aggregates))

    def fold(self, rows: pa.Table, groups: Sequence[str], counted: str | None = None) -> pa.Table:
        """Return the partials of ``rows`` by the columns ``groups``, with their number in the column ``counted`` if asked."""
        columns = {name: rows[name] for name in groups}
        for aggregate in self.aggregates:
            columns |= aggregate.prepare(rows)
        steps = [([], "count_all") if p.fold == "count_all" else (p.name, p.fold) for p in self.partials]
        extra = [] if counted is None else [counted]
        return self._grouped(pa.table(columns), groups, [*steps, *[([], "count_all") for _ in extra]], extra)

    def merge(self, partials: Sequence[pa.Table], groups: Sequence[str], kept: Sequence[tuple[str, str]] = ()) -> pa.Table:
        """Return the partials of all tables together; ``kept`` are further columns, each with the kernel it merges by."""
        steps = [(p.name, p.merge) for p in self.partials]
        return self._grouped(pa.concat_tables(partials), groups, [*steps, *kept], [name for name, _ in kept])

    def _grouped(
        self, table: pa.Table, groups: Sequence[str], steps: Sequence[tuple[object, str]], kept: Sequence[str] = ()
    ) -> pa.Table:
        grouped = table.group_by(list(groups), use_threads=False).aggregate(list(steps))
        names = [*groups, *(partial.name for partial in self.partials), *kept]
        grouped = grouped.rename_columns(names)  # Arrow puts the groups first, then the steps in their order
        for aggregate in self.aggregates:
            grouped = aggregate.normalise(grouped)
        return grouped.combine_chunks()

    def finish(self, partials: pa.Table) -> list[pa.Array]:
        """Return the results, one array an aggregate."""
        return [aggregate.finish(partials) for aggregate in self.aggregates]
