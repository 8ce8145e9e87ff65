"""What an exception of Spark comes down to: one line, out of a text with two languages' stack traces."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises: PySpark turns some of the JVM's exceptions into its own, and leaves others as they are."""

_RAISED = re.compile(r"^(?:windowpane\.errors\.)(\w+): (.*)$", re.MULTILINE)
_CAUSED = re.compile(r"^\s*(?:Caused by|:)[: ]\s*[\w.$]+: (?!Traceback)(.*)$", re.MULTILINE)
_STOPPED = re.compile(r"terminated with exception: (.*?)(?: SQLSTATE.*)?$", re.MULTILINE)


def reason(error: BaseException) -> str:
    """Return what a task of windowpane raised, else the first cause that the JVM names, else the first line."""
    text = str(error).strip()
    if raised := _RAISED.findall(text):
        return str(raised[-1][1])
    if caused := _CAUSED.findall(text):
        return str(caused[-1])
    stopped = _STOPPED.search(text)
    return stopped[1] if stopped else text.splitlines()[0]
