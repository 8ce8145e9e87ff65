"""Both stores: changes are applied by key, each batch once, and a table with other columns is refused."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from decimal import Decimal
from subprocess import PIPE

import pyarrow as pa
import pytest

from windowpane.errors import ChangedViewSchemaError, InvalidSpecError, StoreError
from windowpane.sinks import ChangeWriter
from windowpane.sql import Session
from windowpane.stores import Batch, Store, open_store


@pytest.fixture(params=["duckdb", "postgres"])
def store(request, tmp_path):
    opened = open_store(str(tmp_path / "t.duckdb") if request.param == "duckdb" else request.getfixturevalue("postgres_url"))
    yield opened
    opened.close()


def rows(store: Store, query: str) -> list[tuple]:
    return store.read(query)


def changes(*cells: tuple[int | None, str, str]) -> pa.Table:
    keys, values, words = zip(*cells, strict=True)
    return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.string()), "_change_type": words})


def test_changes_are_applied_by_key(store) -> None:
    assert store.apply(Batch("t", ("k",), changes((1, "a", "insert"), (2, "b", "insert"), (None, "n", "insert")), 0, "s"))
    changed = changes(
        (1, "a", "update_preimage"),
        (1, "c", "update_postimage"),
        (2, "b", "delete"),
        (None, "n", "update_preimage"),
        (None, "m", "update_postimage"),
        (3, "d", "insert"),
    )
    assert store.apply(Batch("t", ("k",), changed, 1, "s"))
    assert sorted(rows(store, "SELECT k, v FROM t"), key=str) == [(1, "c"), (3, "d"), (None, "m")]


def test_a_repeated_batch_changes_nothing(store) -> None:
    assert store.apply(Batch("t", ("k",), changes((1, "a", "insert")), 7, "s"))
    assert not store.apply(Batch("t", ("k",), changes((2, "b", "insert")), 7, "s"))
    assert not store.apply(Batch("t", ("k",), changes((2, "b", "insert")), 6, "s"))
    assert store.apply(Batch("t", ("k",), changes((2, "b", "insert")), 7, "another source"))
    assert sorted(rows(store, "SELECT k, v FROM t")) == [(1, "a"), (2, "b")]


def test_a_table_with_other_columns_is_refused_and_nothing_is_written(store) -> None:
    store.apply(Batch("t", ("k",), changes((1, "a", "insert")), 0, "s"))
    wider = changes((2, "b", "insert")).append_column("w", pa.array([1.5]))
    with pytest.raises(ChangedViewSchemaError, match=r"(?i)w: stored absent, view double") as refused:
        store.apply(Batch("t", ("k",), wider, 1, "s"))
    assert list(refused.value.differences) == ["w"]
    assert rows(store, "SELECT k, v FROM t") == [(1, "a")]
    assert store.apply(Batch("t", ("k",), changes((2, "b", "insert")), 1, "s"))


def test_names_mean_themselves(store) -> None:
    store.apply(Batch("a 'table'", ('the "key"',), pa.table({'the "key"': [1], "100 %": ["x"]}), 0, "s"))
    assert rows(store, 'SELECT "the ""key""", "100 %" FROM "a \'table\'"') == [(1, "x")]


def test_without_a_key_there_is_one_row(store) -> None:
    for number, total in enumerate((1, 2)):
        store.apply(Batch("t", (), pa.table({"total": pa.array([total], pa.int64())}), number, "s"))
    assert rows(store, "SELECT total FROM t") == [(2,)]


def test_values_of_every_type_come_back(store) -> None:
    instant = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)
    table = pa.table(
        {
            "k": pa.array([1], pa.int32()),
            "flag": [True],
            "amount": pa.array([Decimal("12.50")], pa.decimal128(38, 2)),
            "ratio": [0.1],
            "day": pa.array([instant.date()], pa.date32()),
            "at": pa.array([instant], pa.timestamp("us")),
            "zoned": pa.array([instant.replace(tzinfo=dt.UTC)], pa.timestamp("us", tz="UTC")),
            "names": pa.array([["a", None]], pa.list_(pa.string())),
            "raw": pa.array([b"\x00\xff"], pa.binary()),
            "nothing": pa.array([None], pa.int64()),
        }
    )
    store.apply(Batch("t", ("k",), table, 0, "s"))
    (row,) = rows(store, "SELECT * FROM t")
    assert row[:6] == (1, True, Decimal("12.50"), 0.1, instant.date(), instant)
    assert row[6] == instant.replace(tzinfo=dt.UTC)
    assert (list(row[7]), bytes(row[8]), row[9]) == (["a", None], b"\x00\xff", None)


def test_a_key_that_is_no_column_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match="nope"):
        Batch("t", ("nope",), changes((1, "a", "insert")), 0, "s")


def test_a_word_that_is_no_change_type_is_refused(store) -> None:
    with pytest.raises(InvalidSpecError, match="upsert"):
        store.apply(Batch("t", ("k",), changes((1, "a", "upsert")), 0, "s"))


def test_the_writer_of_streaming_queries_repeats_nothing(tmp_path) -> None:
    writer = ChangeWriter(str(tmp_path / "t.duckdb"), ("k",), "t")
    writer.rows(changes((1, "a", "insert")), 0)
    writer.rows(changes((1, "z", "insert")), 0)
    writer.rows(changes((2, "b", "insert")), 1)
    store = open_store(writer.store)
    assert sorted(rows(store, "SELECT k, v FROM t")) == [(1, "a"), (2, "b")]
    store.close()


HOLDS = "import duckdb, sys\nheld = duckdb.connect(sys.argv[1])\nprint('held', flush=True)\nsys.stdin.read()"


@pytest.mark.parametrize("opened", [open_store, lambda path: Session(store=path)], ids=["store", "session"])
def test_a_file_that_another_process_has_open_is_refused_until_it_is_closed_there(tmp_path, opened) -> None:
    path = str(tmp_path / "t.duckdb")
    with subprocess.Popen([sys.executable, "-c", HOLDS, path], stdin=PIPE, stdout=PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=r"(?s)t\.duckdb: another process has it open\. Close it there.*" + str(holder.pid)):
            opened(path)
        holder.communicate(timeout=60)
    opened(path).close()


@pytest.mark.parametrize("name", ["t.duckdb", "locked.duckdb"])
def test_a_file_that_is_no_database_is_refused_and_stays(tmp_path, name) -> None:
    path = tmp_path / name
    path.write_text("k,v\n1,a\n")
    with pytest.raises(StoreError, match=rf"{re.escape(name)}: .*not a valid DuckDB database") as refused:
        open_store(str(path))
    assert "another process" not in str(refused.value)
    assert path.read_text() == "k,v\n1,a\n"
