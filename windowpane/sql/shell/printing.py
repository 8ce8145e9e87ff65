"""Results for people and for machines: tables on a terminal, or one JSON object a line."""

from __future__ import annotations

import json

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windowpane.sql.expressions.types import is_number
from windowpane.sql.results import Result


def print_result(result: Result, console: Console) -> None:
    """Print the rows of a result as a table; numbers stand at the right, NULL is dim."""
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, header_style="bold")
    for name, kind in zip(result.names, result.types, strict=True):
        table.add_column(Text(name), justify="right" if is_number(kind) else "left", no_wrap=not console.is_terminal)
    for row in result.text_rows():
        table.add_row(*(Text("NULL", style="dim") if cell is None else Text(cell) for cell in row))
    console.print(table)
    count = len(result)
    console.print(Text(f"({count} row{'' if count == 1 else 's'})", style="dim"))


def json_line(result: Result) -> str:
    """Return a result as one line of JSON: its tag, and columns, types and rows if it has any; values are text as printed."""
    body: dict[str, object] = {"tag": result.tag}
    if result.notice:
        body["notice"] = result.notice
    if result.has_rows:
        body["columns"] = list(result.names)
        body["types"] = [str(kind) for kind in result.types]
        body["rows"] = result.text_rows()
    return json.dumps(body, ensure_ascii=False)
