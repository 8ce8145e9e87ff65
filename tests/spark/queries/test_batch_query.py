"""How a query says that all rows are taken that were there: no JVM is needed."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace as Object
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from windowpane.errors import SqlRunError
from windowpane.spark.queries import followed_query
from windowpane.spark.queries.batch_query import BatchQuery, _Idle, has_passed
from windowpane.spark.queries.followed_query import Elsewhere, FollowedQuery

NO_SPARK: Any = None
"""Stands in for a session that nothing is asked of."""

TOO_SLOW = "org.apache.spark.SparkException: Python worker failed to connect back."


@pytest.mark.parametrize(
    ("end", "target", "expected"),
    [
        ('{"t": {"0": 7, "1": 4}}', '{"t": {"0": 5, "1": 4}}', True),
        ('{"t": {"0": 7, "1": 3}}', '{"t": {"0": 5, "1": 4}}', False),
        ('{"t": {"0": 7}}', '{"t": {"0": 5, "1": 4}}', False),
        ("None", '{"t": {"0": 5}}', True),
        ("12", "None", True),
        (None, None, True),
        ("11", "12", False),
        ('{"logOffset": 3, "id": "b"}', '{"logOffset": 3, "id": "a"}', True),
        ("{no JSON", "{no JSON", True),
    ],
)
def test_an_offset_has_passed_another_where_no_number_in_it_is_behind(end: str, target: str, expected: bool) -> None:
    assert has_passed(end, target) is expected


NO_ROWS: Any = None


def no_rows(spark):
    """Stands in for what makes the rows of a query that is never started."""


class Endless:
    """A streaming query with ten more rows each batch, of which a batch takes four."""

    def __init__(self, taken: list[int]) -> None:
        self.recentProgress: list[Object] = []
        self.query = BatchQuery(NO_SPARK, "q", Path(), no_rows, lambda _, number: taken.append(number))
        self.query._query = cast("Any", self)
        self._ends = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        self._ends.wait()

    def _run(self) -> None:
        for number in range(1000):
            self.query.batch(NO_ROWS, number)
            offsets = Object(endOffset=f'{{"t": {{"0": {4 * number}}}}}', latestOffset=f'{{"t": {{"0": {20 + 10 * number}}}}}')
            self.recentProgress = [*self.recentProgress, Object(batchId=number, sources=[offsets])][-100:]
            time.sleep(0.02)


def test_an_endless_query_has_taken_what_was_there_once_a_batch_passes_what_the_second_one_reported() -> None:
    taken: list[int] = []
    endless = Endless(taken)
    endless.query.finish(is_endless=True)
    assert 8 <= taken[-1] < 100  # the second batch saw 30 or 40 rows; batch 8 ends at row 32
    endless._ends.set()


class Calm:
    """A streaming query without batches, each of whose moments without new rows is waited for by hand."""

    def __init__(self) -> None:
        self.recentProgress: list[Object] = []
        self.waits: list[threading.Event] = []
        self.query = BatchQuery(NO_SPARK, "q", Path(), no_rows, lambda *_: None)
        self.query._query = cast("Any", self)

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        self.waits.append(threading.Event())
        assert self.waits[-1].wait(10)


def test_a_moment_without_new_rows_that_an_earlier_call_waits_for_says_nothing_of_rows_that_came_since() -> None:
    calm = Calm()
    earlier = calm.query._idle = _Idle(cast("Any", calm))
    earlier.start()
    finish = threading.Thread(target=calm.query.finish, kwargs={"is_endless": True})
    finish.start()
    while not calm.waits:
        time.sleep(0.01)
    calm.waits[0].set()
    while len(calm.waits) < 2:
        time.sleep(0.01)
    assert finish.is_alive()
    calm.waits[1].set()
    finish.join(10)
    assert not finish.is_alive()
    assert calm.query._idle is None


def test_what_is_done_behind_a_batch_is_done_once_at_a_time_and_again_where_it_failed() -> None:
    done: list[str] = []
    goes_on, failures = threading.Event(), [None, RuntimeError("the store is away"), RuntimeError("it still is"), None, None]

    def behind() -> None:
        assert goes_on.wait(10)
        failure = failures.pop(0)
        done.append(f"{'' if threading.current_thread() is threading.main_thread() else 'behind: '}{failure}")
        if failure is not None:
            raise failure

    query = BatchQuery(NO_SPARK, "q", Path(), no_rows, lambda _, number: done.append(f"batch {number}"), behind)
    assert query.batch(NO_ROWS, 0) is None
    assert done == ["batch 0"]  # nobody waits
    goes_on.set()
    assert query.batch(NO_ROWS, 1) is None
    assert query.batch(NO_ROWS, 2) == "it still is"
    calls = [each for each in done if not each.startswith("batch")]
    assert calls == ["behind: None", "behind: the store is away", "it still is"]
    assert query.batch(NO_ROWS, 2) is None
    query.join()
    assert done[-2:] == ["batch 2", "behind: None"]


class Silent:
    """A streaming query whose driver's Python worker did not connect back in time, or that ends."""

    def __init__(self, error: str | None) -> None:
        self.isActive, self._error = True, error

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        if self._error is not None:
            self.isActive = False
            raise StreamingQueryException(self._error)


