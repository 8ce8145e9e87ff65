"""Failures of the function that writes a batch, as short texts with the good line first.

Python hands Spark what the function raises as text. When Spark stops a query, it looks by a regular expression through the
text of a job that was interrupted meanwhile; the texts of such errors, with two languages' stack traces, overflow its stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from windowpane.errors import FailedBatchError, MistakeError, WindowpaneError
from windowpane.spark.session.reasons import SPARK_ERRORS, raised, reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_INTERRUPTED = re.compile(
    r"\b(?:InterruptedException|InterruptedIOException|ClosedByInterruptException|JOB_CANCELLED)\b|Job \d+ cancelled"
)
_SPARKS_WORDS = "py4j.protocol.Py4JJavaError: An error occurred while calling a sink: java.lang.InterruptedException"
"""What Spark takes for a job that its own ``stop`` has interrupted."""


class InterruptedBatchError(Exception):
    def __init__(self) -> None:
        super().__init__(_SPARKS_WORDS)


class FailedJobError(Exception):
    """A job of Spark that failed, in one line."""


@dataclass(frozen=True)
class ShortFailures:
    write: Callable[[DataFrame, int], None]  # the function

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        try:
            self.write(rows, batch_id)
        except MistakeError:
            raise  # to be reported with its traceback
        except WindowpaneError as error:  # of a sink or a store: its sentence says all, and a traceback would stand before it
            error.__cause__, error.__suppress_context__ = None, True
            raise FailedBatchError(batch_id) from error.with_traceback(None)
        except SPARK_ERRORS as error:
            cause = _cause(error)
            if cause is None:
                raise
            if isinstance(cause, InterruptedBatchError):
                raise cause from None
            raise FailedBatchError(batch_id) from cause


def _cause(error: BaseException) -> Exception | None:
    """Return what an error of Spark comes down to, ``None`` where it is short enough as it is."""
    found = raised(error)
    if found is not None:
        return found
    if _INTERRUPTED.search(str(error)):
        return InterruptedBatchError()
    return FailedJobError(reason(error)) if isinstance(error, Py4JJavaError) else None
