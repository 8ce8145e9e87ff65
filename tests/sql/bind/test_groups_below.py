"""Groups of windows under other nodes: which plans have them as a window program, and that views hold what they must."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import seeds, some
from tests.sql.in_process import NO_SPARK, Queries, run_in_process
from tests.sql.on_spark.test_streamed_views import SOURCE, forget_last_commits, held, minute, random_rows, write
from windowpane.engines.common.tagged import tagged
from windowpane.engines.program import MAIN
from windowpane.errors import ChangedPlanError
from windowpane.spark.queries.staged import RunWithoutState
from windowpane.spark.stages.blobs import pack, unpack
from windowpane.spark.stages.wire import Wire
from windowpane.sql import Session
from windowpane.sql.nodes import Aggregate, CloseSort, Join, Node, Over, Scan, TopN, every_node
from windowpane.sql.on_spark import view_streams
from windowpane.sql.on_spark.change_sets import clock_table
from windowpane.sql.on_spark.node_engine import NodeEngine
from windowpane.sql.on_spark.pending_changes import ViewPlan
from windowpane.sql.on_spark.programs import groups_below as below
from windowpane.sql.on_spark.programs.groups_below import GROUPS, SpreadPlan, groups_below
from windowpane.sql.on_spark.spark_runner import SparkRunner
from windowpane.sql.on_spark.stages import HASH, cut
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.sql.upkeep.embedded_runner import EmbeddedRunner

TUMBLE, HOP = "tumble(trades, at, INTERVAL '1 minute')", "hop(trades, at, INTERVAL '1 minute', INTERVAL '3 minutes')"
CUMULATE = "cumulate(trades, at, INTERVAL '1 minute', INTERVAL '4 minutes')"
SESSION = "session(trades PARTITION BY k, DESCRIPTOR(at), INTERVAL '1 minute')"


def groups(what: str, windows: str = TUMBLE, by: str = "k, name, window_start, window_end", where: str = "at IS NOT NULL") -> str:
    return f"(SELECT {by}, {what} FROM {windows}{f' WHERE {where}' * bool(where)} GROUP BY {by})"


def top(call: str, windows: str, order: str, source: str) -> str:
    return f"SELECT * FROM (SELECT *, {call} OVER (PARTITION BY {windows} ORDER BY {order}) AS place FROM {source} AS g) AS p"


CLOSES = "EMIT ON WINDOW CLOSE"
CLOSING = {
    "first": f"{top('row_number()', 'window_start', 's DESC', groups('sum(v) AS s'))} WHERE place <= 3 {CLOSES}",
    "ranked": f"{top('rank()', 'window_end, name', 's NULLS FIRST', groups('max(v) AS s', HOP))} WHERE place <= 2 {CLOSES}",
    "last": f"{top('row_number()', 'k, window_start', 's DESC NULLS LAST, name', groups('min(price) AS s', CUMULATE))}"
    f" WHERE place = 2 {CLOSES}",
    "so_far": f"{top('row_number()', 'window_end', 's, n DESC', groups('sum(big) AS s, count(v) AS n', CUMULATE))}"
    f" WHERE place BETWEEN 2 AND 4 {CLOSES}",
    "totals": f"""SELECT window_start AS since, max(s) AS m, count(*) AS n, sum(12 / s) AS d, array_agg(s ORDER BY s) AS every
        FROM {groups("sum(v) AS s", by="k, window_start")} AS g GROUP BY window_start HAVING count(*) > 1 {CLOSES}""",
    "best_names": f"""SELECT upper(name) AS u, window_end, b FROM (SELECT name, window_end, sum(s) AS b FROM
        {groups("sum(v) AS s", HOP, where="v > 0")} AS g WHERE s < 5 GROUP BY name, window_end) AS h
        QUALIFY row_number() OVER (PARTITION BY window_end ORDER BY b DESC) <= 2 {CLOSES}""",
}
"""Ties, NULL keys and NULL totals are in all of them, for the rows have few values."""
CHANGING = {
    "leading": f"{top('row_number()', 'window_start', 's DESC', groups('sum(v) AS s'))} WHERE place <= 3",
    "places": f"{top('dense_rank()', 'window_end', 's', groups('max(v) AS s', HOP))} WHERE place <= 2",
    "overall": f"SELECT k, s FROM {groups('count(*) AS s', CUMULATE)} AS g ORDER BY s DESC, k, name, window_end LIMIT 4",
    "named": f"SELECT g.*, n.word FROM {groups('avg(price) AS s')} AS g LEFT JOIN words AS n ON n.name = g.name",
    "steps": f"SELECT *, lag(s) OVER (PARTITION BY k, name ORDER BY window_start) AS before FROM {groups('sum(v) AS s')} AS g",
    "visits": f"SELECT k, sum(n) AS n FROM {groups('count(*) AS n', SESSION, 'k, window_start', '')} AS g GROUP BY k",
}
VIEWS = CLOSING | CHANGING
ON_NODES = ("last",)
"""Windows of CUMULATE that share their start close apart, so a top of these waits above the groups."""


def made(spark: Any, folder: Path, views: dict[str, str], store: str = ":memory:") -> Session:
    session = Session(spark, store)
    if not session.relations():
        files = ", maxFilesPerTrigger = '1'" if spark is not None else ""
        session.run(SOURCE.format(options=f"connector = 'parquet', path = '{folder}'{files}"))
        session.run(
            "CREATE TABLE words (name text PRIMARY KEY, word text); INSERT INTO words VALUES ('a', 'alpha'), ('', 'none')"
        )
        for name, query in views.items():
            session.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return session


# --- which plans ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planning(tmp_path_factory) -> Iterator[Session]:
    with made(None, tmp_path_factory.mktemp("nothing"), {}) as session:
        columns = "(k int, at timestamp, WATERMARK FOR at AS at) WITH (connector = 'parquet', path = '*.none')"
        session.run(f"CREATE SOURCE others {columns}")
        yield session


def planned(session: Session, query: str) -> tuple[Node, SpreadPlan]:
    session.run(f"CREATE MATERIALIZED VIEW tried AS {query}")
    try:
        tables = {table.relation.name: table for table in session._catalog.tables()}
        node = session._catalog.views()[0].node
        return node, groups_below(node, {"trades", "others"}, tables)
    finally:
        session.run("DROP MATERIALIZED VIEW tried")


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_the_groups_are_a_program_and_what_stands_above_them_stays(planning: Session, name: str) -> None:
    node, found = planned(planning, VIEWS[name])
    if name in ON_NODES:
        assert found == SpreadPlan(node)
        return
    assert found.groups is not None
    assert found.groups.closes is (name in CLOSING)
    before, after = list(every_node(node)), list(every_node(found.node))
    assert GROUPS in [each.relation for each in after if isinstance(each, Scan)]
    assert not any(isinstance(each, CloseSort) for each in after)
    for kind in (TopN, Over, Join):
        assert sum(isinstance(each, kind) for each in after) == sum(isinstance(each, kind) for each in before)
    assert sum(isinstance(each, Aggregate) for each in after) == sum(isinstance(each, Aggregate) for each in before) - 1
    assert found.node.columns == node.columns


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * FROM {groups('sum(price::double precision) AS s')} AS g QUALIFY row_number() "
        f"OVER (PARTITION BY window_start ORDER BY s) = 1 {CLOSES}",
        f"SELECT window_start, max(n) AS n FROM {groups('count(*) AS n', SESSION, 'k, window_start, window_end', '')} AS g "
        "GROUP BY window_start, window_end " + CLOSES,
        f"SELECT a.k FROM {groups('count(*) AS n')} AS a JOIN {groups('count(*) AS n')} AS b USING (window_start) {CLOSES}",
        f"SELECT a.k FROM {groups('count(*) AS n')} AS a JOIN trades AS b ON a.k = b.k",
        f"SELECT a.k FROM {groups('count(*) AS n')} AS a JOIN others AS b ON a.k = b.k",
        "SELECT k, max(n) AS n FROM (SELECT k, name, count(*) AS n FROM trades GROUP BY k, name) AS g GROUP BY k",
        f"SELECT max(n) AS n FROM {groups('count(*) AS n', where='')} AS g",
        "SELECT DISTINCT name FROM trades",
    ],
    ids=["doubles", "sessions", "itself", "rows beside", "two sources", "no windows", "rows without a time", "no groups"],
)
def test_plans_that_stay_on_the_nodes_alone(planning: Session, query: str) -> None:
    node, found = planned(planning, query)
    assert found == SpreadPlan(node)


@pytest.mark.parametrize("seed", seeds(8))
def test_a_wait_that_moves_below_lets_the_same_rows_out_in_the_same_flush(seed: int, tmp_path: Path, monkeypatch) -> None:
    choices, job = random.Random(seed), EmbeddedRunner.job
    moved: list[str] = []

    def closing_below(self: EmbeddedRunner, name: str, node: Node, *, strict: bool):
        tables = {table.relation.name: table for table in self._catalog.tables()}
        found = groups_below(node, {"trades"}, tables)
        moved.extend([name] if found.groups is not None else [])
        return job(self, name, found.node, strict=strict)

    with made(None, tmp_path, CLOSING) as plain, monkeypatch.context() as patched:
        patched.setattr(below, "_scan", lambda groups: groups)
        patched.setattr(EmbeddedRunner, "job", closing_below)
        with made(None, tmp_path, CLOSING) as session:
            assert sorted(moved) == sorted(CLOSING.keys() - set(ON_NODES))
            for number in some(range(5), 2):
                write(tmp_path, number, random_rows(choices, 2 * number))
                found = held(plain, CLOSING)
                assert held(session, CLOSING) == found
            assert all(found.values())


def test_a_stage_that_keeps_nothing_takes_the_blobs_of_a_batch_in_any_order(planning: Session) -> None:
    _, found = planned(planning, VIEWS["first"])
    (stage,) = cut(found.node).stages
    node = stage.node
    assert isinstance(node, TopN)
    names = [*(column.id for column in node.input.columns), WEIGHT, HASH]
    numbers = count()

    def rows(bucket: int, *sums: int | None) -> pa.RecordBatch:
        at = minute(bucket)
        cells = [(next(numbers), "a", at, at + timedelta(minutes=1), each, 1, bucket) for each in sums]
        table = pa.table([pa.array(column) for column in zip(*cells, strict=True)], names=names)
        return pa.RecordBatch.from_arrays([[bucket], [pack(tagged(table, input="0"))]], names=["bucket", "blob"])

    def clock(bucket: int) -> pa.RecordBatch:
        watermarks = pack(tagged(clock_table({}, initial=False), clock="next", bucket=str(bucket)))
        return pa.RecordBatch.from_arrays([[bucket], [watermarks]], names=["bucket", "blob"])

    batches = [rows(1, 5, 3, 6), clock(0), rows(0, 7), clock(1), rows(1, 1, None, 4, 2), rows(0, 9, 8)]
    for given in (batches, batches[::-1]):
        made = pa.Table.from_batches(list(RunWithoutState(partial(NodeEngine, [(0, stage)]), Wire())(given)))
        tables = [unpack(blob) for output, blob in zip(*made.to_pydict().values(), strict=True) if output == MAIN]
        found_rows = [
            sorted(zip(table[str(node.number)].to_pylist(), table[names[4]].to_pylist(), strict=True)) for table in tables
        ]
        assert found_rows == [[(1, 9), (2, 8), (3, 7)], [(1, None), (2, 6), (3, 5)]]


# --- on Spark ------------------------------------------------------------------------------------------

FEW = ("first", "leading")


@pytest.mark.spark
@pytest.mark.parametrize("names", [FEW, pytest.param(tuple(VIEWS), marks=pytest.mark.slow)], ids=len)
@pytest.mark.slow
def test_views_hold_what_the_embedded_engine_has_after_every_batch(spark, tmp_path: Path, names: tuple[str, ...]) -> None:
    views, choices = {name: VIEWS[name] for name in names}, random.Random(5)
    folder, store = tmp_path / "in", str(tmp_path / "views.duckdb")
    change = "UPDATE words SET word = 'omega' WHERE name = 'a'; INSERT INTO words VALUES ('b', 'beta')"
    write(folder, 0, random_rows(choices, 0))
    with made(None, folder, views) as embedded:
        with made(spark, folder, views, store) as session:
            assert held(session, views) == held(embedded, views)
            plan = [row[0] for row in session.query("EXPLAIN CREATE MATERIALIZED VIEW x AS " + VIEWS["first"]).rows()]
            assert plan[:5] == [
                "One streaming query on Spark from source 'trades', whose rows are not stored",
                "  groups: window program, engine slices, by k, name and window, folded before the shuffle",
                "    [keeps partial results of each group, until its window is closed]",
                "Spread over Spark in 1 stage on buckets of keys",
                "  stage 1, TopN: by window_start",
            ]
            write(folder, 1, random_rows(choices, 3))
            assert held(session, views) == held(embedded, views)
            session._storage.run("CHECKPOINT")
        forget_last_commits(Path(f"{store}.streams"))
        with made(spark, folder, views, store) as session:
            for number in (2, 3):
                write(folder, number, random_rows(choices, 3 * number))
                for each in (session, embedded):
                    each.run(change if number == 2 else "DELETE FROM words WHERE name = ''")
                found = held(embedded, views)
                assert held(session, views) == found
            assert all(found.values())
            assert session._storage.value("SELECT count(*) FROM main.trades") == 0
            shown = [row[1:] for row in session.query("SHOW WATERMARKS").text_rows()]
            ((_, *expected),) = embedded.query("SHOW WATERMARKS").text_rows()
            assert shown == [expected] * len(views)
            assert expected[1] not in (None, "0")


def test_a_view_with_a_program_below_is_not_opened_where_it_would_have_none(tmp_path: Path, monkeypatch) -> None:
    store = str(tmp_path / "views.duckdb")
    with monkeypatch.context() as patched:
        run_in_process(patched)
        patched.setattr(view_streams, "groups_below", groups_below)
        for name in ("start_view", "finish"):
            patched.setattr(Queries, name, lambda *_, **__: None)
        with made(NO_SPARK, tmp_path, {"first": VIEWS["first"]}, store) as session:
            assert isinstance(session._runner, SparkRunner)
            assert session._runner._pending.stream("first").plan == ViewPlan(
                sources=("trades",), has_groups_below=True, takes_change_sets=False
            )
        made(NO_SPARK, tmp_path, {}, store).close()
        patched.setattr(view_streams, "groups_below", lambda node, *_: SpreadPlan(node))
        with pytest.raises(ChangedPlanError, match="first"):
            made(NO_SPARK, tmp_path, {}, store)
