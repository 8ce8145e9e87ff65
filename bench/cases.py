"""The cases: what is measured, on which rows, who takes part, and the goal.

A job on Spark takes some twenty seconds of batches until its JVM has compiled what it runs, so each system gets as many batches
as last longer than that, and the second half of them counts. Slow peers get fewer rows and one run: it says so here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench import flights, systems
from bench.bids import Feed, Part
from bench.programs import Program
from bench.shapes import OWN_FUNCTIONS, SHAPES
from bench.sql_views import VIEWS, View
from bench.systems import System
from bench.user_rows import USER_CASES, UserCase


@dataclass(frozen=True)
class Contender:
    """A system in a case.

    Args:
        system: the system.
        batches: how many files of the case it gets; 0 for all.
        runs: how often it runs at most; 0 for as often as chosen.
        seconds: a run that takes longer is ended, and reported so.
        parts: its own rows in place of those of the case, for peers that want fewer than a file.
    """

    system: System
    batches: int = 0
    runs: int = 0
    seconds: int = 240
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Goal:
    """How windowpane should compare with a system: its figure by that of the other (for times the other way round).

    Args:
        against: name of the system.
        figure: ``rows_per_s``, ``whole_job_s`` or ``batch_s``.
        ratio: how many times as good windowpane should be; for ``at_most`` how many times the other's time it may take.
        at_most: whether ``ratio`` is a bound on windowpane's time.
        of: the system that is compared.
    """

    against: str
    figure: str
    ratio: float
    at_most: bool = False
    of: str = "windowpane"


@dataclass(frozen=True)
class Case:
    """A case.

    Args:
        name: as it is written in results.
        program: what is computed.
        parts: the rows.
        contenders: who takes part.
        goals: what windowpane should reach.
        format: ``parquet``, or ``csv`` for both.
        emit: ``update`` or ``close`` for OVER programs.
        batch_files: how many files make a batch: an even number of large ones keeps both cores busy.
        phases: for cases that compare windowpane with itself, the numbers of the batches (from, to) before and after.
        growth: how many times the batch time may grow between the phases.
        worker_mb: how much memory a Python worker may take, 0 for no bound.
        checked: whether the answer is compared with the expected one.
        agreed: whether the answers of all systems must be one.
    """

    name: str
    program: Program
    parts: tuple[Part, ...]
    contenders: tuple[Contender, ...]
    goals: tuple[Goal, ...] = ()
    format: str = "parquet"
    emit: str = ""
    batch_files: int = 1
    phases: tuple[tuple[int, int], tuple[int, int]] | None = None
    growth: float = 0
    worker_mb: float = 0
    checked: bool = True
    agreed: bool = False

    @property
    def keys(self) -> int:
        """Number of distinct keys."""
        return max(part.feed.keys for part in self.parts)

    def is_among(self, only: Sequence[str]) -> bool:
        """Whether each of these texts, or one of its parts between commas without a blank, is in the name and keys."""
        name = f"{self.name} {self.keys} keys"
        return all(any(part in name for part in re.split(r",(?! )", each)) for each in only)

    def scaled(self, quick: bool) -> Case:
        """Return the case as it runs, with little rows if ``quick``."""
        return self if not quick else _quick(self)

    def with_systems(self, names: Sequence[str]) -> Case:
        """Return the case with these systems only, given by their names or titles."""
        return replace(
            self, contenders=tuple(each for each in self.contenders if {each.system.name, each.system.title} & {*names})
        )


_TUMBLING = Program("tumbling", 10)
_SLIDING = Program("sliding", 60, 1)
_SESSION = Program("session", 1)
_HOUR = Program("tumbling", 3600)


def all_cases() -> tuple[Case, ...]:
    """Return every case, in the order in which they run."""
    return (
        *(_tumbling(keys, ratio) for keys, ratio in ((1_000, 1), (100_000, 3), (1_000_000, 7))),
        *(_large_batches(keys, ratio) for keys, ratio in ((1_000, 0.8), (100_000, 3), (1_000_000, 7))),
        *_sliding(),
        _session(),
        *(_users("users", name, case) for name, case in USER_CASES.items()),
        *(_users("shapes", name, case) for name, case in SHAPES.items()),
        *(_own_functions(keys) for keys in (1_000, 100_000)),
        *(_csv(keys, ratio) for keys, ratio in ((1_000, 1), (100_000, 1.3), (1_000_000, 2))),
        _flights(),
        _calendar(),
        _sources(),
        _latency(),
        _state_growth(),
        _open_sessions(),
        *_over_close(),
        *_over_lag(),
        _over_growth(),
        _over_kernel(),
        *(_sql(name, view) for name, view in VIEWS.items()),
    )


def _both(runs: int = 0) -> tuple[Contender, Contender]:
    """Return windowpane with rows from Spark, and with files read by Arrow."""
    return Contender(systems.WINDOWPANE, runs=runs), Contender(systems.WINDOWPANE_ARROW, runs=runs)


def _tumbling(keys: int, ratio: float) -> Case:
    peers = [*_both(), Contender(systems.NATIVE, {100_000: 20, 1_000_000: 10}.get(keys, 0))]
    goals = [Goal("spark", "rows_per_s", ratio)]
    if keys == 1_000:
        peers += [Contender(systems.TWS, 2, 1), Contender(systems.HOP)]
        peers += [
            Contender(systems.PYFLINK, runs=1, parts=(Part(Feed(keys, 250_000), 0, 1),)),
            Contender(systems.BYTEWAX_FLOW, 1, 1),
        ]
        goals += [Goal("tws", "rows_per_s", 10), Goal("pyflink", "rows_per_s", 10), Goal("bytewax", "rows_per_s", 10)]
        goals += [Goal("hop", "batch_s", 1.3, at_most=True)]
    if keys == 100_000:
        peers += [Contender(systems.TWS, 2, 1)]
        goals += [Goal("tws", "rows_per_s", 80)]
    if keys == 1_000_000:
        peers += [Contender(systems.SHUFFLE)]
        goals += [Goal("shuffle", "batch_s", 1.6, at_most=True)]
    feed = Feed(keys, 1_000_000)
    return Case("tumbling, batches of 1 M", _TUMBLING, (Part(feed, 0, 48),), tuple(peers), tuple(goals))


def _large_batches(keys: int, ratio: float) -> Case:
    peers = (*_both(runs=2), Contender(systems.NATIVE, {100_000: 8, 1_000_000: 4}.get(keys, 0), 2))
    goals = (Goal("spark", "rows_per_s", ratio),)
    return Case("tumbling, batches of 4 M", _TUMBLING, (Part(Feed(keys, 4_000_000), 0, 20),), peers, goals)


def _sliding() -> tuple[Case, ...]:
    few = Case(
        "sliding 60 s by 1 s",
        _SLIDING,
        (Part(Feed(1_000, 1_000_000), 0, 40),),
        (*_both(), Contender(systems.NATIVE, 6)),
        (Goal("spark", "rows_per_s", 12),),
    )
    many = Case(
        "sliding 60 s by 1 s",
        _SLIDING,
        (Part(Feed(100_000, 1_000_000), 0, 24),),
        (*_both(), Contender(systems.NATIVE, 2, 1, 300)),
        (Goal("spark", "rows_per_s", 15),),
    )
    return few, many


def _session() -> Case:
    peers = (*_both(runs=2), Contender(systems.NATIVE, 8, 2))
    goals = (Goal("spark", "rows_per_s", 8),)
    return Case("session, gap 1 s", _SESSION, (Part(Feed(100_000, 1_000_000), 0, 36),), peers, goals)


def _users(group: str, name: str, case: UserCase) -> Case:
    """Rows like users': results of all systems are compared with one another."""
    program = Program(case.window, case.sizes[0], case.sizes[1] if len(case.sizes) > 1 else 0, view=name)
    peers = tuple(Contender(each, runs=1) for each in (systems.USERS_ROWS, systems.USERS_DEFAULT, systems.USERS_SPARK))
    by_rows, by_default = case.goal
    goals = (
        Goal("users-spark", "rows_per_s", by_rows, of="users-rows"),
        Goal("users-spark", "rows_per_s", by_default, of="users-default"),
    )
    parts = (Part(Feed(100_000, 1_000_000), 0, case.batches),)
    return Case(f"{group}, {name}", program, parts, peers, goals, checked=False, agreed=True)


