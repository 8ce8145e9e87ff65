"""Sessions: tables, statements on them, sources, sinks, and what a store keeps."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.errors import (
    NotAFolderError,
    SqlNameError,
    SqlRunError,
    SqlSyntaxError,
    StoreError,
    UnreadableFileError,
    UnsupportedSqlError,
)
from windowpane.sql import Session
from windowpane.sql.shell.commands import left_of
from windowpane.stores import open_store


@pytest.fixture
def session():
    with Session(":memory:") as opened:
        yield opened


def test_changes_reach_views_with_a_flush_only(session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int); CREATE MATERIALIZED VIEW n AS SELECT sum(v) AS s FROM t")
    session.run("INSERT INTO t VALUES (1, 2), (2, 3)")
    assert session.query("SELECT s FROM n").rows() == [(None,)]
    session.run("WAIT")
    assert session.query("SELECT s FROM n").rows() == [(5,)]
    session.run("SET rw_implicit_flush = true; DELETE FROM t WHERE k = 1")
    assert session.query("SELECT s FROM n").rows() == [(3,)]


def test_a_row_with_a_key_that_is_there_replaces_the_old_one(session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int); CREATE MATERIALIZED VIEW c AS SELECT * FROM t")
    session.run("INSERT INTO t VALUES (1, 1), (1, 2); FLUSH; INSERT INTO t VALUES (1, 3); FLUSH")
    assert session.query("SELECT * FROM c").rows() == [(1, 3)]
    words = [(row["_change_type"], row["v"]) for row in session.changelog("c").to_pylist()]
    assert words == [("update_preimage", 2), ("update_postimage", 3)]


def test_an_append_only_table_keeps_the_first_row_of_a_key(session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int) APPEND ONLY; INSERT INTO t VALUES (1, 1), (1, 2), (2, 1)")
    assert session.query("SELECT * FROM t ORDER BY k").rows() == [(1, 1), (2, 1)]
    with pytest.raises(UnsupportedSqlError, match="APPEND ONLY"):
        session.run("DELETE FROM t")


def test_a_statement_that_fails_leaves_nothing(session: Session) -> None:
    session.run("CREATE TABLE t (k int NOT NULL, v int)")
    with pytest.raises(SqlRunError, match="NOT NULL"):
        session.run("INSERT INTO t VALUES (1, 1), (NULL, 2)")
    with pytest.raises(SqlRunError):
        session.run("CREATE TABLE copy AS SELECT 1 / (v - v) AS x FROM (SELECT 1 AS v) AS q")
    assert session.query("SELECT count(*) FROM t").rows() == [(0,)]
    assert session.query("SHOW TABLES").rows() == [("t",)]


def test_a_session_that_is_closed_says_so() -> None:
    session = Session(":memory:")
    session.close()
    for statement in ("SELECT 1", "CREATE TABLE t (k int)", "FLUSH"):
        with pytest.raises(StoreError, match="this session is closed"):
            session.run(statement)


def test_what_is_read_is_not_dropped(session: Session) -> None:
    session.run("CREATE TABLE t (v int); CREATE VIEW p AS SELECT v FROM t; CREATE MATERIALIZED VIEW m AS SELECT * FROM p")
    with pytest.raises(UnsupportedSqlError, match="'p' reads 't'"):
        session.run("DROP TABLE t")
    session.run("DROP TABLE t CASCADE")
    assert session.relations() == []
    with pytest.raises(SqlNameError, match="no table 't'"):
        session.run("DROP TABLE t")
    session.run("DROP TABLE IF EXISTS t")


@pytest.mark.parametrize("columns", ["", "(k bigint PRIMARY KEY, v int, w text)"])
def test_a_table_made_by_a_query_outlives_what_it_was_made_from(tmp_path: Path, columns: str) -> None:
    store = str(tmp_path / "views.duckdb")
    with Session(store) as session:
        session.run("CREATE TABLE a (k int, v numeric, w text); INSERT INTO a VALUES (1, 2.5, 'x'), (2, NULL, 'y')")
        session.run(f"CREATE TABLE b {columns} AS SELECT k, v * 2 AS v, w FROM a; DROP TABLE a")
        described = session.query("DESCRIBE b").text_rows()
        rows = session.query("SELECT * FROM b ORDER BY k").text_rows()
    assert rows == [["1", "5", "x"], ["2", None, "y"]]
    with Session(store) as session:
        assert session.query("DESCRIBE b").text_rows() == described
        assert session.query("SELECT * FROM b ORDER BY k").text_rows() == rows
        session.run("INSERT INTO b VALUES (3, 1, 'z')")
        assert session.query("SELECT count(*) FROM b").rows() == [(3,)]


def test_rows_are_changed_by_conditions_with_subqueries(session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY, v int); CREATE TABLE u (k int); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    session.run("INSERT INTO u VALUES (1), (2); UPDATE t SET v = 10 WHERE k IN (SELECT k FROM u) AND v < 2")
    session.run("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AND v = (SELECT max(k) FROM t)")
    assert session.query("SELECT * FROM t ORDER BY k").rows() == [(1, 10), (2, 2)]


def test_open_literals_of_an_inserted_select_take_the_type_of_their_column(session: Session) -> None:
    session.run("CREATE TABLE t (k int, at timestamp, v numeric); INSERT INTO t SELECT 1, '2024-01-01', NULL")
    assert session.query("SELECT * FROM t").text_rows() == [["1", "2024-01-01 00:00:00", None]]


def test_default_among_inserted_values(session: Session) -> None:
    session.run("CREATE TABLE t (a int, b int DEFAULT 7, c text); INSERT INTO t VALUES (1, DEFAULT, DEFAULT), (2, 3, 'x')")
    assert session.query("SELECT * FROM t ORDER BY a").rows() == [(1, 7, None), (2, 3, "x")]


def test_a_conflict_clause_that_an_append_only_table_cannot_follow(session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY) APPEND ONLY ON CONFLICT DO NOTHING")
    with pytest.raises(UnsupportedSqlError, match=r"ON CONFLICT OVERWRITE on a table that is APPEND ONLY"):
        session.run("CREATE TABLE t2 (k int PRIMARY KEY) APPEND ONLY ON CONFLICT OVERWRITE")


def test_a_time_zone_that_is_none_is_refused(session: Session) -> None:
    session.run("SET TIME ZONE 'UTC'; SET timezone TO utc; SET TIME ZONE 'Asia/Tokyo'")
    with pytest.raises(UnsupportedSqlError, match="line 1, column 15: the time zone 'Asia/Nowhere'"):
        session.run("SET TIME ZONE 'Asia/Nowhere'")


def test_views_and_defaults_keep_the_time_zone_they_were_made_in(tmp_path: Path) -> None:
    with Session(store=str(tmp_path / "kept.duckdb")) as session:
        session.run("SET TIME ZONE 'America/New_York'")
        session.run("CREATE TABLE t (id int, at timestamptz, made timestamptz DEFAULT '2024-01-01 00:00')")
        session.run("CREATE MATERIALIZED VIEW days AS SELECT id, date_trunc('day', at) AS day FROM t")
        session.run("CREATE VIEW texts AS SELECT id, at::text AS text FROM t")
    with Session(store=str(tmp_path / "kept.duckdb")) as session:
        session.run("INSERT INTO t (id, at) VALUES (1, '2024-01-05 02:30'); FLUSH")
        assert session.query("SELECT * FROM days").text_rows() == [["1", "2024-01-04 05:00:00+00:00"]]
        assert session.query("SELECT made FROM t").text_rows() == [["2024-01-01 05:00:00+00:00"]]
        session.run("SET TIME ZONE 'Asia/Tokyo'; ALTER MATERIALIZED VIEW days RENAME TO local")
        assert session.query("SELECT * FROM texts").text_rows() == [["1", "2024-01-05 11:30:00+09:00"]]
    with Session(store=str(tmp_path / "kept.duckdb")) as session:
        session.run("INSERT INTO t (id, at) VALUES (2, '2024-07-05 02:30'); FLUSH")
        rows = session.query("SELECT * FROM local ORDER BY id").text_rows()
        assert rows == [["1", "2024-01-04 05:00:00+00:00"], ["2", "2024-07-04 04:00:00+00:00"]]


def test_joins_of_changing_tables(session: Session) -> None:
    session.run("CREATE TABLE a (k int PRIMARY KEY, v int); CREATE TABLE b (k int PRIMARY KEY, w int)")
    session.run("CREATE MATERIALIZED VIEW j AS SELECT a.k AS ak, b.k AS bk, v, w FROM a FULL JOIN b ON a.k = b.k")
    session.run("INSERT INTO a VALUES (1, 10), (2, 20); INSERT INTO b VALUES (2, 200), (3, 300); FLUSH")
    assert sorted(session.query("SELECT * FROM j").rows(), key=str) == [
        (1, None, 10, None),
        (2, 2, 20, 200),
        (None, 3, None, 300),
    ]
    session.run("DELETE FROM a WHERE k = 2; INSERT INTO b VALUES (1, 100); FLUSH")
    assert sorted(session.query("SELECT * FROM j").rows(), key=str) == [
        (1, 1, 10, 100),
        (None, 2, None, 200),
        (None, 3, None, 300),
    ]


def test_a_division_by_zero_in_a_view_is_null(session: Session) -> None:
    session.run(
        "CREATE TABLE t (v int); CREATE MATERIALIZED VIEW m AS SELECT 1 / v AS x FROM t; INSERT INTO t VALUES (0), (1); FLUSH"
    )
    assert sorted(session.query("SELECT x FROM m").rows(), key=str) == [(1,), (None,)]


def test_a_store_goes_on_where_it_was_closed(tmp_path: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    script = """
        CREATE TABLE t (at timestamp, k int, v int, WATERMARK FOR at AS at - INTERVAL '1 minute') APPEND ONLY;
        CREATE MATERIALIZED VIEW steps AS SELECT k, v, v - lag(v) OVER (PARTITION BY k ORDER BY at) AS d FROM t;
        CREATE MATERIALIZED VIEW closed AS
            SELECT k, lead(v) OVER (PARTITION BY k ORDER BY at) AS next FROM t EMIT ON WINDOW CLOSE;
        INSERT INTO t VALUES ('2024-01-01 10:00', 1, 5), ('2024-01-01 10:05', 1, 7); FLUSH;
    """
    with Session(store) as session:
        session.run(script)
    with Session(store) as session:
        session.run(
            "INSERT INTO t VALUES ('2024-01-01 10:03', 1, 100), ('2024-01-01 10:10', 1, 8), ('2024-01-01 10:12', 1, 9); FLUSH"
        )
        assert session.query("SELECT v, d FROM steps ORDER BY v").rows() == [(5, None), (7, 2), (8, 1), (9, 1)]
        assert session.query("SELECT next FROM closed ORDER BY next").rows() == [(7,), (8,)]
        assert session.changelog("steps").num_rows == 2


def test_files_are_taken_in_once(tmp_path: Path, session: Session) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    session.run(f"CREATE SOURCE s (k int, v text) WITH (connector = 'parquet', path = '{folder}')")
    session.run("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, max(v) AS v FROM s")
    for number, value in enumerate(("a", "b")):
        pq.write_table(pa.table({"k": pa.array([number], pa.int64()), "v": [value]}), folder / f"{number}.parquet")
        session.run("FLUSH; FLUSH")
        assert session.query("SELECT n, v FROM n").rows() == [(number + 1, value)]


def test_columns_that_are_not_named_are_those_of_files_of_parquet(tmp_path: Path) -> None:
    folder, store = tmp_path / "in", str(tmp_path / "views.duckdb")
    folder.mkdir()
    script = f"CREATE SOURCE s (WATERMARK FOR at AS at) WITH (connector = 'parquet', path = '{folder}');"
    with Session(store) as session:
        with pytest.raises(SqlSyntaxError, match="there is no file yet"):
            session.run(script)
        times = pa.array([0, 3_600_000_000], pa.timestamp("us", "UTC"))
        price = pa.array([Decimal("1.50"), None], pa.decimal128(10, 2))
        columns = {
            "at": times,
            "Item": ["a", "b"],
            "of": [{"x": 1}, None],
            "price": price,
            "small": pa.array([255, 0], pa.uint8()),
        }
        pq.write_table(pa.table(columns), folder / "first.parquet")
        session.run(script)
        shown = session.query("SHOW CREATE SOURCE s").rows()
        with pytest.raises(SqlNameError, match=r"""whose capitals need quotes: "Item"\."""):
            session.run("CREATE MATERIALIZED VIEW v AS SELECT Item FROM s")
    (folder / "first.parquet").rename(tmp_path / "first.parquet")
    with Session(store) as session:
        assert left_of(session, script).strip(" ;") == ""  # it is there
        assert session.query("SHOW CREATE SOURCE s").rows() == shown
        session.run("CREATE MATERIALIZED VIEW v AS SELECT at, \"Item\", of->>'x' AS x, price, small FROM s")
        (tmp_path / "first.parquet").rename(folder / "first.parquet")
        session.run("FLUSH")
        kinds = [row[:2] for row in session.query("DESCRIBE s").rows()]
        rows = session.query("SELECT * FROM v ORDER BY at").text_rows()
    assert kinds == [
        ("at", "timestamp with time zone"),
        ("Item", "character varying"),
        ("of", "jsonb"),
        ("price", "numeric"),
        ("small", "smallint"),
    ]
    assert rows == [["1970-01-01 00:00:00+00:00", "a", "1", "1.5", "255"], ["1970-01-01 01:00:00+00:00", "b", None, None, "0"]]


def test_decimals_that_numeric_has_no_room_for_are_not_read_as_doubles(tmp_path: Path, session: Session) -> None:
    path, long = tmp_path / "long.parquet", Decimal("1234567890123456789012345678901234567890.125")
    listed = pa.array([[long]], pa.list_(pa.decimal256(43, 3)))
    pq.write_table(pa.table({"k": [1], "Long": pa.array([long], pa.decimal256(43, 3)), "listed": listed}), path)
    source = f"WITH (connector = 'parquet', path = '{path}')"
    with pytest.raises(SqlSyntaxError, match=r"'Long' of .*long.parquet' is of type decimal256\(43, 3\)"):
        session.run(f"CREATE SOURCE s {source}")
    for number, column in enumerate(('"Long" numeric', "listed numeric[]", '"Long" text', '"Long" double precision')):
        session.run(f"CREATE TABLE t{number} ({column}) {source}")
        with pytest.raises(UnreadableFileError, match="and numbers of SQL have 38 digits"):
            session.run("FLUSH")
        session.run(f"DROP TABLE t{number}")
    session.run(f"CREATE TABLE k (k int) {source}; FLUSH")
    assert session.query("SELECT * FROM k").rows() == [(1,)]


def test_a_file_where_a_folder_is_to_be_is_named(tmp_path: Path, session: Session) -> None:
    file = tmp_path / "file"
    file.write_text("")
    session.run("CREATE TABLE t (k int PRIMARY KEY)")
    for folder in (file, file / "below"):
        with pytest.raises(NotAFolderError, match=r"sink 'p': '.*' is to be a folder, and '.*/file' is a file"):
            session.run(f"CREATE SINK p FROM t WITH (connector = 'parquet', path = '{folder}')")
        assert session.query("SHOW SINKS").rows() == []
        with pytest.raises(NotAFolderError, match="the folder of the store"):
            Session(str(folder / "views.duckdb"))


def test_a_sink_follows_its_view(tmp_path: Path, session: Session) -> None:
    path = str(tmp_path / "out.duckdb")
    session.run("CREATE TABLE t (k int, v int); CREATE MATERIALIZED VIEW m AS SELECT k, sum(v) AS s FROM t GROUP BY k")
    session.run("INSERT INTO t VALUES (1, 1), (2, 2); FLUSH")
    session.run(f"CREATE SINK o FROM m WITH (connector = 'duckdb', path = '{path}', table = 'm')")
    session.run("INSERT INTO t VALUES (1, 10), (3, 3); FLUSH; DELETE FROM t WHERE k = 2; FLUSH")
    store = open_store(path)
    assert sorted(store.read("SELECT k, s FROM m")) == [(1, 11), (3, 3)]
    store.close()


def test_a_sink_is_dropped_while_another_one_fails(tmp_path: Path, session: Session) -> None:
    session.run("CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t VALUES (1)")
    for name in "ab":
        session.run(f"CREATE SINK {name} FROM t WITH (connector = 'duckdb', path = '{tmp_path / name}', table = 'o')")
    good = (tmp_path / "b").read_bytes()
    (tmp_path / "b").write_text("no database" * 1_000)
    session.run("INSERT INTO t VALUES (2)")
    with pytest.raises(StoreError):
        session.run("FLUSH")
    session.run("DROP SINK a")
    with pytest.raises(StoreError):
        session.run("FLUSH")
    (tmp_path / "b").write_bytes(good)
    session.run("FLUSH")
    store = open_store(str(tmp_path / "b"))
    assert sorted(store.read("SELECT k FROM o")) == [(1,), (2,)]
    store.close()


def test_a_sink_with_a_query_of_its_own(tmp_path: Path) -> None:
    store, path = str(tmp_path / "views.duckdb"), str(tmp_path / "out.duckdb")
    with Session(store) as session:
        session.run("CREATE TABLE t (k int, v int); INSERT INTO t VALUES (1, 1)")
        sink = f"connector = 'duckdb', path = '{path}', table = 'm'"
        session.run(f"CREATE SINK o AS SELECT k, sum(v) AS s FROM t GROUP BY k WITH ({sink})")
        assert session.query("SHOW MATERIALIZED VIEWS").rows() == []
        with pytest.raises(UnsupportedSqlError, match="'o' reads 't'"):
            session.run("DROP TABLE t")
    with Session(store) as session:
        session.run("INSERT INTO t VALUES (1, 10), (3, 3); FLUSH")
        sink_store = open_store(path)
        assert sorted(sink_store.read("SELECT k, s FROM m")) == [(1, 11), (3, 3)]
        sink_store.close()
        session.run("DROP TABLE t CASCADE")
        assert session.query("SHOW SINKS").rows() == []


def test_sinks_of_two_state_files_number_their_batches_each_for_itself(tmp_path: Path) -> None:
    target, files = tmp_path / "out.duckdb", tmp_path / "files"
    duck = f"connector = 'duckdb', path = '{target}', table = 'm'"
    for name, first in (("one", 1), ("two", 11)):
        with Session(str(tmp_path / f"{name}.duckdb")) as session:
            session.run(f"CREATE TABLE t (k int PRIMARY KEY); CREATE SINK o FROM t WITH ({duck})")
            session.run(f"CREATE SINK p FROM t WITH (connector = 'parquet', path = '{files}')")
            session.run(f"INSERT INTO t VALUES ({first}); FLUSH; INSERT INTO t VALUES ({first + 1}); FLUSH")
            session.run("ALTER SINK o RENAME TO o2")
    with Session(str(tmp_path / "one.duckdb")) as session:
        session.run("INSERT INTO t VALUES (3); FLUSH; DROP SINK o2; DROP SINK p")
        session.run(f"CREATE SINK o2 FROM t WITH ({duck}); DELETE FROM t WHERE k = 1; FLUSH")
    store = open_store(str(target))
    assert sorted(store.read("SELECT k FROM m")) == [(2,), (3,), (11,), (12,)]
    store.close()
    assert sorted(pq.read_table(files)["k"].to_pylist()) == [1, 2, 3, 11, 12]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("connector = 'pulsar'", "not supported"),
        ("connector = 'duckdb', path = 'x'", "needs the option 'table'"),
        ("connector = 'blackhole', colour = 'red'", "no option 'colour'"),
        ("connector = 'blackhole', primary_key = 'nope'", "no column"),
    ],
)
def test_a_sink_that_cannot_be_made(session: Session, options: str, words: str) -> None:
    session.run("CREATE TABLE t (v int)")
    with pytest.raises((SqlNameError, UnsupportedSqlError), match=words):
        session.run(f"CREATE SINK s FROM t WITH ({options})")


def test_catalog_questions(session: Session) -> None:
    session.run(
        "CREATE TABLE t (k int PRIMARY KEY, at timestamp NOT NULL, WATERMARK FOR at AS at); CREATE VIEW p AS SELECT k FROM t"
    )
    assert session.query("DESCRIBE t").rows() == [
        ("k", "integer", "primary key"),
        ("at", "timestamp without time zone", "watermark, not null"),
    ]
    assert session.query("SHOW COLUMNS FROM t").rows() == session.query("DESCRIBE t").rows()
    assert session.query("DESCRIBE p").rows() == [("k", "integer")]
    assert session.query("SHOW VIEWS").rows() == [("p",)]
    assert session.query("SHOW CREATE VIEW p").rows() == [("p", "CREATE VIEW p AS SELECT k FROM t")]


def test_late_rows_are_counted_across_sessions_and_not_by_what_fails(tmp_path: Path) -> None:
    path = str(tmp_path / "store.duckdb")
    with Session(path) as session:
        session.run(
            "CREATE TABLE r (id int NOT NULL, at timestamp, WATERMARK FOR at AS at) APPEND ONLY;"
            "INSERT INTO r VALUES (1, '2024-01-01 10:00:00');"
            "INSERT INTO r VALUES (2, '2024-01-01 09:00:00'), (3, '2024-01-01 10:00:01')"
        )
        with pytest.raises(SqlRunError):
            session.run("INSERT INTO r VALUES (4, '2024-01-01 09:00:00'), (NULL, '2024-01-01 11:00:00')")
    with Session(path) as session:
        session.run("INSERT INTO r VALUES (5, '2024-01-01 10:00:00')")
        assert session.query("SHOW WATERMARKS").text_rows() == [["r", "2024-01-01 10:00:01", "2"]]


def test_a_result_is_an_arrow_table_with_the_names_that_were_selected() -> None:
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int, v text); INSERT INTO t VALUES (1, 'b'), (2, 'a')")
        result = session.query("SELECT k AS id, v AS name FROM t ORDER BY v DESC, k")
    expected = {"id": [1, 2], "name": ["b", "a"]}
    assert result.table.to_pydict() == expected
    assert result.to_arrow().to_pydict() == expected
    assert pa.table(result).to_pydict() == expected
    assert list(result.to_pandas().columns) == ["id", "name"]
    assert pa.RecordBatchReader.from_stream(result).read_all().to_pydict() == expected


def test_a_result_of_intervals_is_text_for_libraries_that_have_none() -> None:
    with Session(":memory:") as session:
        result = session.query("SELECT INTERVAL '1 day 02:00' AS i, 1 AS n")
    assert pa.RecordBatchReader.from_stream(result).read_all().to_pydict() == {"i": ["1 day 02:00:00"], "n": [1]}


def test_columns_of_one_name_stay_two() -> None:
    with Session(":memory:") as session:
        table = session.query("SELECT 1 AS n, 2 AS n").table
    assert (table.column_names, table.column(1).to_pylist()) == (["n", "n"], [2])


def test_a_source_whose_folder_is_gone_does_not_stop_its_store(tmp_path: Path) -> None:
    store, folder = str(tmp_path / "store.db"), tmp_path / "in"
    folder.mkdir()
    with Session(store) as session:
        session.run(f"CREATE SOURCE s (k int) WITH (connector = 'json', path = '{folder}')")
    folder.rmdir()
    with Session(store) as session:
        session.run("FLUSH; DROP SOURCE s")


@pytest.mark.parametrize("connector", ["json", "csv", "parquet"])
def test_a_path_that_names_nothing_is_an_error_of_the_statement(tmp_path: Path, connector: str) -> None:
    with Session(":memory:") as session:
        for path in (tmp_path / "mistyped", tmp_path / "mistyped" / "*.x", tmp_path / "a.json"):
            with pytest.raises(SqlNameError, match=r"there is no '.*(mistyped|a\.json)'") as error:
                session.run(f"SELECT 1;\nCREATE SOURCE s (k int) WITH (connector = '{connector}', path = '{path}')")
            assert error.value.line == 2
        session.run(f"CREATE SOURCE s (k int) WITH (connector = '{connector}', path = '{tmp_path}/*.{connector}')")


@pytest.mark.parametrize("address", ["s3a://bucket/orders", "file:///tmp", "hdfs://host/orders"])
def test_an_address_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.chdir(tmp_path)
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (k int)")
        for statement in ("CREATE SOURCE s (k int)", "CREATE SINK s FROM t"):
            with pytest.raises(UnsupportedSqlError, match="without a scheme"):
                session.run(f"{statement} WITH (connector = 'parquet', path = '{address}')")
    assert list(tmp_path.iterdir()) == []


def test_a_sink_has_every_malformed_row_of_a_source_once(tmp_path: Path) -> None:
    store, folder, out = str(tmp_path / "store.db"), tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    many = "".join(f'{{"k": {number}, "v": "no"}}\n' for number in range(150))
    (folder / "1.json").write_text(many + 'no\n{"k": 1000, "v": 1}\n')
    sink = f"CREATE SINK bad FROM MALFORMED ROWS OF s WITH (connector = 'parquet', path = '{out}')"
    with Session(store) as session:
        session.run(f"CREATE SOURCE s (k int, v int) WITH (connector = 'json', path = '{folder}'); {sink}; FLUSH")
        assert session.query("SELECT count(*), count(v) FROM s").rows() == [(151, 1)]
        with pytest.raises(SqlNameError, match="no source 't' with malformed rows"):
            session.run(f"CREATE TABLE t (k int); {sink.replace('bad', 'other').replace('OF s', 'OF t')}")
        with pytest.raises(UnsupportedSqlError, match="'bad' reads 's'"):
            session.run("DROP SOURCE s")
        assert session.relations() == ["s", "t"]
    (folder / "2.json").write_text('{"k": "x", "v": 2}\n')
    with Session(store) as session:
        session.run("ALTER SOURCE s RENAME TO events; FLUSH")
    rows = [row for file in sorted(out.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    assert len(rows) == 152
    assert sum(row["column"] == "v" and row["value"] == "no" for row in rows) == 150
    assert [(row["position"].rpartition("/")[2], row["value"]) for row in rows if row["column"] is None] == [
        ("1.json, line 151", "no")
    ]
    assert [(row["source"], row["column"], row["value"]) for row in rows if row["column"] == "k"] == [("events", "k", "x")]
    with Session(store) as session:
        session.run("FLUSH; DROP SINK bad; DROP SOURCE events")
        assert session.query("SHOW ERRORS").rows() == []
