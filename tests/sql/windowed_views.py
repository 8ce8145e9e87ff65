"""Views of every kind whose state a watermark can free, and random input for them."""

from __future__ import annotations

import random

from windowpane.sql import Session

TABLES = "".join(
    f"CREATE TABLE {name} (k int, at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '30 seconds') APPEND ONLY;"
    for name in "ab"
)

_MINUTE = "INTERVAL '1 minute'"
_NUMBERED = f"SELECT *, row_number() OVER (PARTITION BY window_start{{}}) AS n FROM tumble(a, at, {_MINUTE})"
_BOTH = "l.k AS lk, l.v AS lv, l.at AS la, r.k AS rk, r.v AS rv, r.at AS ra"
_WINDOWS = f"SELECT window_start, k FROM tumble({{}}, at, {_MINUTE})"

VIEWS = {
    "folded": f"SELECT window_start, k, sum(v) AS s FROM tumble(a, at, {_MINUTE}) GROUP BY window_start, k",
    "recomputed": "SELECT window_start, window_end, array_agg(v ORDER BY v) AS s "
    f"FROM hop(a, at, {_MINUTE}, INTERVAL '3 minutes') GROUP BY window_start, window_end",
    "steps": "SELECT window_start, window_end, array_agg(v ORDER BY v) AS s "
    f"FROM cumulate(a, at, {_MINUTE}, INTERVAL '3 minutes') GROUP BY window_start, window_end",
    "groups_of_groups": "SELECT window_start, max(n) AS m, array_agg(n ORDER BY n) AS s "
    f"FROM (SELECT window_start, k, count(*) AS n FROM tumble(a, at, {_MINUTE}) GROUP BY window_start, k) AS q "
    "GROUP BY window_start",
    "distinct_keys": f"SELECT DISTINCT window_start, k FROM tumble(a, at, {_MINUTE})",
    "top_n": f"SELECT k, v, at, window_start FROM ({_NUMBERED.format(' ORDER BY v DESC, k, at')}) AS q WHERE n <= 2",
    "top_n_of_groups": "SELECT k, s, window_start "
    "FROM (SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY s, k) AS n "
    f"FROM (SELECT window_start, k, sum(v) AS s FROM tumble(a, at, {_MINUTE}) GROUP BY window_start, k) AS g) AS q WHERE n <= 2",
    "deduplicated": f"SELECT k, v, at FROM ({_NUMBERED.format(', k ORDER BY at DESC, v')}) AS q WHERE n = 1",
    "sessions": "SELECT k, v, at, window_start, window_end "
    "FROM session(TABLE a PARTITION BY k, DESCRIPTOR(at), INTERVAL '20 seconds')",
    "groups_of_sessions": "SELECT window_start, window_end, count(*) AS n "
    "FROM session(TABLE a, DESCRIPTOR(at), INTERVAL '5 seconds') GROUP BY window_start, window_end",
    "intersection": f"{_WINDOWS.format('a')} INTERSECT {_WINDOWS.format('b')}",
    "exception": f"{_WINDOWS.format('a')} EXCEPT {_WINDOWS.format('b')}",
    "with_partner": "SELECT k, v, at FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k "
    "AND b.at BETWEEN a.at AND a.at + INTERVAL '30 seconds')",
    "without_partner": f"SELECT * FROM (SELECT * FROM tumble(a, at, {_MINUTE})) AS l WHERE NOT EXISTS (SELECT 1 FROM "
    f"(SELECT * FROM tumble(b, at, {_MINUTE})) AS r WHERE r.window_start = l.window_start AND r.k = l.k)",
    "union_of_both": f"SELECT window_start, array_agg(k ORDER BY k) AS s FROM ({_WINDOWS.format('a')} UNION ALL "
    f"{_WINDOWS.format('b')}) AS q GROUP BY window_start",
} | {
    f"{name}_{kind}": query.format(kind=kind.upper())
    for kind in ("inner", "left", "right", "full")
    for name, query in {
        "window_join": f"SELECT {_BOTH} FROM tumble(a, at, {_MINUTE}) AS l {{kind}} JOIN tumble(b, at, {_MINUTE}) AS r "
        "ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end",
        "interval_join": f"SELECT {_BOTH} FROM a AS l {{kind}} JOIN b AS r "
        "ON l.k = r.k AND l.at BETWEEN r.at - INTERVAL '20 seconds' AND r.at + INTERVAL '40 seconds'",
        "interval_join_with_more": f"SELECT {_BOTH} FROM a AS l {{kind}} JOIN b AS r "
        "ON l.k = r.k AND r.at <= l.at + INTERVAL '20 seconds' AND r.at > l.at AND l.v <> r.v",
    }.items()
}


def create(session: Session, name: str, query: str, *, closes: bool = False) -> None:
    """Create a view of one kind."""
    session.run(f"CREATE MATERIALIZED VIEW {name} AS {query}{' EMIT ON WINDOW CLOSE' if closes else ''}")


def random_steps(rng: random.Random) -> list[list[str]]:
    """Return inserts, flush by flush: rows around a clock that stands, steps, or jumps, late ones among them."""
    clock, steps = 0, []
    for _ in range(rng.randint(4, 8)):
        inserts = []
        for _ in range(rng.randint(1, 3)):
            clock += rng.choice([0, 5, 20, 60, 200])
            rows = [
                f"({rng.choice([0, 0, 1, 1, 2, 'NULL'])}, timestamp '2024-01-01' + INTERVAL '{max(0, clock + offset)} seconds', "
                f"{rng.randint(0, 5)})"
                for offset in (rng.randint(-90, 10) for _ in range(rng.randint(1, 6)))
            ]
            inserts.append(f"INSERT INTO {rng.choice('ab')} VALUES {', '.join(rows)}")
        steps.append(inserts)
    return steps
