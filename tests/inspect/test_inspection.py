"""Inspections of the golden checkpoints, of which each engine has one: every figure is compared with the state it came from."""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import windowpane as wp
from tests.golden.checkpoints import FOLDER, extract
from windowpane.cli import app
from windowpane.engines.common.held_panes import trigger_words
from windowpane.engines.join.held_counts import HeldCounts, Sides
from windowpane.engines.join.windows import JoinWindowEngine
from windowpane.engines.panes.standings import waits_for_clocks
from windowpane.engines.program import MAIN, Program
from windowpane.engines.protocol import Clock
from windowpane.errors import InvalidSpecError, MissingCheckpointError
from windowpane.hidden_columns import PREFIX, hidden
from windowpane.inspect.held_rows import table_of
from windowpane.inspect.inspection import Inspection
from windowpane.inspect.printing import is_complete
from windowpane.inspect.tables import TABLES
from windowpane.kernels.joined_windows import LEFT, RIGHT
from windowpane.state.listing import hash_pages, listed
from windowpane.state.memory import HeldWrites
from windowpane.windowing.times import MAX
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger

NAMES = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))


OF_WINDOWS = {"windows", "keys", "timers"}
TABLES_OF = {
    "join_window": {"join", *OF_WINDOWS},
    "join": {"join"},
    "over": {"over"},
    "rolling": {"rolling"},
    "first_rows": {"deduplication"},
    "last_rows": {"deduplication"},
    "match": {"patterns"},
    "windows_filled": {"between", *OF_WINDOWS},
    "windows_settled": {"between", "deduplication", *OF_WINDOWS},
    "counts_trigger": OF_WINDOWS,
    "counts": {"windows", "keys"},
    "row_function": set[str](),
    "row_process": set[str](),
    "row_sessions": set[str](),
}
"""What a checkpoint shows of what it holds, by what its name begins with; others are windows with timers.

Functions of users that a checkpoint does not find by their names leave nothing known but sizes.
"""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    for name in NAMES:
        extract(FOLDER / f"{name}.tar.xz", folder / name)
    return folder


@pytest.fixture(params=NAMES)
def inspected(request: pytest.FixtureRequest, checkpoints: Path) -> Inspection:
    return wp.inspect(checkpoints / request.param)


