"""Random queries over windows of time and over event time, those that emit on window close among them.

Windows are written out for DuckDB. What the watermark has closed is emitted: windows whose end it has reached, sessions
whose end it has passed, groups and rows whose time is behind it, and rows of OVER whose frames later rows have completed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.sql.grammar import Query

_LIMIT = "(SELECT max(ts) - INTERVAL '2 minutes' FROM e)"
"""The watermark of ``e``, for DuckDB."""

_LENGTHS = {"tumble": "INTERVAL '5 minutes'", "hop": "INTERVAL '5 minutes', INTERVAL '15 minutes'"}
_LENGTHS["cumulate"] = _LENGTHS["hop"]
_SIZES = {"tumble": 5, "hop": 15, "cumulate": 15}
"""How many minutes after its start the last window of a start ends."""


class WindowsGrammar:
    """Makes queries over ``e``, whose rows stay, and ``f``, whose rows change."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def query(self) -> Query:
        """Return a query."""
        shapes = [self.windows, self.sessions, self.closing_sessions, self.closing_sessions]
        shapes += [self.closing_windows, self.closing_windows, self.closing_over, self.closing_over, self.closing_others]
        return self.rng.choice(shapes)()

    def windows(self) -> Query:
        kind, keys = self.rng.choice(list(_LENGTHS)), self.rng.choice(["window_start, window_end, k", "window_start"])
        tail = f"{keys}, count(*) AS n, {self.rng.choice(['min(id)', 'sum(id)', 'count(DISTINCT k)'])} AS c"
        rest = f" GROUP BY {keys}{self.rng.choice(['', ' HAVING count(*) > 1'])}"
        return Query(f"SELECT {tail} FROM {_windows(kind, 'f')}{rest}", f"SELECT {tail} FROM ({_written_out(kind, 'f')}){rest}")

    def sessions(self) -> Query:
        """Return sessions; rows exactly a gap apart are in one."""
        return self._sessions("f", "")

    def closing_sessions(self) -> Query:
        """Return sessions that are emitted once no later row can belong to them."""
        return self._sessions("e", f"window_end < {_LIMIT}")

    def _sessions(self, table: str, closed: str) -> Query:
        gap = self.rng.randint(1, 5)
        keys, having = (
            self.rng.choice(["k", "k", ""]),
            self.rng.choice(["", "", " HAVING count(*) > 1", " HAVING min(id) % 2 = 0"]),
        )
        rows = f"({_sessions_written_out(table, gap, keys)})" + (f" WHERE {closed}" if closed else "")
        by = f" PARTITION BY ({keys})" if keys else ""
        source = f"SESSION({table}{by}, ts, INTERVAL '{gap} minutes')"
        grouped = ", ".join([*filter(None, [keys]), "window_start", "window_end"])
        calls = f"count(*) AS c, {self.rng.choice(['min(id)', 'sum(id)', 'count(DISTINCT id)'])} AS m"
        oracle = f"SELECT {grouped}, {calls} FROM {rows} GROUP BY {grouped}{having}"
        form = self.rng.random()
        if form < 0.25:
            return Query(f"SELECT id, {grouped} FROM {source}", f"SELECT id, {grouped} FROM {rows}", closes=bool(closed))
        if form < 0.4:
            window = f"SESSION(ts, INTERVAL '{gap}' MINUTE)"
            starts = [f"SESSION_{word}(ts, INTERVAL '{gap}' MINUTE) AS window_{word.lower()}" for word in ("START", "END")]
            text = f"SELECT {', '.join([*filter(None, [keys]), *starts])}, {calls} FROM {table}"
            text += f" GROUP BY {', '.join([*filter(None, [keys]), window])}{having}"
            return Query(text, oracle, closes=bool(closed))
        return Query(f"SELECT {grouped}, {calls} FROM {source} GROUP BY {grouped}{having}", oracle, closes=bool(closed))

    def closing_windows(self) -> Query:
        """Return windows that are emitted once the watermark has passed their end."""
        kind = self.rng.choice(list(_LENGTHS))
        keys = self.rng.choice(["window_start, window_end, k", "window_start, window_end", "window_start", "window_start, k"])
        end = "window_end" if "window_end" in keys else f"window_start + INTERVAL '{_SIZES[kind]} minutes'"
        calls = ["sum(x)", "max(x)", "min(id)", "avg(x)", "count(DISTINCT x)", "sum(x) FILTER (WHERE x > 3)"]
        items = f"{keys}, count(*) AS n, {self.rng.choice(calls)} AS c"
        where, having = self.rng.choice(["", "", " WHERE x > 2"]), self.rng.choice(["", "", "count(*) > 1", "max(x) > 4"])
        text = f"SELECT {items} FROM {_windows(kind, 'e')}{where} GROUP BY {keys}{having and ' HAVING ' + having}"
        oracle = f"SELECT {items} FROM ({_written_out(kind, 'e')}){where} GROUP BY {keys} HAVING {end} <= {_LIMIT}"
        return Query(
            text, oracle + (having and f" AND {having}"), closes=True, columns=("k", "n") if " k" in keys else ("n", "n")
        )

    def closing_over(self) -> Query:
        """Return calls that are emitted once, when the watermark and later rows of the partition have completed their frames."""
        calls, key, where = (
            self.rng.sample(_CALLS, 2),
            self.rng.choice(["k", "k", "k % 2", "1::int"]),
            self.rng.choice(["", "x > 2"]),
        )
        items = ", ".join(f"{call.text(key)} AS c{number}" for number, call in enumerate(calls))
        text = f"SELECT id, k, ts, {items} FROM e{where and ' WHERE ' + where}"
        by = f"OVER (PARTITION BY {key}"
        behind = f"row_number() {by} ORDER BY ts DESC, id DESC) AS behind, dense_rank() {by} ORDER BY ts DESC) AS groups"
        numbered = f"*, {behind}, max(ts) {by}) AS last, max(session) {by}) AS sessions"
        begins = (
            f"CASE WHEN lag(ts) OVER (PARTITION BY {key} ORDER BY ts) + INTERVAL '3 minutes' > ts THEN 0 ELSE 1 END AS begins"
        )
        session = f"sum(begins) OVER (PARTITION BY {key} ORDER BY ts RANGE UNBOUNDED PRECEDING) AS session"
        released = f"SELECT *, {begins} FROM e WHERE ts < {_LIMIT}{where and ' AND ' + where}"
        written = ", ".join(f"{call.written_out(key)} AS c{number}" for number, call in enumerate(calls))
        rows = f"SELECT {written}, {numbered} FROM (SELECT *, {session} FROM ({released}))"
        complete = " AND ".join(call.complete for call in calls)
        return Query(text, f"SELECT id, k, ts, c0, c1 FROM ({rows}) WHERE {complete}", closes=True, columns=("id", "c0"))

    def closing_others(self) -> Query:
        """Return rows, groups of times, Top-N, DISTINCT, joins and unions of windows that are emitted when they are final."""
        text, oracle = self.rng.choice(_closing_others(self.rng))
        return Query(text, oracle, closes=True)


