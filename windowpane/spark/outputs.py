"""Outputs: which blobs belong to an output, and the columns they decode to. Small and picklable, for batch functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.program import MAIN, WINDOW_END
from windowpane.spark.decode import Decoder
from windowpane.spark.project import RESERVED, quoted
from windowpane.spark.source import PASSED_ON
from windowpane.spark.source import WINDOW_END as END_OF_WINDOW


@dataclass(frozen=True)
class Output:
    """One output of a program.

    Args:
        name: ``"main"`` or the name of a side output.
        number: the number that tags its blobs.
        arrow: names and types of its columns in the blobs.
        spark: the same as Spark has them.
    """

    name: str
    number: int
    arrow: pa.Schema
    spark: T.StructType

    def of(self, blobs: Any, with_system: bool = False) -> Any:
        """Return this output of a DataFrame of tagged blobs; ``with_system`` keeps what a window downstream needs."""
        arrow, spark = self.arrow, self.spark
        if not with_system:
            arrow = pa.schema([column for column in arrow if not column.name.startswith(RESERVED)])
            spark = T.StructType([column for column in spark.fields if not column.name.startswith(RESERVED)])
        tagged = blobs.filter(F.col("output") == self.number).select("blob")
        decoded = tagged.mapInArrow(Decoder(arrow).__call__, spark)
        if self.number != MAIN:
            return decoded
        marked = F.col(WINDOW_END).alias(WINDOW_END, metadata={PASSED_ON: END_OF_WINDOW})
        return decoded.select(*[marked if name == WINDOW_END else F.col(quoted(name)) for name in decoded.columns])