def test_every_table_has_its_columns(inspected: Inspection) -> None:
    assert {name: inspected.table(name).schema.names for name in TABLES} == {
        name: each.columns.names for name, each in TABLES.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_program_fills_the_tables_that_are_of_it(checkpoints: Path, name: str) -> None:
    found = wp.inspect(checkpoints / name)
    filled = {each for each in TABLES if found.table(each).num_rows}
    of_kind = next((tables for begins, tables in TABLES_OF.items() if name.startswith(begins)), OF_WINDOWS)
    assert filled - {"late", "timers"} == {"query", "watermarks", "state", "batches"} | of_kind - {"timers"}
    assert ("timers" in filled) == ("timers" in of_kind)
    is_known = all(bucket.program is not None for bucket in found._buckets)
    assert is_known or not (of_kind or found.contents().num_rows)
    assert {each: is_complete(found.table(each)) for each in OF_WINDOWS} == dict.fromkeys(OF_WINDOWS, is_known)


def test_state_is_what_the_structures_say(inspected: Inspection) -> None:
    expected = [
        (bucket.operator, bucket.number, holds, found.size, found.entries, found.blobs)
        for bucket in inspected._buckets
        for name, holds in bucket.holds.items()
        if (found := listed(bucket.store, name)) is not None
    ]
    columns = ("operator", "bucket", "structure", "bytes", "entries", "blobs")
    assert [tuple(row[each] for each in columns) for row in inspected.state.to_pylist()] == expected


def test_windows_and_keys_count_what_is_open(inspected: Inspection) -> None:
    """The header has counted the same, batch by batch: slices count windows, the others panes."""
    for bucket in inspected._windows_buckets:
        rows = [row for row in inspected.windows.to_pylist() if row["operator"] == bucket.operator]
        panes = sum(row["keys"] for row in rows)
        is_by_window = _counts_windows(bucket)
        assert (len(rows) if is_by_window else panes) == bucket.header.open_windows
        keys = [row for row in inspected.keys.to_pylist() if row["operator"] == bucket.operator]
        assert sum(row["windows"] for row in keys) == panes
        assert sum(row["bytes"] for row in keys) == sum(row["bytes"] for row in rows)


def _counts_windows(bucket: Any) -> bool:
    """Whether the engine of a bucket counts windows, whatever number of keys they have."""
    engine = bucket.engine
    if isinstance(engine, JoinWindowEngine):
        return engine.windows_on == "slices"
    return engine.name == "slices" or (engine.name == "panes" and waits_for_clocks(bucket.windows.spec))


def test_contents_are_what_a_firing_gives(inspected: Inspection) -> None:
    """Each window that has not ended gives, when the watermark passes its end, the row that ``contents`` shows."""
    for bucket in inspected._windows_buckets:
        program = bucket.program
        if not isinstance(program, Program) or not program.spec.fires_at_window_end or not program.spec.assigner.is_event_time:
            continue
        output = bucket.engine.run(HeldWrites(bucket.store), [], Clock(MAX, bucket.header.processing_time))
        shown = inspected.contents(operator=bucket.operator)
        if not shown.num_rows:
            assert not bucket.header.open_windows
            continue
        names = [*program.keys.names, "window_start", "window_end", *program.main.names]
        fired = Counter(repr(row) for number, table in output.tables if number == MAIN for row in _rows(table, names))
        ends = shown["window_end"].cast(pa.int64()).to_numpy()
        unfired = shown.filter(pa.array(ends - 1 > bucket.header.watermark))
        assert Counter(repr(row) for row in _rows(unfired, names)) == fired


def _rows(table: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.select(names).to_pylist()
    return [{name: round(v, 9) if isinstance(v, float) else v for name, v in row.items()} for row in rows]


def test_a_key_is_found_alone(inspected: Inspection) -> None:
    for bucket in inspected._windows_buckets:
        names = bucket.keys.names
        whole = inspected.contents(operator=bucket.operator)
        for row in whole.select(names).to_pylist()[:3]:
            found = inspected.contents(key=row, operator=bucket.operator)
            same = [each for each in whole.to_pylist() if all(each[name] == row[name] for name in names)]
            assert sorted(map(repr, found.drop_columns(["bytes"]).to_pylist())) == sorted(
                repr({name: value for name, value in each.items() if name != "bytes"}) for each in same
            )


def test_rows_of_other_programs_are_all_there(inspected: Inspection) -> None:
    """As many rows as the structures of the state have, by their indexes."""
    for name in ("join", "rolling", "deduplication", "over", "patterns", "between"):
        table = inspected.table(name)
        for bucket in inspected._buckets if table.num_rows else ():
            for at, holds in bucket.runs_on.holds.items():  # type: ignore[union-attr]
                found = listed(bucket.store, at)
                own = [row for row in table.to_pylist() if row["operator"] == bucket.operator]
                rows = [row for row in own if row["holds"] == holds]
                if found is not None and found.entries is not None and rows and found.kind != "sorted pages":
                    assert sum(row["rows"] for row in rows) == found.entries
                    assert sum(row["bytes"] for row in rows) <= found.size


def test_rows_of_a_join_by_window_leave_with_their_windows(checkpoints: Path) -> None:
    found = wp.inspect(checkpoints / "join_window")
    (lateness,) = {bucket.windows.spec.lateness for bucket in found._buckets if bucket.windows is not None}
    panes = found.contents().to_pylist()
    expected: dict[str, int] = {}
    for pane in panes:
        key = pane["k"] or "NULL"
        cleaned = lateness.cleanup_time(int(pane["window_end"].timestamp() * 1e6) - 1)
        expected[key] = max(expected.get(key, 0), cleaned)
    leaves = found.join["leaves"].cast(pa.int64()).to_pylist()
    shown: dict[str, int] = {}
    for key, at in zip(found.join["key"].to_pylist(), leaves, strict=True):
        shown[key] = max(shown.get(key, 0), at)
    assert shown == expected
    assert sum(found.join["bytes"].to_pylist()) <= sum(found.state["bytes"].to_pylist())


@pytest.mark.parametrize("name", [each for each in NAMES if each.startswith("join")])
def test_rows_of_joins_are_told_by_side(checkpoints: Path, name: str) -> None:
    """As many rows of each side as the engine of windows has counted, and of the others as many as have their values shown."""
    found = wp.inspect(checkpoints / name)
    rows = found.join.to_pylist()
    if name == "join_window":
        counted = sum((HeldCounts(HeldWrites(each.store)).written() for each in found._buckets if table_of(each)), Sides())
        shown = [sum(row["rows"] for row in rows if row["side"] == side) for side in ("left", "right")]
        assert shown == [counted[LEFT], counted[RIGHT]] == [12, 7]
    assert {row["side"] for row in rows} <= {"left", "right"}
    if not found._windows_buckets:
        assert Counter(found.contents()["holds"].to_pylist()) == _rows_by(rows)


def test_rolling_features_show_their_values_and_tiles(checkpoints: Path) -> None:
    """The values are those of the last row that was emitted of a key; the tiles are as many as its state has."""
    found = wp.inspect(checkpoints / "rolling_pieces")
    rows = found.contents().to_pylist()
    names = [call.name for call in found._buckets[0].program.spec.calls]  # type: ignore[union-attr]
    held = [row for bucket in found._buckets for row in hash_pages(bucket.store, "p").read(0).to_pylist()]  # type: ignore[union-attr]
    expected = {
        row[hidden("key_0")]: ([row[hidden(f"feature_{n}")] for n in range(len(names))], len(row[hidden("pieces")]))
        for row in held
    }
    assert {row["k"]: ([row[name] for name in names], row["tiles"]) for row in rows} == expected


def _rows_by(rows: list[dict[str, Any]]) -> Counter[str]:
    count = Counter[str]()
    for row in rows:
        count[row["holds"]] += row["rows"]
    return count


@pytest.mark.parametrize("name", ["match_text", "match_reference"])
def test_attempts_say_the_bound_that_decides_them(checkpoints: Path, name: str) -> None:
    found = wp.inspect(checkpoints / name)
    (within,) = {bucket.program.spec.within for bucket in found._buckets}  # type: ignore[union-attr]
    attempts = [row for row in found.patterns.to_pylist() if row["holds"] == "rows of attempts"]
    assert attempts
    for row in attempts:
        later = None if within is None else row["newest"] + dt.timedelta(microseconds=within - 1)
        assert row["leaves"] == later


def test_what_fills_gaps_follows_the_operator_before_it(checkpoints: Path) -> None:
    found = wp.inspect(checkpoints / "windows_filled")
    assert found.watermarks["name"].to_pylist() == ["the operator before it", "t"]
    assert all(row["oldest"] is not None for row in found.between.to_pylist())


def test_views_of_sql_show_what_their_nodes_hold(tmp_path: Path) -> None:
    extract(FOLDER.parent / "views_on_spark/store.tar.xz", tmp_path)
    views = {path.parent.name.partition("-")[0]: wp.inspect(path) for path in tmp_path.glob("*.streams/*/checkpoint")}
    assert len(views) > 5
    assert {name: view.state.num_rows > 0 for name, view in views.items()} == dict.fromkeys(views, True)
    assert views["closed"].query["engine"].to_pylist() == ["slices"]
    assert views["best"].query["engine"].to_pylist() == ["nodes of SQL"]
    held = {row["structure"]: row["entries"] for row in views["best"].state.to_pylist()}
    assert held["node 1, Join: rows of the left side"] == 31


def test_nothing_of_a_checkpoint_is_changed(checkpoints: Path) -> None:
    folder = checkpoints / "sessions"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = wp.inspect(folder)
    for name in TABLES:
        found.table(name)
    found.contents()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_hidden_columns_are_not_shown(inspected: Inspection) -> None:
    shown = [*inspected.contents().column_names, *(column for name in TABLES for column in inspected.table(name).column_names)]
    assert not [name for name in shown if name.startswith(PREFIX)]


def test_why_a_window_is_open(checkpoints: Path) -> None:
    rows = wp.inspect(checkpoints / "slices_tumbling").windows.to_pylist()
    assert [row["why_open"] for row in rows] == [
        "fired, allowed lateness of 15 seconds until 2024-01-01T00:01:25Z",
        "fired, allowed lateness of 15 seconds until 2024-01-01T00:01:35Z",
        "waits for the watermark to reach 2024-01-01T00:01:30Z",
    ]
    counting = wp.inspect(checkpoints / "counts_trigger").windows.to_pylist()
    assert counting[0]["why_open"].endswith("trigger waits for count 2 of 3")


def test_why_a_window_is_open_shows_no_state_that_readers_do_not_know() -> None:
    assert trigger_words(PaneTrigger(wp.EarlyAndFinal(count=7)), {"tree": (False, True, (0, 3))}) is None


@pytest.mark.parametrize("table", [[], ["query"]])
def test_a_checkpoint_whose_first_batch_is_not_committed_says_so(checkpoints: Path, tmp_path: Path, table: list[str]) -> None:
    shutil.copytree(checkpoints / "slices_tumbling", tmp_path / "begun")
    shutil.rmtree(tmp_path / "begun" / "commits")

    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "begun"), *table])

    assert (shown.exit_code, "no batch has been committed yet" in shown.stderr) == (0, True)


def test_what_is_not_there_is_refused(checkpoints: Path) -> None:
    with pytest.raises(MissingCheckpointError, match="metadata"):
        wp.inspect(checkpoints)
    with pytest.raises(InvalidSpecError, match="there is no table 'window'"):
        wp.inspect(checkpoints / "sessions").table("window")
    with pytest.raises(InvalidSpecError, match="has other columns than those of the query: k"):
        wp.inspect(checkpoints / "slices_tumbling").contents(key=("a", "b"))
    with pytest.raises(InvalidSpecError, match="is no instant"):
        wp.inspect(checkpoints / "slices_tumbling").contents(window=("ten", "eleven"))
