"""A grammar of SQL: random queries over a few tables that change.

DuckDB gets the query as it is written where both understand it, so orders name where NULLs stand and OVER windows their frames:
the defaults differ.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
)
AGGREGATES = (
    "count(*)",
    "count(h)",
    "sum(v)",
    "avg(v)",
    "min(h)",
    "max(v)",
    "count(DISTINCT v)",
    "sum(DISTINCT h)",
    "sum(v) FILTER (WHERE h > 4)",
    "bool_or(v > 3)",
    "array_agg(v ORDER BY id)",
    "string_agg(h::text, ',' ORDER BY id)",
    "var_pop(v)",
    "sum(v * h) - min(v)",
)


@dataclass(frozen=True)
class Query:
    """One query: as windowpane has it, as DuckDB has it, and whether it emits on window close."""

    text: str
    oracle: str
    closes: bool = False
    columns: Sequence[str] = ()
    """Two columns of integers that other views may read, if any; the first one is ``id`` only where it is a key."""

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

    def query(self) -> Query:
        """Return a query."""
        shapes = [
            self.grouped,
            self.over,
            self.top,
            self.first,
            self.united,
            self.nested,
            self.tied,
            self.valued,
            *[self.numbers] * 3,
            self.comma,
            self.comma,
            self.totals,
            self.sideways,
            self.listed,
            self.compared,
            self.sparse,
        ]
        shape = self.rng.choice([*shapes, *[self.joined] * 4, None, None])
        if shape is None:
            return _same(self.filtered(), ("id", "x"))
        return _same(shape())

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
        calls = self.rng.sample(AGGREGATES, 3)
        having = self.rng.choice(
            [
                "",
                "",
                " HAVING count(*) > 1",
                " HAVING sum(v) > 4 OR min(h) IS NULL",
                " HAVING max(v) - min(v) < 5",
                " HAVING avg(v) > 3",
            ]
        )
        named = ", ".join(f"{call} AS c{index}" for index, call in enumerate(calls))
        if self.rng.random() < 0.15:
            return f"SELECT {named} FROM a WHERE {self.condition()}{having}"
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
            "sum(u)",
            "avg(u)",
            "sum(u * p)",
            "max(u) - min(p)",
            "sum(u) / nullif(count(u), 0)",
            "avg(p) * count(*)",
            "count(DISTINCT u)",
            "sum(u) FILTER (WHERE u < r)",
        ]
        chosen = ", ".join(f"{call} AS c{index}" for index, call in enumerate(self.rng.sample(calls, 3)))
        where = self.rng.choice(
            ["", " WHERE p > r", " WHERE p * 2 <> 7.5", " WHERE r IS NOT NULL", " WHERE u * r >= p", " WHERE u = p"]
        )
        form = self.rng.random()
        if form < 0.5:
            having = self.rng.choice(
                ["", "", " HAVING sum(p) > sum(r)", " HAVING avg(u) < 100.5", " HAVING sum(u) / count(*) > 1.25"]
            )
            return f"SELECT g, {chosen} FROM d{where} GROUP BY g{having}"
        if form < 0.6:
            return f"SELECT {chosen} FROM d{where}"
        if form < 0.7:
            key = self.rng.choice(["u", "p", "u + p", "r * 2"])
            return f"SELECT {key} AS k, count(*) AS n, min(id) AS m FROM d{where} GROUP BY {key}"
        if form < 0.8:
            call = self.rng.choice(["sum(u)", "max(p * r)", "avg(r)", "sum(p)"])
            frame = f"PARTITION BY g ORDER BY id ASC NULLS LAST {self.rng.choice(FRAMES)}"
            return f"SELECT id, {call} OVER ({frame}) AS c FROM d{where}"
        more = self.rng.choice(
            ["u * p AS e", "u / nullif(p, 0) AS e", "u - r AS e", "-u + 0.5 AS e", "abs(u) AS e", "u % 7 AS e"]
        )
        return f"SELECT id, p + r AS s, p * r AS m, p / nullif(r, 0) AS q, round(p, 1) AS t, {more} FROM d{where}"

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
        """Return the first rows of each partition; those of ``rank`` and ``dense_rank`` with their ties."""
        form = self.rng.random()
        if form < 0.3:
            order = self.rng.choice(["v ASC NULLS LAST", "v DESC NULLS FIRST", "h ASC NULLS LAST, v ASC NULLS LAST"])
            number = f"{self.rng.choice(['rank', 'dense_rank'])}() OVER (PARTITION BY g ORDER BY {order}) AS n"
            return f"SELECT id, v, n FROM (SELECT *, {number} FROM a) AS t WHERE n <= {self.rng.randint(1, 2)}"
        if form < 0.5:
            return f"SELECT id, v FROM a WHERE {self.condition()} QUALIFY row_number() OVER ({self.window()}) = 1"
        low = self.rng.randint(1, 2)
        number = f"row_number() OVER ({self.window()}) AS n"
        outside = self.rng.choice(["", " AND g = 1", " AND g IS NOT NULL", " AND v > 2"])
        return f"SELECT id, v, n FROM (SELECT *, {number} FROM a) AS t WHERE n >= {low} AND n <= {low + 1}{outside}"

    def first(self) -> str:
        """Return the first rows of all, DISTINCT, or one row of each key."""
        order = f"v {self.rng.choice(['ASC NULLS LAST', 'DESC NULLS FIRST'])}, id ASC NULLS LAST"
        limit = f"LIMIT {self.rng.randint(1, 4)}{self.rng.choice(['', ' OFFSET 1'])}"
        return self.rng.choice(
            [
                f"SELECT id, v FROM a WHERE {self.condition()} ORDER BY {order} {limit}",
                f"SELECT sum(v) AS s, count(*) AS n FROM (SELECT v FROM a ORDER BY {order} {limit}) AS q",
                f"SELECT q.id AS i, b.id AS j FROM (SELECT id, g FROM a ORDER BY {order} {limit}) AS q FULL JOIN b ON b.g = q.g",
                f"SELECT DISTINCT g, h FROM a WHERE {self.condition()}",
                "SELECT DISTINCT a.g AS x, b.w AS y FROM a LEFT JOIN b ON a.v = b.w",
                f"SELECT DISTINCT ON (g) g, id, v FROM a ORDER BY g ASC NULLS LAST, {order}",
                "SELECT count(*) AS n FROM (SELECT DISTINCT v FROM a) AS q",
            ]
        )

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
        operation = self.rng.choice(["UNION ALL", "UNION", "UNION", "EXCEPT", "INTERSECT"])
        both = f"SELECT g, v FROM a {operation} SELECT g, w FROM b"
        groups = f"SELECT g, count(*) AS n FROM a GROUP BY g {operation} SELECT g, count(*) AS n FROM b GROUP BY g"
        above = f"SELECT g, count(*) AS n, max(v) AS m FROM ({both}) AS u GROUP BY g"
        return self.rng.choice([both, groups, above, f"SELECT v FROM ({both}) AS u WHERE g = 1 OR v > 5"])

    def totals(self) -> str:
        """Return a join of two groupings, or of two totals of whole tables."""
        kind = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "FULL JOIN"])
        having = self.rng.choice(["", " HAVING count(*) > 1"])
        if self.rng.random() < 0.5:
            one = f"(SELECT g, count(*) AS n, sum(v) AS s FROM a WHERE {self.condition()} GROUP BY g{having}) AS p"
            other = self.rng.choice(
                ["(SELECT g, max(w) AS m FROM b GROUP BY g) AS q", "(SELECT h AS g, max(v) AS m FROM a GROUP BY h) AS q"]
            )
            tie = self.rng.choice(
                ["p.g = q.g", "p.g = q.g", "p.n = q.m", "p.g = q.g AND p.n < q.m", "p.g IS NOT DISTINCT FROM q.g"]
            )
            return f"SELECT p.g AS x, q.g AS y, p.n AS n, p.s AS s, q.m AS m FROM {one} {kind} {other} ON {tie}"
        one = f"(SELECT count(*) AS n, max(v) AS x FROM a WHERE {self.condition()}{having}) AS p"
        other = f"(SELECT count(*) AS n, max(w) AS x FROM b{self.rng.choice(['', ' WHERE w > 7'])}) AS q"
        tie = self.rng.choice(["p.x = q.x", "p.n = q.n", "p.n = q.n AND p.x > q.x", "p.n % 2 = q.n % 2"])
        return f"SELECT p.n AS n, p.x AS x, q.n AS m, q.x AS y FROM {one} {kind} {other} ON {tie}"

    def sideways(self) -> str:
        """Return a LATERAL subquery."""
        tie = self.rng.choice(
            ["b.g = a.g", "b.g = a.g AND b.w > 2", "b.w = a.v", "b.g = a.g AND b.w <= a.v", "b.w = a.h AND b.id <> a.id"]
        )
        call = self.rng.choice(["max(w)", "count(*)", "sum(w) + count(w)"])
        first = "SELECT w AS m FROM b WHERE {tie} ORDER BY w DESC NULLS LAST, id ASC NULLS LAST LIMIT {count}"
        return self.rng.choice(
            [
                f"SELECT a.id AS i, l.m AS m FROM a, LATERAL (SELECT {call} AS m FROM b WHERE {tie}) AS l",
                f"SELECT a.id AS i, l.m AS m FROM a, LATERAL ({first.format(tie=tie, count=2)}) AS l",
                f"SELECT a.id AS i, l.m AS m FROM a LEFT JOIN LATERAL ({first.format(tie=tie, count=1)}) AS l ON true",
            ]
        )

    def listed(self) -> str:
        """Return rows beside the elements of a list of each."""
        values = self.rng.choice(["ARRAY[v, h]", "ARRAY[g, g, v]", "CASE WHEN v > 2 THEN ARRAY[h, g + 1] END"])
        rows = self.rng.choice(["a, unnest({}) AS u(x)", "a LEFT JOIN unnest({}) AS u(x) ON TRUE"]).format(values)
        where = self.rng.choice(["TRUE", "x > 3", "x IS NULL OR h < 4", self.condition()])
        return self.rng.choice(
            [
                f"SELECT id, x FROM {rows} WHERE {where}",
                f"SELECT x, count(*) AS n, sum(v) AS s FROM {rows} WHERE {where} GROUP BY x",
                f"SELECT q.id AS i, x, b.id AS j FROM (SELECT id, x FROM {rows} WHERE {where}) AS q FULL JOIN b ON b.w = q.x",
                f"SELECT id, x FROM {rows} WHERE x {self.rng.choice(['', 'NOT '])}IN (SELECT w FROM b WHERE w IS NOT NULL)",
            ]
        )

    def compared(self) -> str:
        """Return rows compared with what subqueries give."""
        negated, nested = self.rng.choice(["", "NOT "]), "SELECT id FROM d WHERE d.g = b.g"
        return self.rng.choice(
            [
                f"SELECT id, v FROM a WHERE v > (SELECT {self.rng.choice(['avg(w)', 'min(w)', 'count(*)'])} FROM b)",
                f"SELECT id FROM a WHERE g {negated}IN (SELECT g FROM b GROUP BY g HAVING count(*) > 1)",
                "SELECT id FROM a WHERE (g, v) IN (SELECT g, w FROM b WHERE w IS NOT NULL AND g IS NOT NULL)",
                "SELECT id FROM a WHERE v = ANY (SELECT w FROM b WHERE b.g = a.g)",
                "SELECT id, (SELECT count(*) FROM b WHERE b.g = a.g AND b.w < a.v) AS n FROM a",
                "SELECT id, EXISTS (SELECT 1 FROM b WHERE b.g = a.g AND b.w BETWEEN a.v - 1 AND a.v + 1) AS n FROM a",
                f"SELECT id FROM a WHERE {negated}EXISTS (SELECT 1 FROM b WHERE b.g = a.g AND b.w IN ({nested}))",
                f"SELECT g, count(*) AS n FROM a WHERE {negated}EXISTS (SELECT 1 FROM b WHERE b.w = a.v) GROUP BY g",
                "SELECT g, sum(v) AS s FROM a GROUP BY g HAVING sum(v) > (SELECT max(w) FROM b)",
                f"SELECT id FROM a WHERE {negated}EXISTS (SELECT 1 FROM b WHERE b.g = a.g) OR v IN (SELECT w FROM b)",
            ]
        )

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

    def above(self, view: str, one: str, other: str) -> Query:
        """Return a query over two columns of a view, the first of which is its key if it is ``id``."""
        negated = self.rng.choice(["", "NOT "])
        shapes = [
            f"SELECT {other} AS x, count(*) AS n, min({one}) AS m FROM {view} GROUP BY {other}",
            f"SELECT q.{one} AS i, q.{other} AS x, b.w AS w FROM {view} AS q LEFT JOIN b ON b.g = q.{other}",
            f"SELECT q.{one} AS i, p.{one} AS j FROM {view} AS q FULL JOIN {view} AS p ON q.{other} = p.{other} + 1",
            f"SELECT DISTINCT {other} AS x FROM {view} WHERE {other} > 1",
            f"SELECT count(*) AS n, sum({other}) AS s FROM {view}",
            f"SELECT id FROM a WHERE v {negated}IN (SELECT q.{other} FROM {view} AS q WHERE q.{one} = a.g)",
        ]
        if one == "id":
            window = f"PARTITION BY id % 2 ORDER BY id ASC NULLS LAST {FRAMES[0]}"
            shapes.append(f"SELECT id, {other} AS x, sum({other}) OVER ({window}) AS s FROM {view}")
        return _same(self.rng.choice(shapes))


def _same(text: str, columns: Sequence[str] = ()) -> Query:
    return Query(text, text, columns=columns)
