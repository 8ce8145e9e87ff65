"""TPC-H as views: the tables come in batches, rows are changed and deleted, and DuckDB has the same tables beside."""

from __future__ import annotations

import math
import re
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import duckdb

from windowpane.sql import Session

_TEXT = (Path(__file__).parent / "queries.sql").read_text()
QUERIES: Mapping[str, str] = {
    name: text.strip().rstrip(";") for name, text in re.findall(r"^-- (q\d+)\n(.*?)(?=^-- q|\Z)", _TEXT, re.MULTILINE | re.DOTALL)
}

_TABLES: Mapping[str, tuple[str, str]] = {
    "region": ("r_regionkey", "r_regionkey int, r_name text, r_comment text"),
    "nation": ("n_nationkey", "n_nationkey int, n_name text, n_regionkey int, n_comment text"),
    "supplier": (
        "s_suppkey",
        "s_suppkey int, s_name text, s_address text, s_nationkey int, s_phone text, s_acctbal numeric(15, 2), s_comment text",
    ),
    "customer": (
        "c_custkey",
        "c_custkey int, c_name text, c_address text, c_nationkey int, c_phone text, c_acctbal numeric(15, 2), "
        "c_mktsegment text, c_comment text",
    ),
    "part": (
        "p_partkey",
        "p_partkey int, p_name text, p_mfgr text, p_brand text, p_type text, p_size int, p_container text, "
        "p_retailprice numeric(15, 2), p_comment text",
    ),
    "partsupp": (
        "ps_partkey, ps_suppkey",
        "ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost numeric(15, 2), ps_comment text",
    ),
    "orders": (
        "o_orderkey",
        "o_orderkey bigint, o_custkey int, o_orderstatus text, o_totalprice numeric(15, 2), o_orderdate date, "
        "o_orderpriority text, o_clerk text, o_shippriority int, o_comment text",
    ),
    "lineitem": (
        "l_orderkey, l_linenumber",
        "l_orderkey bigint, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric(15, 2), "
        "l_extendedprice numeric(15, 2), l_discount numeric(15, 2), l_tax numeric(15, 2), l_returnflag text, l_linestatus text, "
        "l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct text, l_shipmode text, l_comment text",
    ),
}
CHANGES = (
    "DELETE FROM lineitem WHERE l_orderkey % 17 = 3",
    "UPDATE lineitem SET l_discount = 0.09, l_shipmode = 'AIR' WHERE l_orderkey % 23 = 5",
    "UPDATE orders SET o_orderdate = date '1994-06-01' WHERE o_orderkey % 19 = 4",
    "UPDATE supplier SET s_nationkey = 20 WHERE s_suppkey % 7 = 1",
    "DELETE FROM customer WHERE c_custkey % 13 = 6",
    "UPDATE partsupp SET ps_supplycost = ps_supplycost + 1 WHERE ps_partkey % 11 = 2",
    "UPDATE part SET p_brand = 'Brand#23', p_container = 'MED BOX' WHERE p_partkey % 29 = 8",
    "DELETE FROM nation WHERE n_name = 'CHINA'",
)


def generate(scale: float, folder: Path) -> None:
    """Write the eight tables as Parquet files."""
    program = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    subprocess.run([program, "parquet", "-s", str(scale), f"--output-dir={folder}"], check=True, capture_output=True)


class Rounds:
    """A session and DuckDB with the same tables, brought on round by round."""

    def __init__(self, session: Session, oracle: duckdb.DuckDBPyConnection, data: Path, parts: int) -> None:
        """Declare the tables; ``parts`` is how many batches each comes in."""
        self.session, self.oracle, self._data, self._parts = session, oracle, data, parts
        self._inbox = data / "inbox"
        for name, (key, columns) in _TABLES.items():
            (self._inbox / name).mkdir(parents=True, exist_ok=True)
            source = f"WITH (connector = 'parquet', path = '{self._inbox / name}')"
            session.run(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key})) {source}")
            oracle.execute(f"CREATE TABLE {name} ({columns})")

    def views(self, names: Sequence[str]) -> None:
        """Make views of queries."""
        for name in names:
            self.session.run(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES[name]}")

    def run(self) -> Iterator[str]:
        """Bring in the tables part by part, then change them; yield after each flush."""
        for part in range(self._parts):
            for name, (key, _) in _TABLES.items():
                self._insert(name, key, part)
            self.session.run("FLUSH")
            yield f"part {part}"
        for change in CHANGES:
            self.session.run(change)
            self.oracle.execute(change)
        self.session.run("FLUSH")
        yield "changes"

    def _insert(self, name: str, key: str, part: int) -> None:
        """Insert part of a table; at a thousandth, the generator gives some keys of ``partsupp`` twice."""
        columns = ", ".join(each.split()[0] for each in _TABLES[name][1].replace("(15, 2)", "").split(", "))
        place = key.split(", ")[0]
        once = f"SELECT * FROM '{self._data / name}.parquet'"
        if name == "partsupp":
            once = f"SELECT DISTINCT ON ({key}) * FROM ({once}) ORDER BY {columns}"
        rows = f"SELECT * FROM ({once}) WHERE {place} % {self._parts} = {part}"
        with duckdb.connect() as reader:
            reader.execute(f"COPY ({rows}) TO '{self._inbox / name / f'{part}.parquet'}' (FORMAT parquet)")
        self.oracle.execute(f"INSERT INTO {name} {rows}")

    def compare(self, name: str) -> int:
        """Compare a view with DuckDB's answer, and return how many rows it has."""
        got = _sorted(self.session.query(f"SELECT * FROM {name}").rows())
        expected = _sorted(self.oracle.execute(QUERIES[name]).fetchall())
        assert len(got) == len(expected), f"{name}: {len(got)} rows, not {len(expected)}"
        for one, other in zip(got, expected, strict=True):
            assert all(_is_near(a, b) for a, b in zip(one, other, strict=True)), f"{name}: {one}, not {other}"
        return len(got)


def _sorted(rows: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(rows, key=lambda row: [_text(cell) for cell in row])


def _text(cell: object) -> str:
    return f"{float(cell):.2f}" if isinstance(cell, float | Decimal | int) else str(cell)


def _is_near(one: object, other: object) -> bool:
    """Whether two cells are equal; DuckDB divides and averages numerics as doubles."""
    if isinstance(one, float | Decimal | int) and isinstance(other, float | Decimal | int):
        return math.isclose(one, other, rel_tol=1e-9)
    return one == other
