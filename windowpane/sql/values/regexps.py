"""Regular expressions as Python matches them, with PostgreSQL's flags and replacements, and patterns of SIMILAR TO as such."""

from __future__ import annotations

import re
from functools import lru_cache

from windowpane.errors import InvalidValueError

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "n": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9a-fA-F",
}
_BOUNDS = {r"\y": r"\b", r"\m": r"\b(?=\w)", r"\M": r"\b(?<=\w)"}

_SIGNS = {"%": ".*", "_": ".", "(": "(?:", ".": r"\.", "^": r"\^", "$": r"\$", "\\": r"\\"}
"""Signs of SIMILAR TO that mean themselves, or something else, in one of both languages; the others mean the same."""


@lru_cache(256)
def _compiled(pattern: str, flags: str) -> re.Pattern[str]:
    translated = re.sub(r"\[:(\w+):\]", lambda found: _CLASSES.get(found.group(1), found.group(0)), pattern)
    translated = re.sub(r"\\[ymM]", lambda found: _BOUNDS[found.group(0)], translated)
    options = re.DOTALL if not set(flags) & set("mn") else re.NOFLAG
    for flag in flags:
        options = options & ~re.IGNORECASE if flag == "c" else options | _FLAGS.get(flag, re.NOFLAG)
    try:
        return re.compile(translated, options)
    except re.error as error:
        raise InvalidValueError(f"invalid regular expression: {error} in {pattern!r}") from None


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


def _behind_class(pattern: str, start: int) -> int:
    """Return where a class of characters ends; one right behind its bracket, or ``[^``, belongs to it."""
    first = start + (3 if pattern.startswith("[^", start) else 2)
    at = first
    while at < len(pattern) and pattern[at] != "]":
        at = pattern.find(":]", at) + 2 if pattern.startswith("[:", at) and ":]" in pattern[at:] else at + 1
    return at + 1
