"""What became of one random program."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Outcome:
    """One program that was run.

    Args:
        seed: what made the program.
        program: the program as text.
        engine: what ran it beside the reference.
        differences: what differed, as text; empty if nothing did.
    """

    seed: int
    program: str
    engine: str
    differences: list[str] = field(default_factory=list)


def raised(error: Exception) -> str:
    """Return an exception as text, with the places it came through."""
    return "".join(traceback.format_exception(error)).rstrip()
