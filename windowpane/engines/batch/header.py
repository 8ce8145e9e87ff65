"""The header of a bucket's state: which program wrote it, and the times of its clocks.

Layout: one framed JSON blob under ``header``. Who may mutate: the engine, once a batch, last. Recovery: a reader compares the
description of the program that wrote the state with its own and refuses the bucket, by name, if they differ.

Rows may have got more columns: of rows that were held before, these are NULL. Blobs that name their columns are padded where they
are read; those that do not are written anew once, when their bucket is opened with ``added`` columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from windowpane.errors import ChangedPlanError
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.windowing.times import MIN

_KEY, _KIND = "header", "bucket-header"

Parts = Mapping[str, str]
"""The parts of a description, by name."""

Growing = Mapping[str, Mapping[str, str]]
"""The columns that may become more from one run to the next: by part, what state calls each, by its text there."""


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
        raw_rows: rows that are held one by one, where an engine counts them.
        added: columns of rows that the program which wrote the state did not have; not written.
    """

    description: tuple[tuple[str, str], ...]
    watermark: int = MIN
    processing_time: int = MIN
    open_windows: int = 0
    arrivals: int = 0
    cut: int | None = None
    raw_rows: int = 0
    added: frozenset[str] = frozenset()

    @classmethod
    def read(
        cls,
        store: BlobStore,
        description: tuple[tuple[str, str], ...],
        accepts: Callable[[Parts, Parts], bool] | None = None,
        growing: Growing = MappingProxyType({}),
    ) -> BucketHeader:
        """Return the bucket's header, a fresh one if it has none.

        Args:
            store: the bucket's state.
            description: the parts of the program that reads it.
            accepts: whether a program with the second parts can use the state of one with the first parts.
            growing: the columns of rows that may have become more.

        Raises:
            ChangedPlanError: another program wrote the state.
            UnknownStateFormatError: another version of windowpane did.
        """
        blob = store.get(_KEY)
        if blob is None:
            return cls(description)
        held = json.loads(unframe(_KIND, blob))
        was = dict(held["description"])
        added = {part: _added(was[part], columns) for part, columns in growing.items() if part in was}
        if accepts is None or not accepts(was, dict(description)):
            _compare(was, {part: text if added.get(part) is None else was[part] for part, text in description})
        new = frozenset(name for names in added.values() for name in names or ())
        return cls(**held | {"description": tuple(was.items()), "added": new})

    def write(self, store: BlobStore) -> None:
        body = {name: value for name, value in vars(self).items() if name != "added"}
        store.put(_KEY, frame(_KIND, json.dumps(body).encode()))


def _added(was: str, columns: Mapping[str, str]) -> frozenset[str] | None:
    """Return the columns that are not in a text of columns, which has the others in their order; ``None`` if it has more."""
    added = []
    for text, name in columns.items():
        if was == text or was.startswith(f"{text}, "):
            was = was[len(text) + 2 :]
        else:
            added.append(name)
    return None if was else frozenset(added)


def _compare(was: Parts, now: Parts) -> None:
    differences = {part: (was.get(part), now.get(part)) for part in [*was, *now] if was.get(part) != now.get(part)}
    if differences:
        raise ChangedPlanError(differences)
