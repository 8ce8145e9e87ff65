"""Nexmark: the events follow the rules of Flink's generator, and views answer its queries as DuckDB does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from bench.nexmark import events, fluent
from bench.nexmark.native_spark import PROGRAMS
from bench.nexmark.on_windowpane import create, differing, results
from bench.nexmark.queries import QUERIES
from windowpane.sql import Session

EVENTS = 20_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of each entity, in disorder of a second."""
    found = tmp_path_factory.mktemp("nexmark")
    events.write(found, EVENTS, 2, 10_000)
    return found


def asked(folder: Path, sql: str) -> tuple[object, ...]:
    """Return the one row of a query of the events."""
    return tuple(duckdb.execute(sql.replace("FOLDER", str(folder))).fetchall()[0])


def test_of_fifty_events_one_is_a_person_and_three_are_auctions(folder: Path) -> None:
    """``PersonGenerator``'s and ``AuctionGenerator``'s proportions, and dense ids from 1,000 on."""
    persons = asked(folder, "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM 'FOLDER/person/*.parquet'")
    auctions = asked(folder, "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM 'FOLDER/auction/*.parquet'")
    assert persons == (400, 400, 1_000, 1_399)
    assert auctions == (1_200, 1_200, 1_000, 2_199)
    assert asked(folder, "SELECT count(*) FROM 'FOLDER/bid/*.parquet'") == (18_400,)


def test_half_of_the_bids_are_on_the_hot_auction_and_three_quarters_by_the_hot_bidder(folder: Path) -> None:
    """The ratios 2 and 4 of ``GeneratorConfig``; the ids of the others reach ten ahead."""
    auction, bidder = asked(
        folder,
        "SELECT avg((auction % 100 = 0)::int), avg(((bidder - 1001) % 100 = 0)::int) FROM 'FOLDER/bid/*.parquet'",
    )
    assert auction == pytest.approx(0.505, abs=0.02)
    assert bidder == pytest.approx(0.753, abs=0.02)
    assert asked(folder, "SELECT max(auction) <= 2199 + 10, max(bidder) <= 1399 + 10 FROM 'FOLDER/bid/*.parquet'") == (True, True)


def test_events_do_not_depend_on_the_files(folder: Path, tmp_path: Path) -> None:
    """The same events in four files: each is drawn from the seed of its block."""
    events.write(tmp_path, EVENTS, 4, 10_000)
    for entity in events.ENTITIES:
        assert pq.read_table(tmp_path / entity).equals(pq.read_table(folder / entity))


def test_disorder_is_of_the_order_only(folder: Path, tmp_path: Path) -> None:
    """Arrival ``c`` has event ``floor(c / g) g + 953 c mod g``: the same events, the times no longer ascend."""
    events.write(tmp_path, EVENTS, 2, 1)
    ordered, mixed = (pq.read_table(of / "bid")["date_time"].to_pylist() for of in (tmp_path, folder))
    assert ordered == sorted(mixed)
    assert mixed != sorted(mixed)


@pytest.mark.slow_but_one_in(3)
@pytest.mark.parametrize("name", QUERIES)
def test_a_view_has_the_rows_of_duckdb(folder: Path, name: str, tmp_path: Path) -> None:
    """Every query, embedded: the second file of each entity arrives when the view has the first."""
    query = QUERIES[name]
    for entity in events.ENTITIES:
        (tmp_path / entity).mkdir()
    with Session(store=":memory:") as store:
        create(store, tmp_path, query)
        for file in ("000.parquet", "001.parquet"):
            for entity in events.ENTITIES:
                shutil.copy(folder / entity / file, tmp_path / entity / file)
            store.run("FLUSH")
        found = results(store)
    assert len(found) > 0
    assert differing(folder, query, found) == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ["q5", "q18"])
def test_a_view_on_spark_has_them_too(folder: Path, name: str, spark: Any, tmp_path: Path) -> None:
    """A join of groups of windows, and a Top-N, in batches of a file."""
    query = QUERIES[name]
    with Session(spark, str(tmp_path / "store.duckdb")) as store:
        create(store, folder, query, maxFilesPerTrigger="1")
        store.run("FLUSH")
        found = results(store)
    assert len(found) > 0
    assert differing(folder, query, found) == 0


def test_native_spark_has_programs_of_queries_only() -> None:
    """Each of them is one of the queries."""
    assert set(PROGRAMS) <= set(QUERIES)


_SHOWN = ("q5", "q9")


@pytest.mark.spark
@pytest.mark.parametrize(
    "name", [name if name in _SHOWN else pytest.param(name, marks=pytest.mark.slow) for name in fluent.PROGRAMS]
)
def test_a_program_in_python_has_the_rows_of_duckdb(spark: Any, folder: Path, name: str) -> None:
    """Over tables, whose rows are all there."""
    entities = {entity: spark.read.parquet(str(folder / entity)) for entity in QUERIES[name].reads}
    found = fluent.PROGRAMS[name](entities).df.drop("_change_type").toArrow()
    assert found.num_rows
    assert differing(folder, QUERIES[name], found) == 0
