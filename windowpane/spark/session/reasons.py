"""What an exception of Spark comes down to: one line, out of a text with two languages' stack traces."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from windowpane import errors
from windowpane.errors import WindowpaneError

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises: PySpark turns some of the JVM's exceptions into its own, and leaves others as they are."""

_RAISED = re.compile(
    r"^windowpane\.errors\.(?!FailedBatchError)(\w+): (.*?)\s*(?:\n\s*SQLSTATE|\n\tat |\n\n|\Z)", re.MULTILINE | re.DOTALL
)
_CAUSED = re.compile(
    r"^\s*(?:Caused by|:)[: ]\s*([\w.$]+): (?!Traceback)(.*(?:\n ?(?!Caused by)[A-Z][\w ]*: \S.*)*)$", re.MULTILINE
)
"""The class of a cause and its message, with lines such as ``CSV file: ...`` behind the first."""
_NAMES_A_CLASS = "java.lang.ClassNotFoundException"  # the cause above it says what was looked for
_ELSEWHERE = re.compile(
    r"inside foreachBatch Python process: Traceback.*?^(\w[\w.]*: [^\n]*)\n(?: SQLSTATE|\Z)", re.MULTILINE | re.DOTALL
)
_STOPPED = re.compile(r"terminated with exception: (.*?)(?: SQLSTATE.*)?$", re.MULTILINE)


def reason(error: BaseException) -> str:
    """Return what a task of windowpane raised, else the error of a batch on Spark Connect's server, the first cause, or line."""
    text = str(error).strip()
    if raised := _RAISED.findall(text):
        return str(raised[-1][1]).split("\n")[0]
    if elsewhere := _ELSEWHERE.search(text):
        return elsewhere[1]
    if caused := _CAUSED.findall(text):
        told = [message for kind, message in caused if kind != _NAMES_A_CLASS] or [message for _, message in caused]
        return " ".join(told[-1].split())
    stopped = _STOPPED.search(text)
    return stopped[1] if stopped else text.splitlines()[0]


def raised(error: BaseException) -> WindowpaneError | None:
    """Return what a task or a batch of windowpane raised in another process, from the text of Spark's error."""
    found = _RAISED.findall(str(error))
    if not found:
        return None
    kind: type[WindowpaneError] = getattr(errors, found[-1][0])
    return kind.__new__(kind, found[-1][1])
