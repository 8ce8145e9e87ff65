"""Patterns as regular expressions: of random ones, every attempt is decided as the matcher decides it, waiting ones included."""

from __future__ import annotations

import random

import numpy as np
import pytest

from verify.fuzz.patterns import NAMES, random_end, random_pattern
from windowpane.kernels.patterns.regex import OPENING, UNKNOWN, PatternText, refusal
from windowpane.kernels.patterns.spans import Spans
from windowpane.operators.patterns.matcher import Attempt, UnknownRowError, compile_pattern
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.values import Picked

BITS = {name: bit for bit, name in enumerate(NAMES)}


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns_decide_as_the_matcher_does(seed: int) -> None:
    draw, kinds = random.Random(seed), {"waits": 0, "fails": 0, "matches": 0}
    for _ in range(60):
        pattern = random_end(draw, random_pattern(draw))
        if refusal(pattern, len(NAMES)) is not None:
            continue
        text, steps = PatternText(pattern, BITS), compile_pattern(pattern)
        conditions = {name: Picked("last", None, name) for name in NAMES}
        rows = [draw.choice([1, 2, 4, 8, 3, 6, 5, 0, 9, 15]) for _ in range(draw.randint(1, 12))]
        columns = {name: [bool(row >> bit & 1) for row in rows] for name, bit in BITS.items()}
        for start in range(len(rows)):
            known, is_ended = draw.randint(start + 1, len(rows)), draw.random() < 0.5
            expected: object
            try:
                labels = Attempt(steps, conditions, {}, columns, start, known, is_ended).run()
                expected = None if labels is None else [label.row for label in labels]
            except UnknownRowError:
                expected = "waits"
            ends = b"" if is_ended else b"U\n"
            searched = bytes([OPENING, *(128 | row for row in rows[:known])]) + ends
            found = text.regex.match(searched, start + 1)
            got: object = None
            if found is not None and found.group().endswith(b"U"):
                got = "waits"
            elif found is not None:
                parts = [part for part, is_look in enumerate(text.takes_no_row, start=1) if not is_look]
                got = [place - 1 for part in parts for place in range(*found.span(part))]
            assert got == expected, (seed, str(pattern), rows[:known], start, is_ended)
            if expected is not None:
                assert text.seconds is None or searched[start + 2] in text.seconds
                assert not text.absence or not set(text.absence[0]) & set(searched[start + 1 + text.absence[1] :])
            kinds["waits" if got == "waits" else "fails" if got is None else "matches"] += 1
    assert min(kinds.values()) > 20


@pytest.mark.parametrize(
    ("text", "names", "absence"),
    [
        ("a b+ c", "b", None),
        ("a{3} b", "a", None),
        ("a{2,}? b", "a", None),
        ("(a | b c) a", "ac", None),
        ("a b? c", "bc", None),
        ("a+ | b c", None, None),  # a match may have one row
        ("a -> b", None, None),  # any row may be passed over
        ("a b $", "b", None),
        ("a -> !b", None, ("b", 1)),
        ("a b? -> !c -> !b", None, ("cb", 2)),
        ("a+ -> !b", None, None),  # no row is for certain behind the last a
    ],
)
def test_what_stands_behind_the_first_row_of_a_match(text: str, names: str | None, absence: tuple[str, int] | None) -> None:
    def taken(by: str) -> set[int]:
        return {row for row in range(128, 256) if any(row >> "abc".index(name) & 1 for name in by)}

    written = PatternText(parse_pattern(text), {"a": 0, "b": 1, "c": 2})
    seconds = None if written.seconds is None else set(written.seconds)
    assert seconds == (None if names is None else {UNKNOWN, *taken(names)})
    found = None if written.absence is None else (set(written.absence[0]), written.absence[1])
    assert found == (None if absence is None else (taken(absence[0]), absence[1]))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a*", "a match may have no row"),
        ("(a | b)+", "a loop over a choice or a loop could be searched for ever"),
        ("(a+)+ b", "a loop over a choice or a loop could be searched for ever"),
        ("(a b)+ c", None),
        ("PERMUTE(a, b, c, d, e)", None),
        ("PERMUTE(a, b, c, d, e, f)", "its orders have more than 1,000 variables"),
    ],
)
def test_what_is_left_to_the_matcher(text: str, reason: str | None) -> None:
    assert refusal(parse_pattern(text), 3) == reason
    assert refusal(parse_pattern("a b"), 8) == "it has more than 7 conditions"


def test_rows_of_spans_are_counted_through_their_parts() -> None:
    # Two matches of a b+ a: rows 0 | 1 2 3 | 4, and 7 | 8 | 9.
    spans = Spans(np.array([[0, 1, 4], [7, 8, 9]]), np.array([[1, 4, 5], [8, 9, 10]]), ("a", "b", "a"))

    assert spans.counts(None).tolist() == [5, 3]
    assert spans.counts({"a"}).tolist() == [2, 2]
    assert [spans.rows(True, {"b"}, offset).tolist() for offset in range(4)] == [[1, 8], [2, -1], [3, -1], [-1, -1]]
    assert [spans.rows(False, {"a"}, offset).tolist() for offset in range(3)] == [[4, 9], [0, 7], [-1, -1]]
    assert [spans.rows(True, None, offset).tolist() for offset in (0, 4)] == [[0, 7], [4, -1]]
    assert spans.last_parts({"b"}).tolist() == [1, 1]
    assert spans.last_parts({"x"}).tolist() == [-1, -1]
