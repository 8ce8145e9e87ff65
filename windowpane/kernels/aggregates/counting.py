"""count: rows, or values that are not null. Partial: that number."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.kernels.aggregates.protocol import KernelAggregate, Partial


class Count(KernelAggregate):
    """Rows, or values that are not null."""

    takes_codes = True

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}n", "count" if self.slots else "count_all", "sum"),)

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        return super().prepare(rows) if self.slots else {}

    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.fill_null(partials[f"{self.prefix}n"], 0).combine_chunks()
