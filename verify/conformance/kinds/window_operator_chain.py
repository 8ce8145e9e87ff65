"""Kind ``window_operator_chain``: a window over windowed results, of two stages or more.

A result of an operator is an element of the next, with the window's max timestamp, and reaches it at once; a watermark
reaches the next after everything the operator made of it. Two stages have results ``intermediate`` and ``output``, late
elements ``late`` and ``late2``; more have ``stage1``, ``stage2``, ..., ``late_of_1``, ..., ``dropped_by_1``, ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verify.conformance.kinds.window_operator import CASE, OVERFLOW, Operate, Operator, refuse_equal_window, row_operator
from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.comparison import compare_expect
from verify.conformance.replay.verdicts import Difference, MismatchError, Options
from windowpane.errors import TimestampOverflowError, WindowpaneError


def replay(case: Case, options: Options, operator: Operate = row_operator) -> list[Difference]:
    """Run the case on what ``operator`` makes of its programs."""
    require_known(case.body, {*CASE, "chain_n"}, "case")
    refuse_equal_window(case)
    require_known(case.get("program"), {"stages"}, "chain program")
    try:
        return _Chain([operator(stage, options) for stage in case.get("program")["stages"]]).run(case)
    except TimestampOverflowError:
        raise NotUnderstoodError(OVERFLOW) from None
    except MismatchError as mismatch:
        return [mismatch.difference]
    except WindowpaneError as error:
        return [Difference("run", "no error", error)]


class _Chain:
    def __init__(self, operators: list[Operator]) -> None:
        self._operators = operators
        self._handed_over = [0] * len(operators)

    def run(self, case: Case) -> list[Difference]:
        differences: list[Difference] = []
        for number, step in enumerate(case.get("steps")):
            if "expect" in step:
                require_known(step, {"expect"}, "expect step")
                self._each(lambda operator: operator.settle())
                expect = self._adapted(step["expect"])
                order = case.get("contents_order", "exact")
                differences += compare_expect(expect, self._reader(expect), f"step {number}", order)
                self._mark()
            else:
                self._act(step)
        return differences

    def _act(self, step: Json) -> None:
        if step.get("ignored", False):
            return
        if set(step) == {"element"}:
            self._operators[0].element(step["element"])
            self._each(lambda operator: None)
        elif set(step) <= {"watermark", "ignored"}:
            self._each(lambda operator: operator.watermark(step["watermark"]))
        elif set(step) == {"processing_time"}:
            self._each(lambda operator: operator.processing_time(step["processing_time"]))
        elif set(step) == {"snapshot_restore"}:
            self._each(lambda operator: operator.snapshot_restore())
        else:
            raise NotUnderstoodError(f"chain step {sorted(step)} is not understood")

    def _each(self, work: Callable[[Operator], None]) -> None:
        """Do the work of each operator, the first one's first: its results are elements of the second before that works."""
        for number, operator in enumerate(self._operators):
            work(operator)
            records, handed_over = operator.results, self._handed_over[number]
            self._handed_over[number] = len(records)
            for after in self._operators[number + 1 : number + 2]:
                for record in records[handed_over:]:
                    row = record.value
                    after.element({"key": row["key"], "value": row["value"], "ts": record.timestamp})

    def _mark(self) -> None:
        for operator in self._operators:
            operator.mark()
        self._handed_over = [0] * len(self._operators)

    def _adapted(self, expect: Json) -> Json:
        *earlier, last = self._operators
        for number, operator in enumerate(earlier, start=1):
            for field in (f"stage{number}", *(("intermediate",) if number == 1 else ())):
                adapted = operator.adapted(expect, field)
                if adapted.get(field) != expect.get(field):
                    raise NotUnderstoodError(
                        "a window before another one gives the last refinement of a batch, Flink's gives each"
                    )
        return last.adapted(expect)

    def _reader(self, expect: Json) -> Any:
        first, last = self._operators[0], self._operators[-1]
        readers = {
            "output": last.output,
            "watermarks": last.watermarks,
            "late": first.late,
            "late2": last.late,
            "intermediate": first.output,
            "late_records_dropped": first.late_records_dropped,
            "late_records_dropped2": last.late_records_dropped,
            "function_clears": last.function_clears,
        }
        for number, operator in enumerate(self._operators, start=1):
            readers[f"stage{number}"] = operator.output
            readers[f"late_of_{number}"] = operator.late
            readers[f"dropped_by_{number}"] = operator.late_records_dropped

        def read(field: str) -> Any:
            if field not in readers:
                raise NotUnderstoodError(f"expect field {field!r} of a chain is not understood")
            return readers[field]()

        return read
