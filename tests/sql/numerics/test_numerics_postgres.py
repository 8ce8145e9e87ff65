"""Random numeric expressions, as queries and as views that change, against PostgreSQL: equal, or an error by name.

PostgreSQL divides with 60 decimal places here and then rounds to the digits that a numeric of RisingWave has, which is the
documented difference; all else is its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import pytest

from windowpane.errors import WindowpaneError
from windowpane.sql import Session

COLUMNS = {"a": "numeric", "b": "numeric", "d": "numeric(12, 2)", "i": "int", "g": "bigint", "s": "smallint"}
LITERALS = ("0", "1", "3", "7", "100", "0.5", "100.00", "0.001", "12345678901", "0.0000001", "99999999999999999999")
BESIDE_LITERALS = (
    "d + {0}", "{0} - d", "d * {0}", "d % {0}", "d = {0}", "d < {0}", "{0} >= d", "d IN (1, {0})", "d NOT IN ({0}, 7)",
    "d BETWEEN {0} AND 7", "d IS DISTINCT FROM {0}", "nullif(d, {0})", "coalesce(nullif(d, d), {0})", "greatest(d, {0})",
    "CASE WHEN i > 0 THEN d ELSE {0} END", "CASE d WHEN {0} THEN 1 ELSE 2 END", "(d, 1) = ({0}, 1)", "ARRAY[d, {0}]",
    "array_position(ARRAY[d, 1], {0})", "lag(d, 9, {0}) OVER (ORDER BY k)",
)  # fmt: skip
"""Where the type of a literal is that of a numeric column, which has other decimal places."""
SET_UP = f"""
CREATE FUNCTION short(x numeric) RETURNS numeric LANGUAGE plpgsql AS $$ DECLARE y numeric; BEGIN
    FOR places IN REVERSE 28..0 LOOP
        y := round(x, places);
        IF abs(y) * 10::numeric ^ places < 2::numeric ^ 96 THEN RETURN y; END IF;
    END LOOP;
    RETURN round(x, 0);
END $$;
CREATE FUNCTION over(a numeric, b numeric) RETURNS numeric LANGUAGE sql AS $$ SELECT short((a * 1.{"0" * 60}) / b) $$;
"""


@dataclass(frozen=True)
class Sample:
    """One expression in both dialects; ``rounded`` if a quotient is in it."""

    ours: str
    theirs: str
    rounded: bool = False


def _value(rng: random.Random, column: str) -> str:
    if rng.random() < 0.1:
        return "NULL"
    if column in "ab":
        return f"{rng.uniform(-1, 1) * 10 ** rng.randint(0, 9):.{rng.randint(0, 10)}f}"
    if column == "d":
        return f"{rng.uniform(-1e5, 1e5):.2f}"
    if column == "s":
        return str(rng.randint(-100, 100))
    extremes = (2147483647, -2147483648) if column == "i" else (9223372036854775807, rng.randint(-(10**15), 10**15))
    return str(rng.choice([0, 1, -1, 7, *extremes, rng.randint(-1000, 1000)]))


def _sample(rng: random.Random, depth: int, leaves: Sequence[str] = (*COLUMNS, *COLUMNS, *LITERALS)) -> Sample:
    if depth == 0 or rng.random() < 0.15:
        leaf = rng.choice(leaves)
        return Sample(leaf, leaf)
    one, other = _sample(rng, depth - 1, leaves), _sample(rng, rng.randint(0, depth - 1), leaves)
    rounded = one.rounded or other.rounded
    kind = rng.choice(["+", "-", "*", "*", "/", "/", "/", "%", "whole", "places", "cast", "compare", "least"])
    if kind == "/":
        ours, theirs = f"({one.ours} / {other.ours}::numeric)", f"over({one.theirs}, {other.theirs})"
        return Sample(ours, theirs, True)
    if kind == "*" and rounded:
        return Sample(f"({one.ours} * {other.ours})", f"short({one.theirs} * {other.theirs})", True)
    if kind in ("+", "-", "*"):
        return Sample(f"({one.ours} {kind} {other.ours})", f"({one.theirs} {kind} {other.theirs})", rounded)
    if kind == "%":
        return Sample(f"({one.ours} % {other.ours})", f"({one.theirs} % {other.theirs})", rounded)
    if kind == "whole":
        name = rng.choice(["ceil", "floor", "round", "trunc", "sign"])
        return Sample(f"{name}(({one.ours})::numeric)", f"{name}(({one.theirs})::numeric)", one.rounded)
    if kind == "places":
        name, places = rng.choice(["round", "trunc"]), rng.randint(-2, 6)
        ours, theirs = f"{name}(({one.ours})::numeric, {places})", f"{name}(({one.theirs})::numeric, {places})"
        return Sample(ours, theirs, one.rounded)
    if kind == "cast":
        target = rng.choice(["numeric(10, 2)", "numeric(38, 10)", "int", "bigint"])
        return Sample(f"({one.ours})::{target}", f"({one.theirs})::{target}", one.rounded)
    if kind == "compare":
        tail = f"THEN {other.ours} ELSE 0 END", f"THEN {other.theirs} ELSE 0 END"
        ours, theirs = f"CASE WHEN {one.ours} >= {other.ours} {tail[0]}", f"CASE WHEN {one.theirs} >= {other.theirs} {tail[1]}"
        return Sample(ours, theirs, rounded)
    return Sample(f"least({one.ours}, {other.ours})", f"least({one.theirs}, {other.theirs})", rounded)


class Pair:
    """A session and a PostgreSQL database with the same table."""

    def __init__(self, url: str) -> None:
        """Connect."""
        psycopg = pytest.importorskip("psycopg")
        self.error: type[Exception] = psycopg.Error
        self.theirs = psycopg.connect(url, autocommit=True)
        self.theirs.execute(SET_UP)

    def begin(self, rng: random.Random) -> Session:
        """Return a session, both with a new table of a few rows."""
        table = f"CREATE TABLE t (k int, {', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})"
        self.theirs.execute("DROP TABLE IF EXISTS t")
        session = Session(store=":memory:")
        self.run(session, table)
        for number in range(5):
            self.insert(session, rng, number)
        return session

    def run(self, session: Session, statement: str) -> None:
        """Run a statement in both."""
        self.theirs.execute(statement)
        session.run(statement)

    def insert(self, session: Session, rng: random.Random, number: int) -> None:
        """Insert a row into both."""
        self.run(session, f"INSERT INTO t VALUES ({number}, {', '.join(_value(rng, name) for name in COLUMNS)})")

    def expected(self, query: str) -> list[tuple[Any, ...]] | None:
        """Return PostgreSQL's rows, ``None`` for an error."""
        try:
            return list(self.theirs.execute(query).fetchall())
        except self.error:
            return None


