"""What is printed: each failing id with expected against got, skips by reason, and the last line with the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from windowpane.testing.conformance.reading.vectors import Case
from windowpane.testing.conformance.replay.verdicts import Difference, Verdict

Print = Callable[[str], None]

MAX_DIFFERENCES = 5


def report(verdicts: Iterable[tuple[Case, Verdict]], line: Print) -> int:
    """Print failures as they come and the summary at the end; return how many cases failed."""
    passed = failed = 0
    reasons: Counter[str] = Counter()
    for case, verdict in verdicts:
        passed += verdict.passed
        failed += verdict.failed
        if verdict.skipped is not None:
            reasons[verdict.skipped] += 1
        if verdict.failed:
            _print_failure(case, verdict.differences, line)
    for reason, count in sorted(reasons.items()):
        line(f"skipped {count}: {reason}")
    line(f"{passed} passed, {failed} failed, {sum(reasons.values())} skipped")
    return failed


def _print_failure(case: Case, differences: list[Difference], line: Print) -> None:
    line(f"FAILED {case.id} ({case.kind}, {case.file.name})")
    for difference in differences[:MAX_DIFFERENCES]:
        line(f"  {difference.where}")
        line(f"    expected {difference.expected}")
        line(f"    got      {_shown(difference.got)}")
    if len(differences) > MAX_DIFFERENCES:
        line(f"  ... and {len(differences) - MAX_DIFFERENCES} more differences")


def _shown(got: object) -> str:
    return f"{type(got).__name__}: {got}" if isinstance(got, Exception) else str(got)
