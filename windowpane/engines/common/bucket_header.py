"""The header of a bucket's state: which program wrote it, and the times of its clocks.

Layout: one framed JSON blob under ``header``. Who may mutate: the engine, once a batch, last. Recovery: a reader compares the
description of the program that wrote the state with its own and refuses the bucket, by name, if they differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from windowpane.errors import ChangedPlanError
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.windowing.times import MIN

_KEY, _KIND, _VERSION = "header", "bucket-header", 1

Parts = Mapping[str, str]
"""The parts of a description, by name."""


@dataclass(frozen=True)
class BucketHeader:
    """Description of the program, clocks in microseconds, and what engines count.

    Args:
        description: the parts a restart compares, by name.
        watermark: the watermark of the last batch.
        processing_time: its clock.
        open_windows: windows, or keys, that held something at its end.
        arrivals: how many rows were numbered by arrival.
        cut: the time below which rows are in the history that the state began with, ``None`` if it began empty.
        raw_rows: rows that are held one by one; ``None`` where they are not counted.
    """

    description: tuple[tuple[str, str], ...]
    watermark: int = MIN
    processing_time: int = MIN
    open_windows: int = 0
    arrivals: int = 0
    cut: int | None = None
    raw_rows: int | None = None

    @classmethod
    def read(
        cls, store: BlobStore, description: tuple[tuple[str, str], ...], accepts: Callable[[Parts, Parts], bool] | None = None
    ) -> BucketHeader:
        """Return the bucket's header, a fresh one if it has none.

        Args:
            store: the bucket's state.
            description: the parts of the program that reads it.
            accepts: whether a program with the second parts can use the state of one with the first parts.

        Raises:
            ChangedPlanError: another program wrote the state.
            UnknownStateFormatError: another version of windowpane did.
        """
        blob = store.get(_KEY)
        if blob is None:
            return cls(description, raw_rows=0)
        held = json.loads(unframe(_KIND, _VERSION, blob))
        was = dict(held["description"])
        if accepts is None or not accepts(was, dict(description)):
            _compare(was, dict(description))
        clocks = held["watermark"], held["processing_time"]
        counted = held["open_windows"], held.get("arrivals", 0)
        return cls(tuple(was.items()), *clocks, *counted, held.get("cut"), held.get("raw_rows"))

    def write(self, store: BlobStore) -> None:
        """Write the header."""
        body = {
            "description": self.description,
            "watermark": self.watermark,
            "processing_time": self.processing_time,
            "open_windows": self.open_windows,
            "arrivals": self.arrivals,
        }
        rest = {"cut": self.cut, "raw_rows": self.raw_rows}
        body |= {name: value for name, value in rest.items() if value is not None}
        store.put(_KEY, frame(_KIND, _VERSION, json.dumps(body).encode()))


def _compare(was: Parts, now: Parts) -> None:
    differences = {part: (was.get(part), now.get(part)) for part in [*was, *now] if was.get(part) != now.get(part)}
    if differences:
        raise ChangedPlanError(differences)
