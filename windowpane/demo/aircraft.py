"""The second program: which delay does an aircraft hand on from one flight to the next?

Every flight has beside it what the same aircraft did before and after: the delay with which it arrived last, and the delay
with which it departs next. The latter is not known yet when a flight departs. So results are emitted on update: a flight appears
with the delay it inherited, and changes once the next flight of its aircraft has departed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import windowpane as wp
from windowpane.demo import flights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def handed_on(departures: DataFrame) -> wp.OverResult:
    """Return the program over a DataFrame of departures; delays are in minutes."""
    flown = departures.where("departed IS NOT NULL AND tailnum IS NOT NULL")
    return (
        wp.over(flown, key=flights.KEY)
        .partition_by("tailnum")
        .order_by("scheduled")
        .select(
            "tailnum",
            *flights.KEY,
            "dest",
            "dep_delay",
            "arr_delay",
            inherited=wp.lag("arr_delay"),
            handed_on=wp.lead("dep_delay"),
        )
        .emit_on_update()
    )


def start(spark: SparkSession, replay: Path, out: Path) -> StreamingQuery:
    """Start the program on the files in ``replay``, one a micro-batch; return the query, which ends by itself."""
    departures = spark.readStream.schema(flights.SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(replay))
    return handed_on(departures).start(
        main=str(out / "changes"), checkpoint=str(out / "checkpoint-aircraft"), trigger={"availableNow": True}
    )
