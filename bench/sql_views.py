"""What the SQL cases compute: a view of each kind over orders, and the same in DuckDB's SQL.

Orders are bids with what users' rows have: a name of some 20 letters as key, which one in fifty lacks, and a price of two decimal
places, which one in twenty lacks. No dependencies but DuckDB: both systems of the cases read this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

_CLOSED = "WHERE at_second < date_trunc('second', (SELECT max(ts) FROM orders) - INTERVAL '3 seconds')"
_SECONDS = "SELECT date_trunc('second', ts) AS at_second, name, count(*) AS n, sum(price) AS total FROM orders GROUP BY ALL"
_TUMBLE = (
    "SELECT window_start AS at_second, name, count(*) AS n, sum(price) AS total "
    "FROM tumble(orders, ts, INTERVAL '1 second') GROUP BY window_start, name"
)


@dataclass(frozen=True)
class View:
    """A view of one kind.

    Args:
        sql: its query.
        oracle: the same in DuckDB's SQL, where that differs.
        goals: whether its figures have goals; where most of the result changes with any row, they have none.
        append_only: whether the table is.
    """

    sql: str
    oracle: str = ""
    goals: bool = True
    append_only: bool = False

    @property
    def tables(self) -> list[str]:
        """The tables that it reads."""
        return [name for name in ("orders", "payments", "customers") if name in self.sql]

    @property
    def in_duckdb(self) -> str:
        """The query for DuckDB."""
        return self.oracle or self.sql


VIEWS = {
    "filter": View("SELECT id, name, price FROM orders WHERE price > 50"),
    "GROUP BY": View("SELECT name, count(*) AS n, sum(price) AS total FROM orders GROUP BY name"),
    "GROUP BY with count distinct": View(
        "SELECT name, count(DISTINCT price) AS n, min(price) AS low FROM orders GROUP BY name", goals=False
    ),
    "GROUP BY with a maximum": View("SELECT name, max(price) AS high, count(*) AS n FROM orders GROUP BY name"),
    "tumble": View(_TUMBLE, _SECONDS),
    "window close": View(f"{_TUMBLE} EMIT ON WINDOW CLOSE", f"SELECT * FROM ({_SECONDS}) {_CLOSED}", append_only=True),
    "LAG": View("SELECT id, lag(price) OVER (PARTITION BY name ORDER BY ts, id) AS earlier FROM orders"),
    "row_number": View("SELECT id, row_number() OVER (PARTITION BY name ORDER BY ts, id) AS place FROM orders"),
    "rank by time": View("SELECT id, rank() OVER (PARTITION BY name ORDER BY ts) AS place FROM orders"),
    "rank by price": View("SELECT id, rank() OVER (PARTITION BY name ORDER BY price) AS place FROM orders", goals=False),
    "Top-N": View(
        "SELECT id, name, price FROM "
        "(SELECT *, row_number() OVER (PARTITION BY name ORDER BY price DESC, id) AS place FROM orders) WHERE place <= 3"
    ),
    "join with a dimension": View("SELECT o.id, o.price, c.city FROM orders AS o JOIN customers AS c ON o.name = c.name"),
    "left join with a dimension": View(
        "SELECT o.id, o.price, c.city FROM orders AS o LEFT JOIN customers AS c ON o.name = c.name"
    ),
    "join of streams": View("SELECT o.id, o.price, p.paid FROM orders AS o JOIN payments AS p ON o.id = p.id"),
    "left join of streams": View("SELECT o.id, o.price, p.paid FROM orders AS o LEFT JOIN payments AS p ON o.id = p.id"),
    "DISTINCT": View("SELECT DISTINCT name, price FROM orders"),
}

_ORDERS = (
    "SELECT {first} + file_row_number AS id, CASE WHEN hash(file_row_number + {first}) % 50 > 0 THEN name_of(k) END AS name, "
    "CAST(ts AS TIMESTAMP) AS ts, "
    "CAST(CASE WHEN hash(file_row_number * 7 + {first}) % 20 > 0 THEN price / 100 END AS DECIMAL(12, 2)) AS price "
    "FROM read_parquet('{path}', file_row_number = true)"
)


def write_rows(files: Sequence[str], counts: Sequence[int], keys: int, folder: Path) -> list[tuple[Path, Path]]:
    """Write orders and payments for each file of bids, and customers, and return the paths of the pairs."""
    pairs, first = [], 0
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE MACRO name_of(k) AS 'customer_' || lpad(k::VARCHAR, 8, '0') || '@example.com'")
        customers = f"SELECT name_of(k) AS name, 'city ' || k % 97 AS city FROM range({keys}) AS keys(k) WHERE k % 10 > 0"
        connection.execute(f"COPY ({customers}) TO '{folder / 'customers.parquet'}' (FORMAT parquet)")
        for number, (path, count) in enumerate(zip(files, counts, strict=True)):
            orders, payments = folder / f"orders-{number}.parquet", folder / f"payments-{number}.parquet"
            connection.execute(f"COPY ({_ORDERS.format(first=first, path=path)}) TO '{orders}' (FORMAT parquet)")
            paid = f"SELECT id, price AS paid FROM '{orders}' WHERE id % 10 > 0"
            connection.execute(f"COPY ({paid}) TO '{payments}' (FORMAT parquet)")
            pairs.append((orders, payments))
            first += count
    return pairs


def loaded(connection: duckdb.DuckDBPyConnection, pairs: Sequence[tuple[Path, Path]]) -> None:
    """Fill DuckDB's tables; NULL is the largest value, as in RisingWave."""
    connection.execute("SET TimeZone = 'UTC'; SET default_null_order = 'postgres'")
    for name, paths in (("orders", [pair[0] for pair in pairs]), ("payments", [pair[1] for pair in pairs])):
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM read_parquet({[str(path) for path in paths]})")
    customers = pairs[0][0].with_name("customers.parquet")
    connection.execute(f"CREATE OR REPLACE TABLE customers AS SELECT * FROM '{customers}'")
