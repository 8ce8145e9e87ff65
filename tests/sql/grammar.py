"""A grammar of SQL: queries over a few tables, as windowpane has them and as DuckDB has them, and changes of the tables.

DuckDB gets the query as it is written where both understand it, so orders name where NULLs stand and OVER windows their frames:
the defaults differ. Windows of time are written out for it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

TABLES = {"a": ("id", "g", "h", "v"), "b": ("id", "g", "w"), "d": ("id", "g", "p", "r")}
"""Tables that change; their columns are integers, but for the numerics of ``d``."""

DECLARED = (
    "CREATE TABLE a (id int PRIMARY KEY, g int, h int, v int)",
    "CREATE TABLE b (id int PRIMARY KEY, g int, w int)",
    "CREATE TABLE d (id int PRIMARY KEY, g int, p numeric(10, 2), r numeric(6, 3))",
    "CREATE TABLE f (id int PRIMARY KEY, k int, ts timestamp)",
)
EVENTS = "CREATE TABLE e (id int PRIMARY KEY, k int, x int, ts timestamp{}){}"
WATERMARK = (", WATERMARK FOR ts AS ts - INTERVAL '2 minutes'", " APPEND ONLY")
"""What windowpane declares beside the columns of ``e``, whose rows stay and come nearly in order."""

FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
)
_GAP = 4
_LIMIT = "(SELECT max(ts) - INTERVAL '2 minutes' FROM e)"
"""The watermark of ``e``, for DuckDB."""


@dataclass(frozen=True)
class Query:
    """One query: as windowpane has it, as DuckDB has it, and whether it emits on window close."""

    text: str
    oracle: str
    closes: bool = False

    @property
    def view(self) -> str:
        """The query as a view has it."""
        return f"{self.text} EMIT ON WINDOW CLOSE" if self.closes else self.text


@dataclass(frozen=True)
class _Side:
    """A relation in FROM: its text, its alias, and its columns of integers."""

    text: str
    alias: str
    columns: Sequence[str]


class Grammar:
    """Makes queries over the tables."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def query(self, views: Sequence[str] = ()) -> Query:
        """Return a query; ``views`` are names of views of ``id`` and ``x`` that it may read."""
        if views and self.rng.random() < 0.5:
            return _same(self.above(self.rng.choice(views)))
        if self.rng.random() < 0.3:
            return self.rng.choice([self.sessions, self.windows, self.closing_windows, self.closing_over])()
        shapes = [
            self.filtered,
            self.grouped,
            self.over,
            self.top,
            self.united,
            self.nested,
            self.tied,
            self.valued,
            self.numbers,
        ]
        return _same(self.rng.choice([*shapes, *[self.joined] * 5, self.comma, self.comma, self.comma, self.sparse])())

    # --- one table -------------------------------------------------------------------------------------

    def number(self, *columns: str) -> str:
        column = self.rng.choice(columns)
        return self.rng.choice([column, f"{column} + 1", f"{column} * 2 - g", f"coalesce({column}, 0)", f"-{column}"])

    def condition(self) -> str:
        rng = self.rng
        return rng.choice(
            [
                f"v > {rng.randint(0, 9)}",
                "h IS NULL",
                "g IN (1, 2)",
                "g IS NULL OR v = 3",
                f"v % 2 = 0 OR g = {rng.randint(0, 3)}",
                "NOT (v <= h)",
                "TRUE",
            ]
        )

    def filtered(self) -> str:
        return f"SELECT id, {self.number('v', 'h')} AS x FROM a WHERE {self.condition()}"

    def grouped(self) -> str:
        keys = self.rng.choice(["g", "g, h", "v % 3", "GROUPING SETS ((g, h), (g), h)"])
        calls = self.rng.sample(
            ["count(*)", "count(h)", "sum(v)", "min(h)", "max(v)", "count(DISTINCT v)", "sum(v) FILTER (WHERE h > 4)"], 3
        )
        having = self.rng.choice(["", " HAVING count(*) > 1"])
        named = ", ".join(f"{call} AS c{index}" for index, call in enumerate(calls))
        return f"SELECT {named} FROM a WHERE {self.condition()} GROUP BY {keys}{having}"

    def numbers(self) -> str:
        calls = [
            "sum(p * r)",
            "sum(p) / count(p)",
            "avg(r)",
            "max(p - r)",
            "sum(p) / nullif(sum(r), 0)",
            "min(p) + 1",
            "sum(r) * 2",
        ]
        chosen = ", ".join(f"{call} AS c{index}" for index, call in enumerate(self.rng.sample(calls, 3)))
        where = self.rng.choice(["", " WHERE p > r", " WHERE p * 2 <> 7.5", " WHERE r IS NOT NULL"])
        if self.rng.random() < 0.5:
            return f"SELECT g, {chosen} FROM d{where} GROUP BY g"
        return f"SELECT id, p + r AS s, p * r AS m, p / nullif(r, 0) AS q, round(p, 1) AS t FROM d{where}"

    def window(self) -> str:
        order = self.rng.choice(["v ASC NULLS LAST, id ASC NULLS LAST", "v DESC NULLS FIRST, id DESC NULLS LAST"])
        return f"PARTITION BY {self.rng.choice(['g', 'g, h', 'g + 1'])} ORDER BY {order}"

    def over(self) -> str:
        calls = [
            "row_number() OVER ({w})",
            "rank() OVER ({w})",
            "dense_rank() OVER ({w})",
            "lag(v, 2) OVER ({w})",
            "lead(h) OVER ({w})",
            "sum(v) OVER ({w} {f})",
            "count(h) OVER ({w} {f})",
            "max(v) OVER ({w} {f})",
            "first_value(v) OVER ({w} {f})",
        ]
        chosen = [call.format(w=self.window(), f=self.rng.choice(FRAMES)) for call in self.rng.sample(calls, 3)]
        named = ", ".join(f"{call} AS c{index}" for index, call in enumerate(chosen))
        return f"SELECT id, {named} FROM a WHERE {self.condition()}"

    def top(self) -> str:
        low = self.rng.randint(1, 2)
        number = f"row_number() OVER ({self.window()}) AS n"
        outside = self.rng.choice(["", " AND g = 1", " AND g IS NOT NULL", " AND v > 2"])
        return f"SELECT id, v, n FROM (SELECT *, {number} FROM a) AS t WHERE n >= {low} AND n <= {low + 1}{outside}"

    # --- several tables --------------------------------------------------------------------------------

    def side(self, index: int) -> _Side:
        alias = f"r{index}"
        table, *columns = self.rng.choice(
            [("a", "g", "h", "v"), ("a", "g", "v"), ("b", "g", "w"), ("b", "g", "w"), ("d", "g", "id")]
        )
        made = self.rng.random()
        if made < 0.2:
            key = self.rng.choice(columns)
            counted = f"(SELECT {key} AS k, count(*) AS n, min(id) AS m FROM {table} GROUP BY {key})"
            return _Side(f"{counted} AS {alias}", alias, ("k", "n", "m"))
        if made < 0.25:
            return _Side(f"(SELECT max(id) AS n, min(g) AS k FROM {table}) AS {alias}", alias, ("n", "k"))
        return _Side(f"{table} AS {alias}", alias, columns)

    def column(self, side: _Side) -> str:
        return f"{side.alias}.{self.rng.choice(list(side.columns))}"

    def key(self, side: _Side) -> str:
        column = self.column(side)
        return self.rng.choice([column] * 4 + [f"{column} + 1", f"{column} % 3", f"coalesce({column}, 0)"])

    def equality(self, one: _Side, other: _Side) -> str:
        word = "IS NOT DISTINCT FROM" if self.rng.random() < 0.15 else "="
        return f"{self.key(one)} {word} {self.key(other)}"

    def about(self, side: _Side) -> str:
        column, number = self.column(side), self.rng.randint(0, 6)
        return self.rng.choice([f"{column} > {number}", f"{column} IS NULL", f"{column} IN (1, 2, 3)", f"{column} <> {number}"])

    def between(self, one: _Side, other: _Side) -> str:
        either = f"({self.about(one)} OR {self.about(other)})"
        return self.rng.choice(
            [f"{self.column(one)} < {self.column(other)}", f"{self.column(one)} + 1 <> {self.column(other)}", either]
        )

    def joined(self) -> str:
        sides = [self.side(0)]
        text = sides[0].text
        for index in range(1, self.rng.choice([2, 2, 3, 4])):
            side = self.side(index)
            kind = self.rng.choice(["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "FULL JOIN"])
            parts = [self.equality(self.rng.choice(sides), side)]
            if self.rng.random() < 0.3:
                parts.append(self.equality(self.rng.choice(sides), side))
            if self.rng.random() < 0.4:
                extra = [self.about(side), self.about(sides[-1]), self.between(sides[-1], side)]
                parts.append(self.rng.choice(extra))
            sides.append(side)
            text += f" {kind} {side.text} ON {' AND '.join(parts)}"
        where = [self.about(side) for side in sides if self.rng.random() < 0.25]
        return self._selected(text, sides, where)

    def comma(self) -> str:
        sides = [self.side(index) for index in range(self.rng.choice([2, 3, 3, 4]))]
        where = [self.equality(self.rng.choice(sides[:index]), side) for index, side in enumerate(sides) if index]
        where += [self.about(side) for side in sides if self.rng.random() < 0.3]
        if self.rng.random() < 0.3:
            where.append(self.between(sides[0], sides[-1]))
        if self.rng.random() < 0.3:
            tie = where.pop(0)
            branches = [f"({tie} AND {self.about(sides[0])} AND {self.about(sides[-1])})" for _ in range(2)]
            where.append(f"({' OR '.join(branches)})")
        self.rng.shuffle(where)
        order = list(sides)
        self.rng.shuffle(order)
        return self._selected(", ".join(side.text for side in order), sides, where)

    def sparse(self) -> str:
        """Return a join by USING, or a comma behind an outer join."""
        shape = self.rng.random()
        if shape < 0.3:
            kind = self.rng.choice(["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            where = self.rng.choice(["a.g = r2.g", "a.g = b.g AND a.v > 1", "a.v = r2.id AND b.w IS NULL"])
            return f"SELECT a.id AS i, b.id AS j, r2.id AS k FROM a, b {kind} d AS r2 ON b.g = r2.g WHERE {where}"
        if shape < 0.6:
            kind = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            return f"SELECT g, v, w FROM a {kind} b USING (g) WHERE {self.rng.choice(['TRUE', 'g > 0', 'v IS NULL OR w > 2'])}"
        where = self.rng.choice(["r2.g = b.g", "r2.g = a.g AND r2.id > 1", "r2.g = a.g AND b.w IS NULL"])
        return f"SELECT a.id AS i, b.id AS j, r2.id AS k FROM a LEFT JOIN b ON a.g = b.g AND b.w > 2, d AS r2 WHERE {where}"

    def _selected(self, source: str, sides: Sequence[_Side], where: Sequence[str]) -> str:
        condition = f" WHERE {' AND '.join(where)}" if where else ""
        if self.rng.random() < 0.25:
            key = self.key(self.rng.choice(list(sides)))
            total = self.column(self.rng.choice(list(sides)))
            return f"SELECT {key} AS k, count(*) AS n, sum({total}) AS s FROM {source}{condition} GROUP BY {key}"
        columns = [self.column(side) for side in sides]
        return f"SELECT {', '.join(f'{name} AS c{index}' for index, name in enumerate(columns))} FROM {source}{condition}"

    def united(self) -> str:
        operation = self.rng.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        both = f"SELECT g, v FROM a {operation} SELECT g, w FROM b"
        return self.rng.choice([both, f"SELECT v FROM ({both}) AS u WHERE g = 1 OR v > 5"])

    def nested(self) -> str:
        inner = "SELECT g, sum(v) AS s, count(*) AS n FROM a GROUP BY g"
        return f"SELECT b.id, s, n FROM ({inner}) AS q JOIN b ON b.g = q.g WHERE n > {self.rng.randint(0, 2)} AND q.g > 0"

    def tied(self) -> str:
        tie = self.rng.choice(["b.g = a.g", "b.g = a.g AND b.w > a.v", "b.g = a.g + 1", "b.w > 3", "b.g = a.g AND a.h < 4"])
        condition = self.rng.choice(["EXISTS (SELECT 1 FROM b WHERE {tie})", "{x} IN (SELECT w FROM b WHERE {tie})"])
        negated = self.rng.choice(["", "NOT "])
        source = self.rng.choice(["a", "a", "d, a", "a LEFT JOIN d ON d.g = a.g"])
        more = "d.g = a.g AND " if source == "d, a" else ""
        what = f"{negated}{condition.format(tie=tie, x=self.rng.choice(['a.v', 'a.h + 1', 'coalesce(a.h, 0)']))}"
        return f"SELECT a.id AS i, a.v AS v FROM {source} WHERE {more}{what} AND ({self.rng.choice(['a.v > 2', 'TRUE'])})"

    def valued(self) -> str:
        tie = self.rng.choice(["b.g = a.g", "b.w = a.v", "b.w > 4"])
        value = self.rng.choice(["count(*)", "sum(w)", "max(w) + count(w)", "min(id)"])
        other = self.rng.choice(["EXISTS (SELECT 1 FROM b WHERE {tie})", "v IN (SELECT w FROM b WHERE {tie})"]).format(tie=tie)
        return f"SELECT id, (SELECT {value} FROM b WHERE {tie}) AS x, NOT {other} AS y FROM a WHERE {other} OR v > 4"

    def above(self, view: str) -> str:
        """Return a query over a view of ``id`` and ``x``."""
        return self.rng.choice(
            [
                f"SELECT x, count(*) AS n, min(id) AS m FROM {view} GROUP BY x",
                f"SELECT q.id, q.x, b.w FROM {view} AS q LEFT JOIN b ON b.g = q.x",
                f"SELECT q.id, p.id AS other FROM {view} AS q FULL JOIN {view} AS p ON q.x = p.x + 1",
                f"SELECT id, x, sum(x) OVER (PARTITION BY id % 2 ORDER BY id ASC NULLS LAST {FRAMES[0]}) AS s FROM {view}",
                f"SELECT DISTINCT x FROM {view} WHERE x > 1",
            ]
        )

    # --- windows of time -------------------------------------------------------------------------------

    def sessions(self) -> Query:
        """Return sessions; rows exactly a gap apart are in one."""
        begins = (
            f"SELECT *, CASE WHEN lag(ts) OVER (PARTITION BY k ORDER BY ts) + INTERVAL '{_GAP} minutes' >= ts"
            " THEN 0 ELSE 1 END AS s FROM f WHERE ts IS NOT NULL"
        )
        numbered = f"SELECT *, sum(s) OVER (PARTITION BY k ORDER BY ts RANGE UNBOUNDED PRECEDING) AS n FROM ({begins})"
        calls = "k, min(ts) AS window_start, max(ts) + INTERVAL '4 minutes' AS window_end, count(*) AS c, min(id) AS m"
        source = f"SESSION(f PARTITION BY (k), ts, INTERVAL '{_GAP} minutes')"
        return Query(
            f"SELECT k, window_start, window_end, count(*) AS c, min(id) AS m FROM {source} GROUP BY k, window_start, window_end",
            f"SELECT {calls} FROM ({numbered}) GROUP BY k, n",
        )

    def windows(self) -> Query:
        kind = self.rng.choice(["tumble", "hop", "cumulate"])
        return Query(_windowed(kind, "f", "min(id)"), _written_out(kind, "f", "min(id)"))

    def closing_windows(self) -> Query:
        """Return windows that come out once the watermark has passed their end."""
        kind, call = self.rng.choice(["tumble", "hop", "cumulate"]), self.rng.choice(["sum(x)", "max(x)", "min(id)"])
        return Query(_windowed(kind, "e", call), f"{_written_out(kind, 'e', call)} HAVING window_end <= {_LIMIT}", closes=True)

    def closing_over(self) -> Query:
        """Return calls that come out once, when the watermark and later rows of the partition have completed their frames."""
        call, behind = self.rng.choice(
            [
                ("lag(x) OVER (PARTITION BY k ORDER BY ts{tie})", 0),
                ("lag(x, 2) OVER (PARTITION BY k ORDER BY ts{tie})", 0),
                ("lead(x) OVER (PARTITION BY k ORDER BY ts{tie})", 1),
                ("sum(x) OVER (PARTITION BY k ORDER BY ts{tie} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", 0),
                ("count(x) OVER (PARTITION BY k ORDER BY ts{tie} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)", 1),
                ("max(x) OVER (PARTITION BY k ORDER BY ts{tie} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)", 0),
                ("row_number() OVER (PARTITION BY k ORDER BY ts{tie})", 0),
            ]
        )
        last = "row_number() OVER (PARTITION BY k ORDER BY ts DESC, id DESC)"
        released = f"SELECT id, k, ts, {call.format(tie=', id')} AS c, {last} AS behind FROM e WHERE ts < {_LIMIT}"
        text = f"SELECT id, k, ts, {call.format(tie='')} AS c FROM e"
        return Query(text, f"SELECT id, k, ts, c FROM ({released}) WHERE behind > {behind}", closes=True)


def _same(text: str) -> Query:
    return Query(text, text)


_LENGTHS = {"tumble": "INTERVAL '5 minutes'", "hop": "INTERVAL '5 minutes', INTERVAL '15 minutes'"}
_LENGTHS["cumulate"] = _LENGTHS["hop"]


def _windowed(kind: str, table: str, call: str) -> str:
    source = f"{kind.upper()}({table}, ts, {_LENGTHS[kind]})"
    return f"SELECT window_start, window_end, k, count(*) AS n, {call} AS c FROM {source} GROUP BY window_start, window_end, k"


def _written_out(kind: str, table: str, call: str) -> str:
    floor = "time_bucket(INTERVAL '{} minutes', ts, TIMESTAMP '1970-01-01')"
    start, end = {
        "tumble": (floor.format(5), f"{floor.format(5)} + INTERVAL '5 minutes'"),
        "hop": (f"{floor.format(5)} - n * INTERVAL '5 minutes'", f"{floor.format(5)} + (3 - n) * INTERVAL '5 minutes'"),
        "cumulate": (floor.format(15), f"{floor.format(15)} + (n + 1) * INTERVAL '5 minutes'"),
    }[kind]
    rows = f"SELECT *, {start} AS window_start, {end} AS window_end FROM {table}, range({1 if kind == 'tumble' else 3}) AS r(n)"
    # A row without a time has one window in TUMBLE, of NULL, and none in the others: as in RisingWave.
    inside = rows if kind == "tumble" else f"SELECT * FROM ({rows}) WHERE ts < window_end"
    return f"SELECT window_start, window_end, k, count(*) AS n, {call} AS c FROM ({inside}) GROUP BY window_start, window_end, k"


class Changes:
    """Changes of the tables, in words both engines know."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._keys: dict[str, list[int]] = {name: [] for name in (*TABLES, "e", "f")}
        self._minute = 0

    def change(self) -> str:
        """Return a statement that changes a table."""
        table = self._rng.choice([*TABLES, *TABLES, "e", "f"])
        if table == "e":
            return self._events()
        known, columns, what = self._keys[table], TABLES.get(table, ("id", "k", "ts")), self._rng.random()
        if known and what < 0.2:
            gone = self._rng.choice(known)
            known.remove(gone)
            return f"DELETE FROM {table} WHERE id = {gone}"
        if known and what < 0.3 and table in TABLES:
            gone = self._rng.randint(0, 3)
            return f"UPDATE {table} SET g = {self._cell(table, 'g')} WHERE g = {gone}"
        if known and what < 0.5:
            column = self._rng.choice(columns[1:])
            return f"UPDATE {table} SET {column} = {self._cell(table, column)} WHERE id = {self._rng.choice(known)}"
        return self._insert(table, columns)

    def _insert(self, table: str, columns: Sequence[str]) -> str:
        known, rows = self._keys[table], []
        for _ in range(self._rng.randint(1, 4)):
            known.append(max(known, default=0) + 1)
            rows.append(f"({', '.join([str(known[-1]), *(self._cell(table, column) for column in columns[1:])])})")
        return f"INSERT INTO {table} VALUES {', '.join(rows)}"

    def _events(self) -> str:
        """Return rows that come nearly in order, none behind the watermark of the chunks before."""
        known, rows, latest = self._keys["e"], [], self._minute
        for _ in range(self._rng.randint(1, 5)):
            known.append(len(known) + 1)
            minute = max(0, self._minute + self._rng.randint(-1, 9))
            latest = max(latest, minute)
            rows.append(f"({known[-1]}, {self._key()}, {self._whole(9)}, {_moment(minute)})")
        self._minute = latest
        return f"INSERT INTO e VALUES {', '.join(rows)}"

    def _cell(self, table: str, column: str) -> str:
        if column == "ts":
            return "NULL" if self._rng.random() < 0.05 else _moment(self._rng.randint(0, 40))
        if column in ("g", "k"):
            return self._key()
        if column in ("p", "r"):
            digits = 2 if column == "p" else 3
            return "NULL" if self._rng.random() < 0.15 else f"{self._rng.randint(-9999, 99999) / 10**digits:.{digits}f}"
        return self._whole(9)

    def _key(self) -> str:
        return "NULL" if self._rng.random() < 0.15 else str(self._rng.randint(0, 3))

    def _whole(self, most: int) -> str:
        return "NULL" if self._rng.random() < 0.15 else str(self._rng.randint(0, most))


def _moment(minute: int) -> str:
    return f"TIMESTAMP '2024-01-01 {10 + minute // 60:02d}:{minute % 60:02d}:00'"
