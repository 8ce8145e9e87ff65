"""The tables that random queries read, and random changes of them, as windowpane has them and as DuckDB has them."""

from __future__ import annotations

import random

TABLES = {"a": ("id", "g", "h", "v"), "b": ("id", "g", "w"), "d": ("id", "g", "p", "r", "u"), "f": ("id", "k", "ts")}
"""Tables that change; their columns are integers, but for the numerics of ``d``, one without a scale, and the times of ``f``."""

DECLARED = (
    "CREATE TABLE a (id int PRIMARY KEY, g int, h int, v int)",
    "CREATE TABLE b (id int PRIMARY KEY, g int, w int)",
    "CREATE TABLE d (id int PRIMARY KEY, g int, p numeric(10, 2), r numeric(6, 3), u numeric)",
    "CREATE TABLE f (id int PRIMARY KEY, k int, ts timestamp)",
    "CREATE TABLE e (id int PRIMARY KEY, k int, x int, ts timestamp, WATERMARK FOR ts AS ts - INTERVAL '2 minutes') APPEND ONLY",
)
"""The rows of ``e`` stay, and come nearly in order."""

FOR_DUCKDB = {
    " PRIMARY KEY": "",
    ", u numeric)": ", u numeric(24, 9))",
    ", WATERMARK FOR ts AS ts - INTERVAL '2 minutes') APPEND ONLY": ")",
}
"""What stands in a declaration in place of words that DuckDB has not: numerics without a scale are not among its types."""

MINUTE = 60_000_000
_DELAY = 2 * MINUTE

Change = tuple[str, str]
"""A statement as windowpane has it and as DuckDB has it, which is empty where nothing changes."""


def declared_for_duckdb(statement: str) -> str:
    """Return a declaration in DuckDB's words."""
    for word, instead in FOR_DUCKDB.items():
        statement = statement.replace(word, instead)
    return statement


class Changes:
    """Changes of the tables."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._keys: dict[str, list[int]] = {name: [] for name in (*TABLES, "e")}
        self._latest: int | None = None

    def change(self) -> Change:
        """Return a statement that changes a table."""
        table = self._rng.choice([*"abd", *"abd", "e", "e", "f"])
        if table == "e":
            return self._events()
        known, what = self._keys[table], self._rng.random()
        if not known or what >= 0.58:
            return _same(self._insert(table))
        if what < 0.18:
            return _same(self._delete(table))
        if what < 0.26:
            return self._replace(table)
        return _same(self._update(table))

    def _delete(self, table: str) -> str:
        known, what = self._keys[table], self._rng.random()
        if what < 0.05:
            known.clear()
            return f"DELETE FROM {table}"
        deleted = self._rng.choice(known)
        if what < 0.15:
            self._keys[table] = [key for key in known if key < deleted]
            return f"DELETE FROM {table} WHERE id >= {deleted}"
        known.remove(deleted)
        return f"DELETE FROM {table} WHERE id = {deleted}"

    def _update(self, table: str) -> str:
        columns, key = TABLES[table], "k" if table == "f" else "g"
        if self._rng.random() < 0.3:
            return f"UPDATE {table} SET {key} = {self._cell(table, key)} WHERE {key} = {self._rng.randint(0, 3)}"
        column = self._rng.choice(columns[1:])
        if column in ("v", "w", "h") and self._rng.random() < 0.2:
            return f"UPDATE {table} SET {column} = {column} + 1 WHERE {key} IS NULL OR id % 2 = 0"
        return f"UPDATE {table} SET {column} = {self._cell(table, column)} WHERE id = {self._rng.choice(self._keys[table])}"

    def _replace(self, table: str) -> Change:
        """Insert a row whose key is there: it takes the place of the one before."""
        key = self._rng.choice(self._keys[table])
        insert = f"INSERT INTO {table} VALUES {self._row(table, key)}"
        return insert, f"DELETE FROM {table} WHERE id = {key}; {insert}"

    def _insert(self, table: str) -> str:
        known, rows = self._keys[table], []
        for _ in range(self._rng.randint(1, 4)):
            known.append(max(known, default=0) + 1)
            rows.append(self._row(table, known[-1]))
        return f"INSERT INTO {table} VALUES {', '.join(rows)}"

    def _row(self, table: str, key: int) -> str:
        return f"({', '.join([str(key), *(self._cell(table, column) for column in TABLES[table][1:])])})"

    def _events(self) -> Change:
        """Return rows that come nearly in order; those behind the watermark of the statements before are not taken."""
        known, rows, taken, latest = self._keys["e"], [], [], self._latest
        for _ in range(self._rng.randint(1, 5)):
            known.append(len(known) + 1)
            at = self._event_time(latest or 0)
            text = "NULL" if at is None else _moment(at)
            rows.append(f"({known[-1]}, {self._key()}, {self._whole(9)}, {text})")
            if self._latest is None or (at is not None and at >= self._latest - _DELAY):
                taken.append(rows[-1])
                latest = latest if at is None else at if latest is None else max(latest, at)
        self._latest = latest
        insert = "INSERT INTO e VALUES "
        return insert + ", ".join(rows), insert + ", ".join(taken) if taken else ""

    def _event_time(self, latest: int) -> int | None:
        what = self._rng.random()
        if what < 0.03:
            return None
        minutes = self._rng.randint(-6, -2) if what < 0.1 else self._rng.choice([-1, -1, 0, 1, 2, 3, 4, 4, 5, 8, 9])
        base = latest - latest % MINUTE if self._rng.random() < 0.8 else latest
        return max(0, base + minutes * MINUTE + self._hair())

    def _hair(self) -> int:
        """Return a microsecond more or less, now and then: beside a bound, and not on it."""
        return self._rng.choice([-1, 1]) if self._rng.random() < 0.06 else 0

    def _cell(self, table: str, column: str) -> str:
        if column == "ts":
            return "NULL" if self._rng.random() < 0.05 else _moment(max(0, self._rng.randint(0, 40) * MINUTE + self._hair()))
        if column in ("g", "k"):
            return self._key()
        if column in ("p", "r", "u"):
            return "NULL" if self._rng.random() < 0.15 else self._numeric(column)
        return self._whole(9)

    def _numeric(self, column: str) -> str:
        digits = {"p": 2, "r": 3}.get(column, self._rng.choice([0, 1, 2, 4, 9]))
        return f"{self._rng.randint(-9999, 99999) / 10**digits:.{digits}f}"

    def _key(self) -> str:
        return "NULL" if self._rng.random() < 0.15 else str(self._rng.randint(0, 3))

    def _whole(self, most: int) -> str:
        return "NULL" if self._rng.random() < 0.15 else str(self._rng.randint(0, most))


def _same(text: str) -> Change:
    return text, text


def _moment(micros: int) -> str:
    minute, rest = divmod(micros, MINUTE)
    second = f"{rest // 1_000_000:02d}" + (f".{rest % 1_000_000:06d}" if rest % 1_000_000 else "")
    return f"TIMESTAMP '2024-01-{1 + (10 + minute // 60) // 24:02d} {(10 + minute // 60) % 24:02d}:{minute % 60:02d}:{second}'"
