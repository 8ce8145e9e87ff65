"""Bids: generated rows (k, price, ts), the same for the same arguments.

100,000 events a second of event time, each up to two seconds late, in files that are micro-batches. Times are kept off
multiples of a second's distance from each other, so that no two rows of a key are exactly a gap apart: engines differ there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from bench.programs import DELAY_SECONDS, SECOND

START = 1_704_067_200 * SECOND
"""2024-01-01 00:00 UTC, in microseconds."""
MICROS_A_ROW = 10
_TURNS = 64
_DAY = 86_400 * SECOND
_NO_HEADER = pyarrow.csv.WriteOptions(include_header=False)


@dataclass(frozen=True)
class Feed:
    """Rows in files.

    Args:
        keys: number of distinct keys.
        batch_rows: rows of a file.
        layout: how keys and times fall: see ``_LAYOUTS``; or ``flights``.
        seed: of the generator.
    """

    keys: int
    batch_rows: int
    layout: str = "random"
    seed: int = 7

    @property
    def name(self) -> str:
        """The folder of its files."""
        return f"{self.layout}-{self.keys}-{self.batch_rows}-{self.seed}"

    def smaller(self, times: int) -> Feed:
        """Return a feed with so many times fewer rows a batch, and no more keys than that."""
        rows = max(1, self.batch_rows // times)
        return replace(self, keys=min(self.keys, rows), batch_rows=rows)


@dataclass(frozen=True)
class Part:
    """Files ``first`` to ``first + count - 1`` of a feed."""

    feed: Feed
    first: int
    count: int

    def batches(self) -> Iterator[Rows]:
        """Return the rows, file by file."""
        return (batch(self.feed, number) for number in range(self.first, self.first + self.count))

    def last_batch(self) -> Iterator[Rows]:
        """Return the rows of the last file."""
        yield batch(self.feed, self.first + self.count - 1)


@dataclass(frozen=True)
class Rows:
    """Columns of some rows, times in microseconds."""

    keys: np.ndarray
    prices: np.ndarray
    times: np.ndarray

    def table(self) -> pa.Table:
        """Return them as a table."""
        times = pa.array(self.times).cast(pa.timestamp("us", tz="UTC"))
        return pa.table({"k": self.keys, "price": self.prices, "ts": times})


def batch(feed: Feed, number: int) -> Rows:
    """Return the rows of file ``number``."""
    if feed.layout == "flights":
        from bench import flights

        return Rows(*flights.columns(number * feed.batch_rows, (number + 1) * feed.batch_rows))
    random = np.random.default_rng([feed.seed, number])
    places = np.arange(number * feed.batch_rows, (number + 1) * feed.batch_rows, dtype=np.int64)
    keys, times = _LAYOUTS[feed.layout](feed, places, random)
    return Rows(keys, random.integers(1, 10_000, feed.batch_rows), times)


def _random(feed: Feed, places: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Any key at any place, every row up to two seconds late."""
    late = random.integers(0, DELAY_SECONDS * SECOND, len(places))
    times = START + 10 * SECOND + places * MICROS_A_ROW - late
    return random.integers(0, feed.keys, len(places)), times // 3 * 3


def _fresh(feed: Feed, places: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Each row a key of its own, until all keys have been."""
    late = random.integers(0, DELAY_SECONDS * SECOND, len(places))
    return places % feed.keys, (START + 10 * SECOND + places * MICROS_A_ROW - late) // 3 * 3


def _turns(feed: Feed, places: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Keys take turns, so no two rows of a key share a millisecond; rows swap places within two seconds of a file."""
    arrival = places * MICROS_A_ROW + random.integers(0, DELAY_SECONDS * SECOND, len(places))
    places = places[np.argsort(arrival, kind="stable")]
    return places * 7 % feed.keys, START + 10 * SECOND + places * MICROS_A_ROW // 1000 * 1000


def _sequence(feed: Feed, places: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """In order of time, keys in turns, no two rows at one time: the order of arrival is that of the rows."""
    return places * 7 % feed.keys, START + 10 * SECOND + places * MICROS_A_ROW


def _between(feed: Feed, places: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """At random times among the rows of a sequence up to here, at none of theirs, nor of one of the 64 files next to this."""
    turn = places[0] // feed.batch_rows % _TURNS
    at = random.choice(places[0] // _TURNS, len(places), replace=False) * _TURNS + turn
    return places * 7 % feed.keys, START + 10 * SECOND + at * MICROS_A_ROW + MICROS_A_ROW // 2


def _days(feed: Feed, places: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """As random rows, but a file is a day long."""
    late = random.integers(0, DELAY_SECONDS * SECOND, len(places))
    times = START + 10 * SECOND + places * (_DAY // feed.batch_rows) - late
    return random.integers(0, feed.keys, len(places)), times


_LAYOUTS: dict[str, Callable[[Feed, np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]]] = {
    "random": _random,
    "fresh": _fresh,
    "turns": _turns,
    "sequence": _sequence,
    "between": _between,
    "days": _days,
}


def parquet_files(parts: Sequence[Part], data: Path) -> tuple[str, ...]:
    """Return the paths of the files, in order, writing those that are missing."""
    return tuple(str(_written(data, part.feed, number, ".parquet", _write_parquet)) for part, number in _numbers(parts))


def csv_files(parts: Sequence[Part], data: Path) -> tuple[str, ...]:
    """Return the same rows as CSV without header, the time in milliseconds."""
    return tuple(str(_written(data, part.feed, number, ".csv", _write_csv)) for part, number in _numbers(parts))


def csv_halves(parts: Sequence[Part], data: Path) -> tuple[str, ...]:
    """Return the CSV of ``csv_files`` as two files whose rows take turns: what two readers need to advance in step."""
    name = "-".join(f"{part.feed.name}-{part.first}-{part.count}" for part in parts)
    folder = data / f"halves-{name}"
    paths = tuple(folder / f"{half}.csv" for half in (0, 1))
    if not folder.exists():
        building = folder.with_suffix(".part")
        building.mkdir(parents=True, exist_ok=True)
        for half in (0, 1):
            with (building / f"{half}.csv").open("wb") as file:
                for part in parts:
                    for rows in part.batches():
                        pyarrow.csv.write_csv(
                            _csv_table(rows).take(pa.array(np.arange(half, len(rows.keys), 2))), file, _NO_HEADER
                        )
        building.rename(folder)
    return tuple(str(path) for path in paths)


def _numbers(parts: Sequence[Part]) -> Iterator[tuple[Part, int]]:
    return ((part, number) for part in parts for number in range(part.first, part.first + part.count))


def _written(data: Path, feed: Feed, number: int, suffix: str, write: Callable[[Rows, Path], None]) -> Path:
    path = data / feed.name / f"{number:05}{suffix}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        write(batch(feed, number), part)
        part.rename(path)
    return path


def _write_parquet(rows: Rows, path: Path) -> None:
    """Write two row groups: one a core of the machine that this suite is sized for."""
    pq.write_table(rows.table(), path, row_group_size=max(1, len(rows.keys) // 2))


def _write_csv(rows: Rows, path: Path) -> None:
    pyarrow.csv.write_csv(_csv_table(rows), path, _NO_HEADER)


def _csv_table(rows: Rows) -> pa.Table:
    return pa.table({"k": rows.keys, "price": rows.prices, "ms": rows.times // 1000})
