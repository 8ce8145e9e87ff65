"""Which engine runs a program: chosen once, and kept with its reason in the program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from windowpane.engines.over.program import OverProgram
from windowpane.engines.program import Program
from windowpane.engines.protocol import Engine
from windowpane.engines.registry import engines_for
from windowpane.engines.spec import choose, named

P = TypeVar("P", Program, OverProgram)


def with_engine(program: P, wanted: str | None = None) -> P:
    """Return the program with the fastest engine that covers it exactly, or the one that is asked for.

    Raises:
        InvalidSpecError: the engine asked for cannot run the program, or there is none of that name.
    """
    choice = choose(engines_for(program), program, wanted)
    return dataclasses.replace(program, engine=choice.engine.name, engine_reason=choice.reason)


def engine_of(program: P) -> Callable[[P], Engine]:
    """Return the class of the engine that runs ``program``: a worker that is sent it imports no other engine."""
    return named(engines_for(program), program.engine).make


def make_engine(program: Any) -> Engine:
    """Return the engine that runs ``program``."""
    return engine_of(program)(program)


def state_text(program: Any) -> str:
    """Return what the state of a program's engine is, for people."""
    return named(engines_for(program), program.engine).state
