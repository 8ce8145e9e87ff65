"""The events: of each fifty one person, three auctions and 46 bids, drawn from a seed.

Rules of ids, times and hot keys: Flink's generator (https://github.com/nexmark/nexmark, ``GeneratorConfig``,
``BidGenerator``); bidders are numbered as RisingWave does, from 1,000. Texts are drawn anew, as long as there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from bench.batches import put_in_place

ENTITIES = ("person", "auction", "bid")
BLOCK = 50_000
"""Events drawn from one seed: whatever the files hold, the events are the same."""

_MUCH_LATER = dt.timedelta(days=1)
_NOBODY = -1

_OF_FIFTY = {"person": (0, 1), "auction": (1, 4), "bid": (4, 50)}
_FIRST_ID = 1_000
_RATE = 10_000
_BASE_MS = 1_436_918_400_000
_HOT = 100
_ACTIVE_PERSONS, _ACTIVE_AUCTIONS, _TO_COME = 1_000, 100, 10
_LIFE_MS = 2 * 1_666 * 1_000 // _RATE
_CHANNELS = 10_000
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")


class _Event(NamedTuple):
    """Events of one entity: their numbers, and their times in milliseconds since 1970."""

    number: np.ndarray
    ms: np.ndarray

    @property
    def last_person(self) -> np.ndarray:
        """The number of the person that is there at each event."""
        return self.number // 50

    @property
    def last_auction(self) -> np.ndarray:
        """The number of the auction that was last offered at each event."""
        epoch, place = self.number // 50, self.number % 50
        return np.where(place == 0, epoch * 3 - 1, epoch * 3 + np.minimum(place, 3) - 1)

    @property
    def at(self) -> pa.Array:
        """Their times."""
        return _times(self.ms)


def write(folder: Path, events: int, files: int, disorder: int = 1, *, csv: bool = False) -> None:
    """Write events as Parquet files, ``files`` of each entity, each with its share of the events as they happened to arrive.

    Args:
        folder: gets a folder of each entity.
        events: how many, a multiple of ``files`` blocks or fewer than a block a file.
        files: how many files.
        disorder: within so many events the order of arrival is another than that of time.
        csv: whether the same rows are written as CSV, too, below ``csv``.
    """
    for number in range(files):
        first, last = events * number // files, events * (number + 1) // files
        blocks = list(_blocks(first, last, disorder))
        for entity in ENTITIES:
            table = pa.concat_tables([block[entity] for block in blocks])
            _write(table, folder / entity / f"{number:03}.parquet", number)
            if csv:
                _write(table, folder / "csv" / entity / f"{number:03}.csv", number)


def _write(table: pa.Table, path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        times = {name: pc.strftime(table[name].cast(pa.timestamp("ms")), "%Y-%m-%d %H:%M:%S") for name in _times_of(table)}
        for name, column in times.items():
            table = table.set_column(table.schema.get_field_index(name), name, column)
        pa.csv.write_csv(table, path, pa.csv.WriteOptions(include_header=False))
    else:
        pq.write_table(table, path)
    put_in_place(path, number)


def _times_of(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if pa.types.is_timestamp(field.type)]


def _blocks(first: int, last: int, disorder: int) -> Iterator[dict[str, pa.Table]]:
    """Yield the events from ``first`` up to ``last`` in the order of arrival, tables by entity."""
    for start in range(first - first % BLOCK, last, BLOCK):
        arrival = np.arange(start, start + BLOCK)
        number = arrival if disorder == 1 else arrival - arrival % disorder + 953 * arrival % disorder
        wanted = (arrival >= first) & (arrival < last)
        found = {}
        for kind, entity in enumerate(ENTITIES):
            low, high = _OF_FIFTY[entity]
            of_kind = (number % 50 >= low) & (number % 50 < high)
            event = _Event(number[of_kind], _BASE_MS + number[of_kind] * 1_000 // _RATE)
            table = _TABLES[entity](event, np.random.default_rng([start, kind]))
            found[entity] = table.filter(pa.array(wanted[of_kind]))
        yield found


def _persons(event: _Event, draw: np.random.Generator) -> pa.Table:
    count = len(event.number)
    name = pc.binary_join_element_wise(_of(_FIRST_NAMES, draw, count), _of(_LAST_NAMES, draw, count), " ")
    digits = [_text(draw, count, 4, 4, b"0123456789") for _ in range(4)]
    return pa.table(
        {
            "id": event.last_person + _FIRST_ID,
            "name": name,
            "email_address": pc.binary_join_element_wise(_text(draw, count, 7, 7), _text(draw, count, 5, 5), "@"),
            "credit_card": pc.binary_join_element_wise(*digits, " "),
            "city": _of(_CITIES, draw, count),
            "state": _of(_STATES, draw, count),
            "date_time": event.at,
            "extra": _text(draw, count, 80, 130),
        }
    )


def _auctions(event: _Event, draw: np.random.Generator) -> pa.Table:
    count = len(event.number)
    initial, person = _prices(draw, count), event.last_person
    return pa.table(
        {
            "id": event.last_auction + _FIRST_ID,
            "item_name": _text(draw, count, 3, 20),
            "description": _text(draw, count, 3, 100),
            "initial_bid": initial,
            "reserve": initial + _prices(draw, count),
            "date_time": event.at,
            "expires": _times(event.ms + 1 + draw.integers(0, _LIFE_MS, count)),
            "seller": np.where(draw.random(count) < 0.75, person // _HOT * _HOT, _nearby(person, draw)) + _FIRST_ID,
            "category": draw.integers(10, 15, count),
            "extra": _text(draw, count, 260, 400),
        }
    )


def _bids(event: _Event, draw: np.random.Generator) -> pa.Table:
    count = len(event.number)
    auction, person = event.last_auction, event.last_person
    other = auction - draw.integers(0, np.minimum(auction, _ACTIVE_AUCTIONS) + 1) + draw.integers(0, _TO_COME + 1, count)
    channel = np.where(draw.random(count) < 0.5, _CHANNELS + draw.integers(0, 4, count), draw.integers(0, _CHANNELS, count))
    names, urls = _channels()
    return pa.table(
        {
            "auction": np.where(draw.random(count) < 0.5, auction // _HOT * _HOT, other) + _FIRST_ID,
            "bidder": np.where(draw.random(count) < 0.75, person // _HOT * _HOT + 1, _nearby(person, draw)) + _FIRST_ID,
            "price": _prices(draw, count),
            "channel": names.take(pa.array(channel)),
            "url": urls.take(pa.array(channel)),
            "date_time": event.at,
            "extra": _text(draw, count, 20, 60),
        }
    )


_TABLES = {"person": _persons, "auction": _auctions, "bid": _bids}


def _nearby(person: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Draw one of the last thousand persons, or of the ten to come."""
    active = np.minimum(person, _ACTIVE_PERSONS)
    nearby: np.ndarray = person - active + draw.integers(0, active + _TO_COME)
    return nearby


