r"""Regular expressions: as Python matches them, as RE2 does, which is DuckDB's, and patterns of SIMILAR TO as such.

Both match the same: a dot takes ends of lines, and ``^`` and ``$`` are the ends of the text, unless a flag says otherwise, as in
PostgreSQL; ``\w``, ``\d`` and ``\s`` are Unicode's, and the first alternative that fits is taken, as in RisingWave.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from windowpane.errors import InvalidValueError

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "n": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_CLASSES = {
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:alnum:]": "a-zA-Z0-9",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
    "[:space:]": r"\t-\r ",
    "[:blank:]": r" \t",
    "[:punct:]": r"!-/:-@\[-`{-~",
    "[:xdigit:]": "0-9a-fA-F",
    "[:cntrl:]": r"\x00-\x1f\x7f",
    "[:graph:]": "!-~",
    "[:print:]": " -~",
    "[:word:]": "0-9A-Za-z_",
    "[:ascii:]": r"\x00-\x7f",
}
"""Classes inside brackets, as RE2 has them."""
_BOUNDS = {r"\y": r"\b", r"\m": r"\b(?=\w)", r"\M": r"\b(?<=\w)"}

_SIGNS = {"%": ".*", "_": ".", "(": "(?:", ".": r"\.", "^": r"\^", "$": r"\$", "\\": r"\\"}
"""Signs of SIMILAR TO that mean themselves, or something else, in one of both languages; the others mean the same."""


_OF_LINES = frozenset("mn")
"""Flags by which ``^`` and ``$`` are the ends of a line, and a dot takes none."""
_SETS = {"w": r"\pL\pN_", "d": r"\p{Nd}", "s": r"\t-\r\x1c-\x1f \x85\p{Z}"}
"""What is in a class, as RE2 writes it."""
_SAME = frozenset("tnrfva")
"""Letters behind a backslash that mean the same to both."""
_NAMED = re.compile(r"\[:(\w+):\]")
_ONLY_PYTHON = re.compile(r"\(\?(?!:)|\{,")


def _parts(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yield what a pattern consists of, and whether it is inside brackets."""
    at, inside = 0, False
    while at < len(pattern):
        named = _NAMED.match(pattern, at) if inside else None
        part = named.group() if named else pattern[at : at + (2 if pattern[at] == "\\" else 1)]
        at += len(part)
        if part == "[" and inside:
            part = r"\["
        elif part == "[":
            inside = True
            part += "^" if pattern.startswith("^", at) else ""
            at += len(part) - 1
            if pattern.startswith("]", at):  # the first one belongs to it
                part, at = part + r"\]", at + 1
        elif part == "]":
            inside = False
        yield part, inside


@lru_cache(4096)  # as many patterns as a column of them may have
def _compiled(pattern: str, flags: str) -> re.Pattern[str]:
    is_whole = _OF_LINES.isdisjoint(flags)
    ends = _BOUNDS | ({"$": r"\Z"} if is_whole else {})
    parts = list(_parts(pattern))
    unknown = next((part for part, _ in parts if part.startswith("[:") and part not in _CLASSES), None)
    if unknown is not None:
        raise InvalidValueError(f"invalid regular expression: invalid character class range: {unknown}")
    translated = "".join((_CLASSES if inside else ends).get(part, part) for part, inside in parts)
    options = re.DOTALL if is_whole else re.NOFLAG
    for flag in flags:
        options = options & ~re.IGNORECASE if flag == "c" else options | _FLAGS.get(flag, re.NOFLAG)
    try:
        return re.compile(translated, options)
    except re.error as error:
        raise InvalidValueError(f"invalid regular expression: {error} in {pattern!r}") from None


def as_re2(pattern: str, flags: str = "") -> tuple[str, str] | None:
    """Return a pattern that RE2 matches the same, and DuckDB's options of it; ``None`` where Python is to match it."""
    if _ONLY_PYTHON.search(pattern) or "x" in flags:
        return None
    translated = []
    for part, inside in _parts(pattern):
        letter = part[1:] if part.startswith("\\") else ""
        if letter.lower() in _SETS and not (inside and letter.isupper()):
            found = _SETS[letter.lower()]
            translated.append(found if inside else f"[{'^' if letter.isupper() else ''}{found}]")
        elif part == "\\" or (letter.isalnum() and letter not in _SAME):
            return None
        else:
            translated.append(part)
    is_whole = _OF_LINES.isdisjoint(flags)
    ignores_case = flags.rfind("i") > flags.rfind("c")
    return ("" if is_whole else "(?m)") + "".join(translated), ("s" if is_whole else "") + ("i" if ignores_case else "")


@dataclass
class _Open:
    """A parenthesis that is open: how many groups begin before it, and before what is inside."""

    before: int
    inside: int
    has_alternatives: bool = False