def _own_functions(keys: int) -> Case:
    """count, sum and max by an AggregateFunction in Python, by text keys; the same of all rows by a process function."""
    ours = (systems.OWN_ROWS, systems.OWN_DEFAULT)
    peers = [*(Contender(each, runs=1) for each in ours), Contender(systems.OWN_TWS, 2, 1)]
    goals = [Goal("own-tws", "rows_per_s", 3, of=each.name) for each in ours]
    if keys == 1_000:
        peers += [Contender(systems.PYFLINK, runs=1, parts=(Part(Feed(keys, 250_000), 0, 1),))]
        peers += [Contender(systems.OWN_PROCESS, runs=1), Contender(systems.OWN_TWS_ROWS, 2, 1)]
        goals += [Goal("pyflink", "rows_per_s", 20, of=each.name) for each in ours]
        goals += [Goal("own-tws-rows", "rows_per_s", 3, of="own-process")]
    program = Program("tumbling", 10, view=OWN_FUNCTIONS, text_keys=True)
    return Case("own functions, text keys", program, (Part(Feed(keys, 1_000_000), 0, 8),), tuple(peers), tuple(goals))


def _csv(keys: int, ratio: float) -> Case:
    peers = (*_both(runs=1), Contender(systems.FLINK_SQL, runs=1))
    goals = (Goal("flink-sql", "whole_job_s", ratio),)
    feed = Feed(keys, 1_000_000)
    return Case("tumbling from CSV, whole job", _TUMBLING, (Part(feed, 0, 10),), peers, goals, format="csv", batch_files=4)


