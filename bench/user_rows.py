"""Rows like users': text keys, pairs of keys, NULLs, decimals, skew; and what the cases compute of them.

Rows are made of bids (k, price, ts) by DuckDB, a file of theirs a file here. No dependencies but DuckDB: all systems of the cases
read this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from bench.batches import put_in_place
from bench.programs import Task

_ZIPF = "CAST(floor(pow(1 - {u} * (1 - pow(200000, -0.2)), -5)) AS BIGINT)"
"""A number from 1 to 200,000 whose frequency falls with its power of 1.2, of a uniform one from 0 to 1."""
SOME = "hash(file_row_number, ts)"
_UNIFORM = f"(({SOME} % 1000003) / 1000003.0)"
NAME = f"md5({_ZIPF.format(u=_UNIFORM)}::VARCHAR) AS name"
_LATE_TIME = f"CASE WHEN ({SOME} // 128) % 100 = 0 THEN ts - INTERVAL 1 HOUR ELSE ts END AS ts"
_PRICE = f"CASE WHEN {SOME} % 20 > 0 THEN price END AS price"


Aggregates = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class UserCase:
    """Rows of one shape and what is computed of them.

    Args:
        keys: the key columns.
        columns: the columns but the time, as DuckDB makes them of a bid.
        schema: their types in Spark.
        aggregates: output -> (function of windowpane's, its arguments).
        check: what is added up over all results, in Spark SQL; results of all systems must agree (estimates may differ).
        window: ``tumbling``, ``sliding`` or ``session``.
        sizes: its length, and the slide, or its gap, in seconds.
        goal: how many times as fast as native Spark, with rows from Spark and by default.
        batches: how many files of 1 M rows there are.
        late: whether one row in a hundred is an hour late, which native Spark drops and windowpane has as an output.
        early: whether every batch shows the windows that it changed: Spark's update mode, windowpane's ``EachBatch``.
        where: which rows count, a condition in Spark SQL; empty for all.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    schema: str
    aggregates: Aggregates
    check: str
    window: str = "tumbling"
    sizes: tuple[int, ...] = (60,)
    goal: tuple[float, float] = (2, 3)
    batches: int = field(default=36)
    late: bool = False
    early: bool = False
    where: str = ""

    def time_in(self, file: int) -> str:
        """Return the event time of a file's rows, in SQL.

        The first two batches have no late rows: Spark holds no row for late before it has seen two.
        """
        return _LATE_TIME if self.late and file >= 2 else "ts"


_ALL = {"n": ("count",), "s": ("sum", "price"), "m": ("max", "price"), "a": ("avg", "price")}
_CHECK = "(n * 104729 + coalesce(s, 0) * 31 + coalesce(m, 0) + cast(round(coalesce(a, 0) * 100) as bigint)) % 2147483647"
_OF_NAME = ("name",), (NAME, _PRICE), "name string, price bigint", _ALL, _CHECK
_COUNTRIES = (
    f"'country ' || {SOME} % 60 AS country",
    f"['ios', 'android', 'web', NULL][CAST(1 + ({SOME} // 64) % 4 AS INTEGER)] AS device",
    f"CASE WHEN {SOME} % 20 > 0 THEN price / 7 END AS x",
    "md5((k % 50000)::VARCHAR) AS person",
)
_COUNTRIES_SCHEMA = "country string, device string, x double, person string"

USER_CASES = {
    "text keys, Zipf": UserCase(*_OF_NAME),
    "text keys, Zipf, late rows asked for": UserCase(*_OF_NAME, late=True),
    "pairs of keys, decimals": UserCase(
        ("sym", "venue"),
        (
            "'SYM' || lpad((k % 2000)::VARCHAR, 5, '0') AS sym",
            f"'VENUE ' || {SOME} % 10 AS venue",
            "(price * 1.25)::DECIMAL(18, 2) AS price",
        ),
        "sym string, venue string, price decimal(18,2)",
        {"s": ("sum", "price"), "a": ("avg", "price"), "m": ("max", "price")},
        "cast(s * 100 as bigint) % 2147483647 + cast(m * 100 as bigint) + cast(a * 1000000 as bigint) % 1000003",
    ),
    "few groups, NULLs, doubles and text": UserCase(
        ("country", "device"),
        _COUNTRIES,
        _COUNTRIES_SCHEMA,
        {"n": ("count",), "s": ("sum", "x"), "d": ("stddev", "x"), "lo": ("min", "x"), "hi": ("max", "x")}
        | {"last": ("max", "person")},
        "n + cast(round(s) as bigint) + cast(round(d) as bigint) + cast(round(hi * 7) as bigint) + ascii(last)",
        goal=(1.2, 2),
    ),
    "UUIDs as keys": UserCase(
        ("name",),
        ("md5(file_row_number::VARCHAR || ts::VARCHAR) AS name", "price"),
        "name string, price bigint",
        {"n": ("count",), "s": ("sum", "price")},
        "n + s",
        sizes=(10,),
        goal=(4, 6),
        batches=12,
    ),
    "session by text": UserCase(*_OF_NAME, "session", (5,), (5, 8), 20),
    "sliding by text": UserCase(*_OF_NAME, "sliding", (60, 10), (10, 15), 20),
    "approximate count of distinct texts": UserCase(
        ("country",), _COUNTRIES, _COUNTRIES_SCHEMA, {"u": ("approx_count_distinct", "person")}, "least(u, 1)", goal=(1.5, 3)
    ),
}


def write_rows(case: UserCase, task: Task, folder: Path) -> None:
    """Write the rows of a task's files, which the file source reads in their order."""
    folder.mkdir()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for number, file in enumerate(task.files):
            path = folder / f"{number:05}.parquet"
            selected = ", ".join((*case.columns, case.time_in(number)))
            query = f"SELECT {selected} FROM read_parquet('{file}', file_row_number = true)"
            connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {task.file_rows[number] // 2})")
            put_in_place(path, number)
