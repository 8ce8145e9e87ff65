"""Kind ``window_operator``: one windowed computation and its steps, with each of its evictor variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verify.conformance.engines.engine_operator import EngineOperator
from verify.conformance.engines.engine_programs import row_program
from verify.conformance.engines.row_operator import RowOperator
from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.programs import parse_program
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.comparison import compare_expect
from verify.conformance.replay.verdicts import Difference, MismatchError, Options
from windowpane.errors import (
    InvalidSessionGapError,
    MergeBehindWatermarkError,
    MissingTimestampError,
    NonMergingTriggerError,
    PerWindowStateError,
    TimestampOverflowError,
    UserFunctionError,
    WindowpaneError,
)
from windowpane.windowing.times import MIN

CASE = {
    "id",
    "kind",
    "family",
    "program",
    "steps",
    "comparison",
    "evictor_variants",
    "can_merge",
    "merges_of_several_states",
    "contents_order",
    "input_sorted_by_ts",
}
OVERFLOW = "window bounds that overflow int64 are refused instead of wrapping"
NULL_KEY = "a null key is an ordinary key"

EQUAL_WINDOW = "a new session equal to a live merged one keeps what that holds, where Flink loses it"

Operator = RowOperator | EngineOperator
Operate = Callable[[Json, Options], Operator]
"""Makes an operator of a program."""

_ERRORS: list[tuple[str, type[WindowpaneError]]] = [
    ("per-window state", PerWindowStateError),
    ("merging must not make a window end", MergeBehindWatermarkError),
    ("cannot become earlier", MergeBehindWatermarkError),
    ("cannot merge", NonMergingTriggerError),
    ("does not support merging", NonMergingTriggerError),
    ("timestamp marker", MissingTimestampError),
    ("gap", InvalidSessionGapError),
]
"""Words of an ``expect_error``, and the refusal they mean."""


def row_operator(fields: Json, options: Options) -> Operator:
    """Return the reference operator itself for a program, or with batches an engine of rows around it."""
    if options.batches_steps:
        return EngineOperator(row_program, fields, options)
    return RowOperator(parse_program(fields), options.restart)


def refuse_equal_window(case: Case) -> None:
    """Leave out the cases that were kept to show a fault of Flink's: its merging window set maps such a window to itself.

    Raises:
        NotUnderstoodError: this is one.
    """
    if case.get("family") == "session_equal_window":
        raise NotUnderstoodError(EQUAL_WINDOW)


def replay(case: Case, options: Options, operator: Operate = row_operator) -> list[Difference]:
    """Run the case, once for each evictor variant, on what ``operator`` makes of its program."""
    require_known(case.body, CASE, "case")
    refuse_equal_window(case)
    differences: list[Difference] = []
    for number, evictor in enumerate(case.get("evictor_variants", [case.get("program").get("evictor")])):
        found = _Replay(case, {**case.get("program"), "evictor": evictor}, options, operator).run()
        label = "" if number == 0 else f"with evictor {evictor}: "
        differences += [Difference(label + each.where, each.expected, each.got) for each in found]
    return differences


def steps_of(case: Case) -> list[Json]:
    """Return the steps; those of an input that Flink sorts first, as the operator sees them then."""
    steps: list[Json] = case.get("steps") or []
    return _sorted_input(steps) if case.get("input_sorted_by_ts", False) else steps


def _sorted_input(steps: list[Json]) -> list[Json]:
    """Put the elements in order of time, leave one watermark, the last, and one expectation of all results."""
    elements = [step for step in steps if "element" in step]
    watermarks = [step for step in steps if "watermark" in step and not step.get("ignored", False)]
    expects = [step["expect"] for step in steps if "expect" in step]
    rest = [step for step in steps if not step.keys() & {"element", "watermark", "expect"}]
    if rest:
        raise NotUnderstoodError(f"steps of a sorted input are not understood: {rest}")
    elements.sort(key=lambda step: MIN if step["element"]["ts"] is None else int(step["element"]["ts"]))
    results = [record for expect in expects for record in expect.get("output", [])]
    watermarks_seen = [watermark for expect in expects for watermark in expect.get("watermarks", [])]
    final = {**expects[-1], "output": results, "watermarks": watermarks_seen, "order": "any"}
    final.pop("timer_groups", None)
    return [*elements, *watermarks[-1:], {"expect": final}]


class _Replay:
    def __init__(self, case: Case, program: Json, options: Options, operate: Operate) -> None:
        self._case = case
        self._program = program
        self._options = options
        self._operate = operate
        self._steps = steps_of(case)
        self._contents_order = "any" if case.get("input_sorted_by_ts", False) else case.get("contents_order", "exact")
        self._differences: list[Difference] = []

    def run(self) -> list[Difference]:
        try:
            operator = self._operate(self._program, self._options)
        except WindowpaneError as error:
            return self._refused_when_built(error)
        try:
            for number, step in enumerate(self._steps):
                self._step(operator, number, step)
            operator.settle()
        except TimestampOverflowError:
            raise NotUnderstoodError(OVERFLOW) from None
        except MismatchError as mismatch:
            self._differences.append(mismatch.difference)
        return self._differences

    def _refused_when_built(self, error: WindowpaneError) -> list[Difference]:
        wanted = [step["expect_error"] for step in self._steps if "expect_error" in step]
        if not wanted:
            return [Difference("build", "accepted", error)]
        return _compare_error("build", wanted[0], error)

    def _step(self, operator: Operator, number: int, step: Json) -> None:
        where = f"step {number}"
        if "expect" in step:
            require_known(step, {"expect"}, "expect step")
            operator.settle()
            expect = operator.adapted(step["expect"])
            found = compare_expect(expect, lambda field: operator.read(field, expect), where, self._contents_order)
            self._differences += found
            operator.mark()
        elif "expect_error" not in step:
            self._act(operator, number, step)

    def _act(self, operator: Operator, number: int, step: Json) -> None:
        words = next((s["expect_error"] for s in self._steps[number + 1 : number + 2] if "expect_error" in s), None)
        error: WindowpaneError | None = None
        try:
            act(operator, step)
            if words is not None:
                operator.settle()
        except WindowpaneError as raised:
            if words is None:
                if isinstance(raised, TimestampOverflowError):
                    raise
                raise MismatchError(f"step {number} {step}", "no error", raised) from raised
            error = raised
        if words is not None:
            if error is None and operator.keyed and step.get("element", {}).get("key", "") is None:
                raise NotUnderstoodError(NULL_KEY)
            self._differences += _compare_error(f"step {number} {step}", words, error)


def act(operator: Operator, step: Json) -> None:
    """Carry out a step that feeds the operator.

    Raises:
        NotUnderstoodError: a step nobody knows.
        WindowpaneError: what the operator refuses.
    """
    actions: dict[str, Callable[[Any], None]] = {
        "element": operator.element,
        "watermark": operator.watermark,
        "processing_time": operator.processing_time,
        "snapshot_restore": lambda _: operator.snapshot_restore(),
        "set_trigger": operator.set_trigger,
        "build": lambda _: None,
    }
    names = set(step) & set(actions)
    if len(names) != 1:
        raise NotUnderstoodError(f"step {sorted(step)} is not understood")
    name = names.pop()
    require_known(step, {name, "ignored"} if name == "watermark" else {name}, f"{name} step")
    if not step.get("ignored", False):
        actions[name](step[name])


def _compare_error(where: str, words: str, error: WindowpaneError | None) -> list[Difference]:
    wanted = next((kind for fragment, kind in _ERRORS if fragment in words.lower()), WindowpaneError)
    if isinstance(error, wanted) and not isinstance(error, UserFunctionError):
        return []
    return [Difference(where, f"{wanted.__name__} ({words})", error)]
