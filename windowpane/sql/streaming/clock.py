"""Watermarks: tables have them, and columns of plans follow from them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.nodes import Watermark
from windowpane.sql.values.text_values import text_literal
from windowpane.sql.windows.time_functions import instant_sql
from windowpane.windowing.times import MIN
from windowpane.windowing.watermarks import Watermarks as Strategy
from windowpane.windowing.watermarks.watermark_state import SourceMark, SourceName, WatermarkState, advance


class Clock(Protocol):
    def of(self, watermark: Watermark) -> str | None:
        """Return the watermark of a column as SQL, ``None`` while one of those it follows from is missing."""


@dataclass(frozen=True)
class FixedClock:
    """The watermarks of one moment, as SQL, by base relation."""

    values: Mapping[str, str]

    def of(self, watermark: Watermark) -> str | None:
        found = [(self.values.get(relation), sql) for relation, sql in watermark.parts]
        parts = [sql.replace("{w}", value) for value, sql in found if value is not None]
        if len(parts) < len(found):
            return None
        return parts[0] if len(parts) == 1 else f"least({', '.join(parts)})"


@dataclass(frozen=True)
class Splits:
    """How far the partitions of a source have come: by the rules of ``windowing.watermarks``, as ``wp.read_kafka`` has them."""

    state: WatermarkState = field(default_factory=WatermarkState)

    @classmethod
    def of(cls, text: str | None, now: int | None) -> Splits:
        """Return it from text; ``now`` is until when silence was counted in this session, ``None`` where none was."""
        if text is None:
            return cls()
        watermark, marks = json.loads(text)
        return cls(WatermarkState(watermark, "", {name: SourceMark(*mark) for name, mark in marks.items()}, now))

    def text(self) -> str:
        marks = {name: [mark.latest, mark.silent] for name, mark in self.state.sources.items()}
        return json.dumps([self.state.watermark, marks], sort_keys=True)

    def behind(self, latest: Mapping[str, int], idle: int | None, now: int) -> Splits:
        """Return it behind rows that reach to ``latest``, by partition."""
        reached: dict[SourceName, int] = dict(latest.items())
        return Splits(advance(Strategy(source="partition", idleness=idle), self.state, reached, now))

    @property
    def watermark(self) -> int | None:
        """The watermark of SQL: rows at it are not late."""
        return None if self.state.watermark == MIN else self.state.watermark + 1


class Watermarks:
    """The watermark of each base relation, as a DuckDB literal; kept in ``windowpane.watermarks``."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._values: dict[str, str] = {}
        self._counted: dict[str, int] = {}  # until when silence of the partitions of a source was counted
        self.reload()

    def reload(self) -> None:
        """Read what is stored again, after a transaction that was rolled back."""
        self._values = dict(self._storage.run("SELECT relation, value FROM windowpane.watermarks"))

    @property
    def values(self) -> Mapping[str, str]:
        return dict(self._values)

    def get(self, relation: str) -> str | None:
        """Return the watermark of a base relation as SQL, ``None`` while it has none."""
        return self._values.get(relation)

    def raise_to(self, relation: str, value: str | None, kind: SqlType) -> None:
        """Set the watermark of a base relation to a value written as text; ``None`` leaves it."""
        if value is None:
            return
        literal = f"CAST({text_literal(value)} AS {kind.duckdb})"
        held = self._values.get(relation)
        if held is None:
            self._storage.run("INSERT INTO windowpane.watermarks (relation, value) VALUES (?, ?)", [relation, literal])
        elif held != literal:
            self._storage.run("UPDATE windowpane.watermarks SET value = ? WHERE relation = ?", [literal, relation])
        self._values[relation] = literal

    def advance(self, relation: str, latest: Mapping[str, int], idle: int | None, kind: SqlType) -> None:
        """Take how far the partitions of a source have come, and set its watermark to the least of theirs.

        A partition is known from its first row on. Only time between two calls of one session counts as silence.

        Args:
            relation: the source.
            latest: the watermark that each partition's new rows would make, in microseconds.
            idle: for how long a partition may be silent, ``None`` for ever.
            kind: the type of the watermark.
        """
        found = self._storage.run("SELECT marks FROM windowpane.splits WHERE relation = ?", [relation])
        held = found[0][0] if found else None
        if held is None and not latest:
            return
        now = time.time_ns() // 1_000
        state = Splits.of(held, self._counted.get(relation)).behind(latest, idle, now)
        self._counted[relation] = now
        if held is None:
            self._storage.run("INSERT INTO windowpane.splits VALUES (?, ?)", [relation, state.text()])
        elif held != state.text():
            self._storage.run("UPDATE windowpane.splits SET marks = ? WHERE relation = ?", [state.text(), relation])
        if state.watermark is not None:
            instant = instant_sql(str(state.watermark), kind)
            self.raise_to(relation, self._storage.value(f"SELECT CAST({instant} AS VARCHAR)"), kind)

    def count_late(self, relation: str, rows: int) -> None:
        """Count rows of a base relation that were below its watermark, and so were dropped."""
        if rows:
            self._storage.run("UPDATE windowpane.watermarks SET late = late + ? WHERE relation = ?", [rows, relation])

    def listed(self) -> pa.Table:
        late = dict(self._storage.run("SELECT relation, late FROM windowpane.watermarks"))
        shown = [
            (name, self._storage.value(f"SELECT CAST({self._values[name]} AS VARCHAR)"), late[name]) for name in sorted(late)
        ]
        columns = zip(*shown, strict=True) if shown else ([], [], [])
        kinds = (pa.string(), pa.string(), pa.int64())
        return pa.table({f"c{number}": pa.array(list(each), kinds[number]) for number, each in enumerate(columns)})

    def rename(self, relation: str, name: str) -> None:
        """Continue with a base relation under another name."""
        self._storage.run("UPDATE windowpane.watermarks SET relation = ? WHERE relation = ?", [name, relation])
        self.reload()

    def drop(self, relation: str) -> None:
        for table in ("watermarks", "splits"):
            self._storage.run(f"DELETE FROM windowpane.{table} WHERE relation = ?", [relation])
        self._values.pop(relation, None)

    def of(self, watermark: Watermark) -> str | None:
        return FixedClock(self._values).of(watermark)