def test_a_query_whose_worker_was_too_slow_is_started_again_until_it_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    def query(*errors: str | None) -> BatchQuery:
        runs = [Silent(error) for error in errors]
        made, left = BatchQuery(NO_SPARK, "q", Path(), no_rows, lambda *_: None), iter(runs)
        monkeypatch.setattr(made, "_started", lambda: next(left))
        made.start()
        return made

    made = query(TOO_SLOW, TOO_SLOW, None)
    made.finish()
    made = query(*[TOO_SLOW] * 9, None)
    made.finish()
    replaced = "SqlRunError: the batch was given up: another run of it has begun."
    made = query(replaced, None)
    made.finish()
    made = query(*[replaced] * 9, None)
    with pytest.raises(SqlRunError, match=r"q stopped: .*the batch was given up"):
        made.finish()
    made = query("a task failed", None)
    with pytest.raises(SqlRunError, match=r"q stopped: .*a task failed"):
        made.finish()


class Far:
    """A query of a server: batches are committed there, and seen here some time later."""

    def __init__(self, committed: int, seen: int) -> None:
        self.seen, self.taken = seen, list[int]()
        self.isActive, self.recentProgress = True, [Object(batchId=committed, durationMs={"addBatch": 1}, sources=[])]
        self.query = FollowedQuery(NO_SPARK, "q", Path(), no_rows, lambda *_: None, Elsewhere(lambda: self.seen, self.take))
        self.query._query = cast("Any", self)

    def take(self) -> None:
        self.taken.append(self.seen)

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        """All is committed."""

    def stop(self) -> None:
        """It has stopped."""


class Server:
    """Starts queries: what it raises comes first, one a start."""

    def __init__(self, *errors: str) -> None:
        self.started, self._errors = 0, list(errors)

    def start(self) -> Object:
        self.started += 1
        if self._errors:
            raise PySparkException(self._errors.pop(0))
        return Object(isActive=True, stop=lambda: None)


def test_a_query_whose_worker_was_too_slow_on_a_server_is_started_again_until_it_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def query(server: Server) -> FollowedQuery:
        monkeypatch.setattr(BatchQuery, "_started", lambda _: server.start())
        return FollowedQuery(NO_SPARK, "q", Path(), no_rows, lambda *_: None, Elsewhere(lambda: -1, lambda: None))

    slow, broken = Server(*[TOO_SLOW] * 9), Server("no such folder")
    started = query(slow)
    started.start()
    started.stop()
    with pytest.raises(SqlRunError, match=r"q does not start: no such folder"):
        query(broken).start()
    assert (slow.started, broken.started) == (10, 1)


def test_a_query_of_a_server_is_done_once_its_last_batch_is_seen() -> None:
    far = Far(committed=3, seen=2)
    threading.Timer(0.2, setattr, (far, "seen", 3)).start()
    far.query.finish()
    assert far.seen == 3


def test_a_batch_of_a_server_that_is_never_seen_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_query, "_LONGEST", 0.1)
    far = Far(committed=3, seen=2)
    with pytest.raises(SqlRunError, match="committed batch 3, and its change log is not seen here"):
        far.query.finish()


def test_what_a_server_wrote_is_taken_as_it_comes_until_the_query_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_query, "_FOLLOWING", 0.01)
    far = Far(committed=0, seen=0)
    far.query.start()
    for number in (1, 2):
        far.seen = number
        until = time.monotonic() + 10
        while far.taken[-1:] != [number]:
            assert time.monotonic() < until
            time.sleep(0.01)
    far.query.stop()
    far.query.join()
    far.seen = 3
    time.sleep(0.05)
    assert 3 not in far.taken
    assert len(far.taken) <= 3  # each batch once, and not again while nothing comes


def test_what_a_batch_raised_on_a_server_is_raised_here() -> None:
    text = (
        "[PYTHON_EXCEPTION] Found error inside foreachBatch Python process: Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in main\n    boom()\n{}\n SQLSTATE: 38000'
    )
    for said, expected in (
        ("windowpane.errors.SqlRunError: a row has NULL there.", "^a row has NULL there.$"),
        ("ZeroDivisionError: division by zero", "^q stopped: ZeroDivisionError: division by zero$"),
    ):
        far = Far(committed=-1, seen=-1)
        far.query._query = cast("Any", Silent(text.format(said)))
        with pytest.raises(SqlRunError, match=expected):
            far.query.finish()
