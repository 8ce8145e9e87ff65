"""Patterns of ``to_char`` (PostgreSQL's, those of RisingWave) and ``DATE_FORMAT`` (Java's), as formats of ``strftime``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from windowpane.sql.expressions.expr import Expr, MismatchError, build, local_time
from windowpane.sql.expressions.types import DATE, TIMESTAMP, TIMESTAMPTZ, VARCHAR
from windowpane.sql.values.text_values import offset_sql, text_literal

_POSTGRES = {
    "YYYY": "%Y",
    "YY": "%y",
    "IYYY": "%G",
    "MM": "%m",
    "DD": "%d",
    "DDD": "%j",
    "HH24": "%H",
    "HH12": "%I",
    "HH": "%I",
    "MI": "%M",
    "SS": "%S",
    "MS": "%g",
    "US": "%f",
    "NS": "%f000",
    "AM": "%p",
    "PM": "%p",
    "Month": "%B",
    "Mon": "%b",
    "Day": "%A",
    "Dy": "%a",
    "IW": "%V",
}
_OFFSETS = {"TZH:TZM": ":", "TZHTZM": "", "TZH": "h", "TZM": "m"}
_UNSUPPORTED = ("Q", "WW", "W", "D", "J", "CC", "BC", "AD", "RM", "TZ", "FM", "TH", "IY", "YYY", "Y", "SSSS")
_CASED = ("Month", "Mon", "Day", "Dy", "MONTH", "MON", "DAY", "DY", "month", "mon", "day", "dy")
_JAVA = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "M": "%-m",
    "MMM": "%b",
    "MMMM": "%B",
    "dd": "%d",
    "d": "%-d",
    "HH": "%H",
    "H": "%-H",
    "hh": "%I",
    "h": "%-I",
    "mm": "%M",
    "m": "%-M",
    "ss": "%S",
    "s": "%-S",
    "SSS": "%g",
    "SSSSSS": "%f",
    "a": "%p",
    "E": "%a",
    "EEE": "%a",
    "EEEE": "%A",
    "DDD": "%j",
}


@dataclass(frozen=True)
class TimeFormat:
    """A format as parts: codes and texts of ``strftime``, or ``lower`` and offsets, which it does not have."""

    parts: tuple[tuple[str, str], ...]

    def printed(self, value: Expr) -> Expr:
        """Return a time in this format."""
        has_zone = value.type == TIMESTAMPTZ
        local = local_time(value) if has_zone else value
        local = build(TIMESTAMP, "CAST({0} AS TIMESTAMP)", local) if local.type == DATE else local
        pieces = []
        for kind, text in self.parts:
            code = text_literal(text).replace("{", "{{").replace("}", "}}")
            if kind == "code":
                pieces.append(f"strftime({{0}}, {code})")
            elif kind == "lower":
                pieces.append(f"lower(strftime({{0}}, {code}))")
            elif has_zone:
                pieces.append(_offset_sql(text))
            else:
                raise MismatchError("a timestamp without time zone has no offset to print.")
        joined = " || ".join(pieces) or "''"
        return build(VARCHAR, f"({joined})", local, value)

    def parsed(self) -> str:
        """Return the format that ``strptime`` reads, as SQL."""
        if any(kind == "offset" for kind, _ in self.parts):
            raise MismatchError("offsets are printed, not read.")
        return text_literal("".join(text for _, text in self.parts))


def _offset_sql(kind: str) -> str:
    offset = f"left({offset_sql('{0}', '{1}')}, 6)"
    parts = {"h": f"left({offset}, 3)", "m": f"right({offset}, 2)", "": f"replace({offset}, ':', '')"}
    return parts.get(kind, offset)


def _literal(pattern: Expr) -> str:
    if pattern.literal is None:
        raise MismatchError("the format must be a text literal.")
    return pattern.literal


def _merged(parts: list[tuple[str, str]]) -> TimeFormat:
    merged: list[tuple[str, str]] = []
    for kind, text in parts:
        if kind == "code" and merged and merged[-1][0] == "code":
            merged[-1] = ("code", merged[-1][1] + text)
        else:
            merged.append((kind, text))
    return TimeFormat(tuple(merged))


_WORDS = sorted((*_POSTGRES, *_OFFSETS, *_UNSUPPORTED, *_CASED), key=len, reverse=True)
_TOKEN = re.compile(r'"([^"]*)"|(' + "|".join(map(re.escape, _WORDS)) + r")|(.)", re.DOTALL | re.IGNORECASE)


def postgres_format(pattern: Expr) -> TimeFormat:
    """Return the format of ``to_char``, ``to_timestamp`` and ``to_date``."""
    parts = []
    for quoted, word, sign in _TOKEN.findall(_literal(pattern)):
        parts.append(_postgres_part(word) if word else ("code", (quoted or sign).replace("%", "%%")))
    return _merged(parts)


def _postgres_part(word: str) -> tuple[str, str]:
    name = word if word in _POSTGRES else word.upper()
    if name in _OFFSETS:
        return "offset", _OFFSETS[name]
    if word in ("am", "pm"):
        return "lower", "%p"
    if name in _POSTGRES:
        return "code", _POSTGRES[name]
    raise MismatchError(f"{word!r} in a format is not supported; there are {', '.join((*_POSTGRES, *_OFFSETS))}.")


_JAVA_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(.)", re.DOTALL)


def java_format(pattern: Expr) -> TimeFormat:
    """Return the format of ``DATE_FORMAT``."""
    parts = []
    for found in _JAVA_TOKEN.finditer(_literal(pattern)):
        if found.group(2) is None:
            text = "'" if found.group(0) == "''" else (found.group(1) or found.group(3) or "").replace("''", "'")
            parts.append(("code", text.replace("%", "%%")))
        elif found.group(0) in _JAVA:
            parts.append(("code", _JAVA[found.group(0)]))
        else:
            raise MismatchError(f"{found.group(0)!r} in a format is not supported; there are {', '.join(_JAVA)}.")
    return _merged(parts)
