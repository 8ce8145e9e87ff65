"""The header of a bucket's state: which program wrote it, and the times of its clocks.

Layout: one framed JSON blob under ``header``. Who may mutate: the engine, once a batch, last. Recovery: a reader compares the
description of the program that wrote the state with its own and refuses the bucket, part by part, if state cannot go on as it is.

Rows may have got more columns, or fewer: of rows that were held before, new ones are NULL. Blobs that name their columns are
padded where they are read; those that do not are written anew once, when their bucket is opened with ``columns`` that differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from windowpane.arrays.values import JsonValue
from windowpane.engines.changes import ACCEPTED, ChangedColumns, Description, Verdict, Way, changed_columns, changes, differences
from windowpane.errors import ChangedPlanError
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.windowing.times import MIN

HEADER, _KIND = "header", "bucket-header"


@dataclass(frozen=True)
class BucketHeader:
    """Description of the program, clocks in microseconds, and what engines count."""

    description: Description  # the parts a restart compares, by name
    watermark: int = MIN  # the watermark of the last batch
    processing_time: int = MIN  # its clock
    open_windows: int = 0  # windows, or keys, that held something at its end
    arrivals: int = 0  # how many rows were numbered by arrival
    cut: int | None = None  # the time below which rows are in the history that the state began with, ``None`` if it began empty
    raw_rows: int = 0  # rows that are held one by one, where an engine counts them
    generation: int = 0  # how many programs before this one had windows of their own
    begins: int = MIN  # the time from which on windows are of this one, where there were others
    late: Sequence[Sequence[JsonValue]] = ()  # the counters of late rows (``late_counts``)
    totals: Mapping[str, int] = field(default_factory=dict)  # the counters of all batches, and the gauges of the last one
    # how columns of rows, and of results, differ from those of the program which wrote the state; not written
    columns: tuple[ChangedColumns, ChangedColumns] = (ChangedColumns(), ChangedColumns())

    @property
    def added(self) -> frozenset[str]:
        """Columns of rows that the program which wrote the state did not have."""
        return self.columns[0].added

    @classmethod
    def read(
        cls, store: BlobStore, description: Description, accepts: Callable[[Description], bool] | None = None, generation: int = 0
    ) -> BucketHeader:
        """Return the bucket's header, a fresh one if it has none; ``accepts``: whether the state of another program is of use.

        Raises:
            ChangedPlanError: another program wrote the state.
            UnknownStateFormatError: another version of windowpane did.
        """
        blob = store.get(HEADER)
        if blob is None:
            return cls(description, generation=generation)
        header = cls.of(blob)
        was = header.description
        if header.generation != generation:
            counts = (str(header.generation), str(generation))
            note = "  state is parted by a cut between programs, which result.start(...) knows of, and result.df does not"
            raise ChangedPlanError({"programs before this one": counts}, [note])
        if was == description:
            return header
        if accepts is None or not accepts(was):
            found = changes(was, description)
            accepted = description.get(ACCEPTED, ())
            taken = [each.outcome.verdict <= (Verdict.ACCEPT if each.part in accepted else Verdict.SAFE) for each in found]
            refused = [each for each, is_taken in zip(found, taken, strict=True) if not is_taken or each.outcome.way is Way.CUT]
            if refused:
                raise ChangedPlanError(differences(refused))
        return cls(**vars(header) | {"columns": changed_columns(was, description)})

    @classmethod
    def of(cls, blob: bytes) -> BucketHeader:
        """Return the header that a blob is."""
        held: Mapping[str, JsonValue] = json.loads(unframe(_KIND, blob))
        return cls(**held)

    def write(self, store: BlobStore) -> None:
        body = {name: value for name, value in vars(self).items() if name != "columns"}
        store.put(HEADER, frame(_KIND, json.dumps(body).encode()))
