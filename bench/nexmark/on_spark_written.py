"""One query on native Spark, whose results are kept as Parquet files, a folder a batch: ``on_spark_written INPUT WORK QUERY``.

windowpane keeps its results, too; batches are written one by one since Spark's own sink of files takes no updates.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from bench.nexmark.on_spark import run


def main() -> None:
    run(_written)


def _written(writer: DataStreamWriter, work: Path) -> DataStreamWriter:
    return writer.foreachBatch(lambda rows, number: _write(rows, str(work / "results" / str(number))))


def _write(rows: DataFrame, place: str) -> None:
    rows.write.mode("overwrite").parquet(place)


if __name__ == "__main__":
    main()
