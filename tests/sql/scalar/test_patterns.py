"""Regular expressions: what RE2 is given matches the same as what Python is given, and both as PostgreSQL."""

from __future__ import annotations

import random

import duckdb
import pytest

from windowpane.errors import InvalidValueError
from windowpane.sql import Session
from windowpane.sql.values.regexps import as_re2, certain_groups, match

PIECES = (
    "a",
    "b",
    "é",
    ".",
    r"\w",
    r"\W",
    r"\d",
    r"\S",
    r"\s",
    "[ab]",
    r"[^\w]",
    r"[\d-]",
    "[]a]",
    "[[:digit:]]",
    "[^[:space:]]",
    "[[:cntrl:]b]",
    r"\.",
    "$",
    "^",
)
TEXTS = ("", "a", "é", "ab", "aé", "a\n", "a\nb", "1", "٣", "a b", "a\u2003b", "]", "ab1.é", "ba\nab", "É_")


def _pattern(draw: random.Random, depth: int = 2) -> str:
    parts = []
    for _ in range(draw.randint(1, 3)):
        part = draw.choice(PIECES)
        if depth and draw.random() < 0.4:
            part = draw.choice(("({})", "(?:{})", "({})?", "(?:{})*", "({}|b)", "(?:a|{})", "({})+")).format(
                _pattern(draw, depth - 1)
            )
        elif part not in "^$" and draw.random() < 0.2:
            part += draw.choice(("?", "*", "+", "{1,2}"))
        parts.append(part)
    return "|".join(("".join(parts), "b")) if draw.random() < 0.1 else "".join(parts)


@pytest.mark.parametrize("flags", ["", "i", "n", "ic"])
def test_both_match_the_same(flags: str) -> None:
    draw, extracted = random.Random(f"patterns {flags}"), 0
    with duckdb.connect() as connection:
        for _ in range(80):
            pattern = _pattern(draw)
            found, groups = as_re2(pattern, flags), certain_groups(pattern)
            assert found is not None, pattern
            for text in TEXTS:
                expected = match(text, pattern, flags)
                matched = connection.execute("SELECT regexp_matches(?, ?, ?)", [text, *found]).fetchone()
                assert matched == (expected is not None,), (pattern, text)
                if expected is not None and groups is not None:
                    assert None not in expected, (pattern, text)
                    numbers = range(1, groups + 1) if groups else (0,)
                    sql = ", ".join(f"regexp_extract($1, $2, {number}, $3)" for number in numbers)
                    assert connection.execute(f"SELECT {sql}", [text, *found]).fetchone() == tuple(expected), (pattern, text)
                    extracted += 1
    assert extracted > 100


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (r"'é' ~ '\w'", True),
        (r"'é' ~ '^\W$'", False),
        (r"regexp_replace('é1', '\w', 'x', 'g')", "xx"),
        (r"E'a\nb' ~ 'a.b'", True),
        (r"E'a\n' ~ 'a$'", False),
        (r"regexp_match(E'a\n', 'a$') IS NULL", True),
        (r"regexp_replace(E'a\nb', '^b', 'x', 'n')", "a\nx"),
        (r"NULL::text ~ 'a(?=b)' IS NULL", True),
        (r"'a-b' ~ '\mb'", True),
        (r"regexp_count('c: ', '[[:cntrl:]]')", 0),
        (r"regexp_count(E'c\t ', '[[:space:]]')", 2),
        (r"'é' SIMILAR TO '\w'", True),
        (r"(regexp_match('b', '(a)|b'))[1] IS NULL", True),
        (r"(regexp_match('x&channel_id=7', '(&|^)channel_id=([^&]*)'))[2]", "7"),
    ],
)
def test_patterns_mean_what_they_do_in_postgresql(expression: str, value: object) -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (p text); INSERT INTO t VALUES ('x'); FLUSH")
        assert session.query(f"SELECT {expression} AS found FROM t").rows() == [(value,)]


@pytest.mark.parametrize("call", ["regexp_count('a', '[[:foo:]]')", "regexp_match('a', '[[:foo:]]')", "'a' ~ '[[:foo:]]'"])
def test_a_class_that_is_not_there_is_refused(call: str) -> None:
    with Session(":memory:") as session, pytest.raises(InvalidValueError, match=r"invalid character class range: \[:foo:\]"):
        session.query(f"SELECT {call}")