@pytest.fixture
def pair(postgres_url: str) -> Iterator[Pair]:
    found = Pair(postgres_url)
    yield found
    found.theirs.close()


def _agree(got: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]], sample: Sample) -> bool:
    return len(got) == len(wanted) and all(
        _equal(one, other, sample)
        for mine, theirs in zip(got, wanted, strict=True)
        for one, other in zip(mine, theirs, strict=True)
    )


def _check_named(error: WindowpaneError, wanted: list[tuple[Any, ...]] | None) -> None:
    """Let an error pass that says what does not fit, or that PostgreSQL has, too."""
    if wanted is not None and not ("out of range" in str(error) or "would be rounded" in str(error)):
        raise error


def _equal(one: Any, other: Any, sample: Sample) -> bool:
    if one is None or other is None:
        return one is None and other is None
    with localcontext() as context:
        context.prec = 200
        distance = abs(Decimal(one) - Decimal(other))
        return distance == 0 or (sample.rounded and distance <= max(abs(Decimal(other)), Decimal(1)) * Decimal("1e-24"))


@pytest.mark.parametrize("literal", ["'0.0049'", "' 1.005 '", "'-7'", "'12345.678901'"])
def test_a_literal_beside_a_numeric_keeps_its_places(pair: Pair, literal: str) -> None:
    session = pair.begin(random.Random(0))
    pair.run(session, "INSERT INTO t (k, d, i) VALUES (5, 0.005, 1), (6, 1.01, -1), (7, 12345.68, 1), (8, -7, 0)")
    for template in BESIDE_LITERALS:
        query = f"SELECT {template.format(literal)} FROM t ORDER BY k"
        assert session.query(query).rows() == pair.expected(query), query


@pytest.mark.parametrize("seed", range(3))
def test_a_query_computes_what_postgresql_does(pair: Pair, seed: int) -> None:
    rng = random.Random(seed)
    session = pair.begin(rng)
    compared = 0
    for _ in range(30):
        sample = _sample(rng, 3)
        wanted = pair.expected(f"SELECT ({sample.theirs})::numeric FROM t ORDER BY k")
        try:
            got = session.query(f"SELECT {sample.ours} FROM t ORDER BY k").rows()
        except WindowpaneError as error:
            _check_named(error, wanted)
            continue
        assert wanted is not None, sample.ours
        assert _agree(got, wanted, sample), (sample.ours, got, wanted)
        compared += 1
    assert compared > 5


def _aggregate(rng: random.Random) -> Sample:
    """Return an aggregate of an expression; moments are compared to nine places, PostgreSQL's own digits."""
    sample = _sample(rng, 1, ("d", "d", "s", "s", "0.5", "100", "3"))
    name = rng.choice(["sum", "min", "max", "avg", "var_pop", "stddev_samp"])
    if name == "avg":
        theirs = f"over(sum({sample.theirs})::numeric, nullif(count({sample.theirs}), 0))"
        return Sample(f"avg({sample.ours})", theirs, True)
    if name in ("var_pop", "stddev_samp"):
        theirs = f"round({name}(({sample.theirs}) * 1.{'0' * 40}), 9)"
        return Sample(f"round({name}({sample.ours}), 9)", theirs, False)
    return Sample(f"{name}({sample.ours})", f"{name}({sample.theirs})::numeric", sample.rounded)


@pytest.mark.parametrize("seed", range(2))
def test_a_view_holds_what_postgresql_computes_after_any_changes(pair: Pair, seed: int) -> None:
    rng = random.Random(100 + seed)
    session = pair.begin(rng)
    views = {}
    for number in range(6):
        sample = _aggregate(rng)
        try:
            session.run(f"CREATE MATERIALIZED VIEW v{number} AS SELECT k % 3 AS g, {sample.ours} AS x FROM t GROUP BY k % 3")
        except WindowpaneError as error:
            _check_named(error, [])
            continue
        views[number] = sample
    compared = 0
    for number in range(5, 20, 5):
        for more in range(5):
            pair.insert(session, rng, number + more)
        pair.run(session, f"DELETE FROM t WHERE k = {rng.randrange(number)}")
        pair.run(session, f"UPDATE t SET a = {rng.randint(-99, 99)}.25 WHERE k = {rng.randrange(number)}")
        try:
            session.run("FLUSH")
        except WindowpaneError as error:
            _check_named(error, [])
            break
        for view, sample in views.items():
            wanted = pair.expected(f"SELECT k % 3, {sample.theirs} FROM t GROUP BY k % 3 ORDER BY 1")
            got = session.query(f"SELECT * FROM v{view} ORDER BY g").rows()
            assert wanted is None or _agree(got, wanted, sample), (sample.ours, got, wanted)
            compared += wanted is not None
    assert compared
