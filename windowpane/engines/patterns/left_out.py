"""Rows that no variable of a pattern takes: where these are passed over anyway, they are left out before they cost something.

It is decided by a program alone, ``PatternProgram.leaves_rows_out``: all rows of a match are looked for by themselves, as in
``a -> b -> !c``, and conditions and measures ask nothing of rows beside. Where late rows are an output, these stay; where they
are not, only those are counted that some variable takes.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Mask
from windowpane.arrays.columns import flat
from windowpane.engines.combiner import Combiner, Folding
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.program import Upstream
from windowpane.errors import MistakeError
from windowpane.hidden_columns import TIME
from windowpane.kernels.conditions import holds
from windowpane.windowing.expressions import Expression
from windowpane.windowing.patterns.values import Moved, Picked
from windowpane.windowing.times import MIN


def combiner(program: PatternProgram) -> Combiner:
    """Return what leaves rows out before the shuffle."""
    punctual = partial(_are_punctual, program) if program.has_late_output else None
    return Combiner(partial(without_others, program), _piecewise, is_ordered=True, punctual=punctual, keeps_rows=True)


def refusal(program: PatternProgram) -> str | None:
    """Return why all rows of a program are sent, ``None`` if some may be left out."""
    if program.upstream is not Upstream.SOURCE:
        return "rows of an earlier window are late one by one"
    return None if program.leaves_rows_out else "a row that no variable takes may change a result"


def without_others(program: PatternProgram, rows: pa.Table) -> pa.Table:
    """Return the rows that some variable takes, and those without a time, which are refused."""
    found = pc.is_null(flat(rows[TIME])).to_numpy(zero_copy_only=False)

    def column(leaf: Expression) -> pa.Array:
        leaf = leaf.of if isinstance(leaf, Moved) else leaf
        if not isinstance(leaf, Picked):
            raise MistakeError(f"{leaf!r} is of a match")
        return flat(rows[leaf.column])

    for condition in program.spec.conditions.values():
        found = found | holds(condition, column, rows.num_rows).to_numpy(zero_copy_only=False)
    return rows if found.all() else rows.filter(pa.array(found))


def _are_punctual(program: PatternProgram, rows: pa.Table, watermark: int) -> Mask:
    punctual: Mask = pc.fill_null(flat(rows[TIME]), MIN).to_numpy() > program.known(watermark)
    return punctual


def _piecewise(rows: pa.Table) -> Folding:
    return Folding.PIECEWISE
