"""Tables for the terminal, as JSON and as CSV; under each what healthy looks like."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windowpane.inspect.tables import TABLES

_LONGEST, _NARROWEST, _WIDE = 100, 100, 170
_SAID_ALREADY = {
    "windows": ("closes_when_watermark_reaches", "cleaned_when", "next_timer"),
    "late": ("at_least", "less_than"),
    "nodes": ("leaves",),
}
"""Columns whose figures stand in another one, too, which a narrow console leaves out."""


def wide_console() -> Console:
    """Return a console of at least a hundred columns, which tables of times need."""
    console = Console(highlight=False)
    return console if console.width >= _NARROWEST else Console(highlight=False, width=_NARROWEST)


def print_table(console: Console, name: str, table: pa.Table) -> None:
    """Print a table with its question, and the line that says what healthy looks like."""
    kind = TABLES.get(name)
    title = name if kind is None else f"{name}: {kind.question}"
    columns = [each for each in table.column_names if table[each].null_count < max(table.num_rows, 1)]
    if "operator" in columns and len(set(table["operator"].to_pylist())) < 2:
        columns.remove("operator")
    said_already = _SAID_ALREADY.get(name, ()) if console.width < _WIDE else ()
    columns = [each for each in columns if each not in said_already]
    console.print(Text(title, style="bold"))
    if table.num_rows == 0:
        console.print(
            "  nothing" if is_complete(table) else "  not known: the program cannot be read here, and the table query says why"
        )
    elif name == "query":
        for row in table.select(columns).to_pylist():
            console.print(Text("\n".join(f"  {column.replace('_', ' '):16} {_cell(column, row[column])}" for column in columns)))
    else:
        console.print(_grid(table.select(columns)))
    if table.num_rows and not is_complete(table):
        console.print(Text("There is more: only the first rows are shown.", style="yellow"))
    if kind is not None:
        console.print(Text(kind.healthy, style="dim"))


def _grid(table: pa.Table) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for field in table.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        is_instant = pa.types.is_timestamp(field.type)
        width: dict[str, Any] = {"min_width": 10, "max_width": None if table.num_columns < 7 else 12} if is_instant else {}
        if field.name in ("why_open", "in_words", "stays"):
            width = {"min_width": 30}
        justify: Literal["left", "right"] = "right" if is_number else "left"
        grid.add_column(field.name.replace("_", " "), justify=justify, overflow="fold", **width)
    for row in table.to_pylist():
        grid.add_row(*(Text(_cell(column, value)) for column, value in row.items()))
    return grid


def is_complete(table: pa.Table) -> bool:
    """Return whether a table shows all there is."""
    return (table.schema.metadata or {}).get(b"complete") != b"no"


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    if column in ("bytes", "state_bytes") and isinstance(value, int):
        return bytes_text(value)
    if column in ("behind_now", "seconds", "at_least", "less_than") and isinstance(value, float):
        return duration_text(value)
    text = _text(value)
    return _printable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def _printable(text: str) -> str:
    """Return a text on one line, which does nothing to the terminal: newlines, escapes and turns of direction are spelled out."""
    return text if text.isprintable() else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def bytes_text(size: float) -> str:
    """Return a number of bytes with its unit, each 1,024 of the one before, as PostgreSQL and Spark count them.

    Example:
        >>> bytes_text(1536)
        '1.5 kB'
    """
    value, power = float(size), 0
    while value >= 1024 and power < len(_UNITS) - 1:
        value, power = value / 1024, power + 1
    return f"{value:,.{min(power, 1)}f} {_UNITS[power]}"


def duration_text(seconds: float) -> str:
    """Return a duration with its unit, the largest that fits.

    Example:
        >>> duration_text(90.0)
        '1.5 min'
    """
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2f} s"


def _text(value: Any) -> str:
    if not isinstance(value, dt.datetime):
        return str(value)
    unit = "seconds" if not value.microsecond else "microseconds" if value.microsecond % 1000 else "milliseconds"
    return value.replace(tzinfo=None).isoformat(" ", unit)


def json_text(name: str, table: pa.Table) -> str:
    """Return a table as one line of JSON: its name, whether it is complete, and its rows."""
    rows = [{column: _plain(value) for column, value in row.items()} for row in table.to_pylist()]
    return json.dumps({"table": name, "complete": is_complete(table), "rows": rows})


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows as JSON has them; an instant is text, and beside it stands ``..._micros``, a number."""
    rows = [{column: _plain(value) for column, value in row.items()} for row in table.to_pylist()]
    for field in table.schema:
        if pa.types.is_timestamp(field.type):
            micros = table[field.name].cast(pa.timestamp("us", field.type.tz)).cast(pa.int64()).to_pylist()
            for row, value in zip(rows, micros, strict=True):
                row[f"{field.name}_micros"] = value
    return rows


def csv_lines(table: pa.Table) -> Iterator[str]:
    """Yield a table as lines of CSV, the names of its columns first."""
    yield _csv_line(table.column_names)
    for row in table.to_pylist():
        yield _csv_line(["" if value is None else _plain(value) for value in row.values()])


def _csv_line(values: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(values)  # texts with either of these are quoted
    return line.getvalue().removesuffix("\r\n")


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
