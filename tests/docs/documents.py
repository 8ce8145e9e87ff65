"""Documents: the Markdown files of the project, their Python blocks and their links.

A block runs statement by statement. An expression followed by ``# -> text``, on its line or the next, must have that text as its
repr.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from windowpane.errors import MixedBoundednessError
from windowpane.result import Runnable

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
SPARK_NAMES = re.compile(r"\b(spark|flights|departures)\b")

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTED = re.compile(r"^```python\n(?:(?!```).*\n)*```\n\n```text\n((?:(?!```).*\n)*)```$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_EXPECTED = re.compile(r"# -> (.*)$")


class Link(NamedTuple):
    """A link to a file, or to a heading in one."""

    path: Path
    anchor: str


def python_blocks(page: Path) -> list[str]:
    """Return the blocks of a page, each padded with empty lines so that errors name the line of the page."""
    text = page.read_text()
    return ["\n" * text[: match.start(1)].count("\n") + match.group(1) for match in _BLOCK.finditer(text)]


def promised_output(page: Path) -> str:
    """Return what the blocks of a page print, where a block of text follows each that prints."""
    return "".join(_PRINTED.findall(page.read_text()))


def needs_spark(page: Path) -> bool:
    """Whether a page's blocks use the session or a sample DataFrame."""
    return any(SPARK_NAMES.search(block) for block in python_blocks(page))


def run(block: str, page: Path, names: dict[str, Any]) -> None:
    """Run a block in ``names`` and compare what its comments promise."""
    lines = block.splitlines()
    for statement in ast.parse(block).body:
        assert statement.end_lineno is not None
        promised = _EXPECTED.search(lines[statement.end_lineno - 1])
        if promised is None and statement.end_lineno < len(lines):
            promised = _EXPECTED.match(lines[statement.end_lineno])
        if promised is None or not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), str(page), "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), str(page), "eval"), names)
        assert repr(value) == promised.group(1), f"{page.name}:{statement.lineno}"


def streams_among(values: Iterable[Any]) -> list[Runnable]:
    """Return the programs on streams among what the blocks of a page have made."""
    return [value for value in values if isinstance(value, Runnable) and _is_on_a_stream(value)]


def _is_on_a_stream(program: Runnable) -> bool:
    try:
        return program._built.is_streaming
    except MixedBoundednessError:  # where a stream has taken the place of the finite rows of one side of a join
        return False


def relative_links(page: Path) -> list[Link]:
    """Return the links of a page that stay within the project."""
    targets = [target for target in _LINK.findall(page.read_text()) if "://" not in target]
    split = [target.partition("#") for target in targets]
    return [Link((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in split]


def anchors(page: Path) -> set[str]:
    """Return the anchors that the headings of a page get."""
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(page.read_text()))
    return {heading.replace(" ", "-") for heading in words}
