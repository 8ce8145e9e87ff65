"""Random input of OVER windows: rows, changelogs of them, batches and watermarks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from verify.fuzz.columns import COLUMNS, values
from verify.fuzz.over_parts.windows import random_spec
from windowpane.engines.over.program import Emit, Inconsistent, OverProgram
from windowpane.engines.program import Upstream
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.times import MAX, MIN

Row = dict[str, Any]

_DAY = dt.datetime(2024, 2, 27)
_EPOCH = dt.datetime(1970, 1, 1)
_HALF_HOUR = 1_800_000_000

ORDER_TYPES: dict[pa.DataType, Callable[[int], Any]] = {
    pa.int64(): lambda step: step,
    pa.int32(): lambda step: step - 6,
    pa.float64(): lambda step: step / 2,
    pa.decimal128(10, 2): lambda step: Decimal(step) / 4,
    pa.timestamp("us"): lambda step: _DAY + dt.timedelta(hours=12 * step),
    pa.date32(): lambda step: _DAY.date() + dt.timedelta(days=step),
    pa.string(): lambda step: "abcdefghijklmnop"[step],
}
"""Types of the ORDER BY column ``ts``, and the value at a small step."""

_FURTHER_ORDER_TYPES: dict[pa.DataType, Callable[[int], Any]] = {
    pa.int8(): lambda step: step - 6,
    pa.int16(): lambda step: step - 6,
    pa.float32(): lambda step: step / 2,
    pa.decimal128(38, 18): lambda step: Decimal(step) / 4,
    pa.timestamp("us", tz="UTC"): lambda step: (_DAY + dt.timedelta(hours=12 * step)).replace(tzinfo=dt.UTC),
}
"""Types of ``ts`` beside columns of every type."""

_FURTHER = sorted(set(COLUMNS.names) - {"s", "d"})
"""Columns of every type; two have names that are taken."""

WORDS = [INSERT, UPDATE_PREIMAGE, UPDATE_POSTIMAGE, DELETE]


_SPECIAL = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0]
_FAR: dict[pa.DataType, Callable[[int], Any]] = {
    pa.int64(): lambda step: 2**63 - 13 + step if step > 6 else -(2**63) + step,
    pa.int32(): lambda step: 2**31 - 13 + step if step > 6 else -(2**31) + step,
    pa.float64(): lambda step: _SPECIAL[step] if step < len(_SPECIAL) else step / 2,
    pa.decimal128(10, 2): lambda step: Decimal("99999999.75") - step if step > 6 else Decimal("-99999999.75") + step,
}
"""Values of ``ts`` at the ends of its type, and such doubles as are no numbers."""


@dataclass(frozen=True)
class Batch:
    """One batch: rows as an engine takes them, the watermark it advances to, whether the engine is built anew before it."""

    rows: pa.Table
    watermark: int
    restart: bool


@dataclass(frozen=True)
class Trial:
    """A random program and its input."""

    seed: int
    program: OverProgram
    batches: tuple[Batch, ...]
    beyond_duckdb: str = ""
    """Why DuckDB cannot compute the results, empty if it can; if not, the reference does."""


@dataclass(frozen=True)
class _Shape:
    """What the input is like.

    Args:
        far: whether ORDER BY has values at the ends of its type.
        special: whether doubles are not all finite.
        strays: whether some changes cannot be.
        largest: rows of the largest batch.
        further: columns beside those that every program has, of any type.
    """

    far: bool = False
    special: bool = False
    strays: bool = False
    largest: int = 20
    further: tuple[str, ...] = ()


def random_trial(seed: int, closes: bool | None = None) -> Trial:
    """Return the program of a seed, and its input.

    Args:
        seed: makes it, the same everywhere.
        closes: whether it emits on window close; left out, the seed decides.
    """
    rng = Random(seed)
    mode = rng.random() < 0.4
    closes = mode if closes is None else closes
    further = tuple(rng.sample(_FURTHER, 3)) if rng.random() < 0.4 else ()
    kinds = [*ORDER_TYPES, *(_FURTHER_ORDER_TYPES if further else ())]
    kind = pa.timestamp("us") if closes else rng.choice([*kinds, pa.int64(), pa.timestamp("us")])
    program = _random_program(rng, kind, closes, further)
    program, shape, reason = _beyond(rng, program, kind)
    if further:
        shape, reason = replace(shape, further=further), reason or "columns of every type"
    source = _Source(rng, program, kind, shape)
    batches = tuple(source.batch(number) for number in range(rng.randint(2, 6)))
    return Trial(seed, program, (*batches, _end(program)) if closes else batches, reason)


def _beyond(rng: Random, program: OverProgram, kind: pa.DataType) -> tuple[OverProgram, _Shape, str]:
    """Return the program, what its input is like, and why DuckDB cannot compute the results."""
    largest = rng.choice([20] * 15 + [90] * 3 + [300])
    dice = rng.random()
    if dice < 0.05 and kind in _FAR:
        return program, _Shape(far=True), "RANGE at the ends of a type"
    if dice < 0.1:
        return program, _Shape(special=True), "deviations of what is no number"
    if dice < 0.15 and program.mode is Emit.UPDATE:
        lenient = replace(program, on_inconsistent=Inconsistent.WARN, append_only=False, time_column=None, has_late_output=False)
        return lenient, _Shape(strays=True, largest=largest), "changes that cannot be"
    if dice < 0.2:
        upstream = rng.choice([Upstream.WINDOW, Upstream.WINDOW_WITH_WATERMARKS])
        return replace(program, upstream=upstream), _Shape(largest=largest), "rows of an earlier window"
    return program, _Shape(largest=largest), ""


def _random_program(rng: Random, kind: pa.DataType, closes: bool, further: tuple[str, ...]) -> OverProgram:
    beside = pa.schema([COLUMNS.field(name) for name in further])
    columns = pa.schema(
        [
            ("part", pa.string()),
            ("sub", pa.int32()),
            ("ts", kind),
            ("id", pa.int64()),
            ("x", pa.int64()),
            ("y", pa.float64()),
            ("s", pa.string()),
            ("d", pa.decimal128(10, 2)),
            ("ok", pa.bool_()),
            *beside,
        ]
    )
    spec = random_spec(rng, kind, closes, beside)
    outputs = output_schema(spec, columns, [f"c{number}" for number in range(len(spec.calls))])
    mode = Emit.CLOSE if closes else Emit.UPDATE
    lateness = rng.choice([0, 0, _HALF_HOUR * 24]) if closes else 0
    append_only = closes or rng.random() < 0.3
    is_timed = closes or (append_only and kind == pa.timestamp("us") and rng.random() < 0.5)
    return OverProgram(spec, columns, outputs, mode, "ts" if is_timed else None, lateness, append_only, has_late_output=is_timed)


class _Source:
    """Invents rows and changes of rows that exist."""

    def __init__(self, rng: Random, program: OverProgram, kind: pa.DataType, shape: _Shape) -> None:
        self._rng = rng
        self._program = program
        self._value = _FAR[kind] if shape.far else (ORDER_TYPES | _FURTHER_ORDER_TYPES)[kind]
        self._shape = shape
        self._live: dict[int, Row] = {}
        self._next_id = 0
        self._watermark = MIN
        self._steps = rng.choice([4, 8, 12])
        self._nulls = rng.choice([0.0, 0.1, 0.4])

    def batch(self, number: int) -> Batch:
        size = self._rng.choice([0, 1, 3, 8, self._shape.largest])
        before = self._watermark
        entries: list[tuple[str, Row]] = []
        for _ in range(size):
            entries += self._insert(number) if self._program.append_only else self._change()
        if self._program.time_column is not None and number and self._rng.random() < 0.8:
            at = self._value(min(2 * number + self._rng.randint(-2, 3), 15))
            self._watermark = max(before, (at - _EPOCH) // dt.timedelta(microseconds=1))
        rows = self._table(entries)
        if self._program.upstream is Upstream.WINDOW_WITH_WATERMARKS:
            fired_under = [self._rng.choice([before, self._watermark]) for _ in entries]
            rows = rows.append_column(FIRING_WATERMARK, pa.array(fired_under, pa.int64()))
        return Batch(rows, self._watermark, self._rng.random() < 0.5)

    def _table(self, entries: list[tuple[str, Row]]) -> pa.Table:
        rows, columns = [row for _, row in entries], self._program.columns
        arrays = [pa.array([row[field.name] for row in rows], field.type) for field in columns]
        times = [None if self._program.time_column is None else _micros(row["ts"]) for row in rows]
        split = self._rng.randint(0, len(rows))
        table = pa.table(arrays, schema=columns)
        table = table.append_column(TIME, pa.array(times, pa.int64()))
        table = table.append_column(PARTITION, pa.array([int(number >= split) for number in range(len(rows))], pa.int64()))
        table = table.append_column(POSITION, pa.array(range(len(rows)), pa.int64()))
        if self._program.append_only:
            return table
        return table.append_column(CHANGE_TYPE, pa.array([word for word, _ in entries], pa.string()))

    def _insert(self, batch: int) -> list[tuple[str, Row]]:
        row = self._row(self._next_id * 389 % 10_007)
        if self._program.mode is Emit.CLOSE:
            row["ts"] = self._value(min(max(2 * batch + self._rng.randint(-3, 4), 0), 15))
        self._next_id += 1
        return [(INSERT, row)]

    def _change(self) -> list[tuple[str, Row]]:
        kind = self._rng.choice(["insert", "insert", "insert", "update", "update", "delete", "replace", "cancel"])
        if self._shape.strays and self._live and self._rng.random() < 0.3:
            return self._impossible()
        if kind in ("insert", "cancel") or not self._live:
            [(_, row)] = self._insert(0)
            if kind == "cancel":
                return [(INSERT, row), (DELETE, row)]
            self._live[row["id"]] = row
            return [(INSERT, row)]
        old = self._rng.choice(list(self._live.values()))
        if kind == "delete":
            del self._live[old["id"]]
            return [(DELETE, old)]
        new = self._mutated(old)
        self._live[old["id"]] = new
        words = (DELETE, INSERT) if kind == "replace" else (UPDATE_PREIMAGE, UPDATE_POSTIMAGE)
        return list(zip(words, (old, new), strict=True))

    def _impossible(self) -> list[tuple[str, Row]]:
        """Return an impossible change; a row that is inserted twice has the same place in the order."""
        old = self._rng.choice(list(self._live.values()))
        kind = self._rng.choice(["absent", "elsewhere", "again", "postimage", "preimage"])
        if kind in ("absent", "elsewhere"):
            row = self._row(old["id"] if kind == "elsewhere" else 20_000 + self._next_id)
            return [(self._rng.choice([DELETE, UPDATE_PREIMAGE]), row)]
        if kind == "preimage":
            del self._live[old["id"]]
            return [(UPDATE_PREIMAGE, old), *([(DELETE, old)] if self._rng.random() < 0.5 else [])]
        new = old | {name: self._row(old["id"])[name] for name in ("x", "d", "ok")}
        self._live[old["id"]] = new
        return [(INSERT if kind == "again" else UPDATE_POSTIMAGE, new)]

    def _mutated(self, row: Row) -> Row:
        fresh = self._row(row["id"])
        beside_key = [name for name in row if name == "id" or name not in self._program.spec.key]
        changed = self._rng.sample(beside_key, self._rng.randint(0, 3))
        return row | {name: fresh[name] for name in changed}

    def _row(self, identity: int) -> Row:
        rng = self._rng
        return {
            "part": self._nullable(rng.choice("pq")),
            "sub": rng.randint(0, 1),
            "ts": self._nullable(self._value(rng.randint(0, self._steps))),
            "id": identity,
            "x": self._nullable(rng.randint(-5, 5)),
            "y": self._nullable(rng.choice(_SPECIAL) if self._shape.special and rng.random() < 0.5 else rng.randint(-8, 8) / 4),
            "s": self._nullable(rng.choice(["u", "v", "w", "é"])),
            "d": self._nullable(Decimal(rng.randint(-9, 9)) / 2),
            "ok": self._nullable(rng.random() < 0.6),
            **{name: values(rng, name, 1)[0] for name in self._shape.further},
        }

    def _nullable(self, value: Any) -> Any:
        return None if self._rng.random() < self._nulls else value


def _end(program: OverProgram) -> Batch:
    """The end of a bounded stream: the watermark advances to MAX and every row is emitted."""
    columns = [*program.columns, *(pa.field(name, pa.int64()) for name in (TIME, PARTITION, POSITION))]
    return Batch(pa.schema(columns).empty_table(), MAX, False)


def _micros(value: dt.datetime | None) -> int | None:
    return None if value is None else (value - _EPOCH) // dt.timedelta(microseconds=1)
