"""Failures of batches: short texts with the good line first; what ``stop`` interrupts is said as Spark understands it."""

from __future__ import annotations

import re
import traceback
from functools import partial
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException, PySparkRuntimeError

from windowpane.errors import ChangedPlanError, FailedBatchError, MistakeError, StoreError, UserFunctionError
from windowpane.spark.queries.failures import FailedJobError, InterruptedBatchError, ShortFailures
from windowpane.spark.session.reasons import raised, reason

RAISED = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "process.py", line 65, in handleInputRows
windowpane.errors.UserFunctionError: f raised ZeroDivisionError -- key 'a'.
 SQLSTATE: 39000
"""
CHANGED = """Job aborted. windowpane's words:
windowpane.errors.ChangedPlanError: another program:
  keys: was a, is b
Restore these parts.

\tat org.apache.spark.Something
"""
INTERRUPTED = "An error occurred while calling o1.collect.\n: java.lang.InterruptedException\n\tat a.B" + "\n\tat c.D" * 5_000
SPARKS_PATTERN = re.compile(r"py4j.protocol.Py4JJavaError: An error occurred while calling[^\n]*java.lang.InterruptedException")


class Failed(PySparkException):
    """Stands in for what PySpark makes of an exception of the JVM."""

    def __init__(self, text: str) -> None:
        super().__init__(text)


def written(error: Exception) -> str:
    """Return what Python tells Spark of a batch whose sink raised an error."""

    def write(rows: Any, batch_id: int) -> None:
        raise error

    try:
        ShortFailures(write)(cast("Any", None), 7)
    except Exception:
        return traceback.format_exc()
    raise AssertionError("the sink was to fail")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (RAISED, ["windowpane.errors.UserFunctionError: f raised ZeroDivisionError -- key 'a'."]),
        (
            CHANGED,
            [
                "windowpane.errors.ChangedPlanError: another program:",
                "  keys: was a, is b",
                "Restore these parts.",
                "More: docs/how-to/changing-a-query.md",
            ],
        ),
    ],
)
def test_what_a_worker_raised_comes_first_and_whole(text: str, lines: list[str]) -> None:
    told = written(Failed(text))
    assert told.splitlines()[: len(lines) + 1] == [*lines, ""]
    assert "windowpane.errors.FailedBatchError: batch 7 failed by the error above" in told
    assert len(told.splitlines()) < 15
    assert reason(Failed(text)) == lines[0].split(": ", 1)[1]


def test_the_cause_is_the_error_of_the_worker() -> None:
    for text, kind in ((RAISED, UserFunctionError), (CHANGED, ChangedPlanError)):
        with pytest.raises(FailedBatchError) as caught:
            ShortFailures(partial(_raise, Failed(text)))(cast("Any", None), 7)
        assert isinstance(caught.value.__cause__, kind)


def test_what_a_store_says_on_the_driver_comes_first_without_a_traceback() -> None:
    # The error that a user sees is this text: the sentence of the store stood behind the frames of Py4J and PySpark.
    def connect() -> None:
        try:
            raise KeyError("words of a driver")
        except KeyError as error:
            raise StoreError("PostgreSQL", "connection refused") from error

    def write(rows: Any, batch_id: int) -> None:
        connect()

    try:
        ShortFailures(write)(cast("Any", None), 7)
    except FailedBatchError:
        told = traceback.format_exc()
    assert told.splitlines()[0] == "windowpane.errors.StoreError: store PostgreSQL: connection refused"
    assert "words of a driver" not in told
    assert reason(Failed(told)) == "store PostgreSQL: connection refused"
    assert str(raised(Failed(told))) == "store PostgreSQL: connection refused"


def test_a_mistake_keeps_its_traceback() -> None:
    with pytest.raises(MistakeError):
        ShortFailures(partial(_raise, MistakeError("one is one")))(cast("Any", None), 7)


HEADER = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed
	at a.B
Driver stacktrace:
Caused by: java.lang.IllegalArgumentException: CSV header does not conform to the schema.
 Header: name, id
 Schema: id, name
Expected: id but found: name
CSV file: file:///in/2.csv
	at c.D
"""
FORMAT = """An error occurred while calling o1.save.
: org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: parqet. SQLSTATE: 42K02
	at a.B
Caused by: java.lang.ClassNotFoundException: parqet.DefaultSource
	at c.D
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            HEADER,
            "CSV header does not conform to the schema. Header: name, id Schema: id, name Expected: id but found: name CSV "
            "file: file:///in/2.csv",
        ),
        (FORMAT, "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: parqet. SQLSTATE: 42K02"),
        ("x\n: java.lang.ClassNotFoundException: a.B\n\tat c.D", "a.B"),
    ],
)
def test_a_reason_names_the_file_and_what_was_looked_for(text: str, said: str) -> None:
    assert reason(Failed(text)) == said


def _raise(error: Exception, *batch: Any) -> None:
    raise error


def test_an_interrupted_batch_is_said_in_sparks_words_and_in_short() -> None:
    told = written(Failed(INTERRUPTED))
    assert SPARKS_PATTERN.search(told)
    assert len(told) < 2_000
    assert InterruptedBatchError.__name__ in told
    assert FailedJobError.__name__ not in told


def test_short_errors_and_those_of_a_sink_in_python_stay_as_they_are() -> None:
    for error in (PySparkRuntimeError("no such column"), KeyError("mine")):
        told = written(error)
        assert told.rstrip().endswith(f"{error}")
        assert "FailedBatchError" not in told


def test_an_error_of_a_function_names_its_line() -> None:
    try:
        _raise(ValueError("bad"))
    except ValueError as error:
        failed = UserFunctionError("f", "a", None, error)
    assert re.search(r"raised ValueError: bad \(test_failures.py, line \d+, in _raise\) -- key 'a'", str(failed))
