"""Kind ``window_operator_chain``: a window over windowed results.

A result of the first operator is an element of the second, with the window's max timestamp, and reaches it at once; a watermark
reaches the second after everything the first made of it.
"""

from __future__ import annotations

from typing import Any

from windowpane.errors import TimestampOverflowError, WindowpaneError
from windowpane.testing.conformance.kinds.window_operator import (
    CASE,
    OVERFLOW,
    Operate,
    Operator,
    refuse_equal_window,
    row_operator,
)
from windowpane.testing.conformance.reading.fields import Json, NotUnderstoodError, require_known
from windowpane.testing.conformance.reading.vectors import Case
from windowpane.testing.conformance.replay.comparison import compare_expect
from windowpane.testing.conformance.replay.verdicts import Difference, MismatchError, Options


def replay(case: Case, options: Options, operator: Operate = row_operator) -> list[Difference]:
    """Run the case on what ``operator`` makes of its two programs."""
    require_known(case.body, CASE, "case")
    refuse_equal_window(case)
    require_known(case.get("program"), {"stages"}, "chain program")
    stages = case.get("program")["stages"]
    if len(stages) != 2:
        raise NotUnderstoodError(f"chains of {len(stages)} stages are not understood")
    try:
        first, second = (operator(stage, options) for stage in stages)
        return _Chain(first, second).run(case)
    except TimestampOverflowError:
        raise NotUnderstoodError(OVERFLOW) from None
    except MismatchError as mismatch:
        return [mismatch.difference]
    except WindowpaneError as error:
        return [Difference("run", "no error", error)]


class _Chain:
    def __init__(self, first: Operator, second: Operator) -> None:
        self._first = first
        self._second = second
        self._handed_over = 0

    def run(self, case: Case) -> list[Difference]:
        differences: list[Difference] = []
        for number, step in enumerate(case.get("steps")):
            if "expect" in step:
                require_known(step, {"expect"}, "expect step")
                self._settle()
                order = case.get("contents_order", "exact")
                expect = self._second.adapted(self._first.adapted(step["expect"], "intermediate"))
                differences += compare_expect(expect, self._reader(expect), f"step {number}", order)
                self._mark()
            else:
                self._act(step)
        return differences

    def _act(self, step: Json) -> None:
        if step.get("ignored", False):
            return
        if set(step) == {"element"}:
            self._first.element(step["element"])
            self._hand_over()
        elif set(step) <= {"watermark", "ignored"}:
            self._first.watermark(step["watermark"])
            self._hand_over()
            self._second.watermark(step["watermark"])
        elif set(step) == {"processing_time"}:
            self._first.processing_time(step["processing_time"])
            self._hand_over()
            self._second.processing_time(step["processing_time"])
        elif set(step) == {"snapshot_restore"}:
            self._first.snapshot_restore()
            self._second.snapshot_restore()
        else:
            raise NotUnderstoodError(f"chain step {sorted(step)} is not understood")

    def _settle(self) -> None:
        """End the batches that are under way, the first operator's first: its results belong to the second's."""
        self._first.settle()
        self._hand_over()
        self._second.settle()

    def _hand_over(self) -> None:
        for record in self._first.results[self._handed_over :]:
            row = record.value
            self._second.element({"key": row["key"], "value": row["value"], "ts": record.timestamp})
        self._handed_over = len(self._first.results)

    def _mark(self) -> None:
        self._first.mark()
        self._second.mark()
        self._handed_over = 0

    def _reader(self, expect: Json) -> Any:
        readers = {
            "output": self._second.output,
            "watermarks": self._second.watermarks,
            "late": self._first.late,
            "late2": self._second.late,
            "intermediate": self._first.output,
            "late_records_dropped": self._first.late_records_dropped,
            "late_records_dropped2": self._second.late_records_dropped,
            "function_clears": self._second.function_clears,
        }

        def read(field: str) -> Any:
            if field not in readers:
                raise NotUnderstoodError(f"expect field {field!r} of a chain is not understood")
            return readers[field]()

        return read
