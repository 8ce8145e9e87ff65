"""The text of a pattern and its tree: each form, what is printed is read as the same, and errors point at the column."""

from __future__ import annotations

import pytest

from windowpane.errors import PatternError
from windowpane.windowing.patterns.text import parse_pattern
from windowpane.windowing.patterns.tree import (
    Absence,
    Alternation,
    Exclusion,
    First,
    Last,
    Passing,
    Pattern,
    Permutation,
    Repetition,
    Sequence,
    Variable,
    longest,
)

A, B, C = map(Variable, "abc")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a", A),
        ("a b c", Sequence((A, B, C))),
        ("a | b c", Alternation((A, Sequence((B, C))))),
        ("(a | b) c", Sequence((Alternation((A, B)), C))),
        ("a*", Repetition(A, 0, None)),
        ("a+?", Repetition(A, 1, None, is_greedy=False)),
        ("a? b??", Sequence((Repetition(A, 0, 1), Repetition(B, 0, 1, is_greedy=False)))),
        ("a{3}", Repetition(A, 3, 3)),
        ("a{3,} b{,2} c{1,2}?", Sequence((Repetition(A, 3, None), Repetition(B, 0, 2), Repetition(C, 1, 2, is_greedy=False)))),
        ("^ a $", Sequence((First(), A, Last()))),
        ("a {- b+ -} c", Sequence((A, Exclusion(Repetition(B, 1, None)), C))),
        ("PERMUTE(a, b c)", Permutation((A, Sequence((B, C))))),
        ("permute", Variable("permute")),
        ('"a b" c', Sequence((Variable("a b"), C))),
        ("()", Sequence(())),
        ("a -> b", Sequence((A, Passing(("b",)), B))),
        ("a -> (b | c)", Sequence((A, Passing(("b", "c")), Alternation((B, C))))),
        ("a -> b? c", Sequence((A, Passing(("b", "c")), Repetition(B, 0, 1), C))),
        ("a -> !c -> b", Sequence((A, Passing(("c", "b"), ("c",)), B))),
        ("a -> !b", Sequence((A, Absence(("b",))))),
        ("a -> !b -> !c", Sequence((A, Absence(("b", "c"))))),
    ],
)
def test_a_text_is_its_tree(text: str, tree: Pattern) -> None:
    assert parse_pattern(text) == tree
    assert parse_pattern(str(tree)) == tree or "permute" in text or '"' in text


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("a )", 3, "')' has no place here"),
        ("(a", 3, "')' is missing"),
        ("a{2,1}", 2, "2 to 1 times is never"),
        ("a{}", 3, "a number is missing"),
        ("a{0}", 2, "0 to 0 times is never"),
        ("!a", 1, "'!' comes after '->'"),
        ("a -> b*", 3, "what follows '->' has to take a row, and 'b*' can do without one"),
        ("a -> !", 7, "the name of a variable is missing"),
        ("a ->", 5, "a part of the pattern is missing here"),
        ("a ~ b", 3, "'~' has no place here"),
        ("+", 1, "'+' has no place here"),
        ("a PERMUTE(a, b, c, d, e, f, g, h)", 10, "has 322,560 variables with its orders"),
        ("a (b{1000} c){500}", 3, "has 500,500 variables"),
    ],
)
def test_an_error_points_at_its_column(text: str, column: int, reason: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse_pattern(text)
    assert caught.value.column == column
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "rows"), [("a b{2,3}", 4), ("a | b c", 2), ("a+", None), ("a -> b", None), ("^ $", 0), ("(a b){2}", 4), ("()*", 0)]
)
def test_how_long_a_match_can_be(text: str, rows: int | None) -> None:
    assert longest(parse_pattern(text)) == rows
