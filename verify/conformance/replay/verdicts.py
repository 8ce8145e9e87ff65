"""What a replayed case comes to: passed, failed with differences, or skipped for a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Difference:
    """One expectation that was not met; ``where`` names the step and the field."""

    where: str
    expected: Any
    got: Any


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case: skipped if there is a reason, else failed if there are differences, else passed.

    Args:
        differences: what differed.
        skipped: why it was not replayed.
        left_to_rows: whether that is since the planner leaves the program to rows.
    """

    differences: list[Difference] = field(default_factory=list)
    skipped: str | None = None
    left_to_rows: bool = False

    @property
    def failed(self) -> bool:
        """Whether something differed."""
        return self.skipped is None and bool(self.differences)

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return self.skipped is None and not self.differences


@dataclass(frozen=True)
class Options:
    """How to replay.

    Args:
        restart: whether to take a snapshot after every step and to continue with what is restored from it.
        batches_steps: whether all elements between two steps of a clock are one batch. A batch also ends where the case looks.
    """

    restart: bool = False
    batches_steps: bool = False


class MismatchError(Exception):
    """Something outside an ``expect`` step is not as the case says; the case fails with this difference."""

    def __init__(self, where: str, expected: Any, got: Any) -> None:
        """Say where, what the case says, and what is."""
        super().__init__(f"{where}: expected {expected!r}, got {got!r}")
        self.difference = Difference(where, expected, got)
