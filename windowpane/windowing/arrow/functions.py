"""Functions of the user's on Arrow tables of many keys at once.

An Arrow aggregate function folds rows into partials as the built-in aggregates do; a window function is given the whole rows of
the firing windows of many keys. Which keys meet in one table is up to the engine, so a result must not depend on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

GROUP = "__group"
"""The column of an Arrow aggregate function's tables that numbers the groups, from 0."""


class ArrowAggregateFunction(ABC):
    """Aggregates the rows of many keys and windows at once, on Arrow tables.

    A group is a key in a window, or a part of one; the int64 column ``__group`` (``GROUP``) numbers the groups of a table from 0.
    ``partial`` folds rows into partials, ``merge`` partials into fewer, ``finish`` makes results of them. Merging the partials of
    any parts of the rows, in any order, must give what ``partial`` gives of all rows: parts are folded before the shuffle, and
    slices are shared by windows. Partials are Arrow columns of any types, the same ones every time; a table has a row at least.

    Example:
        >>> class WeightedMean(ArrowAggregateFunction):
        ...     def partial(self, rows):
        ...         product = pc.multiply(rows["x"], rows["w"])
        ...         return self.merge(pa.table({GROUP: rows[GROUP], "xw": product, "w": rows["w"]}))
        ...     def merge(self, partials):
        ...         sums = partials.group_by(GROUP).aggregate([("xw", "sum"), ("w", "sum")])
        ...         return sums.rename_columns([GROUP, "xw", "w"])
        ...     def finish(self, partials):
        ...         return pa.table({"mean": pc.divide(partials["xw"], partials["w"])})
    """

    @abstractmethod
    def partial(self, rows: pa.Table) -> pa.Table:
        """Return partials, one row for each value of ``__group`` in ``rows``, in any order; with that column."""

    @abstractmethod
    def merge(self, partials: pa.Table) -> pa.Table:
        """Return partials of the same columns, one row for each value of ``__group``, in any order."""

    @abstractmethod
    def finish(self, partials: pa.Table) -> pa.Table:
        """Return the declared result columns, one row for each row of ``partials``, in their order."""


@dataclass(frozen=True)
class ArrowWindowFunction:
    """A function from the rows of firing windows to result rows, both Arrow tables of many keys.

    Args:
        function: takes and returns a table.
        kind: the method that the user called, ``"apply_in_arrow"`` or ``"apply_in_pandas"``.
    """

    function: Callable[[pa.Table], pa.Table]
    kind: str


@dataclass(frozen=True)
class InPandas:
    """A function on pandas DataFrames as one on Arrow tables."""

    function: Callable[[Any], Any]

    def __call__(self, rows: pa.Table) -> pa.Table:
        return pa.Table.from_pandas(self.function(rows.to_pandas()), preserve_index=False)
