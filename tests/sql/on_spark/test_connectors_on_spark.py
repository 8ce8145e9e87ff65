"""Connectors that need no jar, on real Spark: files, the clock, a socket; and what is said of those that do."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.errors import SqlNameError, SqlRunError
from windowpane.sql import Session
from windowpane.sql.on_spark.ingest import Ingest

pytestmark = pytest.mark.spark


class Lines:
    """A server that sends lines to whoever connects; ``connected`` waits for the next one."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]

    def connected(self) -> socket.socket:
        self._server.settimeout(60)
        return self._server.accept()[0]

    def send_first(self, text: str) -> threading.Thread:
        """Send lines to the next one that connects, and hold the connection."""
        thread = threading.Thread(target=lambda: self._held(text), daemon=True)
        thread.start()
        return thread

    def _held(self, text: str) -> None:
        self.connection = self.connected()
        self.connection.sendall(text.encode())

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def lines() -> Iterator[Lines]:
    server = Lines()
    yield server
    server.close()


@pytest.mark.slow
def test_rows_of_the_clock_arrive_once(spark, tmp_path: Path) -> None:
    store = str(tmp_path / "views.duckdb")
    numbers = "SELECT count(*), min(value), max(value), count(DISTINCT value), count(timestamp) FROM numbers"
    with Session(spark, store) as session:
        session.run("CREATE TABLE numbers (timestamp timestamp, value bigint) WITH (connector = 'rate', rowsPerSecond = '50')")
        session.run("CREATE MATERIALIZED VIEW last AS SELECT max(value) AS n, count(*) AS c FROM numbers")
        while (session.query("SELECT c FROM last").rows() or [(0,)])[0][0] < 50:
            session.run("FLUSH")
    with Session(spark, store) as session:
        session.run("FLUSH")
        ((count, *rest),) = session.query(numbers).rows()
        assert rest == [0, count - 1, count, count]
        ((last, seen),) = session.query("SELECT * FROM last").rows()
        assert last == seen - 1
        assert 50 <= seen <= count


def test_lines_of_a_socket_arrive_and_a_new_session_connects_again(spark, tmp_path: Path, lines: Lines) -> None:
    store = str(tmp_path / "views.duckdb")

    def flush_until(session: Session, rows: list[tuple]) -> None:
        for _ in range(100):
            session.run("FLUSH")
            if (found := sorted(session.query("SELECT * FROM words").rows())) == rows:
                return
        assert found == rows

    with Session(spark, store) as session:
        source = f"connector = 'socket', host = '127.0.0.1', port = '{lines.port}'"
        session.run(f"CREATE TABLE lines (value text) WITH ({source})")
        lines.send_first("one\ntwo\none\n")
        session.run("CREATE MATERIALIZED VIEW words AS SELECT value, count(*) AS c FROM lines GROUP BY value")
        flush_until(session, [("one", 2), ("two", 1)])
        lines.connection.sendall(b"two\n")
        flush_until(session, [("one", 2), ("two", 2)])
    with Session(spark, store) as session:
        lines.send_first("three\n")
        flush_until(session, [("one", 2), ("three", 1), ("two", 2)])


@pytest.mark.slow
def test_a_source_that_never_rests_does_not_hold_up_a_flush(spark, monkeypatch) -> None:
    slow, take = 1.5, Ingest.take  # seconds a batch, while rows come every second

    def slowly(self, name, batch, number) -> None:
        time.sleep(slow)
        take(self, name, batch, number)

    monkeypatch.setattr(Ingest, "take", slowly)
    with Session(spark) as session:
        session.run("CREATE TABLE numbers (value bigint) WITH (connector = 'rate', rowsPerSecond = '10')")
        session.run("FLUSH")
        assert session.query("SELECT count(*) > 0 FROM numbers").rows() == [(True,)]


def test_columns_of_files_go_by_name(spark, tmp_path: Path) -> None:
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("k,price,at\n1,2.50,2024-01-01 10:00:00\n")
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "a.json").write_text('{"k": 1, "price": 2.5, "at": "2024-01-01 10:00:00"}\n')
    with Session(spark) as session:
        for kind in ("csv", "json"):
            options = f"connector = '{kind}', path = '{tmp_path / kind}'"
            session.run(f"CREATE TABLE {kind} (price numeric, k int) WITH ({options})")
        session.run("FLUSH")
        for kind in ("csv", "json"):
            assert session.query(f"SELECT price, k FROM {kind}").text_rows() == [["2.5", "1"]]
        (tmp_path / "csv" / "b.csv").write_text("price,k,at\n7,2,2024-01-01 10:00:00\n")
        with pytest.raises(SqlRunError, match="CSV header does not conform"):
            session.run("FLUSH")