def certain_groups(pattern: str) -> int | None:
    """Return how many groups a pattern has if each takes part in every match, once; ``None`` if one may not."""
    count, above = 0, [_Open(0, 0)]
    parts = ["[]" if inside else part for part, inside in _parts(pattern)]
    for part, following in pairwise([*parts, ""]):
        if part == "(":
            above.append(_Open(count, count + (following != "?")))
            count = above[-1].inside
        elif part == "|":
            above[-1].has_alternatives = True
        elif part == ")" and len(above) > 1:
            closed = above.pop()
            is_repeated = following in ("?", "*", "+", "{") and count > closed.before
            if is_repeated or (closed.has_alternatives and count > closed.inside):
                return None
    return None if above[0].has_alternatives and count else count


def match(value: str, pattern: str, flags: str) -> list[str | None] | None:
    """Return the groups of the first match, or the match if there are no groups; ``None`` if there is none."""
    found = _compiled(pattern, flags).search(value)
    if found is None:
        return None
    return _groups(found)


def _groups(found: re.Match[str]) -> list[str | None]:
    return list(found.groups()) if found.re.groups else [found.group()]


def all_matches(value: str, pattern: str, flags: str) -> list[list[str | None]]:
    """Return what ``match`` returns for each match, as in RisingWave; in PostgreSQL the flag ``g`` says so."""
    return [_groups(each) for each in _compiled(pattern, flags).finditer(value)]


def replaced(value: str, pattern: str, new: str, flags: str) -> str:
    r"""Return a text with the first match replaced, or all with the flag ``g``; ``\1`` and ``\&`` stand for what matched."""

    def insert(found: re.Match[str]) -> str:
        return re.sub(r"\\(\d|&|\\)", lambda sign: _meant(sign.group(1), found), new)

    return _compiled(pattern, flags).sub(insert, value, count=0 if "g" in flags else 1)


def _meant(sign: str, found: re.Match[str]) -> str:
    if sign == "\\":
        return "\\"
    group = 0 if sign == "&" else int(sign)
    return (found.group(group) or "") if group <= found.re.groups else ""


def split(value: str, pattern: str, flags: str) -> list[str]:
    """Return the parts of a text between matches; an empty match beside another one, or at an end, splits nothing."""
    parts, start = list[str](), 0
    for found in _compiled(pattern, flags).finditer(value):
        if found.end() > found.start() or found.start() not in (start, len(value)):
            parts.append(value[start : found.start()])
            start = found.end()
    return [*parts, value[start:]]


def count(value: str, pattern: str, start: int, flags: str) -> int:
    """Return how many matches begin at or behind a character, counted from 1."""
    if start < 1:
        raise InvalidValueError(f"invalid value for parameter start: {start}")
    if "g" in flags:
        raise InvalidValueError("regexp_count counts all matches: it takes no flag g")
    return sum(1 for _ in _compiled(pattern, flags).finditer(value[start - 1 :]))


def regular(pattern: str, escape: str) -> str:
    r"""Return a pattern of SIMILAR TO as a regular expression, as PostgreSQL makes its own; an empty ``escape`` is none.

    Raises:
        InvalidValueError: the escape is longer than a character, or the pattern has more than two separators.

    Example:
        >>> regular("%(b|d).", "\\")
        '(?:.*(?:b|d)\\.)'
    """
    if len(escape) > 1:
        raise InvalidValueError(f"invalid escape string: {escape!r} has more than one character")
    parts, at = [""], 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == escape and pattern[at + 1 : at + 2] == '"':
            parts.append("")
            at += 2
        elif sign == escape:
            parts[-1] += "\\" + pattern[at + 1 : at + 2]
            at += 2
        elif sign == "[":
            end = _behind_class(pattern, at)
            parts[-1] += pattern[at:end].replace("\\", r"\\")
            at = end
        else:
            parts[-1] += _SIGNS.get(sign, sign)
            at += 1
    if len(parts) > 3:
        raise InvalidValueError("a pattern of SIMILAR TO has at most two separators, each an escape character before a quote")
    return "".join(f"(?:{part})" for part in parts)


def similar_in_re2(pattern: str, escape: str) -> str:
    """Return a pattern of SIMILAR TO as RE2 has it; what is not written for RE2, such as an edge of a word, stays as it is."""
    expression = regular(pattern, escape)
    found = as_re2(expression)
    return expression if found is None else found[0]


def _behind_class(pattern: str, start: int) -> int:
    """Return where a class of characters ends; one right behind its bracket, or ``[^``, belongs to it."""
    first = start + (3 if pattern.startswith("[^", start) else 2)
    at = first
    while at < len(pattern) and pattern[at] != "]":
        at = pattern.find(":]", at) + 2 if pattern.startswith("[:", at) and ":]" in pattern[at:] else at + 1
    return at + 1
