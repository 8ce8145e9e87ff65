"""Inspections of the golden checkpoints, of which each engine has one: every figure is compared with the state it came from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from tests.golden.checkpoints import FOLDER, extract
from windowpane.engines.join.windows import JoinWindowEngine
from windowpane.engines.panes.standings import waits_for_clocks
from windowpane.engines.program import MAIN, Program
from windowpane.engines.protocol import Clock
from windowpane.errors import InvalidSpecError, MissingCheckpointError
from windowpane.hidden_columns import PREFIX
from windowpane.inspect.inspection import Inspection
from windowpane.inspect.tables import TABLES
from windowpane.state.listing import listed
from windowpane.state.memory import HeldWrites
from windowpane.windowing.times import MAX

NAMES = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz") if not path.name.startswith("match_"))


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


def test_state_is_what_the_structures_say(inspected: Inspection) -> None:
    expected = [
        (bucket.operator, bucket.number, holds, found.size, found.entries, found.blobs)
        for bucket in inspected._buckets
        for name, holds in bucket.spec.holds.items()  # type: ignore[union-attr]
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
    for name in ("join", "rolling", "deduplication", "over", "between"):
        table = inspected.table(name)
        for bucket in inspected._buckets if table.num_rows else ():
            for at, holds in bucket.spec.holds.items():  # type: ignore[union-attr]
                found = listed(bucket.store, at)
                own = [row for row in table.to_pylist() if row["operator"] == bucket.operator]
                rows = [row for row in own if row["holds"] == holds]
                if found is not None and found.entries is not None and rows and found.kind != "sorted pages":
                    assert sum(row["rows"] for row in rows) == found.entries
                    assert sum(row["bytes"] for row in rows) <= found.size


def test_views_of_sql_show_what_their_nodes_hold(tmp_path: Path) -> None:
    extract(FOLDER.parent / "views_on_spark/store.tar.xz", tmp_path)
    views = {path.parent.name.partition("-")[0]: wp.inspect(path) for path in tmp_path.glob("*.streams/*/checkpoint")}
    assert len(views) > 5
    assert {name: view.state.num_rows > 0 for name, view in views.items()} == dict.fromkeys(views, True)
    assert views["closed"].query["engine"].to_pylist() == ["slices"]
    assert views["best"].query["engine"].to_pylist() == ["nodes of SQL"]
    held = {row["structure"]: row["entries"] for row in views["best"].state.to_pylist()}
    assert held["node 1, rows of input 0"] == 31


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


def test_what_is_not_there_is_refused(checkpoints: Path) -> None:
    with pytest.raises(MissingCheckpointError, match="metadata"):
        wp.inspect(checkpoints)
    with pytest.raises(InvalidSpecError, match="there is no table 'window'"):
        wp.inspect(checkpoints / "sessions").table("window")
    with pytest.raises(InvalidSpecError, match="has other columns than those of the query: k"):
        wp.inspect(checkpoints / "slices_tumbling").contents(key=("a", "b"))
    with pytest.raises(InvalidSpecError, match="is no instant"):
        wp.inspect(checkpoints / "slices_tumbling").contents(window=("ten", "eleven"))
