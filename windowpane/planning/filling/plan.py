"""Plans of filling: the arguments of ``fill_gaps``, as a frozen value that checks and explains itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from windowpane.arrays.values import Value
from windowpane.engines.filling.program import FillingProgram
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import PREFIX
from windowpane.planning.settings import plan_text
from windowpane.windowing.times import format_micros, to_micros

Fill = Literal["null", "previous", "zero"]


@dataclass(frozen=True)
class Windows:
    """A number of windows."""

    count: int


Limit = Windows | int | None
"""How far gaps are filled: so many windows, so many microseconds, or without an end."""


def limit_of(until: object) -> Limit:
    """Return what ``until`` says.

    Raises:
        InvalidSpecError: it is nothing, or less.
        InvalidDurationError: it is neither "forever", a number of windows, nor a duration.
    """
    if until == "forever":
        return None
    windows = re.fullmatch(r"\s*(\d+)\s+windows?\s*", until) if isinstance(until, str) else None
    duration: Value = until
    limit = Windows(int(windows[1])) if windows else to_micros(duration)
    if (limit.count if isinstance(limit, Windows) else limit) <= 0:
        raise InvalidSpecError(f"until={until!r}: it must be at least one window, such as until='5 windows'.")
    return limit


@dataclass(frozen=True)
class FillingPlan:
    values: Fill | Mapping[str, Value]
    until: Limit
    others: Fill = "null"
    """What columns show that ``values`` has no constant for."""
    event_time: str | None = None
    allowed_lateness: int = 0
    engine: str | None = None
    retracts = False
    uses_processing_time = False

    def __post_init__(self) -> None:
        for name, word in (("values", self.values), ("others", self.others)):
            if isinstance(word, str) and word not in get_args(Fill):
                raise InvalidSpecError(
                    f"fill_gaps {name}={word!r}: it is 'null', 'previous' or 'zero'; constants are given by column, "
                    "fill_gaps({'n': 0}, until=...)."
                )

    def windows(self, size: int, step: int) -> int | None:
        """Return how many windows are filled behind one with rows.

        Raises:
            InvalidSpecError: none, since the next one ends later.
        """
        if self.until is None or isinstance(self.until, Windows):
            return None if self.until is None else self.until.count
        if self.until < step:
            raise InvalidSpecError(
                f"until={format_micros(self.until)}: the next window ends {format_micros(step)} later, so none would be filled."
            )
        return self.until // step

    def explain(self, program: FillingProgram, state: str, buckets: str) -> str:
        filled = [f"{name.removeprefix(PREFIX)} of the result before" for name in program.previous]
        filled += [f"{name.removeprefix(PREFIX)} = {value!r}" for name, value in program.constants]
        last = "the last of these windows is over" if program.limit is not None else "never: each key that was ever seen"
        lines = {
            "key": ", ".join(program.keys) or "none: one window space, one bucket",
            "windows": f"of {format_micros(program.size)}, one every {format_micros(program.step)}",
            "filled": "; ".join([*filled, "all others NULL"]),
            "until": "forever" if program.limit is None else f"{program.limit} windows behind the last one with rows",
            "lateness": format_micros(program.allowed_lateness),
            "state": f"{state}; the end: {last}",
            "buckets": buckets if program.keys else "1 bucket",
            "engine": f"{program.engine}: {program.engine_reason}",
        }
        return plan_text("Filled gaps of windows", lines)
