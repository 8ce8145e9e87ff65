"""Fields of documents, in process: each row has its own, and documents that are no objects stay."""

from __future__ import annotations

import pyarrow as pa

from windowpane.spark.stages.documents import Fields


def test_fields_stand_in_the_row_of_their_document() -> None:
    documents = ['{"a": 1.50, "B": "x"}', None, "no JSON", '{"b": [1.50], "other": 2}', "[1]"]
    batch = pa.record_batch({"at": pa.array(range(5)), "document": documents})
    (found,) = Fields(("a", "b"))(iter([batch]))
    assert found.to_pydict() == {
        "at": [0, 1, 2, 3, 4],
        "a": ["1.50", None, None, None, None],
        "b": ["x", None, None, "[1.50]", None],
        "document": [None, None, "no JSON", None, "[1]"],
    }


def test_a_batch_without_an_object_has_no_fields() -> None:
    (found,) = Fields(("a",))(iter([pa.record_batch({"document": ["null"]})]))
    assert found.to_pydict() == {"a": [None], "document": ["null"]}
