"""Tables on an object store: Delta and Iceberg on S3, as moto serves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.test_read_tables import changes_of
from tests.connectors.test_tables import appended, read
from windowpane.connectors import delta, iceberg
from windowpane.errors import ConnectorError

ROWS = pa.table({"k": ["a", "b"], "v": [1, 2]})


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, endpoint: str, tmp_path: Path) -> Any:
    if request.param == "delta":
        return delta.Table(f"s3://tables/{tmp_path.name}", storage=storage(endpoint))
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"s3://tables/{tmp_path.name}"}
    keys = {"s3.endpoint": endpoint, "s3.access-key-id": "me", "s3.secret-access-key": "hunter2", "s3.region": "us-east-1"}
    return iceberg.Table("db.t", {**catalog, **keys})


def storage(endpoint: str) -> dict[str, str]:
    keys = {"aws_access_key_id": "me", "aws_secret_access_key": "hunter2", "aws_region": "us-east-1"}
    return {**keys, "aws_endpoint_url": endpoint, "aws_allow_http": "true"}


def test_a_table_on_s3_is_written_merged_and_read(table: Any) -> None:
    appended_with(table, ROWS, 0)
    assert table.merge(pa.table({"k": ["a", "c"], "v": [9, 3]}).to_batches(), ("k",), "q", 1) == 2
    assert read(table) == [{"k": "a", "v": 9}, {"k": "b", "v": 2}, {"k": "c", "v": 3}]
    assert (table.taken("q"), table.taken("other")) == (1, -1)
    assert sorted(changes_of(table, -1)) == [("a", 9, "insert"), ("b", 2, "insert"), ("c", 3, "insert")]
    assert "hunter2" not in repr(table)


def appended_with(table: Any, rows: pa.Table, number: int) -> None:
    if isinstance(table, iceberg.Table):
        appended(table, rows, number)
        return
    there = table.prepared(rows.schema)
    written = delta.FileWriter(table.uri, table.storage, rows.schema, (), "part")(rows.to_batches())
    table.append(there, [each for batch in written for each in batch.to_pylist()], "q", number)


def test_a_bucket_that_is_not_there_is_an_error(endpoint: str) -> None:
    table = delta.Table("s3://tabels/t", storage=storage(endpoint))
    with pytest.raises(ConnectorError, match="s3://tabels/t") as caught:
        table.prepared(ROWS.schema)
    assert "hunter2" not in str(caught.value)
