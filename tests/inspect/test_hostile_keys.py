"""Keys of any kind: each is found, and changes nothing but its own text in a terminal, in JSON, CSV, and the page's data."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

import windowpane as wp
from tests.golden.checkpoints import FOLDER, extract
from windowpane.cli import app
from windowpane.errors import InvalidSpecError
from windowpane.inspect.held_rows import key_row
from windowpane.inspect.inspection import Inspection
from windowpane.inspect.key_texts import key_of_values, values_of_text
from windowpane.inspect.printing import csv_lines, json_text, print_table
from windowpane.testing import WindowTestHarness
from windowpane.ui.data import contents_data, page_data
from windowpane.ui.document import as_json

TEXTS = [
    "[bold red]markup[/bold red] [link=file:///]",
    "<img src=x onerror=alert(1)></script>",
    "\"quotes\" 'and' `more`, and a comma",
    "x" * 10_000,
    "\u202eabc \u05e9\u05dc\u05d5\u05dd",
    "two\nlines\r\tand a bell\x07",
    "\x1b[31mred\x1b]0;title\x07",
    "",
    "NULL",
    '"NULL"',
    None,
]
KEYS: dict[str, list[Any]] = {
    "texts": TEXTS,
    "doubles": [float("nan"), float("inf"), -0.5, None],
    "bytes": [b"\x00\xff\xfe", b"plain", b"<b>", None],
    "booleans": [True, False, None],
}


def _inspected(keys: list[Any]) -> Inspection:
    harness = WindowTestHarness(wp.TumblingEventTimeWindows.of("10 seconds"))
    for number, key in enumerate(keys):
        harness.process_element(number, 1, key)
    return wp.inspect(harness, most=100)


def _shown(text: str | None) -> str:
    if text is None:
        return "NULL"
    return json.dumps(text) if text == "NULL" or text.startswith('"') else text


def _printed(table: pa.Table, name: str) -> str:
    text = io.StringIO()
    print_table(Console(file=text, width=160, highlight=False, force_terminal=False), name, table)
    return text.getvalue()


@pytest.mark.parametrize("kind", KEYS)
def test_each_key_is_found(kind: str) -> None:
    found = _inspected(KEYS[kind])
    for number, key in enumerate(KEYS[kind]):
        assert found.contents(key=(key,))["result"].to_pylist() == [f"[{number}]"], key


@pytest.mark.parametrize("kind", KEYS)
def test_tables_are_whole_as_json_and_csv(kind: str) -> None:
    found = _inspected(KEYS[kind])
    for name, table in (("keys", found.keys), ("contents", found.contents())):
        rows = json.loads(json_text(name, table))["rows"]
        lines = list(csv.DictReader(io.StringIO("\n".join(csv_lines(table)))))
        assert (len(rows), len(lines)) == (len(KEYS[kind]),) * 2
        assert all("\n" not in line for line in json_text(name, table).splitlines())
    if kind == "texts":
        assert sorted(row["key"] for row in json.loads(json_text("keys", found.keys))["rows"]) == sorted(map(_shown, TEXTS))


def test_nothing_of_a_text_reaches_the_terminal_but_its_letters() -> None:
    """Markup is text, and no control or turn of direction is sent."""
    printed = _printed(_inspected(TEXTS).keys, "keys")
    assert "[bold red]markup[/bold red]" in printed
    assert "two\\nlines\\r\\tand a bell\\x07" in printed
    assert "\\x1b[31mred" in printed
    assert "\\u202eabc \u05e9\u05dc\u05d5\u05dd" in printed
    assert [each for each in printed if not each.isprintable() and each != "\n"] == []
    assert "x" * 101 not in printed.replace("\n", "").replace(" ", "")


def test_the_data_of_the_page_ends_no_element() -> None:
    found = _inspected(TEXTS)
    data = {"queries": [page_data(found)], "contents": contents_data(found)}
    assert "<" not in as_json(data)
    keys = {row["key"] for row in json.loads(as_json(data))["queries"][0]["tables"]["keys"]["rows"]}
    assert keys == set(map(_shown, TEXTS))
    for number, text in enumerate(TEXTS):
        assert [row["result"] for row in contents_data(found, _shown(text))["rows"]] == [f"[{number}]"]


def test_keys_of_several_columns_are_told_apart_and_read_back() -> None:
    pairs = [("a, b", "c"), ("a", "b, c"), (None, "NULL"), ("NULL", None), ('"', ","), ("", "")]
    texts = [key_of_values(pair) for pair in pairs]
    assert texts == ['"a, b", c', 'a, "b, c"', 'NULL, "NULL"', '"NULL", NULL', '"\\"", ","', ", "]
    assert [values_of_text(text) for text in texts] == pairs


def test_nested_keys_are_said_as_json() -> None:
    place = pa.struct([("x", pa.int32()), ("y", pa.string())])
    schema = pa.schema([("place", place)])
    row = key_row(schema, '{"x": 1, "y": "<b>"}', "the query")
    assert row["place"].to_pylist() == [{"x": 1, "y": "<b>"}]
    with pytest.raises(InvalidSpecError, match="none of place struct<x: int32, y: string>"):
        key_row(schema, "1, <b>", "the query")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--window", "10:00"], "say start and end"),
        (["--window", "2024-01-01 00:00:10/soon"], "'soon' is no instant"),
        (["--window", "2024-01-01 00:00:10/2024-01-01 00:00:20/x"], "say start and end"),
        (["--key", "a", "--key", "b"], "has other columns than those of the query: k"),
        (["windoes"], "there is no table 'windoes' to look at; there are 'query'"),
    ],
)
def test_what_is_said_wrong_is_said(tmp_path: Path, arguments: list[str], says: str) -> None:
    extract(FOLDER / "slices_tumbling.tar.xz", tmp_path)
    done = CliRunner().invoke(app, ["inspect", str(tmp_path), *arguments])
    assert (done.exit_code, "Traceback" in done.output) == (1, False)
    assert says in " ".join(done.output.split())