def _prices(draw: np.random.Generator, count: int) -> np.ndarray:
    return np.round(100 * 10 ** (6 * draw.random(count))).astype(np.int64)


def _channels() -> tuple[pa.Array, pa.Array]:
    """Return names and addresses of all channels; behind the many stand the four that get half of the bids."""
    draw = np.random.default_rng(5)
    count = _CHANNELS + len(_HOT_CHANNELS)
    names = pa.array([*(f"channel-{number}" for number in range(_CHANNELS)), *_HOT_CHANNELS])
    folders = [_text(draw, count, 5, 5, b"abcdefghijklmnopqrstuvwxyz_").to_pylist() for _ in range(3)]
    urls = [f"https://www.nexmark.com/{a}/{b}/{c}/item.htm?query=1" for a, b, c in zip(*folders, strict=True)]
    for number in np.flatnonzero(draw.random(_CHANNELS) < 0.9):
        urls[number] += f"&channel_id={int(f'{number:031b}'[::-1], 2)}"
    return names, pa.array(urls)


def _of(values: tuple[str, ...], draw: np.random.Generator, count: int) -> pa.Array:
    return pa.array(values).take(pa.array(draw.integers(0, len(values), count)))


def _text(
    draw: np.random.Generator, count: int, least: int, most: int, letters: bytes = b"abcdefghijklmnopqrstuvwxyz"
) -> pa.Array:
    """Draw texts of ``least`` to ``most`` letters."""
    lengths = draw.integers(least, most + 1, count)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    drawn = np.frombuffer(letters, np.uint8)[draw.integers(0, len(letters), int(ends[-1]), np.uint8)]
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(drawn))


def _times(ms: np.ndarray) -> pa.Array:
    return pa.array(ms * 1_000, pa.timestamp("us", "UTC"))


def ended(folder: Path, work: Path, entities: tuple[str, ...]) -> Path:
    """Return a folder with the same files and, of each entity, one event much later, which closes the windows of all others."""
    ended = work / "events"
    for entity in entities:
        (ended / entity).mkdir(parents=True)
        files = sorted((folder / entity).iterdir())
        for file in files:
            (ended / entity / file.name).symlink_to(file)
        last = pq.read_table(files[-1]).slice(0, 1)
        for at, field in enumerate(last.schema):
            if pa.types.is_timestamp(field.type):
                last = last.set_column(at, field, pa.array([last[at][0].as_py() + _MUCH_LATER], field.type))
            elif pa.types.is_integer(field.type):
                last = last.set_column(at, field, pa.array([_NOBODY], field.type))
        end = ended / entity / f"{len(files):03}.parquet"
        pq.write_table(last, end)
        put_in_place(end, len(files))
    return ended
