"""Shuffles that Spark does not share between two uses of a result in one query.

A result that is used twice is two operators of equal plans. Spark reuses the shuffle of the first below the second; but it finds
the watermark of an operator by walking its plan downward, where a reused shuffle is a leaf. So the second operator would have no
watermark, and its windows would never fire (Spark 4.0 to 4.3, with operators of its own as well).

A streaming query gives each random expression a seed of its own, so plans with one are never equal. One below the shuffle of an
operator, computed once a blob, is enough where the watermark is made there. Where the DataFrame made it, shuffles of its own
may be above it; then Spark is asked to reuse none.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

_REUSE = "spark.sql.exchange.reuse"


def each_use_its_own(encoded: Any) -> Any:
    """Return encoded rows, all of them, whose shuffle Spark does not share between two uses in one streaming query."""
    return encoded.filter(F.expr("uuid() <> ''"))  # rand() < 1 is found to be true, and is gone before there are seeds


def reuse_no_exchange(spark: Any) -> None:
    """Ask Spark to share no shuffle in queries that a session starts, unless the user has set that."""
    if spark.conf.get(_REUSE, None) is None:
        spark.conf.set(_REUSE, "false")
