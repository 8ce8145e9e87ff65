"""The combiner: what folds rows on their side of the shuffle or leaves some out, when that pays, and which must stay whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from windowpane.arrays import Mask
from windowpane.kernels.keys.coded_texts import spelled
from windowpane.windowing.times import MIN


class Folding(Enum):
    """How the rows of a task are best folded."""

    PIECEWISE = "piecewise"
    """Piece by piece: a piece leaves so few partials that folding more at once saves nothing."""
    TOGETHER = "together"
    """Many at once."""
    NOT = "not"
    """Hardly any two rows fold into one: send them as they are."""


def always_together(rows: pa.Table) -> Folding:
    """Return the folding of an engine that looks at the rows itself."""
    return Folding.TOGETHER


@dataclass(frozen=True)
class Combiner:
    """Folds rows before the shuffle."""

    # rows -> partials, or the rows themselves where it finds nothing to fold; the engine takes either
    fold: Callable[[pa.Table], pa.Table]
    folding: Callable[[pa.Table], Folding] = always_together  # the first rows of a task -> how to fold it
    is_ordered: bool = False  # whether ``fold`` needs the columns ``PARTITION`` and ``POSITION``, the order of arrival
    # rows, a watermark -> which of them have missed nothing under it, or under an earlier one; ``None`` where late rows are not
    # asked for, so that any row may fold
    punctual: Callable[[pa.Table, int], Mask] | None = None
    # the columns whose texts ``fold`` and ``folding`` take as ``kernels.keys.coded_texts`` has them, too
    coded: frozenset[str] = frozenset()
    keeps_rows: bool = False  # whether it only leaves rows out: those that stay are rows

    @property
    def needs_numbers(self) -> bool:
        """Whether rows must carry their numbers, be it for ``fold`` or because some stay whole."""
        return self.is_ordered or self.punctual is not None

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return the partials of rows, their texts as texts."""
        return spelled(self.fold(rows))

    def parted(self, rows: pa.Table, watermark: int) -> tuple[pa.Table, pa.Table]:
        """Return the rows that may fold, and those that must stay whole, under a watermark that the rows' own does not pass.

        Those have texts as texts.
        """
        if self.punctual is None or watermark == MIN:
            return rows, spelled(rows.slice(0, 0))
        punctual = self.punctual(rows, watermark)
        if punctual.all():
            return rows, spelled(rows.slice(0, 0))
        return rows.filter(pa.array(punctual)), spelled(rows.filter(pa.array(~punctual)))