def _flights() -> Case:
    program = Program("tumbling", 3600, delay=flights.DELAY_SECONDS)
    parts = (Part(Feed(flights.KEYS, flights.FLIGHTS // 8, "flights"), 0, 8),)
    peers = (Contender(systems.WINDOWPANE), Contender(systems.NATIVE))
    return Case("flights by airport, carrier and hour", program, parts, peers)


def _calendar() -> Case:
    """Files of a day, so that a batch has rows of two windows and closes one."""
    peers = (Contender(systems.WINDOWPANE), Contender(systems.WINDOWPANE_CALENDAR))
    goals = (Goal("windowpane", "batch_s", 1.1, at_most=True, of="windowpane-calendar"),)
    parts = (Part(Feed(1_000, 1_000_000, "days"), 0, 40),)
    return Case("days, fixed and of a calendar", Program("tumbling", 86_400), parts, peers, goals)


def _sources() -> Case:
    peers = (Contender(systems.WINDOWPANE), Contender(systems.WINDOWPANE_SOURCES))
    goals = (Goal("windowpane", "batch_s", 1.1, at_most=True, of="windowpane-sources"),)
    return Case("tumbling, watermarks of 64 sources", _TUMBLING, (Part(Feed(1_000, 1_000_000), 0, 48),), peers, goals)


def _latency() -> Case:
    peers = (Contender(systems.WINDOWPANE), Contender(systems.NATIVE), Contender(systems.TWS))
    goals = (Goal("spark", "batch_s", 1.4, at_most=True), Goal("tws", "batch_s", 1.1, at_most=True))
    return Case("latency, batches of 1 k", _TUMBLING, (Part(Feed(100, 1_000), 0, 120),), peers, goals)


def _state_growth() -> Case:
    """Probes of 100 k rows among 1 M open keys, then among 20 M."""
    fresh, million = Feed(20_000_000, 1_000_000, "fresh"), 1_000_000
    before, after = Feed(million, 100_000), Feed(20 * million, 100_000)
    parts = (Part(fresh, 0, 1), Part(before, 10, 9), Part(fresh, 1, 19), Part(after, 200, 7))
    peers = (Contender(systems.WINDOWPANE, runs=1),)
    return Case(
        "cost against state, 1 M to 20 M keys", _HOUR, parts, peers, phases=((3, 10), (31, 36)), growth=1.5, checked=False
    )


def _open_sessions() -> Case:
    peers = (Contender(systems.WINDOWPANE, runs=1),)
    parts = (Part(Feed(10_000_000, 1_000_000, "fresh"), 0, 10),)
    return Case("memory, 10 M open sessions", Program("session", 600), parts, peers, worker_mb=2048, checked=False)


def _over_close() -> tuple[Case, ...]:
    parts = (Part(Feed(1_000, 1_000_000, "turns"), 0, 32),)
    peers = (*_both(runs=1), Contender(systems.FLINK_SQL, 3, 1))

    by_text = (Contender(systems.WINDOWPANE, runs=1), peers[-1])

    def case(name: str, program: Program, ratio: float, peers: tuple[Contender, ...] = peers) -> Case:
        goals = (Goal("flink-sql", "rows_per_s", ratio),)
        return Case(name, program, parts, peers, goals, format="csv", emit="close", batch_files=4)

    return (
        case("OVER ROWS 10 PRECEDING, sum and max", Program("over", preceding=10), 10),
        case("LAG per key", Program("lag"), 3),
        case("OVER ROWS 10 PRECEDING by text, sum and max", Program("over", preceding=10, text_keys=True), 10, by_text),
    )


def _over_lag() -> tuple[Case, ...]:
    parts = (Part(Feed(100_000, 1_000_000, "sequence"), 0, 24),)
    tws, goals = Contender(systems.TWS, 1, 1), (Goal("tws", "rows_per_s", 30),)
    by_text, program = (Contender(systems.WINDOWPANE, runs=1), tws), Program("lag", text_keys=True)
    return (
        Case("LAG per key, rows in order", Program("lag"), parts, (*_both(runs=1), tws), goals, emit="update"),
        Case("LAG by text, rows in order", program, parts, by_text, goals, emit="update"),
    )


def _over_growth() -> Case:
    """Probes of 1 k rows at any place of one partition of 100 k rows, then of one of 10 M."""
    small, large = Feed(1, 100_000, "sequence"), Feed(1, 1_000_000, "sequence")
    probes = Feed(1, 1_000, "between")
    parts = (Part(small, 0, 1), Part(probes, 100, 10), Part(large, 1, 10), Part(probes, 11_000, 7))
    peers = (Contender(systems.WINDOWPANE, runs=1),)
    name, program = "cost against state, 1 k inserts in 100 k to 10 M rows", Program("over", preceding=10)
    return Case(name, program, parts, peers, emit="update", phases=((4, 11), (22, 28)), growth=2, checked=False)


def _over_kernel() -> Case:
    parts = (Part(Feed(1_000, 1_000_000, "sequence"), 0, 1),)
    peers = (Contender(systems.OVER_ENGINE, runs=1), Contender(systems.DUCKDB, runs=1))
    goals = (Goal("duckdb", "batch_s", 2, at_most=True, of="over-engine"),)
    return Case("OVER engine, five calls on 1 M rows", Program("over", preceding=10), parts, peers, goals, checked=False)


def _sql(name: str, view: View) -> Case:
    """A view made over 1 M rows beside DuckDB's answer, then flushes of 1 k rows beside the first."""
    parts = (Part(Feed(1_000, 1_000_000), 0, 1), Part(Feed(1_000, 1_000), 1_000, 4))
    peers = (Contender(systems.SQL, runs=1), Contender(systems.SQL_DUCKDB, runs=1))
    goals = (Goal("sql-duckdb", "batch_s", 8, at_most=True, of="sql"),) if view.goals else ()
    return Case(
        f"sql, {name}",
        Program("sql", view=name),
        parts,
        peers,
        goals,
        phases=((0, 1), (2, 5)),
        growth=0.05 if view.goals else 0,
        checked=False,
    )


def _quick(case: Case) -> Case:
    contenders = tuple(replace(each, parts=_smaller(each.parts)) for each in case.contenders)
    return replace(case, parts=_smaller(case.parts), contenders=contenders)


def _smaller(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(replace(part, feed=part.feed.smaller(20)) for part in parts)
