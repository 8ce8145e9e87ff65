"""The sort buffer: rows wait until the watermark has passed them and leave in order of time.

Entry layout: time (8 bytes, in numeric order) | identity -> the pickled row. Who may mutate: the operator of the bucket.
Recovery: none, the entries are all there is. Source: RisingWave's EowcSort; its watermark w releases rows below w, this one
rows at or below.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windowpane.errors import InconsistentChangeError
from windowpane.operators.over.consolidation import Report
from windowpane.state.codec import encode_int64, encode_key
from windowpane.state.entries import Entries
from windowpane.windowing.outputs import APPEARING, Row
from windowpane.windowing.times import MIN


@dataclass
class SortBuffer:
    entries: Entries
    identity: Callable[[Row], tuple[Any, ...]]
    order: Callable[[Row], Any]
    report: Report

    def change(self, word: str, time: int, row: Row) -> None:
        """Take an entry of a changelog: rows that wait can still be updated and deleted."""
        address = encode_int64(time) + encode_key(self.identity(row))
        is_here = self.entries.get(address) is not None
        if (word in APPEARING) == is_here:
            self.report(InconsistentChangeError(word, row, "it waits already" if is_here else "it does not wait, or no longer"))
        if word in APPEARING:
            self.entries.put(address, pickle.dumps(row, protocol=5))
        else:
            self.entries.delete(address)

    def release(self, watermark: int) -> list[tuple[int, Row]]:
        due = list(self.entries.scan(encode_int64(MIN), encode_int64(watermark) + b"\xff"))
        released = [(_time(address), pickle.loads(row)) for address, row in due]
        for address, _ in due:
            self.entries.delete(address)
        return sorted(released, key=lambda timed: (timed[0], self.order(timed[1])))


def _time(address: bytes) -> int:
    return int.from_bytes(address[:8], "big") - 2**63
