"""Kind ``refused``: programs that Flink refuses when they are built or run, or that never end.

What matters is that the combination is refused, by the right class of error. windowpane may refuse earlier than Flink does.
"""

from __future__ import annotations

from verify.conformance.engines.row_operator import RowOperator
from verify.conformance.kinds.window_operator import NULL_KEY, OVERFLOW, act
from verify.conformance.reading.fields import NotUnderstoodError, require_known
from verify.conformance.reading.programs import Program, parse_program
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.errors import (
    EndlessTimerError,
    InvalidDurationError,
    InvalidSessionGapError,
    InvalidSpecError,
    MergeBehindWatermarkError,
    MissingTimestampError,
    NonMergingTriggerError,
    PerWindowStateError,
    TimestampOverflowError,
    UserFunctionError,
    WindowpaneError,
    WindowTypeError,
)

_CASE = {
    "id",
    "kind",
    "family",
    "program",
    "steps",
    "refused_at",
    "error_class",
    "message_contains",
    "operator_parallelism",
}
_ERRORS: dict[str, tuple[type[WindowpaneError], ...]] = {
    "java.lang.IllegalArgumentException": (InvalidSpecError, InvalidDurationError, InvalidSessionGapError),
    "java.lang.UnsupportedOperationException": (
        NonMergingTriggerError,
        PerWindowStateError,
        MergeBehindWatermarkError,
        InvalidSpecError,
    ),
    "java.lang.ClassCastException": (WindowTypeError,),
    "java.lang.ArithmeticException": (InvalidSpecError, TimestampOverflowError),
    "java.lang.RuntimeException": (MissingTimestampError, WindowTypeError),
}
"""Java's exception classes, and the refusals of windowpane in their place; others match every refusal."""


def replay(case: Case, options: Options) -> list[Difference]:
    """Build and run the program, and compare where and how it is refused."""
    require_known(case.body, _CASE, "case")
    if "operator_parallelism" in case.body:
        raise NotUnderstoodError("windowpane sets no parallelism for an operator, so there is none to refuse")
    at, error = _refusal(case, options)
    expected = f"refused at {case.get('refused_at')} ({case.get('error_class')}: {case.get('message_contains')})"
    if error is None:
        _skip_ordinary_null_key(case)
        return [Difference("run", expected, "accepted")]
    if isinstance(error, _accepted(case)) and not isinstance(error, UserFunctionError) and _early_enough(case, at):
        return []
    if isinstance(error, TimestampOverflowError):
        raise NotUnderstoodError(OVERFLOW)
    return [Difference(at, expected, error)]


def _accepted(case: Case) -> tuple[type[WindowpaneError], ...]:
    if case.get("refused_at") == "never ends":
        return (EndlessTimerError, InvalidSpecError)
    return _ERRORS.get(str(case.get("error_class")), (WindowpaneError,))


def _early_enough(case: Case, at: str) -> bool:
    if case.get("refused_at") not in ("build", "run", "never ends"):
        raise NotUnderstoodError(f"refused_at {case.get('refused_at')!r} is not understood")
    return at == "build" or case.get("refused_at") != "build"


def _refusal(case: Case, options: Options) -> tuple[str, WindowpaneError | None]:
    try:
        program = parse_program(case.get("program"))
    except WindowpaneError as error:
        return "build", error
    try:
        _run(program, case, options)
    except WindowpaneError as error:
        return "run", error
    return "run", None


def _run(program: Program, case: Case, options: Options) -> None:
    operator = RowOperator(program, options.restart)
    for step in case.get("steps") or []:
        if "expect" not in step and "expect_error" not in step:
            act(operator, step)


def _skip_ordinary_null_key(case: Case) -> None:
    keys = [step["element"].get("key") for step in case.get("steps") or [] if "element" in step]
    if case.get("program").get("keyed", True) and None in keys:
        raise NotUnderstoodError(NULL_KEY)
