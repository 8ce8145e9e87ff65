"""What RisingWave's operator kinds have in common: changes in, changes and watermarks out, compared since the last ``expect``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.sql_values import Schema, watermark_pair
from verify.conformance.replay.comparison import frozen
from verify.conformance.replay.verdicts import Difference
from windowpane.arrays.values import Row

EXPECT = {"expect_changes", "expect_watermark", "expect_watermarks"}
_ORDERS = ("exact", "any")


class Changelog:
    """What an operator emitted since the last expectation."""

    def __init__(self, schema: Schema, columns: list[str]) -> None:
        """Read expected rows by ``schema``, in the order of ``columns``."""
        self._schema = schema
        self._columns = columns
        self.changes: list[tuple[str, Row]] = []
        self.watermarks: list[tuple[str, Any]] = []

    def compare(self, step: Json, where: str) -> list[Difference]:
        """Return how an expect step differs from what was emitted, and forget that.

        The order inside a chunk is RisingWave's own: changes are compared as a multiset. Watermarks are in order.
        """
        require_known(step, {*EXPECT, "order"}, "expect step")
        if step.get("order", "any") not in _ORDERS:
            raise NotUnderstoodError(f"order {step['order']!r} is not understood")
        differences = []
        if "expect_changes" in step:
            expected = self._schema.changes(step["expect_changes"], self._columns)
            if _multiset(expected) != _multiset(self.changes):
                differences.append(Difference(f"{where} expect_changes", expected, self.changes))
        if "expect_watermarks" in step:
            pairs = [watermark_pair(pair, self._schema) for pair in step["expect_watermarks"]]
            if pairs != self.watermarks:
                differences.append(Difference(f"{where} expect_watermarks", pairs, self.watermarks))
        if "expect_watermark" in step:
            differences += self._compare_last(step["expect_watermark"], where)
        self.changes, self.watermarks = [], []
        return differences

    def _compare_last(self, expected: Json | None, where: str) -> list[Difference]:
        last = self.watermarks[-1] if self.watermarks else None
        wanted = None if expected is None else watermark_pair(expected, self._schema)
        return [] if last == wanted else [Difference(f"{where} expect_watermark", wanted, last)]


def _multiset(changes: list[tuple[str, Row]]) -> Counter[Any]:
    return Counter(frozen([op, row]) for op, row in changes)