@dataclass(frozen=True)
class _Call:
    """A call OVER that emits on window close, and what says in DuckDB that a row's frame is complete."""

    function: str
    frame: str = ""
    complete: str = "TRUE"
    by_id: bool = True

    def text(self, key: str) -> str:
        return f"{self.function} OVER (PARTITION BY {key} ORDER BY ts {self.frame})"

    def written_out(self, key: str) -> str:
        """Return it for DuckDB: ties are in order of their key, and a session is a partition."""
        if self.frame.startswith("SESSION"):
            return f"{self.function} OVER (PARTITION BY {key}, session)"
        return f"{self.function} OVER (PARTITION BY {key} ORDER BY ts{', id' if self.by_id else ''} {self.frame})"


_SESSION = "SESSION WITH GAP INTERVAL '3 minutes'"
_CALLS = (
    _Call("row_number()"),
    _Call("rank()", by_id=False),
    _Call("dense_rank()", by_id=False),
    _Call("lag(x)"),
    _Call("lag(x, 2)"),
    _Call("lead(x)", complete="behind > 1"),
    _Call("lead(x, 2)", complete="behind > 2"),
    _Call("sum(x)", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
    _Call("count(x)", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "behind > 1"),
    _Call("min(x)", "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "behind > 2"),
    _Call("max(x)", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
    _Call("avg(x)", "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING"),
    _Call("sum(x) FILTER (WHERE x > 3)", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
    _Call("first_value(x)", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW", "behind > 1"),
    _Call("sum(x)", "RANGE BETWEEN INTERVAL '3 minutes' PRECEDING AND CURRENT ROW", "last > ts", by_id=False),
    _Call("max(x)", "RANGE BETWEEN INTERVAL '4 minutes' PRECEDING AND INTERVAL '1 minute' PRECEDING", by_id=False),
    _Call(
        "count(*)",
        "RANGE BETWEEN CURRENT ROW AND INTERVAL '2 minutes' FOLLOWING",
        "last > ts + INTERVAL '2 minutes'",
        by_id=False,
    ),
    _Call("sum(x)", "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", "groups > 1", by_id=False),
    _Call("count(x)", "GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING", "groups > 2", by_id=False),
    _Call("sum(x)", _SESSION, "session < sessions"),
    _Call("count(*)", _SESSION, "session < sessions"),
)


def _closing_others(rng: random.Random) -> Sequence[tuple[str, str]]:
    """Return pairs of queries: as windowpane has them, and the emitted rows, for DuckDB."""
    kind = rng.choice(list(_LENGTHS))
    windows, written, closed = _windows(kind, "e"), f"({_written_out(kind, 'e')})", f"window_end <= {_LIMIT}"
    number = "row_number() OVER (PARTITION BY window_start, window_end ORDER BY x DESC NULLS LAST, id ASC NULLS LAST) AS n"
    top = "SELECT window_start, window_end, id, x FROM (SELECT *, {number} FROM {rows}) AS t WHERE n <= 2{also}"
    pairs = (
        "SELECT {side}.window_start AS s, {side}.window_end AS e, l.id AS i, r.id AS j FROM {rows} AS l {word} JOIN {rows} AS r"
    )
    pairs += " ON l.window_start = r.window_start AND l.window_end = r.window_end AND l.k = r.k AND l.x < r.x{where}"
    word, side = rng.choice([("INNER", "l"), ("INNER", "r"), ("LEFT", "l"), ("RIGHT", "r")])
    both = (
        "SELECT window_start, window_end, k FROM {rows}{where} UNION ALL SELECT window_start, window_end, x FROM {others}{where}"
    )
    other, keys = rng.choice(list(_LENGTHS)), "window_start, window_end"
    groups = "SELECT window_start, window_end, k, count(*) AS n FROM {rows} GROUP BY window_start, window_end, k"
    most = "SELECT {keys}, max(n) AS m, count(k) AS c FROM ({groups}) AS q{where} GROUP BY {keys}"
    where = f" WHERE {closed}"
    return [
        ("SELECT id, k, x, ts FROM e WHERE x > 3", f"SELECT id, k, x, ts FROM e WHERE x > 3 AND ts < {_LIMIT}"),
        ("SELECT ts, sum(x) AS s FROM e GROUP BY ts", f"SELECT ts, sum(x) AS s FROM e GROUP BY ts HAVING ts < {_LIMIT}"),
        (
            "SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM e GROUP BY date_trunc('minute', ts)",
            "SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM e GROUP BY date_trunc('minute', ts)"
            f" HAVING date_trunc('minute', ts) < date_trunc('minute', {_LIMIT})",
        ),
        (
            f"SELECT DISTINCT window_start, window_end, k FROM {windows}",
            f"SELECT DISTINCT window_start, window_end, k FROM {written}{where}",
        ),
        (top.format(number=number, rows=windows, also=""), top.format(number=number, rows=written, also=f" AND {closed}")),
        (
            pairs.format(rows=windows, word=word, side=side, where=""),
            pairs.format(rows=written, word=word, side=side, where=f" WHERE {side}.{closed}"),
        ),
        (
            both.format(rows=windows, others=_windows(other, "e"), where=""),
            both.format(rows=written, others=f"({_written_out(other, 'e')})", where=where),
        ),
        (
            most.format(keys=keys, groups=groups.format(rows=windows), where=""),
            most.format(keys=keys, groups=groups.format(rows=written), where=where),
        ),
    ]


def _windows(kind: str, table: str) -> str:
    return f"{kind.upper()}({table}, ts, {_LENGTHS[kind]})"


def _written_out(kind: str, table: str) -> str:
    """Return the rows of windows, for DuckDB."""
    floor = "time_bucket(INTERVAL '{} minutes', ts, TIMESTAMP '1970-01-01')"
    start, end = {
        "tumble": (floor.format(5), f"{floor.format(5)} + INTERVAL '5 minutes'"),
        "hop": (f"{floor.format(5)} - step * INTERVAL '5 minutes'", f"{floor.format(5)} + (3 - step) * INTERVAL '5 minutes'"),
        "cumulate": (floor.format(15), f"{floor.format(15)} + (step + 1) * INTERVAL '5 minutes'"),
    }[kind]
    rows = (
        f"SELECT *, {start} AS window_start, {end} AS window_end FROM {table}, range({1 if kind == 'tumble' else 3}) AS r(step)"
    )
    # A row without a time has one window in TUMBLE, of NULL, and none in the others: as in RisingWave.
    return rows if kind == "tumble" else f"SELECT * FROM ({rows}) WHERE ts < window_end"


def _sessions_written_out(table: str, gap: int, key: str) -> str:
    """Return rows with the bounds of their sessions, for DuckDB; a row without a time is in none."""
    by, length = f"PARTITION BY {key}" if key else "", f"INTERVAL '{gap} minutes'"
    begins = f"CASE WHEN lag(ts) OVER ({by} ORDER BY ts) + {length} >= ts THEN 0 ELSE 1 END AS begins"
    numbered = f"SELECT *, sum(begins) OVER ({by} ORDER BY ts RANGE UNBOUNDED PRECEDING) AS session"
    numbered += f" FROM (SELECT *, {begins} FROM {table} WHERE ts IS NOT NULL)"
    within = f"PARTITION BY {', '.join([*filter(None, [key]), 'session'])}"
    bounds = f"min(ts) OVER ({within}) AS window_start, max(ts) OVER ({within}) + {length} AS window_end"
    return f"SELECT *, {bounds} FROM ({numbered})"
