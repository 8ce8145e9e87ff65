"""Malformed rows of ``wp.read_in_arrow``: an error that says where, or left out or NULL, counted, shown, and an output."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windowpane as wp
from tests.spark.helpers import run
from windowpane.errors import MalformedRowError, UnreadableFileError
from windowpane.malformed import MalformedRow
from windowpane.spark.sources.arrow_files import CsvFormat, FileReader
from windowpane.spark.sources.arrow_rows import Reading

KV = pa.schema([("k", pa.string()), ("v", pa.int64())])


def read(
    format: str, text: str, policy: str = "null", schema: pa.Schema = KV, event_time: str | None = None
) -> tuple[list[dict[str, Any]], Sequence[MalformedRow]]:
    """Return the rows of a file, and those that were malformed."""
    reading = Reading(policy, event_time)
    reader = FileReader(format, schema, CsvFormat(header=True), "UTC", "in", reading)
    file = pa.record_batch([pa.array(["f"]), pa.array([text.encode()], pa.binary())], names=["path", "content"])
    return pa.concat_tables(reader(iter([file]))).to_pylist(), reading.met


@pytest.mark.parametrize("row", ["2,b", "x,b"])
def test_columns_of_csv_are_found_whatever_their_case(row: str) -> None:
    assert read("csv", f"V,K\n1,a\n{row}\n")[0] == [{"k": "a", "v": 1}, {"k": "b", "v": 2 if row == "2,b" else None}]


@pytest.mark.parametrize("any_case", [True, False])
def test_columns_of_parquet_are_found_as_the_session_compares_names(any_case: bool) -> None:
    stored = pa.BufferOutputStream()
    pq.write_table(pa.table({"V": [1], "k": ["a"]}), stored)
    reader = FileReader("parquet", KV, CsvFormat(), "UTC", any_case=any_case)
    expected = {"k": "a", "v": 1 if any_case else None}
    assert reader.table("in", stored.getvalue()).to_pylist() == [expected]


def test_a_file_of_parquet_without_any_of_the_columns_has_its_rows_all_the_same() -> None:
    stored = pa.BufferOutputStream()
    pq.write_table(pa.table({"other": [1, 2]}), stored)
    reader = FileReader("parquet", KV, CsvFormat(), "UTC")
    assert reader.table("in", stored.getvalue()).to_pylist() == [{"k": None, "v": None}] * 2


def test_two_columns_that_differ_by_case_alone_are_refused_where_either_may_be_meant() -> None:
    with pytest.raises(UnreadableFileError, match=r"\['Kk', 'kK'\] differ in case only"):
        FileReader("csv", pa.schema([("kk", pa.int64())]), CsvFormat(header=True), "UTC").table(
            "in", pa.py_buffer(b"Kk,kK\n1,2\n")
        )


def test_what_is_no_row_is_left_out_and_what_does_not_fit_is_null() -> None:
    rows, met = read("json", '{"k": "a", "v": 1}\nno\n{"k": "b", "v": "x"}\n{"k": "c", "v": 3}\n')
    assert rows == [{"k": "a", "v": 1}, {"k": "b", "v": None}, {"k": "c", "v": 3}]
    assert [(each.source, each.position, each.column, each.value) for each in met] == [
        ("in", "f, line 2", None, "no"),
        ("in", "f, line 3", "v", "x"),
    ]


def test_rows_of_csv_follow_the_same_rule() -> None:
    rows, met = read("csv", "k,v\na,1\nb,x\nc\nd,4\n")
    assert rows == [{"k": "a", "v": 1}, {"k": "b", "v": None}, {"k": "c", "v": None}, {"k": "d", "v": 4}]
    assert sorted((each.position, each.column or "") for each in met) == [("f, line 3", "v"), ("f, line 4", "")]


@pytest.mark.parametrize("format", ["json", "csv"])
def test_malformed_rows_are_dropped_whole(format: str) -> None:
    text = {"json": '{"k": "a", "v": 1}\nno\n{"k": "b", "v": "x"}\n', "csv": "k,v\na,1\nb\nc,x\n"}[format]
    rows, met = read(format, text, "drop")
    assert rows == [{"k": "a", "v": 1}]
    assert len(met) == 2


def test_a_row_whose_event_time_does_not_fit_is_left_out() -> None:
    schema = KV.append(pa.field("at", pa.timestamp("us", "UTC")))
    lines = '{"k": "a", "at": "2024-01-01T00:00:00Z"}\n{"k": "b", "at": "never"}\n'
    assert read("json", lines, schema=schema, event_time="at")[0] == [
        {"k": "a", "v": None, "at": datetime(2024, 1, 1, tzinfo=UTC)}
    ]
    assert len(read("json", lines, schema=schema)[0]) == 2


def test_values_beside_a_malformed_row_are_those_of_their_types() -> None:
    schema = pa.schema([("d", pa.decimal128(30, 20)), ("l", pa.list_(pa.int32())), ("b", pa.bool_()), ("s", pa.string())])
    rows, met = read(
        "json", 'no\n{"d": 0.12345678901234567891, "l": [1, null], "b": true, "s": 1.50}\n{"l": ["y"]}', schema=schema
    )
    assert rows[0] == {"d": Decimal("0.12345678901234567891"), "l": [1, None], "b": True, "s": "1.50"}
    assert rows[1] == {"d": None, "l": None, "b": None, "s": None}
    assert [each.column for each in met] == [None, "l"]


def test_the_first_malformed_row_is_an_error_that_says_the_way_out() -> None:
    with pytest.raises(MalformedRowError, match=r"in, f, line 2, column 'v': 'x': .*malformed='null' .*malformed='drop'"):
        read("json", '{"v": 1}\n{"v": "x"}\n', "fail")


@pytest.mark.spark
def test_malformed_rows_are_an_output_and_are_counted(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [f'{{"k": "a", "v": {number}, "at": "2024-01-01T00:00:0{number}Z"}}' for number in range(3)]
    lines += ["no json", '{"k": "a", "v": "x", "at": "2024-01-01T00:00:03Z"}', '{"k": "a", "v": 9, "at": "never"}']
    (folder / "a.json").write_text("\n".join([*lines, '{"k": "b", "v": 7, "at": "2024-01-01T00:01:00Z"}']))
    made = wp.read_in_arrow(spark, str(folder), "k string, v long, at timestamp", "json")
    windows = wp.stream(made, "at", "0 seconds").key_by("k").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    result = windows.aggregate(n=wp.count(), s=wp.sum("v"))
    collected = run(result, "main", "malformed")
    assert [row[-2:] for row in collected.rows()] == [(4, 3)]
    assert [(Path(row[1]).name, *row[2:4]) for row in collected.rows("malformed")] == [
        ("a.json, line 4", None, "no json"),
        ("a.json, line 5", "v", "x"),
        ("a.json, line 6", "at", "never"),
    ]
    progress = [wp.progress(each) for each in collected.progress]
    assert sum(each["malformed"] for each in progress if each) == 3
    assert sorted(row.value or "" for each in progress for row in each.malformed) == ["never", "no json", "x"]
    with pytest.raises(Exception, match="MalformedRowError"):
        run(result, "main", checkpoint=tmp_path / "checkpoint")
