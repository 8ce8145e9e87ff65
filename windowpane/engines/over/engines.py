"""The engines of OVER windows by name: which of them run a program, and what makes them."""

from __future__ import annotations

from collections.abc import Callable

from windowpane.engines.over import eowc, general
from windowpane.engines.over.eowc import OverCloseEngine
from windowpane.engines.over.general import OverUpdateEngine
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.protocol import Engine
from windowpane.kernels.over.calls import call_kernel


def columnar_name(program: OverProgram) -> str:
    """Return the name of the columnar engine for the mode of a program."""
    return _columnar(program).name


def _columnar(program: OverProgram) -> type[OverCloseEngine] | type[OverUpdateEngine]:
    return OverCloseEngine if program.mode is Emit.CLOSE else OverUpdateEngine


def columnar_refusal(program: OverProgram) -> str | None:
    """Return why the columnar engine cannot run a program, ``None`` if it can."""
    return eowc.refusal(program) if program.mode is Emit.CLOSE else general.refusal(program)


def columnar_engine(program: OverProgram) -> Engine:
    """Return the columnar engine for a program that it does not refuse."""
    return _columnar(program)(program)


def columnar_calls(program: OverProgram) -> str:
    """Return, for people, which calls run on from counters and which are folded row by row."""
    kernels = [call_kernel(call, program.columns) for call in program.spec.calls]
    running = [str(kernel.call) for kernel in kernels if kernel.is_running]
    folded = [str(kernel.call) for kernel in kernels if kernel.is_folded]
    parts = [f"{', '.join(running)} from counters of the row before"] if running else []
    parts += [f"{', '.join(folded)} row by row by the aggregate itself"] if folded else []
    return "; ".join(parts) or "every call for all rows at once"


def engine_of(program: OverProgram) -> Callable[[OverProgram], Engine]:
    """Return the class of the engine that the program names: a worker that is sent it imports no other engine."""
    return OverReferenceEngine if program.engine == OverReferenceEngine.name else _columnar(program)
