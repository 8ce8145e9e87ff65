"""Messages of FORMAT UPSERT and DEBEZIUM that are one chunk: each counts, in order, by the table's rule for conflicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from windowpane.sql import Session
from windowpane.sql.embedded.message_rows import Document, MessageReading, MessageRows
from windowpane.sql.parse.connector_options import FORMAT
from windowpane.sql.parse.positions import Text

Sent = tuple[object, object]  # key and value


def taken(table: str, form: str, *chunks: Sequence[Sent]) -> list[list[str | None]]:
    """Return the rows of a table that took messages, and how many were malformed."""
    with Session(store=":memory:") as session:
        session.run(f"CREATE TABLE t {table}")
        info = session._catalog.tables()[0]
        info = replace(info, options={FORMAT: form})
        writer = session._definitions.writer(Text(info.text))
        rows = MessageRows(session._storage, info, writer, MessageReading())
        for chunk in chunks:
            documents = [
                Document(f"offset {at}", None if value is None else json.dumps(value).encode(), json.dumps(key).encode())
                for at, (key, value) in enumerate(chunk)
            ]
            with session._storage.transaction():
                rows.append(documents, lambda _: pa.nulls(0))
        assert session.query("SHOW ERRORS").rows() == []
        return session.query("SELECT * FROM t ORDER BY 1").text_rows()


def row(**values: object) -> Sent:
    return {"id": values["id"]}, values


GONE: Sent = ({"id": 1}, None)
FILLS = "(id int PRIMARY KEY, v int, w int) ON CONFLICT DO UPDATE IF NOT NULL"
VERSIONS = "(id int PRIMARY KEY, v int, n int) ON CONFLICT DO UPDATE FULL WITH VERSION COLUMN (n)"
CASES: list[tuple[str, list[Sent], list[list[str | None]]]] = [
    # RisingWave's rules: a row with NULLs fills the one before it, one of a lower version is ignored
    (FILLS, [row(id=1, v=1), row(id=1, w=2)], [["1", "1", "2"]]),
    (FILLS, [row(id=1, v=1), GONE, row(id=1, w=2)], [["1", None, "2"]]),
    (VERSIONS, [row(id=1, v=1, n=5), row(id=1, v=2, n=3)], [["1", "1", "5"]]),
    (VERSIONS, [row(id=1, v=1, n=5), GONE, row(id=1, v=2, n=3)], [["1", "2", "3"]]),
    ("(id int PRIMARY KEY, v int) ON CONFLICT DO NOTHING", [row(id=1, v=1), row(id=1, v=2)], [["1", "1"]]),
    ("(id int PRIMARY KEY, v int)", [row(id=1, v=1), row(id=2, v=2), row(id=1, v=3), GONE], [["2", "2"]]),
    ("(id int PRIMARY KEY, v int)", [row(id=1, v=1), GONE, row(id=1, v=3)], [["1", "3"]]),
]


@pytest.mark.parametrize(("table", "sent", "rows"), CASES)
def test_messages_of_a_chunk_are_those_of_many(table: str, sent: list[Sent], rows: list[list[str | None]]) -> None:
    assert taken(table, "upsert", sent) == rows
    assert taken(table, "upsert", *([each] for each in sent)) == rows


def test_names_of_a_key_match_whatever_their_case() -> None:
    table = "(id int PRIMARY KEY, v int)"
    assert taken(table, "upsert", [({"Id": 1}, {"ID": 1, "V": 5}), ({"ID": 2}, {"ID": 2})], [({"Id": 2}, None)]) == [["1", "5"]]
    changes: list[Sent] = [({}, {"before": None, "after": {"ID": 1, "V": 5}, "op": "c"})]
    changes.append(({}, {"before": {"ID": 1, "V": 5}, "after": {"ID": 3, "V": 6}, "op": "u"}))
    assert taken(table, "debezium", changes) == [["3", "6"]]
