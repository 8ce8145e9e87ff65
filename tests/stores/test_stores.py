"""Both stores: changes are applied by key, each batch once, and a table with other columns is refused."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
import time
from decimal import Decimal
from subprocess import PIPE

import pyarrow as pa
import pytest

from windowpane.errors import ChangedViewSchemaError, DuplicateColumnError, InvalidSpecError, StoreError
from windowpane.sinks import ChangeWriter
from windowpane.sql import Session
from windowpane.stores import Batch, PostgresStore, Store, open_store


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


def test_a_row_that_comes_and_goes_in_one_batch_leaves_nothing(store) -> None:
    came_and_went = changes((1, "a", "insert"), (2, "b", "insert"), (1, "a", "delete"), (2, "b", "delete"), (3, "c", "insert"))
    assert store.apply(Batch("t", ("k",), came_and_went, 0, "s"))
    assert rows(store, "SELECT k, v FROM t") == [(3, "c")]
    changed = changes((3, "c", "update_preimage"), (3, "d", "update_postimage"), (3, "d", "delete"), (None, "e", "insert"))
    assert store.apply(Batch("t", ("k",), changed, 1, "s"))
    assert rows(store, "SELECT k, v FROM t") == [(None, "e")]
    back = changes((None, "e", "delete"), (None, "e", "insert"), (4, "f", "insert"), (4, "f", "delete"), (4, "g", "insert"))
    assert store.apply(Batch("t", ("k",), back, 2, "s"))
    assert sorted(rows(store, "SELECT k, v FROM t"), key=str) == [(4, "g"), (None, "e")]


def test_a_row_that_takes_the_place_of_another_is_there_whichever_change_comes_first(store) -> None:
    columns = {"k": pa.array([1, 2, None], pa.int64()), "x": [0.0, 5.0, 7.0]}
    store.apply(Batch("t", ("k",), pa.table(columns), 0, "s"))
    # The row of key 1 becomes key 2, that of 2 becomes 3: the new row of 2 stays, though the last change deletes the old one.
    words = ["update_preimage", "update_postimage"] * 2
    moved = {"k": pa.array([1, 2, 2, 3], pa.int64()), "x": [0.0, -0.0, 5.0, 5.0], "_change_type": words}
    store.apply(Batch("t", ("k",), pa.table(moved), 1, "s"))
    # Rows that are equal but for the sign of a zero are two.
    moved = {"k": pa.array([3, 2, 2, 4], pa.int64()), "x": [5.0, 0.0, -0.0, -0.0], "_change_type": words}
    store.apply(Batch("t", ("k",), pa.table(moved), 2, "s"))
    # The row that takes the place of another is like that one: it stays.
    moved = {"k": pa.array([4, 2, 2, 5], pa.int64()), "x": [-0.0, 0.0, 0.0, 1.0], "_change_type": words}
    store.apply(Batch("t", ("k",), pa.table(moved), 3, "s"))
    assert sorted(map(repr, rows(store, "SELECT k, x FROM t"))) == ["(2, 0.0)", "(5, 1.0)", "(None, 7.0)"]


def test_without_a_key_the_one_row_comes_and_goes(store) -> None:
    store.apply(Batch("t", (), changes((1, "a", "insert"), (1, "a", "delete")), 0, "s"))
    assert rows(store, "SELECT k, v FROM t") == []


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


@pytest.mark.parametrize("name", ["r", "t", "s", "windowpane_rows"])
def test_a_struct_whatever_its_name_hides_no_key(store, name) -> None:
    def batch(word: str, value: int) -> pa.Table:
        return pa.table({"k": [1], name: pa.array([{"x": value}]), "_change_type": [word]})

    store.apply(Batch("t", ("k",), batch("insert", 1), 0, "s"))
    store.apply(Batch("t", ("k",), batch("update_postimage", 2), 1, "s"))
    assert rows(store, f'SELECT k, "{name}" FROM t') == [(1, {"x": 2})]


def test_without_a_key_there_is_one_row(store) -> None:
    for number, total in enumerate((1, 2)):
        store.apply(Batch("t", (), pa.table({"total": pa.array([total], pa.int64())}), number, "s"))
    assert rows(store, "SELECT total FROM t") == [(2,)]


def test_many_tasks_bring_a_batch_to_postgres_and_a_repeated_one_changes_nothing(postgres_url: str) -> None:
    store = open_store(postgres_url)
    assert isinstance(store, PostgresStore)

    def part(keys: list[int | None], values: list[str], deleted: list[bool]) -> pa.Table:
        return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.string()), "windowpane_gone": deleted})

    def bring(number: int, parts: dict[int, list[pa.Table]]) -> bool:
        batch = Batch("t", ("k",), changes((0, "", "insert")).slice(0, 0).drop_columns("_change_type"), number, "s")
        staging = store.begin_staging(batch)
        for index, tables in parts.items():
            for attempt in (tables[:1], tables):
                task = PostgresStore(postgres_url)
                task.stage(staging, index, attempt)
                task.close()
        return store.apply(batch, staging)

    assert bring(0, {0: [part([1, None], ["a", "n"], [False, False])], 3: [part([2], ["b"], [False]), part([3], ["c"], [False])]})
    assert bring(1, {0: [part([1, 1, 2, None], ["d", "a", "b", "n"], [False, True, True, True])], 1: []})
    assert bring(2, {})
    assert not bring(2, {0: [part([4], ["e"], [False])]})
    assert sorted(rows(store, "SELECT k, v FROM t")) == [(1, "d"), (3, "c")]
    assert rows(store, "SELECT relname FROM pg_class WHERE relname LIKE 'windowpane_staging%'") == []
    store.close()


def test_a_batch_is_merged_by_index_with_nulls_in_its_key_too(postgres_url: str) -> None:
    store = open_store(postgres_url)

    def batch(first: int, number: int) -> Batch:
        numbers = range(first, first + 20_000)
        names = pa.array([None if n % 2 else f"key {n}" for n in numbers], pa.string())
        return Batch("t", ("name", "n"), pa.table({"name": names, "n": numbers, "batch": [number] * 20_000}), number, "s")

    for number in range(3):
        began = time.monotonic()
        store.apply(batch(number * 15_000, number))
        assert time.monotonic() - began < 20  # by loops over both: minutes
    assert rows(store, "SELECT batch, count(*) FROM t GROUP BY batch ORDER BY batch") == [(0, 15_000), (1, 15_000), (2, 20_000)]
    store.close()


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


def test_columns_whose_names_differ_by_case_alone_are_refused() -> None:
    with pytest.raises(DuplicateColumnError, match=r"table 't' have 'at', 'At', which are one name"):
        Batch("t", ("k",), pa.table({"k": [1], "at": [1], "At": [2], "K2": [3]}), 0, "s")


@pytest.mark.parametrize(
    ("table", "columns", "said"),
    [
        ("T", {"k": [1]}, 'Table with name "T" already exists'),
        ("u", {"k": [1], "s": [{"at": 1, "At": 2}]}, "Duplicate type parameter At"),
    ],
)
def test_what_duckdb_refuses_is_said_with_its_words_and_the_next_batch_is_taken(tmp_path, table, columns, said) -> None:
    store = open_store(str(tmp_path / "t.duckdb"))
    store.apply(Batch("t", ("k",), pa.table({"k": [7]}), 0, "s"))
    with pytest.raises(StoreError, match=rf"t\.duckdb: .*{said}"):
        store.apply(Batch(table, ("k",), pa.table(columns), 1, "s"))
    assert store.taken("s") == 0
    assert store.apply(Batch("t", ("k",), pa.table({"k": [8]}), 1, "s"))
    assert rows(store, "SELECT k FROM t ORDER BY k") == [(7,), (8,)]


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


def test_what_postgres_has_no_column_for_is_jsonb(postgres_url: str) -> None:
    hour, zone = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC), pa.timestamp("us", "UTC")
    span = pa.struct([("start", zone), ("end", zone)])
    inner = pa.struct([("n", pa.decimal128(38, 2)), ("x", pa.list_(pa.float64())), ("b", pa.binary()), ("t", pa.string())])
    table = pa.table(
        {
            "k": [1, 2],
            "windows_missed": pa.array([[{"start": hour, "end": hour + dt.timedelta(hours=1)}], None], pa.list_(span)),
            "inner": pa.array(
                [{"n": Decimal("123456789012345678901234.50"), "x": [1.5, None, float("nan")], "b": b"\x01", "t": 'é"\n'}, {}],
                inner,
            ),
            "counts": pa.array([[("a", 1), ("b", None)], []], pa.map_(pa.string(), pa.int64())),
            "lists": pa.array([[[1, 2], [], None], []], pa.list_(pa.list_(pa.int64()))),
        }
    )
    store = open_store(postgres_url)
    try:
        for number in (1, 2):
            store.apply(Batch("nested", ("k",), table, number, "s"))
        kinds = rows(store, "SELECT DISTINCT pg_typeof(windows_missed)::text, pg_typeof(lists)::text FROM nested")
        missed = (
            "(windows_missed->0->>'start')::timestamptz = timestamptz '2024-01-01 10:00+00', jsonb_array_length(windows_missed)"
        )
        assert kinds == [("jsonb", "jsonb")]
        assert rows(store, f"SELECT {missed} FROM nested ORDER BY k") == [(True, 1), (None, None)]
        made = (
            "inner_ = jsonb_build_object('n', 123456789012345678901234.50, "
            "'x', to_jsonb(ARRAY[1.5, NULL, 'NaN']::float8[]), 'b', '\\x01', 't', E'é\"\\n') AND "
            "counts = '{\"a\": 1, \"b\": null}' AND lists = '[[1, 2], [], null]'"
        )
        assert rows(store, f'SELECT {made} FROM (SELECT *, "inner" AS inner_ FROM nested) AS t WHERE k = 1') == [(True,)]
        assert rows(store, "SELECT counts::text, lists::text FROM nested WHERE k = 2") == [("{}", "[]")]
    finally:
        store.close()


@pytest.mark.parametrize("path", ["", ":memory:", ":memory:shop"])
def test_a_database_that_goes_after_each_batch_is_no_place_for_a_sink(path: str) -> None:
    with pytest.raises(InvalidSpecError, match="gone after each batch"):
        ChangeWriter(path, ("id",), "t")
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (id int PRIMARY KEY)")
        with pytest.raises(InvalidSpecError, match="gone after each batch"):
            session.run(f"CREATE SINK s FROM t WITH (connector = 'duckdb', path = '{path}', table = 't')")


@pytest.mark.parametrize("address", ["mysql://me:hunter2@host/shop", "jdbc:postgresql://host/shop", "sqlite:///t.db"])
def test_an_address_of_another_database_is_refused_at_once(address: str) -> None:
    for take in (lambda: ChangeWriter(address, ("id",), "t"), lambda: open_store(address), lambda: Session(store=address)):
        with pytest.raises(InvalidSpecError, match=r"a store is the path of a DuckDB file, or a PostgreSQL server") as refused:
            take()
        assert "hunter2" not in str(refused.value)
