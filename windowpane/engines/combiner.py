"""The combiner: what folds rows on their side of the shuffle, and when that pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa


class Folding(Enum):
    """How the rows of a task are best folded."""

    PIECEWISE = "piecewise"
    """As they come: a piece leaves so few partials that folding more at once saves nothing."""
    TOGETHER = "together"
    """Many at once."""
    NOT = "not"
    """Hardly any two rows fold into one: send them as they are."""


def always_together(rows: pa.Table) -> Folding:
    """Return the folding of an engine that looks at the rows itself."""
    return Folding.TOGETHER


@dataclass(frozen=True)
class Combiner:
    """Folds rows before the shuffle.

    Args:
        fold: rows -> partials, or the rows themselves where it finds nothing to fold; the engine takes either.
        folding: the first rows of a task -> how to fold it.
    """

    fold: Callable[[pa.Table], pa.Table]
    folding: Callable[[pa.Table], Folding] = always_together

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return the partials of rows."""
        return self.fold(rows)
