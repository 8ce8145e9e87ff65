"""A checkpoint is read while its query commits batches and removes old ones: fifty batches a second, of which two are kept."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import windowpane as wp
from tests.golden.checkpoints import FOLDER, extract
from windowpane.errors import UnreadableStateError
from windowpane.inspect.tables import TABLES

_LAST, _KEPT, _LOOKS = 3, 2, 12
_PACE = 0.02  # seconds a batch


def _commit(checkpoint: Path, batch: int) -> None:
    """Write what a batch leaves, in Spark's order: its plan, its state, that it is committed; each file whole, or not at all."""
    kept = checkpoint.parent / "kept"
    copies = {kept / f"offsets/{_LAST}": f"offsets/{batch}"}
    copies |= {
        path: str(path.relative_to(kept).with_name(f"{batch + 1}.zip")) for path in kept.glob(f"state/*/*/{_LAST + 1}.zip")
    }
    copies |= {kept / f"commits/{_LAST}": f"commits/{batch}"}
    for source, target in copies.items():
        part = checkpoint / f"{target}.part"
        shutil.copyfile(source, part)
        part.rename(checkpoint / target)
    for path in [*checkpoint.glob("offsets/*"), *checkpoint.glob("commits/*"), *checkpoint.glob("state/*/*/*.zip")]:
        number = int(path.name.partition(".")[0]) - (path.suffix == ".zip") if path.stem.isdecimal() else batch
        if number <= batch - _KEPT and path.suffix != ".part":
            path.unlink()


@contextmanager
def _running(checkpoint: Path) -> Iterator[threading.Event]:
    shutil.copytree(checkpoint, checkpoint.parent / "kept")
    ended, failed = threading.Event(), list[BaseException]()

    def run() -> None:
        batch = _LAST
        try:
            while not ended.is_set():
                batch += 1
                _commit(checkpoint, batch)
                time.sleep(_PACE)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ended
    finally:
        ended.set()
        thread.join()
        assert failed == []


@pytest.mark.parametrize("name", ["sessions", "slices_tumbling"])
def test_reading_neither_fails_nor_waits(tmp_path: Path, name: str) -> None:
    """Every look shows what the state holds, which is the same all the time, of a later batch each."""
    checkpoint = tmp_path / "ck"
    extract(FOLDER / f"{name}.tar.xz", checkpoint)
    before = wp.inspect(checkpoint)
    expected = {each: before.table(each).to_pylist() for each in ("windows", "keys", "timers", "late", "state")}
    contents, seen = before.contents().to_pylist(), list[int]()
    with _running(checkpoint):
        for _ in range(_LOOKS):
            found = wp.inspect(checkpoint)
            assert {each: found.table(each).to_pylist() for each in expected} == expected
            assert found.contents().to_pylist() == contents
            assert {each: found.table(each).schema for each in TABLES}.keys() == TABLES.keys()
            assert all((row["seconds"] or 0) < 1e8 for row in found.batches.to_pylist())
            seen.append(found.batch)
    assert seen == sorted(seen)
    assert seen[-1] > _LAST + _LOOKS / 4


def test_what_is_really_damaged_is_an_error(tmp_path: Path) -> None:
    extract(FOLDER / "sessions.tar.xz", tmp_path)
    for path in tmp_path.glob("state/*/*/*.zip"):
        path.unlink()
    with pytest.raises(UnreadableStateError, match="the checkpoint is incomplete"):
        wp.inspect(tmp_path)
    assert json.loads((tmp_path / "metadata").read_text())["id"]
