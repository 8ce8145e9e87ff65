"""The header of a bucket's state: which program wrote it, and where its clocks stood.

Layout: one framed JSON blob under ``header``. Who may mutate: the engine, once a batch, last. Recovery: a reader compares the
description of the program that wrote the state with its own and refuses the bucket, by name, if they differ.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from windowpane.errors import ChangedPlanError
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.windowing.times import MIN

_KEY, _KIND, _VERSION = "header", "bucket-header", 1


@dataclass(frozen=True)
class BucketHeader:
    """Description of the program, clocks in microseconds, open windows, and how many rows were numbered by arrival."""

    description: tuple[tuple[str, str], ...]
    watermark: int = MIN
    processing_time: int = MIN
    open_windows: int = 0
    arrivals: int = 0

    @classmethod
    def read(cls, store: BlobStore, description: tuple[tuple[str, str], ...]) -> BucketHeader:
        """Return the bucket's header, a fresh one if it has none.

        Raises:
            ChangedPlanError: another program wrote the state.
            UnknownStateFormatError: another version of windowpane did.
        """
        blob = store.get(_KEY)
        if blob is None:
            return cls(description)
        held = json.loads(unframe(_KIND, _VERSION, blob))
        _compare(dict(held["description"]), dict(description))
        return cls(description, held["watermark"], held["processing_time"], held["open_windows"], held.get("arrivals", 0))

    def write(self, store: BlobStore) -> None:
        """Write the header."""
        body = json.dumps(
            {
                "description": self.description,
                "watermark": self.watermark,
                "processing_time": self.processing_time,
                "open_windows": self.open_windows,
                "arrivals": self.arrivals,
            }
        )
        store.put(_KEY, frame(_KIND, _VERSION, body.encode()))


def _compare(was: dict[str, str], now: dict[str, str]) -> None:
    differences = {part: (was.get(part), now.get(part)) for part in [*was, *now] if was.get(part) != now.get(part)}
    if differences:
        raise ChangedPlanError(differences)
