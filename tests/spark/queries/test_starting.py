"""A query whose driver's Python worker was too slow to connect back is started again; other failures stay as they are."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from windowpane.errors import InvalidSpecError
from windowpane.spark.queries import starting
from windowpane.spark.queries.running import check_trigger

TOO_SLOW = "org.apache.spark.SparkException: Python worker failed to connect back."


@dataclass
class Query:
    """A query that has ended with an error, or goes on."""

    error: str | None = None
    message: str = "Initializing sources"
    lastProgress: Any = None  # noqa: N815 (Spark's name)
    runId: str = "run"  # noqa: N815

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self.error is None

    @property
    def status(self) -> dict[str, str]:
        return {"message": self.message}

    def exception(self) -> str | None:
        return self.error


@dataclass
class Tracker:
    """Stands in for the session, its context and their status tracker."""

    jobs: list[int] = field(default_factory=list)

    @property
    def sparkContext(self) -> Tracker:  # noqa: N802
        return self

    def statusTracker(self) -> Tracker:  # noqa: N802
        return self

    def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802
        assert group == "run"
        return self.jobs


@pytest.fixture(autouse=True)
def classic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "is_classic", lambda spark: True)


@pytest.mark.parametrize(
    "under_way", [Query(lastProgress={}), Query(message="Waiting for data to arrive"), Query(message="Processing new data")]
)
def test_a_slow_worker_is_given_another_chance_and_it_is_said(under_way: Any, caplog: pytest.LogCaptureFixture) -> None:
    queries: list[Any] = [Query(TOO_SLOW), Query(f"... {TOO_SLOW} ..."), under_way]
    with caplog.at_level(logging.WARNING):
        assert starting.started(iter(queries).__next__, cast("Any", Tracker([1]))) is under_way
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "Spark gave the driver's Python worker ten seconds to connect back, which it did not manage"
    ] * 2


def test_it_is_tried_as_often_as_it_takes() -> None:
    queries: list[Any] = [*(Query(TOO_SLOW) for _ in range(9)), Query()]
    assert starting.started(iter(queries).__next__, cast("Any", Tracker([1]))) is queries[9]


def test_another_failure_is_not_tried_again() -> None:
    queries: list[Any] = [Query("a function raised"), Query()]
    assert starting.started(iter(queries).__next__, cast("Any", Tracker())) is queries[0]


def test_a_server_that_is_too_slow_to_start_the_sinks_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    """On Spark Connect the start itself fails."""
    waited = PySparkException("SocketTimeoutException: Timed out while waiting for the Python worker to connect back")
    answers: list[Any] = [waited, waited, Query(lastProgress={})]

    def start() -> Query:
        answer = answers.pop(0)
        if isinstance(answer, PySparkException):
            raise answer
        found: Query = answer
        return found

    with caplog.at_level(logging.WARNING):
        assert starting.started(cast("Any", start), cast("Any", Tracker([1]))).lastProgress == {}
    assert len(caplog.records) == 2
    answers[:] = [PySparkException("a function raised")]
    with pytest.raises(PySparkException, match="a function raised"):
        starting.started(cast("Any", start), cast("Any", Tracker()))


@pytest.mark.parametrize("trigger", [{"continuous": "1 second"}, {"realTime": "5 minutes"}, {"every": "1 second"}, "1 second"])
def test_a_trigger_without_batches_is_refused_before_spark_does(trigger: object) -> None:
    with pytest.raises(InvalidSpecError, match="continuous and real-time modes have no batches"):
        check_trigger(trigger)
    for running in (None, {"availableNow": True}, {"once": True}, {"processingTime": "1 second"}):
        check_trigger(running)
