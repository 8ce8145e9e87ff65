"""The tables that people look at: their columns, the question that each answers, and what healthy looks like.

Times are instants of UTC with microseconds; those before the first watermark, and after the end of time, are NULL. Sizes are
bytes as stored. ``operator`` is the number of the operator in Spark's checkpoint; a query has one more for each window over
results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from windowpane.windowing.times import MAX, MIN

INSTANT: Final = pa.timestamp("us", "UTC")
_KINDS: Final = {"instant": INSTANT, "int": pa.int64(), "float": pa.float64(), "text": pa.string(), "flag": pa.bool_()}
_LEAST, _MOST = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 and 9999: others have no Python value


@dataclass(frozen=True)
class TableKind:
    """One of the tables.

    Args:
        name: its name.
        question: what it answers.
        healthy: what a healthy one looks like, in a sentence.
        page: the page of the documentation that says more.
        columns: names and types of its columns.
    """

    name: str
    question: str
    healthy: str
    page: str
    columns: pa.Schema

    def of(self, rows: Sequence[Mapping[str, Any]], complete: bool = True) -> pa.Table:
        """Return a table of rows; those that lack a column have NULL there."""
        columns = [pa.array([_value(row.get(each.name), each.type) for row in rows], each.type) for each in self.columns]
        return pa.table(columns, schema=self.columns).replace_schema_metadata({"complete": "yes" if complete else "no"})


def instants(micros: pa.Array) -> pa.Array:
    """Return microseconds as instants; those before the first watermark, after the end of time, and in no calendar are NULL."""
    return pa.array([_value(value, INSTANT) for value in micros.to_pylist()], INSTANT)


def _value(value: Any, kind: pa.DataType) -> Any:
    if kind == INSTANT and isinstance(value, int):
        return None if value in (MIN, MAX) or not _LEAST <= value <= _MOST else value
    return value


def _table(name: str, question: str, healthy: str, page: str, columns: str) -> TableKind:
    pairs = (each.split(":") for each in columns.split())
    return TableKind(name, question, healthy, page, pa.schema([pa.field(column, _KINDS[kind]) for column, kind in pairs]))


_HELD: Final = "operator:int bucket:int holds:text key:text rows:int bytes:int oldest:instant newest:instant leaves:instant"
_ROWS: Final = "Healthy: rows leave as the watermark advances, so the oldest is never far behind it."

TABLES: Final[dict[str, TableKind]] = {
    each.name: each
    for each in (
        _table(
            "query",
            "What runs?",
            "Healthy: the last batch is seconds old, and as many rows are processed in a second as arrive.",
            "how-to/is-it-keeping-up.md",
            "id:text name:text operator:int plan:text engine:text why:text buckets:int batches:int last_batch_time:instant "
            "input_rate:float processing_rate:float changes:text complete_since:text",
        ),
        _table(
            "watermarks",
            "Who holds the watermark back?",
            "Healthy: behind_now is the delay you said plus the age of your newest rows, and does not grow.",
            "how-to/who-holds-the-watermark-back.md",
            "operator:int name:text event_time_seen:instant watermark:instant behind_now:float idle_since:instant "
            "holds_back:flag",
        ),
        _table(
            "windows",
            "Why is my window still open?",
            "Healthy: windows close in order, and none waits for a watermark that no longer moves.",
            "how-to/why-is-my-window-still-open.md",
            "operator:int bucket:int start:instant end:instant keys:int elements:int partials:int bytes:int "
            "closes_when_watermark_reaches:instant cleaned_when:instant next_timer:instant why_open:text",
        ),
        _table(
            "keys",
            "Which keys are large?",
            "Healthy: the largest key holds a small share of the bytes; one that holds most of them makes its bucket slow.",
            "how-to/monitoring.md",
            "operator:int bucket:int key:text windows:int bytes:int newest_element:instant next_timer:instant",
        ),
        _table(
            "timers",
            "What happens next?",
            "Healthy: the first timers are above the watermark; those below it fire with the next batch.",
            "how-to/why-is-my-window-still-open.md",
            "operator:int time:instant clock:text kind:text how_many:int",
        ),
        _table(
            "late",
            "What was late, and by how much?",
            "Healthy: no rows, or few and all refined; dropped ones are in no result.",
            "how-to/what-was-late.md",
            "operator:int hour:instant how_late:text at_least:float less_than:float rows:int dropped:int refined:int "
            "example_key:text",
        ),
        _table(
            "state",
            "How large is state, and of what?",
            "Healthy: bytes rise and fall with open windows; buckets are about as large as each other.",
            "how-to/monitoring.md",
            "operator:int bucket:int structure:text kind:text blobs:int bytes:int entries:int compaction:text oldest:instant",
        ),
        _table(
            "batches",
            "Is it keeping up?",
            "Healthy: seconds stay below the interval of the trigger, and rows_in does not pile up.",
            "how-to/is-it-keeping-up.md",
            "batch:int time:instant watermark:instant rows_in:int rows_out:int late:int firings:int merges:int seconds:float "
            "stages:text state_bytes:int",
        ),
        _table("over", "What do OVER windows hold?", _ROWS, "how-to/monitoring.md", _HELD),
        _table("join", "What do joins hold?", _ROWS, "how-to/monitoring.md", _HELD.replace(" key", " side:text key", 1)),
        _table("rolling", "What do rolling features hold?", _ROWS, "how-to/monitoring.md", _HELD),
        _table("deduplication", "What is deduplication waiting to forget?", _ROWS, "how-to/monitoring.md", _HELD),
        _table("patterns", "Which rows wait for the rest of a pattern?", _ROWS, "how-to/monitoring.md", _HELD),
        _table("nodes", "What do nodes of SQL views hold?", _ROWS, "how-to/monitoring.md", f"{_HELD} stays:text"),
        _table("between", "What waits between operators?", _ROWS, "how-to/monitoring.md", _HELD),
    )
}
"""The tables by name, in the order in which they are asked for."""
