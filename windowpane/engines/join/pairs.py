"""Pairs of rows as an engine finds them: which fulfil the condition, and the table of results that they make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.join.program import JoinProgram, passed_name
from windowpane.errors import MistakeError
from windowpane.kernels.conditions import holds
from windowpane.windowing.expressions import Expression, Side, SideName


def fulfilling(program: JoinProgram, lefts: Integers, rights: Integers, left: pa.Table, right: pa.Table) -> Mask:
    """Return which pairs fulfil the condition of a join."""
    if program.condition is None:
        return np.ones(len(lefts), np.bool_)
    taken: dict[Side, Integers] = {"left": lefts, "right": rights}
    tables: dict[Side, pa.Table] = {"left": left, "right": right}

    def column(name: Expression) -> pa.ChunkedArray:
        if not isinstance(name, SideName):
            raise MistakeError("planning has resolved names")
        return tables[name.side][name.name].take(pa.array(taken[name.side]))

    mask: Mask = holds(program.condition, column, len(lefts)).to_numpy(zero_copy_only=False)
    return mask


def results(program: JoinProgram, left: pa.Table | None, right: pa.Table | None, columns: dict[str, Any], count: int) -> pa.Table:
    """Return results as a table of ``main_schema``.

    Args:
        program: the join.
        left: the left rows, ``None`` to pad them.
        right: the right rows, one beside each left one, ``None`` to pad them.
        columns: the columns that are of no side.
        count: how many results there are.
    """
    found = dict(columns)
    sides: tuple[tuple[Side, pa.Table | None], ...] = (("left", left), ("right", right))
    for side, table in sides:
        of = program.sides[side]
        for name in of.passed:
            values = pa.nulls(count, of.columns.field(name).type) if table is None else table[name]
            found[passed_name(side, name)] = values
    schema = program.main_schema
    return pa.table([found[name] for name in schema.names], schema=schema)
