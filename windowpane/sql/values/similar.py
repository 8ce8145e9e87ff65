"""SIMILAR TO: SQL's patterns as regular expressions, the way PostgreSQL turns them into its own."""

from __future__ import annotations

_SIGNS = {"%": ".*", "_": ".", "(": "(?:", ".": r"\.", "^": r"\^", "$": r"\$", "\\": r"\\"}
"""What stands for itself, or for something else, in one of both languages; the other signs mean the same in both."""


class SimilarPatternError(ValueError):
    """A text that is no pattern; DuckDB passes its words on."""


def regular(pattern: str, escape: str) -> str:
    r"""Return the regular expression that a whole text must match; no escape character if ``escape`` is empty.

    Raises:
        SimilarPatternError: the escape is longer than a character, or the pattern has more than two separators.

    Example:
        >>> regular("%(b|d).", "\\")
        '(?:.*(?:b|d)\\.)'
    """
    if len(escape) > 1:
        raise SimilarPatternError(f"invalid escape string: {escape!r} has more than one character")
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
        raise SimilarPatternError("a pattern of SIMILAR TO has at most two separators, each an escape character before a quote")
    return "".join(f"(?:{part})" for part in parts)


def _behind_class(pattern: str, start: int) -> int:
    """Return where a class of characters ends; one right behind its bracket, or ``[^``, belongs to it."""
    first = start + (3 if pattern.startswith("[^", start) else 2)
    at = first
    while at < len(pattern) and pattern[at] != "]":
        at = pattern.find(":]", at) + 2 if pattern.startswith("[:", at) and ":]" in pattern[at:] else at + 1
    return at + 1
