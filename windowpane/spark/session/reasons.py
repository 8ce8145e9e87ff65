"""What an exception of Spark comes down to: one line, out of a text with two languages' stack traces."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises: PySpark turns some of the JVM's exceptions into its own, and leaves others as they are."""

_RAISED = re.compile(r"^windowpane\.errors\.(\w+): (.*?)\s*(?:\n\s*SQLSTATE|\n\tat |\n\n|\Z)", re.MULTILINE | re.DOTALL)
_CAUSED = re.compile(r"^\s*(?:Caused by|:)[: ]\s*[\w.$]+: (?!Traceback)(.*)$", re.MULTILINE)
_ELSEWHERE = re.compile(
    r"inside foreachBatch Python process: Traceback.*?^(\w[\w.]*: [^\n]*)\n(?: SQLSTATE|\Z)", re.MULTILINE | re.DOTALL
)
_STOPPED = re.compile(r"terminated with exception: (.*?)(?: SQLSTATE.*)?$", re.MULTILINE)


def reason(error: BaseException) -> str:
    """Return what a task of windowpane raised, else the error of a batch on Spark Connect's server, the first cause, or line."""
    text = str(error).strip()
    found = raised(text)
    if found is not None:
        return found[1].split("\n")[0]
    if elsewhere := _ELSEWHERE.search(text):
        return elsewhere[1]
    if caused := _CAUSED.findall(text):
        return str(caused[-1])
    stopped = _STOPPED.search(text)
    return stopped[1] if stopped else text.splitlines()[0]


def raised(text: str) -> tuple[str, str] | None:
    """Return the class and the message of what a task of windowpane raised, from the text of Spark."""
    found = _RAISED.findall(text)
    return found[-1] if found else None
