"""What a value of a file is does not depend on its neighbours, and a text stays as it is written: DuckDB's guesses change it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from windowpane.sql import Session
from windowpane.sql.expressions.types import BIGINT, DOUBLE, REAL, VARCHAR
from windowpane.sql.values.json_lines import read_lines


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


@pytest.mark.slow_but_one_in(2)
@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_csv_stay_as_they_are_written(tmp_path: Path, text: str) -> None:
    taken = _taken(tmp_path / "in", "a.csv", f"x,y\n{text},1\n".encode(), "x text, y int")
    assert taken == [[text.strip('"'), "1"]]


# PostgreSQL's text of an array, or JSON; the values are those of PostgreSQL's COPY.
@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("int[]", "{1, NULL,2}", "{1,NULL,2}"),
        ("int[][]", "{{1},{2}}", "{{1},{2}}"),
        ("text[]", '{"a,b\\"",NULL,"NULL"}', '{"a,b\\"",NULL,"NULL"}'),
        ("jsonb[]", '{"{\\"a\\":1}"}', '{"{\\"a\\": 1}"}'),
        ("timestamp[]", '["2024-01-01 10:00"]', '{"2024-01-01 10:00:00"}'),
        ("int[]", "{1,x}", None),
        ("int[]", "{1", None),
    ],
)
def test_an_array_of_csv(tmp_path: Path, kind: str, written: str, value: str | None) -> None:
    quoted = written.replace('"', '""')
    assert _taken(tmp_path / "in", "a.csv", f'x,y\n"{quoted}",1\n'.encode(), f"x {kind}, y int") == [[value, "1"]]


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


@pytest.mark.slow_but_one_in(3)
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


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(":memory:") as session:
        yield session


def read(session: Session, folder: Path, columns: str, text: str, connector: str) -> list[tuple[Any, ...]]:
    """Return the rows of a file."""
    (folder / "in").mkdir()
    (folder / "in" / "a").write_text(text)
    session.run(f"CREATE SOURCE s ({columns}) WITH (connector = '{connector}', path = '{folder / 'in'}')")
    session.run("CREATE MATERIALIZED VIEW v AS SELECT * FROM s; FLUSH")
    return session.query("SELECT * FROM v").rows()


UUID = "0F8FAD5B-d9cb-469f-a165-70867728950E"


@pytest.mark.slow_but_one_in(4)
@pytest.mark.parametrize("other", ['{"a": "z"}', '{"a": 7}', '{"a": [1.50]}'], ids=["of texts", "of numbers", "of lists"])
@pytest.mark.parametrize(
    "value", ["2", "1.50", "1e3", "12345678901234567.25", "true", f'"{UUID}"', '"2024-01-01T10:00:00Z"', '" x"', '""']
)
def test_a_text_is_what_is_written(session: Session, tmp_path: Path, value: str, other: str) -> None:
    rows = read(session, tmp_path, "a varchar", f'{{"a": {value}}}\n{other}\n', "json")
    assert rows[0] == (json.loads(value) if value.startswith('"') else value,)


def test_a_line_of_csv_is_a_row_whatever_it_begins_with(session: Session, tmp_path: Path) -> None:
    rows = read(session, tmp_path, "a varchar, b varchar", "a,b\n#x,y\n'p',q\nr,s\n", "csv")
    assert rows == [("#x", "y"), ("'p'", "q"), ("r", "s")]


@pytest.mark.parametrize("beside", ["2", '"2"', "0.5"])
@pytest.mark.parametrize("kind", ["numeric", "numeric(30, 2)"])
def test_a_numeric_keeps_its_digits(session: Session, tmp_path: Path, kind: str, beside: str) -> None:
    rows = read(session, tmp_path, f"a {kind}", f'{{"a": 12345678901234567.25}}\n{{"a": {beside}}}\n', "json")
    assert rows[0] == (Decimal("12345678901234567.25"),)


@pytest.mark.parametrize("beside", ["2", '"2"'])
def test_a_numeric_of_an_array_keeps_its_digits(session: Session, tmp_path: Path, beside: str) -> None:
    rows = read(session, tmp_path, "a numeric[]", f'{{"a": [12345678901234567.25, null]}}\n{{"a": [{beside}]}}\n', "json")
    assert rows == [([Decimal("12345678901234567.25"), None],), ([Decimal(2)],)]


def test_a_large_whole_number_beside_a_fraction_keeps_its_last_digit(session: Session, tmp_path: Path) -> None:
    text = '{"a": 9007199254740993}\n{"a": 9007199254740993.5}\n{"a": 2.0}\n'
    assert read(session, tmp_path, "a bigint", text, "json") == [(9007199254740993,), (None,), (2,)]
    assert [row["Value"] for row in session.query("SHOW ERRORS").dicts()] == ["9007199254740993.5"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int[][]", "[[1.5]]"),
        ("int[]", '["x"]'),
        ("int[]", "3"),
        ("timestamp[]", '["2024-01-01 10:00 noon"]'),
        ("real", "1e39"),
        ("double", "1e400"),
    ],
)
def test_a_value_that_does_not_fit_is_malformed(session: Session, tmp_path: Path, kind: str, value: str) -> None:
    assert read(session, tmp_path, f"a {kind}", f'{{"a": {value}}}\n', "json") == [(None,)]
    (error,) = session.query("SHOW ERRORS").dicts()
    assert "out of range" in error["Error"] or "invalid input syntax" in error["Error"]


@pytest.mark.parametrize("beside", ["null", "[1.50]"])
def test_texts_of_an_array_keep_their_characters(session: Session, tmp_path: Path, beside: str) -> None:
    text = f'{{"a": ["x, \\"y\\"", null, "n\\nl", "null"]}}\n{{"a": {beside}}}\n'
    assert read(session, tmp_path, "a varchar[]", text, "json")[0] == (['x, "y"', None, "n\nl", "null"],)


def test_bytes_are_those_of_their_hexadecimal_digits(session: Session, tmp_path: Path) -> None:
    assert read(session, tmp_path, "a bytea", '{"a": "\\\\x6162"}\n{"a": "abc"}\n', "json") == [(b"ab",), (b"abc",)]


def test_names_match_whatever_their_case(session: Session, tmp_path: Path) -> None:
    text = '{"userId": 1}\n{"userid": 2}\n{"USERID": 3, "userid": 4}\n{"other": 5}\n'
    assert read(session, tmp_path, "userid int", text, "json") == [(1,), (2,), (4,), (None,)]


def test_a_name_in_another_case_behind_the_first_lines_is_seen() -> None:
    lines = b"\n".join([b'{"a": 1, "b": "x"}'] * 10_000 + [b'{"A": 2, "b": "y"}'])
    assert read_lines(lines, {"a": BIGINT, "b": VARCHAR}) is None


def test_what_arrow_would_change_is_refused() -> None:
    for kind, value in ((BIGINT, b"1.5"), (VARCHAR, b"1"), (REAL, b"1e39"), (DOUBLE, b"1e400")):
        assert read_lines(b'{"a": ' + value + b"}\n", {"a": kind}) is None
