"""What became of one random program."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from verify.sizes import drawn_sizes


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


def differences_of(seed: int, compare: Callable[[], Iterable[str]], refusals: tuple[type[Exception], ...] = ()) -> list[str]:
    """Return what differs, with the sizes that a seed draws: a program that raises, or warns, is a finding like any other.

    Args:
        seed: of the program.
        compare: gives the differences.
        refusals: what a program may raise here, because it is compared elsewhere.
    """
    try:
        with drawn_sizes(seed), warnings.catch_warnings():
            warnings.simplefilter("error")
            return list(compare())
    except refusals:
        return []
    except Exception as error:
        return [raised(error)]
