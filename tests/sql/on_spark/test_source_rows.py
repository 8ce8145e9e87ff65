"""Rows of sources on the tasks: how they are typed, and what becomes of those that cannot be read."""

from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from windowpane.errors import MalformedRowError
from windowpane.hidden_columns import MISREAD, ORIGIN
from windowpane.sql import Session
from windowpane.sql.catalog.entries import ROW_ID, TableInfo
from windowpane.sql.on_spark.batch_writing import Outcome
from windowpane.sql.on_spark.rowwise import without_zone
from windowpane.sql.on_spark.source_rows import Made, Progress, Report, SourceRows
from windowpane.sql.on_spark.stages import INPUT

MICROS = [0, -1, 1_711_846_800_000_000, None, 253_402_300_799_999_999, -62_135_596_800_000_000]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Havana", "+05:30"])
def test_instants_without_their_zone_are_what_duckdb_casts_them_to(zone: str) -> None:
    rows = pa.table({"at": pa.array(MICROS, pa.timestamp("us", zone)), "n": range(len(MICROS))})
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    expected = connection.sql('SELECT CAST("at" AS TIMESTAMP) AS "at", n FROM rows').to_arrow_table()
    assert without_zone(rows, ["at"]).equals(expected)


def test_only_named_columns_of_microseconds_change() -> None:
    rows = pa.table(
        {
            "at": pa.array([1], pa.timestamp("us", "UTC")),
            "nanos": pa.array([1_001], pa.timestamp("ns", "UTC")),
            "local": pa.array([1], pa.timestamp("us")),
            "n": pa.array([1]),
        }
    )
    assert without_zone(rows, ["nanos", "local", "n"]).equals(rows)
    assert without_zone(rows, {"at": 1}).schema.types == [pa.timestamp("us"), *rows.schema.types[1:]]


class Exchange:
    """Takes the reports of one task."""

    partition = 0

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def report(self, seen: Report, what: Any) -> None:
        self.reports.append(seen)


def taken(columns: str, rows: pa.Table, options: str = "") -> tuple[list[dict[str, Any]], Report]:
    """Return what a task makes of rows of a source, and its report."""
    with Session(":memory:") as session:
        session.run(f"CREATE SOURCE s ({columns}) WITH (connector = 'json', path = '.'{options})")
        info = session._catalog.entries["s"]
        assert isinstance(info, TableInfo)
        source = SourceRows(info, Exchange())
    tables = [each.rows for each in source.taken(rows.to_batches(), Made({}, f"SELECT * FROM {INPUT}"), Progress())]
    names = [name for name in tables[0].column_names if name != ROW_ID]
    return pa.concat_tables(tables).select(names).to_pylist(), source.exchange.reports[0]


def arrived(**columns: list[str | None]) -> pa.Table:
    """Return rows as Spark hands them over: texts, where they were read, and documents that are no rows."""
    count = len(next(iter(columns.values())))
    columns.setdefault(MISREAD, [None] * count)
    columns[ORIGIN] = [f"orders, partition 0, offset {number}" for number in range(count)]
    return pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})


def test_a_field_that_does_not_fit_is_null_on_tasks_and_reported() -> None:
    rows, report = taken("k varchar, amount int", arrived(k=["a", "b", "c"], amount=["1", "x", "3"]))
    assert rows == [{"k": "a", "amount": 1}, {"k": "b", "amount": None}, {"k": "c", "amount": 3}]
    ((found,), count) = report.malformed.shown, report.malformed.count
    assert (found.source, found.position, found.column, found.value) == ("s", "orders, partition 0, offset 1", "amount", "x")
    assert (found.reason, count) == ('invalid input syntax for type integer: "x"', 1)


def test_no_number_is_rounded_on_tasks() -> None:
    table = arrived(n=["1.5", "2.0", "3"], d=["0.12345678901", "0.5", "1e-2"])
    rows, report = taken("n bigint, d numeric", table)
    assert rows == [{"n": None, "d": None}, {"n": 2, "d": Decimal("0.5")}, {"n": 3, "d": Decimal("0.01")}]
    assert [(found.column, found.value) for found in report.malformed.shown] == [("n", "1.5"), ("d", "0.12345678901")]


def test_a_message_that_is_no_json_is_left_out_on_tasks_and_reported() -> None:
    rows, report = taken("k varchar, amount int", arrived(k=["a", None], amount=["1", None], **{MISREAD: [None, "no"]}))
    assert rows == [{"k": "a", "amount": 1}]
    ((found,), late) = report.malformed.shown, report.late
    assert (found.position, found.column, found.value, late) == ("orders, partition 0, offset 1", None, "no", 0)
    assert found.reason == "it is no JSON: Expecting value at character 1"


def test_malformed_rows_neither_move_the_watermark_nor_are_late() -> None:
    columns = "k varchar, at timestamp, WATERMARK FOR at AS at - INTERVAL '1 second'"
    rows, report = taken(columns, arrived(k=["a", "b"], at=["2024-01-01 00:00:01", "never"]))
    assert [row["k"] for row in rows] == ["a", "b"]
    assert (report.reached, report.late, report.malformed.count) == ({None: 1_704_067_200_000_000}, 0, 1)


def test_a_source_may_drop_malformed_rows_or_fail_on_tasks() -> None:
    table = arrived(k=["1", "x"])
    assert taken("k int", table, ", malformed = 'drop'")[0] == [{"k": 1}]
    with pytest.raises(MalformedRowError, match="orders, partition 0, offset 1, column 'k': 'x'"):
        taken("k int", table, ", malformed = 'fail'")


def test_malformed_rows_of_a_batch_reach_the_driver_as_text() -> None:
    found = taken("k int", arrived(k=["1", "x"]))[1].malformed
    assert Outcome.of(Outcome(Progress(), Progress(), {}, {"s": found}).text()).malformed == {"s": found}
