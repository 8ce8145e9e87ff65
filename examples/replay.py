"""Small streams for the examples: each batch of rows becomes one file, and each file one micro-batch."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession


def session():
    """Return a local Spark session; two state partitions are plenty for a few rows."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run the Python that runs this
    builder = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def replay(spark, schema, *batches):
    """Return a stream of ``batches``, lists of tuples in the columns of ``schema`` (a DDL string), one a micro-batch."""
    folder = Path(tempfile.mkdtemp(prefix="windowpane-example-"))
    names = [column.split()[0] for column in schema.split(",")]
    for number, rows in enumerate(batches):
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        (folder / f"{number}.json").write_text("\n".join(lines))
        time.sleep(0.01)  # the file source reads the oldest file first
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))


def show(title):
    """Return a sink that prints each batch that has rows, its columns in the order of the DataFrame."""

    def print_batch(dataframe, batch_id):
        rows = [", ".join(f"{name}={row[name]}" for name in dataframe.columns) for row in dataframe.collect()]
        for row in sorted(rows):
            print(f"batch {batch_id}  {title}: {row}")

    return print_batch
