"""The state of each golden checkpoint in other buckets: all of it is whole, and what people see in it is the same.

What a query gives from there on is the law of ``verify.fuzz rescaling``; a few checkpoints go through Spark
(``tests.spark.queries.test_moving``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.checkpoints import FOLDER, extract
from windowpane.inspect.buckets import Bucket, buckets_of
from windowpane.inspect.checkpoints import BucketBlobs, Checkpoint
from windowpane.inspect.inspection import Inspection
from windowpane.planning.rescaling.buckets import problems, rescaled
from windowpane.state.memory import MemoryBlobStore

NAMES = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))
BY_KEY, HELD = ("keys", "timers", "late"), ("join", "over", "rolling", "deduplication", "patterns", "between")
OF_BUCKETS = ("bucket", "bytes", "in_words")  # words have the places of rows in a bucket


class Moved(Checkpoint):
    """A checkpoint whose state is in other buckets, one number of them after the other."""

    counts: tuple[int, ...] = ()

    def programs(self, operator: int, batch: int) -> Iterator[Bucket]:
        stores = [_blobs(each) for each in self.buckets(operator, batch)]
        for count in (len(stores), *self.counts):
            stores = stores if count == len(stores) else rescaled(stores, count)
            assert [said for number, store in enumerate(stores) for said in problems(store, number, count)] == []
        for number, store in enumerate(stores):
            yield from buckets_of(operator, number, store)


def _blobs(bucket: BucketBlobs) -> MemoryBlobStore:
    """Return all blobs of a bucket; keys of Spark's map end with the name, padded, behind its length and place."""
    store, prefix = MemoryBlobStore(), bucket._prefix or b""
    keys = {key for log in bucket._logs for key in log.changes}
    keys |= {key for table in bucket._snapshot[0] for key, _ in table.scan(prefix)}
    for row in (key[len(prefix) :] for key in sorted(keys) if prefix and key.startswith(prefix)):
        name = row[33:][: int.from_bytes(row[25:29], "little")].decode()
        blob = bucket.get(name)
        if blob is not None:
            store.put(name, blob)
    return store


def _shown(found: Inspection) -> Counter[Any]:
    rows = Counter[Any]()
    for name in BY_KEY:
        rows.update((name, repr(row)) for row in _without(found.table(name)))
    for name in HELD:
        for row in found.table(name).to_pylist():
            rows[name, row["operator"], row["holds"], row.get("side"), row["key"]] += row["rows"]
    for each in found.state.to_pylist():
        rows["state", each["operator"], each["structure"]] += each["entries"] or 0
    for window in found.windows.to_pylist():
        rows["windows", window["operator"], window["start"], window["end"], "keys"] += window["keys"]
    for operator in {bucket.operator for bucket in found._windows_buckets}:
        rows.update(("contents", operator, repr(row)) for row in _without(found.contents(operator=operator)))
    return rows


def _without(table: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.drop_columns([name for name in OF_BUCKETS if name in table.column_names]).to_pylist()
    return rows


@pytest.mark.slow_but_one_in(3)
@pytest.mark.parametrize("name", NAMES)
def test_state_of_a_golden_checkpoint_is_the_same_in_other_buckets(name: str, tmp_path: Path) -> None:
    extract(FOLDER / f"{name}.tar.xz", tmp_path)
    holder = Moved(str(tmp_path))
    before = _shown(Inspection(holder))
    holder.counts = (5, 1, 3)
    assert before
    assert _shown(Inspection(holder)) == before
