"""The reference of the join by arrival: a left row meets the right row of its key that arrived last, and is emitted at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windowpane.operators.join.held import Arrival, Joined, KeyedRows, Matches

_VERSION = "version"


@dataclass
class ArrivalJoinOperator:
    """One join by arrival on the rows of a bucket."""

    pads: bool
    rows: KeyedRows
    matches: Matches

    def advance(self, watermark: int) -> Iterator[Joined]:
        return iter(())

    def finish(self, watermark: int) -> Iterator[Joined]:
        return iter(())

    def take(self, arrival: Arrival) -> Iterator[Joined]:
        """Take a row of the current key: a right one is the version from now on, a left one meets it."""
        if not arrival.is_left:
            if arrival.meets:
                self.rows.write(_VERSION, [] if arrival.deletes else [arrival.row])
            return
        found = [version for version in self.rows.read(_VERSION) if arrival.meets and self.matches(arrival.row, version)]
        if found or self.pads:
            yield Joined(arrival.row, found[0] if found else None, arrival.time)
