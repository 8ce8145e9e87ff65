"""Watermarks: tables have them, and columns of plans follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import text_literal
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.nodes import Watermark


class Clock(Protocol):
    """What operators read watermarks from."""

    def of(self, watermark: Watermark) -> str | None:
        """Return the watermark of a column as SQL, ``None`` while one of those it follows from is missing."""


@dataclass(frozen=True)
class FixedClock:
    """The watermarks of one moment, as SQL, by base relation."""

    values: Mapping[str, str]

    def of(self, watermark: Watermark) -> str | None:
        """Return the watermark of a column as SQL, ``None`` while one of those it follows from is missing."""
        found = [(self.values.get(relation), sql) for relation, sql in watermark.parts]
        parts = [sql.replace("{w}", value) for value, sql in found if value is not None]
        if len(parts) < len(found):
            return None
        return parts[0] if len(parts) == 1 else f"least({', '.join(parts)})"


class Watermarks:
    """The watermark of each base relation, as a DuckDB literal; kept in ``windowpane.watermarks``."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._values: dict[str, str] = {}
        self.reload()

    def reload(self) -> None:
        """Read what is stored again, after a transaction that was rolled back."""
        self._values = dict(self._storage.run("SELECT relation, value FROM windowpane.watermarks"))

    @property
    def values(self) -> Mapping[str, str]:
        """All watermarks, by base relation."""
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

    def count_late(self, relation: str, rows: int) -> None:
        """Count rows of a base relation that were below its watermark, and so were dropped."""
        if rows:
            self._storage.run("UPDATE windowpane.watermarks SET late = late + ? WHERE relation = ?", [rows, relation])

    def listed(self) -> pa.Table:
        """Return what ``SHOW WATERMARKS`` shows."""
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
        """Forget a base relation."""
        self._storage.run("DELETE FROM windowpane.watermarks WHERE relation = ?", [relation])
        self._values.pop(relation, None)

    def of(self, watermark: Watermark) -> str | None:
        """Return the watermark of a column as SQL, ``None`` while one of those it follows from is missing."""
        return FixedClock(self._values).of(watermark)
