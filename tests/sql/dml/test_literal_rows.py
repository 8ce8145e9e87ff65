"""Rows of literals that are read as columns are those that are read one by one."""

from __future__ import annotations

import random

import pytest

from windowpane.errors import SqlError, SqlRunError, WindowpaneError
from windowpane.sizes import replacing_sizes
from windowpane.sql import Session
from windowpane.sql.dml.literal_rows import FEWEST_ROWS, cut_rows

TYPES = (
    "smallint",
    "int",
    "bigint",
    "numeric",
    "numeric(12, 2)",
    "double precision",
    "real",
    "varchar",
    "boolean",
    "date",
    "timestamp",
    "timestamptz",
    "jsonb",
    "bytea",
)
INTEGERS = ("0", "7", "-7", "007", "32000", "2147483648", "123456789012345678", "-0", "9223372036854775808")
DECIMALS = ("1.5", "-1.50", "0.005", "12.345", "-0.0", "0.1", "123456.789", "99999999999999.95", "1234567890123456789.5")
TEXTS = ("'a'", "''", "'it''s'", "' b '", "'1'", "'1.5'", "'true'", "'NULL'", "'(1, 2)'", "'a;b'", "'é\n'")
INSTANTS = ("'2024-02-29'", "'2024-01-01 10:00:00'", "'2024-01-01 10:00:00.25'", "'0900-01-01'", "'2024-02-30'", "'2024-1-1'")
CLASSES = (INTEGERS, INTEGERS[:4], DECIMALS, DECIMALS[:4], TEXTS, INSTANTS[:3], INSTANTS, ("TRUE", "false"))


def _column(rng: random.Random, rows: int) -> list[str]:
    chosen = rng.choice(CLASSES)
    some = chosen + (rng.choice(CLASSES) if rng.random() < 0.15 else ())
    return [rng.choice((*some, "NULL")) for _ in range(rows)]


def _outcome(session: Session, kind: str, cells: list[str], fewest: int) -> object:
    rows = ", ".join(f"({number}, {cell})" for number, cell in enumerate(cells))
    with replacing_sizes(lambda size: fewest if size is FEWEST_ROWS else size.usual):
        session.run(f"CREATE TABLE t (id int, v {kind})")
        try:
            session.run(f"INSERT INTO t VALUES {rows}; FLUSH")
        except WindowpaneError as error:
            return type(error)
        else:
            return session.query("SELECT id, v, v::varchar FROM t ORDER BY id").rows()
        finally:
            session.run("DROP TABLE t")


@pytest.mark.parametrize("kind", TYPES)
def test_values_of_every_type(kind: str) -> None:
    rng = random.Random(kind)
    with Session(":memory:") as session:
        for _ in range(3):
            cells = _column(rng, 6)
            one_by_one = _outcome(session, kind, cells, 1_000_000)
            assert repr(_outcome(session, kind, cells, 2)) == repr(one_by_one), cells


def test_what_is_cut_and_what_is_not() -> None:
    rows = ", ".join(f"({number}, 'x')" for number in range(FEWEST_ROWS.value))
    insert = f"INSERT INTO t VALUES {rows}"
    assert len(cut_rows(insert)[1]) == 1
    assert len(cut_rows(f"CREATE TABLE t (a int, b varchar); -- {insert};\n{insert} RETURNING a; {insert}")[1]) == 2
    for script in (f"SELECT '; {insert}'", f"/* ; {insert} */ SELECT 1", f"SELECT E'\\'; {insert}'", f"{insert}, (1 + 1, 'x')"):
        assert cut_rows(script)[1] == {}


def test_a_refusal_has_the_place_of_its_row() -> None:
    rows = ",\n".join(f"({number}, 'x')" for number in range(FEWEST_ROWS.value))
    with Session(":memory:") as session:
        session.run("CREATE TABLE t (a int, b varchar NOT NULL)")
        with pytest.raises(SqlError, match=r"line 53, column"):
            session.run(f"INSERT INTO t VALUES\n{rows},\n(1, 'y'),\n(2, 3, 4)")
        with pytest.raises(SqlRunError, match="NOT NULL"):
            session.run(f"INSERT INTO t VALUES {rows}, (1, NULL)")
        assert session.query("SELECT count(*) FROM t").rows() == [(0,)]
        assert session.query(f"INSERT INTO t VALUES {rows}").tag == f"INSERT 0 {FEWEST_ROWS.value}"
