"""``INSERT ... VALUES`` with many rows of literals: read as columns of text, and converted a column at a time.

Tokens, a tree and an expression for each literal took 0.6 ms a row. So rows that consist of plain numbers, texts, NULL, TRUE and
FALSE are cut out of a script before it is taken apart; the first stays in the statement. Where the text of a script is not simple
enough to be sure where a statement begins, or a column mixes what only expressions tell apart, rows are read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from windowpane.errors import MistakeError
from windowpane.sizes import Size
from windowpane.sql.expressions.expr import Expr, quoted
from windowpane.sql.expressions.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DIGITS,
    TIMESTAMP,
    VARCHAR,
    SqlType,
    is_float,
    is_number,
    numeric,
)
from windowpane.sql.parse.dialect import parse_tokens, tokenize

FEWEST_ROWS = Size("rows of VALUES worth reading as columns", 50, (2, 3))
"""Fewer are read one by one."""
_EXACT_DIGITS = 15
"""A decimal of so many digits becomes the same double, whatever its scale."""

_CELL = r"(?:-?\d++(?:\.\d++)?+|'(?:[^'\\]|'')*+'|(?i:NULL|TRUE|FALSE)\b)"
_CELLS = re.compile(_CELL)
_ROW = re.compile(rf"\(\s*+{_CELL}(?:\s*+,\s*+{_CELL})*+\s*+\)")
_COMMA = re.compile(r"\s*+,\s*+")
_HEAD = re.compile(r'(?:\s|--[^\n]*+\n)*+INSERT\s++INTO\s++[\w."]++\s*+(?:\([\w\s,"]*+\)\s*+)?VALUES\s*+', re.IGNORECASE)
_STATEMENT = re.compile(r"""(?:[^;'"$/\-`]|'[^']*+'|"[^"]*+"|`[^`]*+`|--[^\n]*+|/(?!\*)|-(?!-))*+""")
_ESCAPES = re.compile(r"\b[EeUu]&?'")


@dataclass(frozen=True)
class LiteralRows:
    """The rows of one VALUES."""

    text: str
    start: int
    end: int
    ends: tuple[int, ...]

    @cached_property
    def columns(self) -> tuple[tuple[str, ...], ...] | None:
        """The literals of each column, ``None`` if the rows have different lengths."""
        starts = (self.start, *self.ends[:-1])
        rows = [_CELLS.findall(self.text, start, end) for start, end in zip(starts, self.ends, strict=True)]
        return tuple(zip(*rows, strict=True)) if len({len(row) for row in rows}) == 1 else None

    def tree(self) -> exp.Values:
        before = re.sub(r"[^\n]", " ", self.text[: self.start])
        head = f"{before[: len(before) - 7]}VALUES "
        tree = parse_tokens(tokenize(head + self.text[self.start : self.end]), self.text)
        if not isinstance(tree, exp.Values):
            raise MistakeError("rows of VALUES are VALUES")
        return tree


def cut_rows(script: str) -> tuple[str, Mapping[int, LiteralRows]]:
    """Return a script with many rows of literals made blank but for the first, and those rows by the place of the first."""
    text, at, found = script, 0, dict[int, LiteralRows]()
    while at < len(script):
        head = _HEAD.match(script, at)
        rows = None if head is None else _rows_at(script, head.end())
        if rows is not None:
            found[rows.start] = rows
            text = text[: rows.ends[0]] + re.sub(r"[^\n]", " ", text[rows.ends[0] : rows.end]) + text[rows.end :]
            at = rows.end
        rest = _STATEMENT.match(script, at)
        end = at if rest is None else rest.end()
        if _ESCAPES.search(script, at, end) or not script.startswith(";", end):
            break
        at = end + 1
    return text, found


def _rows_at(script: str, start: int) -> LiteralRows | None:
    ends, at = list[int](), start
    while (row := _ROW.match(script, at)) is not None:
        ends.append(row.end())
        comma = _COMMA.match(script, row.end())
        if comma is None:
            enough = len(ends) >= FEWEST_ROWS.value
            return LiteralRows(script, start, ends[-1], tuple(ends)) if enough else None
        at = comma.end()
    return None


def as_texts(cells: tuple[str, ...]) -> pa.Array:
    values = (None if cell.upper() == "NULL" else cell[1:-1].replace("''", "'") if cell[0] == "'" else cell for cell in cells)
    return pa.array(values, pa.string())


def typed_column(cells: tuple[str, ...], name: str, kind: SqlType) -> tuple[Expr, str] | None:
    """Return a column of literals as the type that they have one by one, and a condition that all of them can be read.

    Args:
        cells: as they are written.
        name: the column that has them as text.
        kind: of the column that they are assigned to.

    Returns:
        ``None`` where they must be read one by one.
    """
    kinds = {_kind_of(cell) for cell in cells} - {"null"}
    column = quoted(name)
    if not kinds:
        return Expr.null(kind), "TRUE"
    if kinds <= {"integer", "decimal"} and is_number(kind):
        found = _number_type(cells, kind, has_places="decimal" in kinds)
        return None if found is None else (Expr(f"CAST({column} AS {found.duckdb})", found), "TRUE")
    if kinds == {"text"} and kind == VARCHAR:
        return Expr(column, VARCHAR), "TRUE"
    if kinds == {"text"} and kind in _PLAIN_INSTANTS:
        readable = f"regexp_full_match({column}, '{_PLAIN_INSTANTS[kind]}') AND TRY_CAST({column} AS {kind.duckdb}) IS NOT NULL"
        return Expr(f"CAST({column} AS {kind.duckdb})", kind), f"({column} IS NULL OR ({readable}))"
    return (Expr(f"CAST({column} AS BOOLEAN)", BOOLEAN), "TRUE") if kinds == {"boolean"} and kind == BOOLEAN else None


_DAY = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_PLAIN_INSTANTS = {DATE: _DAY, TIMESTAMP: f"{_DAY}( [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?)?"}


def _kind_of(cell: str) -> str:
    if cell[0] == "'":
        return "text"
    if cell[0] in "-0123456789":
        return "decimal" if "." in cell else "integer"
    return "null" if cell.upper() == "NULL" else "boolean"


def _number_type(cells: tuple[str, ...], kind: SqlType, *, has_places: bool) -> SqlType | None:
    """Return the type in which all numbers of a column are exact, and become what each would by itself."""
    parts = [cell.lstrip("-").partition(".") for cell in cells if _kind_of(cell) != "null"]
    whole, scale = max(len(part[0]) for part in parts), max(len(part[2]) for part in parts)
    if whole + scale > (_EXACT_DIGITS if is_float(kind) else DIGITS // 2):
        return None
    return numeric(scale) if has_places else BIGINT if whole < len(str(2**63)) else None
