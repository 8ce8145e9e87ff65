"""What the page shows, as JSON: the tables of an inspection, and the answers of the first screen, made of their figures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pyarrow as pa

from windowpane.errors import InvalidSpecError
from windowpane.inspect.inspection import Inspection
from windowpane.inspect.key_texts import value_of_text, values_of_text
from windowpane.inspect.printing import bytes_text, duration_text, is_complete, plain_rows
from windowpane.inspect.tables import TABLES

_MOST_CONTENTS = 200
_HOUR = 3_600_000_000


def page_data(found: Inspection, error: str | None = None) -> dict[str, Any]:
    """Return everything that the page draws of one batch.

    Args:
        found: the inspection.
        error: what ended the query, where it is known.
    """
    tables = {name: _table(name, found.table(name)) for name in TABLES}
    return {
        "location": found.location,
        "batch": found.batch,
        "made": int(time.time() * 1000),
        "tables": tables,
        "health": [*_health(tables, error)],
    }


def contents_data(found: Inspection, key: str | None = None) -> dict[str, Any]:
    """Return what is held of a key: its windows with results, or rows; all that is held for ``None``.

    Args:
        found: the inspection.
        key: as it is shown in the tables.

    Raises:
        InvalidSpecError: it is no key of what is held.
    """
    if key is None:
        return _table("contents", found.contents().slice(0, _MOST_CONTENTS))
    try:
        table = found.contents(key=(value_of_text(key),))
    except InvalidSpecError:
        if len(parts := values_of_text(key)) == 1:
            raise
        table = found.contents(key=parts)
    return _table("contents", table.slice(0, _MOST_CONTENTS))


def _table(name: str, table: pa.Table) -> dict[str, Any]:
    kind = TABLES.get(name)
    about = {} if kind is None else {"question": kind.question, "healthy": kind.healthy, "page": kind.page}
    return {"columns": table.column_names, "rows": plain_rows(table), "complete": is_complete(table), **about}


def _health(tables: Mapping[str, Any], error: str | None) -> Any:
    """Yield the answers of the first screen: what is asked, the figure, whether it is a worry, and what healthy looks like."""
    query, batches = tables["query"]["rows"], tables["batches"]["rows"]
    last = batches[-1] if batches else None
    arrive, done = (query[0]["input_rate"], query[0]["processing_rate"]) if query else (None, None)
    figure = "no batch yet" if last is None else f"last batch took {duration_text(last['seconds'])}"
    if arrive is not None and done is not None:
        figure = f"{arrive:.0f} rows/s in, {done:.0f} rows/s done"
    is_behind = arrive is not None and done is not None and arrive > done
    yield _answer("Is it keeping up?", figure, "batches", is_behind)
    marks = tables["watermarks"]["rows"]
    holding = next((each for each in marks if each["holds_back"]), None)
    behind = None if holding is None else holding["behind_now"]
    figure = (
        "no watermark yet"
        if holding is None or behind is None
        else f"{duration_text(behind)} behind now, held by {holding['name']}"
    )
    stalled = len(batches) > 3 and len({each["watermark"] for each in batches[-4:]}) == 1 and bool(tables["windows"]["rows"])
    yield _answer(
        "Who holds the watermark back?",
        figure + ("; it has not moved for four batches" if stalled else ""),
        "watermarks",
        stalled,
    )
    late = tables["late"]["rows"]
    latest = max((each["hour_micros"] for each in late), default=0)
    dropped = sum(each["dropped"] for each in late if each["hour_micros"] > latest - _HOUR)
    rows = sum(each["rows"] for each in late if each["hour_micros"] > latest - _HOUR)
    figure = f"{rows:,} rows late in the last hour that had some, {dropped:,} dropped" if late else "no late rows"
    yield _answer("What was late?", figure, "late", dropped > 0)
    sizes = [each["state_bytes"] for each in batches if each["state_bytes"] is not None]
    size = sum(each["bytes"] for each in tables["state"]["rows"])
    trend = "" if len(sizes) < 2 else f", {_more(sizes[-1] - sizes[0])} than {len(sizes)} batches ago"
    grows = len(sizes) > 5 and all(one < other for one, other in pairwise(sizes))
    yield _answer("How large is state, and will it end?", bytes_text(size) + trend, "state", grows)
    keys = tables["keys"]["rows"]
    share = keys[0]["bytes"] / max(sum(each["bytes"] for each in keys), 1) if keys else 0
    figure = f"{keys[0]['key'][:40] or '(no key)'} holds {share:.0%} of the bytes of keys" if keys else "no keys in windows"
    yield _answer("Is one key hot?", figure, "keys", share > 0.5 and len(keys) > 1)
    yield {
        "question": "What was the last error?",
        "figure": error or "none that is known",
        "worry": error is not None,
        "healthy": "Healthy: none. A checkpoint does not keep errors: they are known where the query runs.",
        "page": "errors.md",
        "table": "query",
    }


def _more(size: int) -> str:
    return f"{bytes_text(abs(size))} {'more' if size >= 0 else 'less'}"


def _answer(question: str, figure: str, table: str, worry: bool) -> dict[str, Any]:
    kind = TABLES[table]
    return {"question": question, "figure": figure, "worry": worry, "healthy": kind.healthy, "page": kind.page, "table": table}
