"""Malformed rows: one rule for every source; what RisingWave does (``src/connector/src/parser``) is the default in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from windowpane.errors import MalformedRowError, UnreadableFileError, UnsupportedSqlError
from windowpane.sql import Session


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(":memory:") as session:
        yield session


def source(
    session: Session, folder: Path, columns: str, connector: str = "json", options: str = "", kind: str = "SOURCE"
) -> None:
    """Make a source of a folder, and a view of all its rows."""
    folder.mkdir(exist_ok=True)
    session.run(f"CREATE {kind} s ({columns}) WITH (connector = '{connector}', path = '{folder}'{options})")
    session.run("CREATE MATERIALIZED VIEW v AS SELECT * FROM s")


def texts(session: Session, query: str = "SELECT * FROM v ORDER BY 1") -> list[list[str | None]]:
    """Return the rows of a query as PostgreSQL prints them."""
    return session.query(query).text_rows()


def errors(session: Session) -> list[tuple[Any, ...]]:
    """Return source, position, column, value and reason of what SHOW ERRORS lists."""
    names = ("Source", "Position", "Column", "Value", "Error")
    return [tuple(row[name] for name in names) for row in session.query("SHOW ERRORS").dicts()]


def test_a_line_that_is_no_json_is_left_out_and_the_rows_around_it_arrive(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "user_id varchar, amount int")
    file = tmp_path / "in" / "a.json"
    file.write_text('{"user_id": "a", "amount": 1}\nnot json\n{"user_id": "b", "amount": 2}\n[1]\n')
    session.run("FLUSH")
    assert texts(session) == [["a", "1"], ["b", "2"]]
    assert [row[:4] for row in errors(session)] == [
        ("s", f"{file}, line 2", None, "not json"),
        ("s", f"{file}, line 4", None, "[1]"),
    ]
    assert "no JSON" in errors(session)[0][4]
    assert "no object" in errors(session)[1][4]


def test_a_field_that_does_not_fit_is_null(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "k int, amount int, at timestamptz, price numeric(5, 2)")
    lines = [
        '{"k": 1, "amount": "x", "at": "2024-01-01T00:00:00Z", "price": 1.25}',
        '{"k": 2, "amount": 5, "at": "yesterday", "price": "12345.67"}',
        '{"k": 3, "amount": 99999999999, "at": null, "price": 3.25}',
    ]
    file = tmp_path / "in" / "a.json"
    file.write_text("\n".join(lines))
    session.run("FLUSH")
    assert texts(session) == [["1", None, "2024-01-01 00:00:00+00:00", "1.25"], ["2", "5", None, None], ["3", None, None, "3.25"]]
    assert sorted(row[1:4] for row in errors(session)) == [
        (f"{file}, line 1", "amount", "x"),
        (f"{file}, line 2", "at", "yesterday"),
        (f"{file}, line 2", "price", "12345.67"),
        (f"{file}, line 3", "amount", "99999999999"),
    ]
    reasons = {row[3]: row[4] for row in errors(session)}
    assert reasons["x"] == 'invalid input syntax for type integer: "x"'


@pytest.mark.parametrize(
    ("connector", "text"), [("json", '{"k": 1, "v": 1.5}\n{"k": 2, "v": 2.0}\n'), ("csv", "k,v\n1,1.5\n2,2.0\n")]
)
def test_a_fraction_does_not_fit_a_whole_number(session: Session, tmp_path: Path, connector: str, text: str) -> None:
    source(session, tmp_path / "in", "k int, v int", connector)
    (tmp_path / "in" / f"a.{connector}").write_text(text)
    session.run("FLUSH")
    assert texts(session) == [["1", None], ["2", "2"]]
    assert [row[2:4] for row in errors(session)] == [("v", "1.5")]


def test_a_fraction_does_not_fit_an_array_of_whole_numbers(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "k int, v int[]")
    (tmp_path / "in" / "a.json").write_text('{"k": 1, "v": [1, 1.5]}\n{"k": 2, "v": [2.0, null]}\n{"k": 3, "v": null}\n')
    session.run("FLUSH")
    assert texts(session) == [["1", None], ["2", "{2,NULL}"], ["3", None]]
    assert [row[2:4] for row in errors(session)] == [("v", "[1,1.5]")]


def test_a_time_of_a_source_is_what_a_cast_makes_of_its_text(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "k int, at timestamp, zoned timestamptz, clock time")
    lines = [
        '{"k": 1, "at": "2024-07-01 10:00:00 noon", "zoned": "2024-07-01 10:00 PST", "clock": "2024-07-01"}',
        '{"k": 2, "at": "2024-07-01T10:00:00.123456789Z", "zoned": "2024-07-01 10:00+02", "clock": "10:00"}',
    ]
    (tmp_path / "in" / "a.json").write_text("\n".join(lines))
    session.run("FLUSH")
    assert texts(session) == [
        ["1", None, "2024-07-01 18:00:00+00:00", None],
        ["2", "2024-07-01 10:00:00.123456", "2024-07-01 08:00:00+00:00", "10:00:00"],
    ]
    assert [row[2:4] for row in errors(session)] == [("at", "2024-07-01 10:00:00 noon"), ("clock", "2024-07-01")]


def test_a_row_without_a_readable_key_is_left_out(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "id int PRIMARY KEY, v int", kind="TABLE")
    (tmp_path / "in" / "a.json").write_text('{"id": "x", "v": 1}\n{"id": 2, "v": 2}\n')
    session.run("FLUSH")
    assert texts(session) == [["2", "2"]]
    assert [row[2:4] for row in errors(session)] == [("id", "x")]


def test_a_row_without_a_value_that_is_needed_stops_no_source(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "id int NOT NULL, v int", kind="TABLE")
    (tmp_path / "in" / "a.json").write_text('{"id": "x", "v": 1}\n{"id": 2, "v": 2}\n{"id": null, "v": 3}\n{"v": 4}\n')
    session.run("FLUSH")
    assert texts(session) == [["2", "2"]]
    assert [row[2:4] for row in errors(session)] == [("id", "x"), ("id", None), ("id", None)]


def test_fields_of_csv_follow_the_same_rule(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "k int, v varchar", "csv")
    file = tmp_path / "in" / "a.csv"
    file.write_bytes(b'k,v\n1,a\nx,b\n3\n4,d,e\n5,"f\n6,g\n')
    session.run("FLUSH")
    assert texts(session) == [["1", "a"], ["3", None], ["4", "d"], ["6", "g"], [None, "b"]]
    assert sorted(row[1:4] for row in errors(session)) == [
        (f"{file}, line 3", "k", "x"),
        (f"{file}, line 4", None, "3"),
        (f"{file}, line 5", None, "4,d,e"),
        (f"{file}, line 6", None, '5,"f'),
    ]


def test_a_malformed_row_holds_no_other_file_up_and_is_counted_once(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "k int")
    for number in range(4):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"k": {number}}}\n' + ("no\n" if number % 2 else ""))
    session.run("FLUSH; FLUSH")
    assert texts(session) == [["0"], ["1"], ["2"], ["3"]]
    assert len(errors(session)) == 2


def test_many_malformed_rows_are_all_counted(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "k int")
    (tmp_path / "in" / "a.json").write_text("no\n" * 150 + '{"k": 1}\n' + '{"k": "x"}\n' * 120)
    session.run("FLUSH")
    shown = session.query("SHOW ERRORS").dicts()
    assert sum(row["Count"] for row in shown) == 270
    assert len(shown) == 101
    assert texts(session, "SELECT count(*), count(k) FROM v") == [["121", "1"]]


@pytest.mark.parametrize(("policy", "rows"), [("null", [["1"], [None]]), ("drop", [["1"]])])
def test_a_source_says_what_becomes_of_its_malformed_rows(session: Session, tmp_path: Path, policy: str, rows: list[Any]) -> None:
    source(session, tmp_path / "in", "k int", options=f", malformed = '{policy}'")
    (tmp_path / "in" / "a.json").write_text('{"k": 1}\n{"k": "x"}\nno\n')
    session.run("FLUSH")
    assert texts(session) == rows
    assert len(errors(session)) == 2


def test_a_source_whose_malformed_rows_are_to_fail_says_which(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "k int", options=", malformed = 'fail'")
    (tmp_path / "in" / "a.json").write_text('{"k": 1}\n{"k": "x"}\n')
    (tmp_path / "in" / "b.json").write_text('{"k": 2}\n')
    with pytest.raises(MalformedRowError, match=r"s, .*a\.json, line 2, column 'k': 'x'.*malformed='drop'"):
        session.run("FLUSH")
    assert texts(session) == [["2"]]
    (tmp_path / "in" / "a.json").write_text('{"k": 1}\n')
    session.run("FLUSH")
    assert texts(session) == [["1"], ["2"]]


def test_a_policy_that_is_none_is_refused(session: Session, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedSqlError, match="'null', 'drop', 'fail'"):
        session.run(f"CREATE SOURCE s (k int) WITH (connector = 'json', path = '{tmp_path}', malformed = 'ignore')")


def test_nested_and_long_values_beside_a_malformed_row_are_as_written(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "k int, j jsonb, a int[], n numeric")
    rows = ['{"k": "x"}', '{"k": 1, "j": {"b": [1.50, "t"]}, "a": [1, 2], "n": 0.1234567891}', '{"k": 2, "j": "t", "a": ["y"]}']
    (tmp_path / "in" / "a.json").write_text("\n".join(rows))
    session.run("FLUSH")
    assert texts(session, "SELECT k, j->'b'->>1, a, n FROM v WHERE k = 1") == [["1", "t", "{1,2}", "0.1234567891"]]
    assert texts(session, "SELECT j #>> '{}', a FROM v WHERE k = 2") == [["t", None]]
    assert sorted(str(row[2]) for row in errors(session)) == ["a", "k"]


def test_objects_on_several_lines_and_arrays_are_read_beside_malformed_ones(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "k int")
    (tmp_path / "in" / "a.json").write_text('[{"k": 1}, {"k": "x"}, 7]')
    (tmp_path / "in" / "b.json").write_text('{\n  "k": 2\n}\n{\n  "k": "y"\n}\n')
    session.run("FLUSH")
    assert texts(session, "SELECT count(*), sum(k) FROM v") == [["4", "3"]]
    assert [Path(row[1]).name for row in errors(session)] == ["a.json, element 3", "a.json, element 2", "b.json, line 4"]


def test_a_parquet_file_that_is_none_is_still_an_error(session: Session, tmp_path: Path) -> None:
    source(session, tmp_path / "in", "k int", "parquet")
    (tmp_path / "in" / "a.parquet").write_text("no")
    with pytest.raises(UnreadableFileError, match=r"a\.parquet"):
        session.run("FLUSH")


def test_malformed_rows_stay_counted_with_the_store_and_go_with_their_source(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with Session(store) as session:
        source(session, tmp_path / "in", "k int")
        (tmp_path / "in" / "a.json").write_text('{"k": 1}\nno\n')
        session.run("FLUSH")
    with Session(store) as session:
        assert len(errors(session)) == 1
        session.run("DROP SOURCE s CASCADE")
        assert errors(session) == []
