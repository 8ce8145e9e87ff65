"""A watermark frees the state of views: it is that of the open windows, and nobody can tell from the results."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.sql.windowed_views import TABLES, VIEWS, create, random_steps
from windowpane.errors import UnsupportedSqlError
from windowpane.sql import Session
from windowpane.sql.streaming import folding, folding_rows, joining, operators, top_rows

FLUSHES = 4


def kept(session: Session, view: str) -> int:
    """Return how many rows the operators of a view keep."""
    names = session._storage.run(
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = 'windowpane_state' AND table_name LIKE '{view}/%'"
    )
    return sum(session._storage.value(f'SELECT count(*) FROM windowpane_state."{name}"') for (name,) in names)


@pytest.mark.slow_ids("1")
@pytest.mark.parametrize("windows", [400, 10_000])
def test_the_state_after_many_windows_is_that_of_the_open_ones(windows: int) -> None:
    """Each window of a minute has one row of each table; the watermark is 30 seconds behind, so two windows are open."""
    with Session(":memory:") as session:
        session.run(TABLES)
        for name, query in VIEWS.items():
            create(session, name, query)
        for flush in range(FLUSHES):
            first, last = flush * windows // FLUSHES, (flush + 1) * windows // FLUSHES - 1
            for table, seconds in (("a", 5), ("b", 7)):
                session.run(
                    f"INSERT INTO {table} SELECT n % 3, timestamp '2024-01-01' + n * INTERVAL '1 minute' + "
                    f"INTERVAL '{seconds} seconds', n % 7 FROM generate_series({first}, {last}) AS g(n)"
                )
            session.run("FLUSH")
        rows = {name: kept(session, name) for name in VIEWS}
        of_every_row = dict.fromkeys(VIEWS, 2) | {"recomputed": 9, "steps": 6, "groups_of_groups": 4, "top_n_of_groups": 6}
        of_every_row |= {name: 4 for name in VIEWS if "join" in name} | {"intersection": 4, "exception": 4, "union_of_both": 4}
        of_every_row |= {"groups_of_sessions": 4, "with_partner": 4, "without_partner": 6}
        assert {name: count for name, count in rows.items() if count > of_every_row[name]} == {}
        assert session.query("SELECT count(*) FROM folded").rows() == [(windows,)]


@pytest.fixture(params=range(30))
def program(request: pytest.FixtureRequest) -> tuple[str, bool, list[list[str]]]:
    """A kind of view, whether it emits on window close, and what is inserted before each flush."""
    rng = random.Random(request.param)
    return list(VIEWS)[request.param % len(VIEWS)], rng.random() < 0.3, random_steps(rng)


def outcomes(session: Session, name: str, steps: list[list[str]]) -> list[list[str]]:
    """Return rows and changes of a view after each flush."""
    found = []
    for inserts in steps:
        session.run("; ".join([*inserts, "FLUSH"]))
        found.append(sorted(map(str, session.query(f"SELECT * FROM {name}").rows())))
        found.append(sorted(map(str, session.changelog(name).to_pylist())))
    return found


@pytest.mark.slow_but("0", "3", "4")
def test_results_are_those_of_a_run_that_frees_nothing(
    program: tuple[str, bool, list[list[str]]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With late rows, NULL keys, and the session opened anew in the middle."""
    name, closes, steps = program
    path, half = str(tmp_path / "freed.duckdb"), len(steps) // 2
    with Session(path) as session:
        session.run(TABLES)
        try:
            create(session, name, VIEWS[name], closes=closes)
        except UnsupportedSqlError:
            pytest.skip("this kind does not emit on window close")
        freed = outcomes(session, name, steps[:half])
    with Session(path) as session:
        freed += outcomes(session, name, steps[half:])
        rows = kept(session, name)
    for module in (operators, folding, folding_rows, joining, top_rows):
        monkeypatch.setattr(module, "free", lambda *_, **__: None)
    with Session(":memory:") as session:
        session.run(TABLES)
        create(session, name, VIEWS[name], closes=closes)
        assert freed == outcomes(session, name, steps)
        assert rows <= kept(session, name)


def test_rows_that_can_be_deleted_are_kept() -> None:
    """A table whose rows change can take back what lies behind its watermark."""
    with Session(":memory:") as session:
        session.run(TABLES.replace(" APPEND ONLY", ""))
        create(session, "folded", VIEWS["folded"])
        create(session, "joined", VIEWS["window_join_left"])
        for table in "ab":
            session.run(f"INSERT INTO {table} VALUES (1, '2024-01-01 00:00:10', 1), (1, '2024-01-01 01:00:00', 2)")
        session.run("FLUSH; DELETE FROM a WHERE v = 1; DELETE FROM b WHERE v = 2; FLUSH")
        assert session.query("SELECT k, s FROM folded").text_rows() == [["1", "2"]]
        assert session.query("SELECT lv, rv FROM joined").rows() == [(2, None)]


def test_times_moved_by_months_do_not_close_in_order() -> None:
    """January 30 at 23:00 and January 31 at 01:00 change places when a month is added, so no watermark follows."""
    with Session(":memory:") as session:
        session.run(TABLES)
        query = "SELECT at + INTERVAL '{}' AS later, count(*) AS n FROM a GROUP BY at + INTERVAL '{}'"
        create(session, "days", query.format("30 days", "30 days"), closes=True)
        with pytest.raises(UnsupportedSqlError, match="without a watermark column"):
            create(session, "months", query.format("1 month", "1 month"), closes=True)
