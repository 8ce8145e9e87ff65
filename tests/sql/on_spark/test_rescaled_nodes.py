"""State of nodes in other buckets: views go on with what the embedded engine has, and damage is named."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sql.in_process import CHECKPOINTS, NO_SPARK, run_in_process
from windowpane.errors import UnmovableStateError
from windowpane.planning.rescaling.buckets import holds, problems, rescaled
from windowpane.spark.stages.buckets import bucket_ids
from windowpane.sql import Session
from windowpane.sql.on_spark.places import places_of
from windowpane.state.memory import MemoryBlobStore

TABLES = (
    "CREATE TABLE t (k varchar, g int, v numeric, span interval, at timestamp, WATERMARK FOR at AS at - INTERVAL '5 seconds') "
    "APPEND ONLY; CREATE TABLE u (k varchar, g bigint, since timestamp, name varchar PRIMARY KEY)"
)
VIEWS = {
    "grouped": "SELECT k, g, count(*) AS n, sum(v) AS s FROM t GROUP BY k, g",
    "distinct_values": "SELECT g, count(DISTINCT v) AS n, count(DISTINCT k) AS names FROM t GROUP BY g",
    "by_span": "SELECT span, max(v) AS most FROM t GROUP BY span",
    "one": "SELECT count(*) AS n, min(at) AS first FROM t",
    "joined": "SELECT t.k, t.v, u.name FROM t LEFT JOIN u ON t.g = u.g AND t.at = u.since",
    "highest": "SELECT k, v FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC, at) <= 2",
    "before": "SELECT k, since, name, lag(name) OVER (PARTITION BY g, since ORDER BY name) AS earlier FROM u",
    "collected": "SELECT name, array_agg(name) OVER (PARTITION BY g ORDER BY name) AS names FROM u",
    "closed": "SELECT k, v, at, lag(v) OVER (PARTITION BY span ORDER BY at) AS earlier FROM t EMIT ON WINDOW CLOSE",
    "rising": "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k, g ORDER BY at MEASURES A.v AS a, LAST(B.v) AS b "
    "ONE ROW PER MATCH PATTERN (A B+) WITHIN INTERVAL '1' HOUR DEFINE B AS B.v > A.v) EMIT ON WINDOW CLOSE",
    "windows": "SELECT window_start, k, sum(v) AS s FROM TUMBLE(t, at, INTERVAL '10 seconds') GROUP BY window_start, k "
    "EMIT ON WINDOW CLOSE",
}
ROUNDS = (
    "INSERT INTO t SELECT 'key ' || n % 7, n % 4 - 2, n * 7 % 10, n % 3 * INTERVAL '1 hour', "
    "TIMESTAMP '2024-01-01' + n % 20 * INTERVAL '1 second' FROM generate_series(1, 60) s(n)",
    "INSERT INTO u SELECT 'key ' || n % 7, n % 4 - 2, TIMESTAMP '2024-01-01' + n % 20 * INTERVAL '1 second', 'name ' || n "
    "FROM generate_series(1, 30) s(n); INSERT INTO t VALUES (NULL, NULL, 1.5, INTERVAL '24 hours', '2024-01-01 00:00:20')",
    "INSERT INTO t SELECT 'key ' || n % 9, n % 3 - 1, n * 5 % 11, n % 2 * INTERVAL '1 day', "
    "TIMESTAMP '2024-01-01 00:00:20' + n % 30 * INTERVAL '1 second' FROM generate_series(1, 60) s(n); "
    "DELETE FROM u WHERE g = 1; INSERT INTO u VALUES ('key 1', 2, 'infinity', 'no instant'), (NULL, NULL, NULL, 'no key')",
    "INSERT INTO t VALUES ('key 1', 2, 3, INTERVAL '1 hour', '2024-01-01 00:05:00'), (NULL, 0, 7, NULL, '2024-01-01 00:10:00')",
    "UPDATE u SET g = g + 1; INSERT INTO u VALUES ('key 1', 3, 'infinity', 'again no instant'); "
    "INSERT INTO t VALUES ('key 2', 1, 5, INTERVAL '60 minutes', '2024-01-01 00:20:00')",
)
_MADE = "; ".join([TABLES, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items())])


def rows_of(session: Session, view: str) -> list[str]:
    return sorted(map(repr, session.query(f"SELECT * FROM {view}").rows()))


@pytest.mark.parametrize("counts", [(2, 5, 1, 3), pytest.param((8, 1, 4, 2), marks=pytest.mark.slow)])
def test_views_go_on_in_other_buckets(monkeypatch: pytest.MonkeyPatch, counts: tuple[int, ...]) -> None:
    """Keys are NULL, at infinity, and spans that are written in two ways."""
    run_in_process(monkeypatch)
    with Session(store=":memory:") as embedded, Session(NO_SPARK) as session:
        for each in (embedded, session):
            each.run(_MADE)
        for statements, count in zip(ROUNDS, (*counts, 1), strict=True):
            for each in (embedded, session):
                each.run(f"{statements}; FLUSH")
            for name in VIEWS:
                assert rows_of(session, name) == rows_of(embedded, name), name
            for checkpoint in CHECKPOINTS.values():
                checkpoint.rescale(count)
        assert all(rows_of(session, name) for name in VIEWS)


@pytest.mark.parametrize("view", ["grouped", "distinct_values", "before", "rising"])
def test_keys_in_a_wrong_bucket_are_named(monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    run_in_process(monkeypatch)
    with Session(NO_SPARK) as session:
        session.run(f"{TABLES}; CREATE MATERIALIZED VIEW {view} AS {VIEWS[view]}; {ROUNDS[0]}; {ROUNDS[1]}; FLUSH")
        (checkpoint,) = CHECKPOINTS.values()
        stores = [checkpoint.stores[0, bucket] for bucket in bucket_ids(checkpoint.buckets)]
    for number, store in enumerate(stores):
        assert problems(store, number, len(stores), places_of) == []
        (said,) = problems(store, (number + 1) % len(stores), len(stores), places_of)
        assert said.startswith(f"bucket {(number + 1) % len(stores)}: it holds keys of other buckets: ")


def test_a_key_is_not_taken_out_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be in the results of the view still."""
    run_in_process(monkeypatch)
    with Session(NO_SPARK) as session:
        session.run(f"{TABLES}; CREATE MATERIALIZED VIEW v AS {VIEWS['grouped']}; {ROUNDS[0]}; FLUSH")
        (checkpoint,) = CHECKPOINTS.values()
        store: MemoryBlobStore = checkpoint.stores[0, 0]
    with pytest.raises(UnmovableStateError, match="Delete the rows where the view has them from"):
        rescaled([store], 2, ("key 1", 1), places_of)
    with pytest.raises(UnmovableStateError, match="nodes of a SQL view"):
        holds(store, ("key 1", 1))


def test_a_node_without_keys_is_in_the_first_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    run_in_process(monkeypatch)
    with Session(NO_SPARK) as session:
        session.run(f"{TABLES}; CREATE MATERIALIZED VIEW v AS {VIEWS['one']}; {ROUNDS[0]}; FLUSH")
        (checkpoint,) = CHECKPOINTS.values()
        old = [checkpoint.stores[0, bucket] for bucket in bucket_ids(checkpoint.buckets)]
    new = rescaled(old, 5, places_of=places_of)
    assert np.flatnonzero([len(store.keys()) for store in new]).tolist() == [0]
