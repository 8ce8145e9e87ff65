"""Rows of sources on the tasks: how they are typed."""

import duckdb
import pyarrow as pa
import pytest

from windowpane.sql.on_spark.rowwise import without_zone

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
