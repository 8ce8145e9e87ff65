"""Patterns as regular expressions: of random ones, every attempt is decided as the matcher decides it, waiting ones included."""

from __future__ import annotations

import random

import numpy as np
import pytest

from verify.fuzz.patterns import NAMES, random_chain, random_end, random_pattern
from windowpane.kernels.patterns.chains import ways
from windowpane.kernels.patterns.regex import OPENING, UNKNOWN, PatternText, refusal
from windowpane.kernels.patterns.spans import Spans
from windowpane.operators.patterns.matcher import Attempt, UnknownRowError, compile_pattern
from windowpane.windowing.patterns import tree
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.values import Picked

BITS = {name: bit for bit, name in enumerate(NAMES)}


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns_decide_as_the_matcher_does(seed: int) -> None:
    draw, kinds = random.Random(seed), {"waits": 0, "fails": 0, "matches": 0, "chains": 0}
    for number in range(80):
        pattern = random_chain(draw) if number % 4 == 0 else random_end(draw, random_pattern(draw))
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
                looks = (tree.Absence, tree.First, tree.Last)
                parts = [number for number, (part, _) in enumerate(text._parts, start=1) if not isinstance(part, looks)]
                got = [place - 1 for part in parts for place in range(*found.span(part))]
            assert got == expected, (seed, str(pattern), rows[:known], start, is_ended)
            if expected is not None:
                assert text.possible(np.frombuffer(searched, np.uint8))[start + 1]
            if text.chain is not None:
                _agrees(text, searched, start + 1, len(searched) - (not is_ended), got)
                kinds["chains"] += 1
            kinds["waits" if got == "waits" else "fails" if got is None else "matches"] += 1
    assert min(kinds.values()) > 20


def _agrees(text: PatternText, searched: bytes, place: int, stop: int, expected: object) -> None:
    """Compare what is found by next positions with what the matcher finds, and ways that end for want of a row."""
    found = ways(text, text.chain or (), np.frombuffer(searched, np.uint8), np.array([place]), np.array([stop]))
    rows = [row for part, (first, end) in zip(text.chain or (), found.spans[0, 1:], strict=True) for row in range(first, end)]
    got = "waits" if found.waits[0] else [row - 1 for row in rows] if found.matches[0] else None
    assert got == expected, (str(text.pattern), searched, place)
    if not found.waits[0] and not found.matches[0]:
        partial = text.partial.match(searched, place, stop)
        assert found.wants[0] == (partial is not None)
        assert partial is None or partial.regs[1:] == tuple(map(tuple, found.spans[0, 1:].tolist()))


@pytest.mark.parametrize(
    ("text", "rows", "possible"),
    [
        ("a b+ c", "abbc abab aab?", "1000 0000 010"),  # the last a waits: the next row may be a c
        ("a{2,3} b", "aaab aaaab", "1100 01100"),
        ("a -> b -> c", "axbxc axcxb axxb?", "10000 00000 1000"),
        ("a -> !x -> b", "axb aab", "000 110"),
        ("(a | b c) a", "aa bca ba", "10 100 00"),
        ("(a b)+ c", "ababc ababx abac?", "10100 00000 1000"),  # what is behind a group's turn is left open
        ("PERMUTE(a, b) c", "bac cab abx", "110 000 000"),
        ("a b? c", "ac abc abb", "10 100 000"),
        ("b+? a", "bba bbb?", "110 111"),
        ("a $", "ab ba", "10 01"),
    ],
)
def test_where_a_match_may_begin(text: str, rows: str, possible: str) -> None:
    """Keys stand apart; behind a ``?`` further rows may come."""
    bits = {"a": 0, "b": 1, "c": 2, "x": 3}
    keys = [[13, *(UNKNOWN if row == "?" else 128 | 1 << bits[row] for row in key)] for key in rows.split()]
    found = PatternText(parse_pattern(text), bits).possible(np.array([row for key in keys for row in key], np.uint8)).tolist()
    shown = []
    for key in keys:
        mine, found = found[: len(key)], found[len(key) :]
        shown.append("".join(str(int(each)) for row, each in zip(key, mine, strict=True) if row >= 128))
    assert " ".join(shown) == possible


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

    assert [spans.rows(True, {"b"}, offset).tolist() for offset in range(4)] == [[1, 8], [2, -1], [3, -1], [-1, -1]]
    assert [spans.rows(False, {"a"}, offset).tolist() for offset in range(3)] == [[4, 9], [0, 7], [-1, -1]]
    assert [spans.rows(True, None, offset).tolist() for offset in (0, 4)] == [[0, 7], [4, -1]]
    assert spans.last_parts({"b"}).tolist() == [1, 1]
    assert spans.last_parts({"x"}).tolist() == [-1, -1]
