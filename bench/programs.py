"""Programs: what is computed, as values that travel to the systems as JSON.

No dependencies: every peer's environment reads this.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SECOND = 1_000_000
DELAY_SECONDS = 2
"""Bids come at most that late; watermarks stay that far behind."""
TEXT_KEY = "user "
"""The prefix of the number of a key, where keys are texts."""


@dataclass(frozen=True)
class Program:
    """count, sum and max of ``price`` by key and window; or a call over earlier rows.

    Args:
        kind: ``tumbling``, ``sliding``, ``session``, ``over``, ``lag`` or ``sql``.
        size: length of a window, or the gap of a session, in seconds.
        slide: distance of sliding windows in seconds.
        preceding: number of rows before the current one in an OVER frame.
        delay: how far behind the watermark stays, in seconds.
        view: of ``sql``, the name of the view in ``sql_views``; of rows like users', the name of the case.
        text_keys: whether keys are texts: ``TEXT_KEY`` and the number.
    """

    kind: str
    size: int = 0
    slide: int = 0
    preceding: int = 0
    delay: int = DELAY_SECONDS
    view: str = ""
    text_keys: bool = False

    @property
    def key(self) -> str:
        """The column that OVER windows are partitioned by."""
        return "name" if self.text_keys else "k"


@dataclass(frozen=True)
class Task:
    """One run of one system.

    Args:
        program: what to compute.
        keys: number of distinct keys in the input.
        files: input files in order.
        format: ``parquet`` (k, price, ts) or ``csv`` (k, price, milliseconds).
        file_rows: rows in each.
        work: an empty folder for checkpoints and outputs.
        emit: ``update`` or ``close`` for OVER programs.
        batch_files: how many files make a micro-batch, where the system has such.
        closed_ms: results count that end at or before this time, in milliseconds; ``None`` for all.
    """

    program: Program
    keys: int
    files: tuple[str, ...]
    format: str
    file_rows: tuple[int, ...]
    work: str
    emit: str = ""
    batch_files: int = 1
    closed_ms: int | None = None

    @property
    def rows(self) -> int:
        """Rows in all files."""
        return sum(self.file_rows)

    def batch_rows(self, number: int) -> int:
        """Return the rows of a micro-batch, counted from 0."""
        return sum(self.file_rows[number * self.batch_files : (number + 1) * self.batch_files])

    def to_json(self) -> dict[str, Any]:
        """Return the task as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, held: dict[str, Any]) -> Task:
        """Return the task that ``to_json`` wrote."""
        lists = {name: tuple(held[name]) for name in ("files", "file_rows")}
        return cls(**{**held, **lists, "program": Program(**held["program"])})


CHECK = "(k * 1000003 + {end} * 7919 + n * 104729 + s * 31 + m) % 2147483647"
"""The checksum of a result row, as SQL and as numpy read it: k, end of the window in milliseconds, count, sum, max."""