def test_what_cannot_be_read_is_refused(spark) -> None:
    with Session(spark) as session:
        for connector, options in [
            ("kafka", "kafka.bootstrap.servers = 'b:9092', subscribe = 't'"),
            ("delta", "path = '/nowhere'"),
        ]:
            with pytest.raises(SqlRunError, match=rf"connector '{connector}': its jar is not there.*spark\.jars\.packages"):
                session.run(f"CREATE TABLE t (value text) WITH (connector = '{connector}', {options})")
        with pytest.raises(SqlNameError, match="'socket' needs the option 'port'"):
            session.run("CREATE TABLE t (value text) WITH (connector = 'socket', host = '127.0.0.1')")
        with pytest.raises(SqlRunError, match="connector 'rate' has no column 'key'; it has timestamp, value"):
            session.run("CREATE TABLE t (key text) WITH (connector = 'rate')")
        session.run("CREATE TABLE t (value text) WITH (connector = 'socket', host = '127.0.0.1', port = '1')")
        with pytest.raises(SqlRunError, match=r"windowpane t stopped: .*Connection refused"):
            session.run("FLUSH")
        session.run("DROP TABLE t; FLUSH")


def test_a_folder_of_parquet_without_a_file_is_refused_with_the_way_out(spark, tmp_path: Path) -> None:
    source = f"CREATE SOURCE words (name text, at timestamptz) WITH (connector = 'parquet', path = '{tmp_path / 'in'}')"
    view = "CREATE MATERIALIZED VIEW names AS SELECT name FROM words"
    (tmp_path / "in").mkdir()
    with Session(spark) as session:
        with pytest.raises(SqlRunError, match=r"the folder has no Parquet file yet.* Write one first; it needs no rows"):
            session.run(f"{source}; {view}")
        empty = pa.table({"name": pa.array([], pa.string()), "at": pa.array([], pa.timestamp("us", "UTC"))})
        pq.write_table(empty, tmp_path / "in" / "0.parquet")
        session.run(f"{source}; {view}")
        pq.write_table(pa.table({"name": ["a"], "at": pa.array([0], pa.timestamp("us", "UTC"))}), tmp_path / "in" / "1.parquet")
        session.run("FLUSH")
        assert session.query("SELECT * FROM names").rows() == [("a",)]


def test_names_of_json_match_whatever_their_case_and_texts_are_as_written(spark, tmp_path: Path) -> None:
    """As in RisingWave, and in a session without Spark: else ``userId`` of a document were NULL in a column ``userId``."""
    folder = tmp_path / "in" / "day=5"
    folder.mkdir(parents=True)
    lines = [
        '{"userId": 1, "value": 1.50}',
        '{"userid": 2, "value": {"a": 2.50}}',
        "",
        '{"USERID": 3, "userid": 4, "other": 12345678901234567.25}',
        "[1]",
    ]
    (folder / "a.json").write_text("\n".join(lines))
    with Session(spark) as session:
        columns = "userId int, value varchar, other numeric, day int"
        session.run(f"CREATE SOURCE s ({columns}) WITH (connector = 'json', path = '{folder.parent}')")
        session.run("CREATE MATERIALIZED VIEW rows AS SELECT * FROM s; FLUSH")
        assert sorted(session.query("SELECT * FROM rows").rows()) == [
            (1, "1.50", None, 5),
            (2, '{"a":2.50}', None, 5),
            (4, None, Decimal("12345678901234567.25"), 5),
        ]
        assert [row["Value"] for row in session.query("SHOW ERRORS").dicts()] == ["[1]"]


@pytest.mark.parametrize("kind", ["SOURCE", "TABLE"])
def test_malformed_rows_stop_no_source(spark, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.json").write_text('{"k": 1, "v": "a"}\nno json\n{"k": "x", "v": "b"}\n{"k": 3, "v": "c"}\n')
    with Session(spark) as session:
        session.run(f"CREATE {kind} s (k int, v varchar) WITH (connector = 'json', path = '{folder}')")
        session.run("CREATE MATERIALIZED VIEW rows AS SELECT v, k FROM s; FLUSH")
        assert sorted(session.query("SELECT * FROM rows").rows()) == [("a", 1), ("b", None), ("c", 3)]
        shown = session.query("SHOW ERRORS").dicts()
        assert sorted((each["Column"] or "", each["Value"]) for each in shown) == [("", "no json"), ("k", "x")]
        assert all(each["Source"] == "s" and each["Position"].endswith("/in/a.json") for each in shown)
        (folder / "b.json").write_text('{"k": 4, "v": "d"}\n')
        session.run("FLUSH")
        assert session.query("SELECT count(*), count(k) FROM rows").rows() == [(4, 3)]
