"""Types of a source's files, beside those that its table has."""

from __future__ import annotations

from pyspark.sql import types as T

from windowpane.spark.sources.connectors import as_wide


def test_a_column_is_read_as_wide_as_its_table_has_it() -> None:
    # The first file of a folder had int32 and float; the table has bigint and double precision, and so had later files.
    found = T.StructType().add("Id", "integer").add("of", "float").add("day", "date").add("small", "short").add("more", "integer")
    types = {"id": "bigint", "of": "double", "day": "timestamp", "small": "smallint"}
    assert as_wide(found, types) == (
        T.StructType().add("Id", "long").add("of", "double").add("day", "date").add("small", "short").add("more", "integer")
    )


def test_a_column_is_read_no_narrower_than_its_file_has_it() -> None:
    found = T.StructType().add("id", "long").add("of", "double").add("n", "integer").add("f", "float")
    assert as_wide(found, {"id": "integer", "of": "real", "n": "double", "f": "bigint"}) == found
