"""What a value of a file is does not depend on its neighbours, and a text stays as it is written: DuckDB's guesses change it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from windowpane.sql import Session


def _taken(folder: Path, name: str, content: bytes, columns: str) -> list[list[str | None]]:
    folder.mkdir()
    folder.joinpath(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with Session(store=":memory:") as session:
        form = "json" if ".json" in name else "csv"
        session.run(f"CREATE TABLE t ({columns}) APPEND ONLY WITH (connector = '{form}', path = '{folder}'); FLUSH")
        return session.query("SELECT * FROM t").text_rows()


TEXTS = [
    '"2024-01-01T00:00:00Z"', '"10:00"', '"550E8400-e29b-41d4-a716-446655440000"', '"FALSE"', '"1.50"', '"1e2"', '"01/02/2024"',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_json_stay_as_they_are_written(tmp_path: Path, text: str) -> None:
    taken = _taken(tmp_path / "in", "a.json", f'{{"x": {text}}}\n'.encode(), "x text")
    assert taken == [[text.strip('"')]]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_csv_stay_as_they_are_written(tmp_path: Path, text: str) -> None:
    taken = _taken(tmp_path / "in", "a.csv", f"x,y\n{text},1\n".encode(), "x text, y int")
    assert taken == [[text.strip('"'), "1"]]


VALUES = [
    ("text", "1.50", "1.50"),
    ("text", "12345678901234567890123", "12345678901234567890123"),
    ("text", '{"a": 1}', '{"a":1}'),
    ("numeric", "123456789012345678.5", "123456789012345678.5"),  # no digit is lost
    ("timestamp", '"2024-02-29T10:00:00+02:00"', "2024-02-29 10:00:00"),  # PostgreSQL: a timestamp has no offset
    ("date", '"2024-02-29T23:00:00-05:00"', "2024-02-29"),
    ("jsonb", '"{\\"a\\":1}"', '"{\\"a\\":1}"'),  # a text in which there is JSON is a text
    ("jsonb", "[1, 2.50]", "[1, 2.5]"),
    ("text[]", '["2024-01-01T00:00:00Z"]', "{2024-01-01T00:00:00Z}"),
    ("text[]", '[{"a":1}]', '{"{\\"a\\":1}"}'),
    ("bytea", '"\\\\x6162"', "\\x6162"),  # PostgreSQL's, and RisingWave's, way to write bytes
    ("bytea", '"ab"', "\\x6162"),
    ("bytea", '"\u00e9"', "\\xc3a9"),
    ("bytea", '"\\\\x6"', None),
    ("boolean", '"on"', "t"),  # as PostgreSQL reads it
    ("boolean", '" tru "', "t"),
    ("boolean", "0", "f"),
    ("interval", '"P1Y2M3DT4H"', "1 year 2 mons 3 days 04:00:00"),
    ("int", "true", None),
    ("boolean", "2", None),
]


@pytest.mark.parametrize("neighbour", ["", "no JSON\n"])
@pytest.mark.parametrize(("kind", "written", "value"), VALUES)
def test_a_value_of_json_is_the_same_beside_a_malformed_row(
    tmp_path: Path, neighbour: str, kind: str, written: str, value: str | None
) -> None:
    taken = _taken(tmp_path / "in", "a.json", f'{{"x": {written}}}\n{neighbour}'.encode(), f"x {kind}")
    assert taken == [[value]]


def test_a_text_beside_a_number_has_no_quotes(tmp_path: Path) -> None:
    assert _taken(tmp_path / "in", "a.json", b'{"x": 7}\n{"x": "a"}\n', "x text") == [["7"], ["a"]]


def test_objects_on_several_lines(tmp_path: Path) -> None:
    content = b'{"x": 1,\n "y": {"z":\n  {"w": 2}\n }\n}\n{"x": 3}\n{\n"x": 4\n}\n{"x": 5,\n{"x": 6}\n'
    assert _taken(tmp_path / "in", "a.json", content, "x int, y jsonb") == [
        ["1", '{"z": {"w": 2}}'],
        ["3", None],
        ["4", None],
        ["6", None],
    ]


@pytest.mark.parametrize("name", ["a.json.gz", "a.csv.gz"])
def test_compressed_files(tmp_path: Path, name: str) -> None:
    content = b'{"x": "1.0"}\n{"x": "b"}\n' if "json" in name else b"x\n1.0\nb\n"
    assert _taken(tmp_path / "in", name, content, "x text") == [["1.0"], ["b"]]
