"""What is printed: each failing id with expected against got, skips by reason, and the last line with the counts.

Where the planner chose engines, the line before it has the share of programs of built-in parts that it put on columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from verify.conformance.reading.built_in import has_built_in_parts
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Verdict

Print = Callable[[str], None]

MAX_DIFFERENCES = 5


def report(verdicts: Iterable[tuple[Case, Verdict]], line: Print, shows_share: bool = False) -> int:
    """Print failures as they come and the summary at the end; return how many cases failed.

    Args:
        verdicts: the cases and what became of them.
        line: prints a line.
        shows_share: whether to print how many of the programs made of built-in parts ran on a columnar engine.
    """
    passed = failed = on_columns = on_rows = 0
    reasons: Counter[str] = Counter()
    for case, verdict in verdicts:
        passed += verdict.passed
        failed += verdict.failed
        if has_built_in_parts(case):
            on_columns += verdict.skipped is None
            on_rows += verdict.left_to_rows
        if verdict.skipped is not None:
            reasons[verdict.skipped] += 1
        if verdict.failed:
            _print_failure(case, verdict.differences, line)
    for reason, count in sorted(reasons.items()):
        line(f"skipped {count}: {reason}")
    if shows_share and on_columns + on_rows:
        share = 100 * on_columns / (on_columns + on_rows)
        line(f"programs of built-in parts: {on_columns} of {on_columns + on_rows} on a columnar engine ({share:.1f} %)")
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
