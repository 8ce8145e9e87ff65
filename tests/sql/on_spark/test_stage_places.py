"""Where the rows of a stage lie in its state: by the value of a time or an integer among the keys, else by a hash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.examples import some
from tests.sql.in_process import NO_SPARK, run_in_process
from windowpane.sql import Session
from windowpane.sql.catalog.entries import ViewInfo
from windowpane.sql.on_spark.rowwise import task_storage
from windowpane.sql.on_spark.stages import Stage, cut

TABLES = """
CREATE TABLE sold (item text, shop int, at timestamp, price numeric);
CREATE TABLE shops (shop bigint, name text, since timestamptz);
"""
LARGEST = 2**40 - 1


@pytest.fixture
def session() -> Iterator[Session]:
    """Two tables."""
    with Session(store=":memory:") as opened:
        opened.run(TABLES)
        yield opened


def stage_of(session: Session, query: str) -> Stage:
    """Return the one stage of a view."""
    session.run(f"CREATE MATERIALIZED VIEW v AS {query}")
    view = session._catalog.entries["v"]
    assert isinstance(view, ViewInfo)
    (stage,) = cut(view.node).stages
    return stage


def place(stage: Stage, *values: str, index: int = 0) -> int:
    """Return where a row with these values of the keys of an input lies, by DuckDB."""
    given = ", ".join(f'{value} AS "{key.id}"' for value, key in zip(values, stage.keys[index], strict=True))
    return int(task_storage().arrow(f"SELECT {stage.place_sql(index)} AS place FROM (SELECT {given})")["place"][0].as_py())


def test_rows_lie_in_the_order_of_an_integer_among_the_keys(session: Session) -> None:
    """Whatever stands beside it in the keys, which parts rows of equal integers."""
    stage = stage_of(session, "SELECT item, shop, count(*) FROM sold GROUP BY item, shop")
    names = [f"'{name}'" for name in "zyx"]
    places = [place(stage, name, f"{number}::INTEGER") for number, name in enumerate(names)]
    assert places == sorted(places)
    assert len({place(stage, name, "5::INTEGER") for name in names}) == 3
    assert {place(stage, name, "5::INTEGER") >> 24 for name in names} == {5}


def test_a_time_goes_before_an_integer(session: Session) -> None:
    """Microseconds, from which 40 bits are taken: some twelve days, then they begin anew."""
    stage = stage_of(session, "SELECT shop, at, count(*) FROM sold GROUP BY shop, at")
    assert place(stage, "7::INTEGER", "TIMESTAMP '1970-01-01 00:00:00.000003'") >> 24 == 3
    assert place(stage, "7::INTEGER", "make_timestamp(1099511627776 + 3)") >> 24 == 3


@pytest.mark.parametrize("value", ["NULL", "'infinity'", "'-infinity'"])
def test_what_is_no_instant_has_a_place(session: Session, value: str) -> None:
    """That of 1970."""
    stage = stage_of(session, "SELECT at, count(*) FROM sold GROUP BY at")
    assert place(stage, f"{value}::TIMESTAMP") >> 24 == 0


@pytest.mark.parametrize(
    ("value", "upper"), [("NULL", 0), ("-1", LARGEST), ("-2147483648", 2**40 - 2**31), ("2147483647", 2**31 - 1)]
)
def test_negative_integers_and_null_have_places(session: Session, value: str, upper: int) -> None:
    """The lower 40 bits of the integer."""
    stage = stage_of(session, "SELECT shop, count(*) FROM sold GROUP BY shop")
    assert place(stage, f"({value})::INTEGER") >> 24 == upper


def test_both_sides_of_a_join_have_one_place(session: Session) -> None:
    """An ``int`` equals a ``bigint``."""
    stage = stage_of(session, "SELECT item, name FROM sold JOIN shops ON sold.shop = shops.shop")
    for value in ("0", "12", "-3", "2147483647"):
        assert place(stage, f"({value})::INTEGER") == place(stage, f"{value}::BIGINT", index=1)
    assert place(stage, "1::INTEGER") < place(stage, "2::BIGINT", index=1)


def test_texts_and_numerics_lie_by_a_hash(session: Session) -> None:
    by_text = stage_of(session, "SELECT item, price, count(*) FROM sold GROUP BY item, price")
    assert by_text.place_sql(0).startswith("windowpane_text_hash(")


def test_numbers_and_times_are_hashed_as_numbers(session: Session) -> None:
    """By hand: the remainder of each by the prime, times its factor, xor, and the remainder of that."""
    stage = stage_of(session, "SELECT item, shop, at, count(*) FROM sold GROUP BY shop, at, item")
    prime, factors = 2**32 - 5, (2_654_435_761, 2_246_822_519)
    name = int(task_storage().arrow("SELECT windowpane_text_hash('x') AS h")["h"][0].as_py())
    for shop, micros in ((7, 3), (-1, 1_700_000_000_000_000), (0, -1)):
        parts = [number % 2**63 % prime * factor for number, factor in zip((shop, micros), factors, strict=True)]
        hashed = (parts[0] ^ parts[1] ^ name) % prime
        at = f"TIMESTAMP '1970-01-01' + INTERVAL '{micros} microseconds'"
        assert place(stage, f"({shop})::INTEGER", at, "'x'") == (micros % 2**40 << 24) + hashed % 2**24


@pytest.mark.parametrize("step", [1, 2, 1_000, 3_600, 65_536])
def test_numbers_one_step_apart_are_spread_over_all_buckets(session: Session, step: int) -> None:
    """As a time of whole seconds is, or the number of a shard."""
    stage = stage_of(session, "SELECT shop, count(*) FROM sold GROUP BY shop")
    (key,) = stage.keys[0]
    numbers = f'SELECT (n * {step})::INTEGER AS "{key.id}" FROM generate_series(1, 30000) s(n)'
    places = task_storage().arrow(f"SELECT {stage.place_sql(0)} AS place FROM ({numbers})")["place"].to_numpy()
    for buckets in (2, 3, 8, 200):
        counts = np.bincount((places % np.uint64(buckets)).astype(np.int64), minlength=buckets)
        assert counts.max() < 1.5 * 30_000 / buckets, buckets
        assert counts.min() > 0.5 * 30_000 / buckets, buckets


@pytest.mark.parametrize(
    "text",
    [
        "n",
        "'user-' || n",
        "repeat('a', (n % 50)::INT) || n",
        "'https://' || repeat('x', 40) || n || repeat('y', 40)",
        "chr(n::INT)",
    ],
)
def test_texts_are_spread_over_all_buckets(session: Session, text: str) -> None:
    stage = stage_of(session, "SELECT item, count(*) FROM sold GROUP BY item")
    (key,) = stage.keys[0]
    names = f'SELECT ({text})::VARCHAR AS "{key.id}" FROM range(100, 30100) s(n)'
    places = task_storage().arrow(f"SELECT {stage.place_sql(0)} AS place FROM ({names})")["place"].to_numpy()
    assert len(np.unique(places)) == 30_000
    for buckets in (2, 3, 8, 200):
        counts = np.bincount((places % np.uint64(buckets)).astype(np.int64), minlength=buckets)
        assert counts.max() < 1.5 * 30_000 / buckets, buckets
        assert counts.min() > 0.5 * 30_000 / buckets, buckets


@pytest.mark.parametrize(
    ("query", "together"),
    [
        ("SELECT * FROM (SELECT item, shops.shop AS s FROM sold JOIN shops ON sold.shop = shops.shop) {top} s {end}", [(0, 1)]),
        (
            "SELECT * FROM (SELECT sold.item, sold.shop AS s FROM sold LEFT JOIN sold AS b ON sold.shop = b.shop) {top} s {end}",
            [(0, 1)],
        ),
        (
            "SELECT * FROM (SELECT sold.item, b.shop AS s FROM sold LEFT JOIN sold AS b ON sold.shop = b.shop) {top} s {end}",
            [(0,), (1,)],
        ),
        (
            "SELECT * FROM (SELECT sold.item, sold.shop AS s FROM sold FULL JOIN sold AS b ON sold.shop = b.shop) {top} s {end}",
            [(0,), (1,)],
        ),
        # By shop alone all items of a shop would be in one bucket.
        ("SELECT * FROM (SELECT item, shop, count(*) AS n FROM sold GROUP BY item, shop) {top} shop {end}", [(0,), (1,)]),
        ("SELECT * FROM (SELECT item, shop, count(*) AS n FROM sold GROUP BY item, shop) {top} shop, item {end}", [(0, 1)]),
        ("SELECT n, count(*) FROM (SELECT shop + 1 AS s, count(*) AS n FROM sold GROUP BY shop) GROUP BY s, n", [(0,), (1,)]),
        # So would all rows of the join, which come from elsewhere.
        (
            "SELECT * FROM sold JOIN (SELECT shop AS s, max(price + 0) AS most FROM sold GROUP BY shop) "
            "ON shop = s AND price = most",
            [(0,), (1,)],
        ),
        # With the extreme of their own group, they are its first rows.
        (
            "SELECT * FROM sold JOIN (SELECT shop AS s, max(price) AS most FROM sold GROUP BY shop) ON shop = s AND price = most",
            [(0,)],
        ),
        ("SELECT * FROM sold JOIN (SELECT shop AS s, max(price) AS most FROM sold GROUP BY shop) ON shop = s", [(0, 1)]),
        (
            "SELECT * FROM (SELECT shop AS s, max(price) AS most FROM sold GROUP BY shop) AS a "
            "JOIN (SELECT shop, min(price) AS least FROM sold GROUP BY shop) AS b ON s = shop AND most = least",
            [(0, 1, 2)],
        ),
        (
            "SELECT shop, count(*) FROM (SELECT shop FROM sold GROUP BY shop UNION ALL SELECT shop FROM shops) GROUP BY shop",
            [(0,), (1,)],
        ),
    ],
)
def test_stages_run_together_where_rows_stay_in_their_bucket(
    session: Session, query: str, together: list[tuple[int, ...]]
) -> None:
    top = "QUALIFY row_number() OVER (PARTITION BY"
    session.run(f"CREATE MATERIALIZED VIEW v AS {query.format(top=top, end='ORDER BY item) <= 2')}")
    view = session._catalog.entries["v"]
    assert isinstance(view, ViewInfo)
    plan = cut(view.node)
    assert list(plan.together) == together
    for numbers in together:  # rows of one key come to one bucket whichever node they are for
        assert len({len(keys) for number in numbers for keys in plan.stages[number].keys}) == 1


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        # Both reach the join, behind the maximum and as they are.
        (
            "SELECT a.item, a.n, b.n AS most FROM counts AS a "
            "JOIN (SELECT shop, max(n) AS n FROM counts GROUP BY shop) AS b ON a.shop = b.shop",
            3,
        ),
        ("SELECT a.item, a.n, b.n AS other FROM counts AS a JOIN counts AS b ON a.item = b.item AND a.shop = b.shop", 2),
        # The one reaches the result, the other a join.
        ("SELECT item, n FROM counts UNION ALL SELECT a.item, b.price FROM counts AS a JOIN sold AS b ON a.n = b.price", 3),
        # They differ in a condition, in a call.
        (
            "SELECT a.n FROM counts AS a JOIN (SELECT shop, item, count(*) AS n FROM sold WHERE price > 0 GROUP BY shop, item) "
            "AS b ON a.item = b.item AND a.shop = b.shop",
            3,
        ),
        (
            "SELECT a.n FROM counts AS a JOIN (SELECT shop, item, count(at) AS n FROM sold GROUP BY shop, item) AS b "
            "ON a.item = b.item AND a.shop = b.shop",
            3,
        ),
    ],
)
def test_equal_stages_run_once_where_one_operator_takes_them(session: Session, query: str, stages: int) -> None:
    session.run(
        f"CREATE MATERIALIZED VIEW v AS WITH counts AS (SELECT shop, item, count(*) AS n FROM sold GROUP BY shop, item) {query}"
    )
    view = session._catalog.entries["v"]
    assert isinstance(view, ViewInfo)
    plan = cut(view.node)
    assert len(plan.stages) == stages
    emitting = {flow.stage for stage in plan.stages for flows in stage.inputs for flow in flows} | {
        flow.stage for flow in plan.result
    }
    assert emitting - {None} == set(range(stages))


VIEWS = {
    "groups": "SELECT shop, item, count(*) AS n, min(price) AS least FROM sold GROUP BY shop, item",
    "named": "SELECT item, name FROM sold FULL JOIN shops ON sold.shop = shops.shop",
    "highest": "SELECT * FROM sold QUALIFY row_number() OVER (PARTITION BY shop, at ORDER BY price DESC, item) <= 2",
    "best": "SELECT item, shop, name FROM (SELECT item, shops.shop, name, price FROM sold JOIN shops ON sold.shop = shops.shop) "
    "QUALIFY row_number() OVER (PARTITION BY shop ORDER BY price DESC, item) <= 2",
    "counted": "SELECT n, name, first FROM (SELECT shop, count(*) AS n, min(at) AS first FROM sold GROUP BY shop) AS c "
    "LEFT JOIN shops ON c.shop = shops.shop",
    "most": "WITH c AS (SELECT shop, item, count(*) AS n FROM sold GROUP BY shop, item) "
    "SELECT c.item, c.n, m.n AS most FROM c JOIN (SELECT shop, max(n) AS n FROM c GROUP BY shop) AS m ON c.shop = m.shop",
    "doubled": "WITH c AS (SELECT shop, count(*) AS n FROM sold GROUP BY shop) "
    "SELECT a.shop, a.n, b.n AS other FROM c AS a JOIN c AS b ON a.shop = b.shop",
    "before": "SELECT n, lag(n) OVER (PARTITION BY shop ORDER BY at) AS earlier FROM "
    "(SELECT shop, at, count(*) AS n FROM sold GROUP BY shop, at)",
}
ROUNDS = (
    "INSERT INTO sold SELECT 'item ' || n, n % 9 - 4, TIMESTAMP '2024-01-01' + n % 5 * INTERVAL '1 day', n "
    "FROM generate_series(1, 90) s(n)",
    "INSERT INTO shops SELECT n, 'shop ' || n, now() FROM generate_series(-6, 3) s(n)",
    "INSERT INTO sold VALUES ('late', NULL, NULL, 1), ('late', -4, 'infinity', 2), ('late', 3, '1969-12-31', 3)",
    "DELETE FROM sold WHERE shop = 2; UPDATE sold SET price = price + 100 WHERE shop < 0; DELETE FROM shops WHERE shop > 0",
)


def test_each_round_goes_on_in_a_session_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_in_process(monkeypatch)
    store = str(tmp_path / "views.duckdb")
    views = {name: VIEWS[name] for name in some(list(VIEWS), 2)}
    made = [*(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in views.items())]
    with Session(store=":memory:") as embedded:
        embedded.run("; ".join([TABLES.strip().rstrip(";"), *made]))
        with Session(NO_SPARK, store) as session:
            session.run("; ".join([TABLES.strip().rstrip(";"), *made]))
        for statements in ROUNDS:
            embedded.run(f"{statements}; FLUSH")
            with Session(NO_SPARK, store) as session:
                session.run(f"{statements}; FLUSH")
                for name in views:
                    found, right = (sorted(map(repr, each.query(f"SELECT * FROM {name}").rows())) for each in (session, embedded))
                    assert found == right, name
                    assert found or statements != ROUNDS[-1]
