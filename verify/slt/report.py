"""What is printed: each wrong record and crash, refusals by reason, and the last line with the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from verify.slt.runner import Kind, Outcome

Print = Callable[[str], None]


def report(outcomes: Iterable[Outcome], line: Print, *, refused: bool = False) -> int:
    """Print failures as they come and the summary at the end; return how many records failed.

    Args:
        outcomes: of the records.
        line: prints a line.
        refused: whether each refused record is printed, too.
    """
    counts: Counter[Kind] = Counter()
    reasons: Counter[str] = Counter()
    for outcome in outcomes:
        counts[outcome.kind] += 1
        if outcome.kind == Kind.REFUSED:
            reasons[outcome.reason] += 1
            if refused:
                line(f"refused {outcome.place}: {outcome.reason}\n{_indented(outcome.text)}")
        elif outcome.kind != Kind.PASSED:
            _print_failure(outcome, line)
    for reason, count in reasons.most_common():
        line(f"refused {count}: {reason}")
    failed = counts[Kind.WRONG] + counts[Kind.CRASHED]
    line(f"{counts[Kind.PASSED]} passed, {failed} failed, {counts[Kind.REFUSED]} skipped")
    return failed


def _print_failure(outcome: Outcome, line: Print) -> None:
    line(f"{outcome.kind.value} {outcome.place}")
    line(_indented(outcome.text))
    line(f"  expected\n{_indented(outcome.expected)}")
    line(f"  got\n{_indented(outcome.got)}")


def _indented(text: str) -> str:
    return "\n".join(f"    {each}" for each in text.splitlines())
