"""Results for people and for machines: tables on a terminal, CSV, or one JSON object a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windowpane.sql.expressions.types import is_number
from windowpane.sql.results import Result

_WIDEST = 1_000_000
"""How wide a table may be that no terminal shows: it has every column."""


def on_stdout() -> Console:
    """Return what tables are printed to: as wide as the terminal, or as they are."""
    return Console() if sys.stdout.isatty() else Console(width=_WIDEST)


class Printer:
    """Prints results one after the other; the parts of one result are one table, in columns as wide as the first part needs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._widths: list[int] = []

    def print(self, result: Result) -> None:
        """Print the rows of a result, or of a part of one, as a table; numbers are right-aligned, NULL is dim."""
        rows = [[Text("NULL", style="dim") if cell is None else Text(cell) for cell in row] for row in result.text_rows()]
        if result.first == 0:
            heads = (Text(name) for name in result.names)
            self._widths = [max(cell.cell_len for cell in column) for column in zip(heads, *rows, strict=True)]
        table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, header_style="bold", show_header=result.first == 0)
        is_terminal = self._console.is_terminal
        for name, kind, width in zip(result.names, result.types, self._widths, strict=True):
            least = width if result.first or result.more else None
            table.add_column(Text(name), justify="right" if is_number(kind) else "left", no_wrap=not is_terminal, min_width=least)
        for row in rows:
            table.add_row(*row)
        self._console.print(table)
        if not result.more:
            count = result.first + len(result)
            self._console.print(Text(f"({count} row{'' if count == 1 else 's'})", style="dim"))


def print_result(result: Result, console: Console) -> None:
    Printer(console).print(result)


def csv_lines(result: Result) -> Iterator[str]:
    """Yield a result, or a part of one, as lines of CSV, the names first; NULL is empty, an empty text is ``""``."""
    if result.first == 0:
        yield ",".join(map(_csv, result.names))
    for row in result.text_rows():
        yield ",".join("" if cell is None else _csv(cell) for cell in row)


def _csv(cell: str) -> str:
    is_plain = bool(cell) and not any(each in cell for each in ',"\r\n')
    return cell if is_plain else '"' + cell.replace('"', '""') + '"'


def json_line(result: Result) -> str:
    """Return a result as one line of JSON: its tag, and columns, types and rows if it has any; values are text as printed.

    A part of a result says how many rows precede it (``first``), and whether another follows (``more``).
    """
    body: dict[str, object] = {"tag": result.tag}
    if result.notice:
        body["notice"] = result.notice
    if result.has_rows:
        body["columns"] = list(result.names)
        body["types"] = [str(kind) for kind in result.types]
        body["rows"] = result.text_rows()
    if result.first or result.more:
        body |= {"first": result.first, "more": result.more}
    return json.dumps(body, ensure_ascii=False)
