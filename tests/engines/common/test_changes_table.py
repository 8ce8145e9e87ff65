"""Each row of the table of changes: its verdict, and what comes out, on each engine, with a batch that runs twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.engines.common.changes_table import CHANGED_AT, CLOSED, NARROW, STREAM, TABLE, WIDE, Row, table_of, windows_table
from verify.fuzz.comparison import difference
from verify.fuzz.rolling_runs import table_of as rolling_table_of
from windowpane.engines.changes import matched_calls
from windowpane.engines.common.tagged import tagged
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.program import MAIN, Program
from windowpane.engines.protocol import Clock
from windowpane.engines.rolling.program import RollingProgram
from windowpane.errors import ChangedPlanError
from windowpane.hidden_columns import PREFIX, TIME
from windowpane.planning.changing import Held, check, continued
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.expressions import SIDES
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, UPDATE_PREIMAGE

Rows = list[dict[str, Any]]
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "changing-a-query.md"


class Bucket:
    """A bucket that is opened anew in each batch."""

    def __init__(self, program: Any) -> None:
        self.program, self.store = program, MemoryBlobStore()

    def run(self, watermark: int, times: Any) -> Rows:
        program = self.program
        if isinstance(program, Program):
            is_wide = any(each.type in (pa.int64(), pa.float64()) for each in program.value_types)
            tables = [windows_table(WIDE if is_wide else NARROW, times)]
        elif isinstance(program, JoinProgram):
            tables = [tagged(table_of(times[first::2]), side=side) for first, side in enumerate(SIDES)]
        elif isinstance(program, RollingProgram):
            tables = [_rolling_table(program, times)]
        else:
            tables = [table_of(times)]
        tables = [table for table in tables if table.num_rows]
        output = make_engine(program).run(self.store, tables, Clock(watermark, 0))
        found = [row for number, table in output.tables if number == MAIN for row in table.to_pylist()]
        return [{name: value for name, value in row.items() if not name.startswith(PREFIX)} for row in found]


def _rolling_table(program: RollingProgram, times: Any) -> pa.Table:
    entries = [
        {"id": 0, "s": None, "d": None, "b": None, "k": key, "n": value, "x": None, "c": True, TIME: time}
        for time, key, value in times
    ]
    return rolling_table_of(program, entries, 0)


def _run(row: Row) -> tuple[list[Rows], list[Rows], list[Rows]]:
    """Return, by batch, what the old and the new program give alone, and the one that becomes the other."""
    stream = CLOSED if row.closes else STREAM
    old, new, bucket = Bucket(row.old), Bucket(row.new), Bucket(row.old)
    before, after, got = list[Rows](), list[Rows](), list[Rows]()
    for number, (watermark, times) in enumerate(stream):
        before.append(old.run(watermark, times))
        after.append(new.run(watermark, times))
        if number == CHANGED_AT:
            bucket.program = _going_on(row, bucket, stream)
        snapshot = bucket.store.snapshot()
        found = bucket.run(watermark, times)
        if number >= CHANGED_AT:
            bucket.store.restore(snapshot)
            assert difference(found, bucket.run(watermark, times)) is None
        got.append(found)
    return before, after, got


def _report(row: Row, bucket: Bucket, stream: Any) -> Any:
    latest = max(time for _, times in stream[:CHANGED_AT] for time, _, _ in times)
    header = bucket.store.get("header")
    assert header is not None
    held = Held.of([("header", header)], stream[CHANGED_AT][0], latest)
    assert held is not None
    return continued(row.new, held, incomplete=row.incomplete)


def _going_on(row: Row, bucket: Bucket, stream: Any) -> Any:
    program, report = _report(row, bucket, stream)
    assert report.verdict.name.lower() == row.verdict, report.lines()
    return program


def _changed(row: Row) -> Any:
    bucket, stream = Bucket(row.old), CLOSED if row.closes else STREAM
    for watermark, times in stream[:CHANGED_AT]:
        bucket.run(watermark, times)
    return _report(row, bucket, stream)[1]


IDS = [f"{number} {row.of} {row.engine} {row.change}" for number, row in enumerate(TABLE)]
ASKED: dict[str, list[Any]] = {"safe": [], "accept": ["safe", "none"], "refused": ["safe", "accept", "none"]}


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_the_verdict_is_that_of_the_table(row: Row) -> None:
    assert " ".join(dict.fromkeys([row.old.engine, row.new.engine])) == row.engine
    report = _changed(row)
    assert report.verdict.name.lower() == row.verdict, report.lines()
    for word in ASKED[row.verdict]:
        with pytest.raises(ChangedPlanError, match="history=past"):
            check([report], word)


@pytest.mark.parametrize(
    "row", [row for row in TABLE if row.law], ids=[name for name, row in zip(IDS, TABLE, strict=True) if row.law]
)
def test_windows_give_what_the_table_says(row: Row) -> None:
    assert row.law is not None
    before, after, got = ([each for rows in every[CHANGED_AT:] for each in rows] for every in _run(row))
    wanted = row.law(before, after)
    assert wanted
    assert difference(wanted, got) is None


OTHERS = [(name, row) for name, row in zip(IDS, TABLE, strict=True) if row.law is None and row.verdict == "safe"]


@pytest.mark.parametrize("row", [row for _, row in OTHERS], ids=[name for name, _ in OTHERS])
def test_a_safe_change_gives_what_the_new_program_gives(row: Row) -> None:
    """On update, the changelog applied; on close, of each row that comes out; of others, all that comes out after the change."""
    _, after, got = _run(row)
    if isinstance(row.new, OverProgram) and row.new.mode is Emit.UPDATE:
        before, now = row.old.description["calls"], row.new.description["calls"]
        numbers = zip(now, matched_calls(before, now), strict=True)
        names = {call["name"]: None if number is None else before[number]["name"] for call, number in numbers}
        assert _applied(got, names) == _applied(after, names)
        return
    wanted = [each for rows in after for each in rows]
    found = [each for rows in got[CHANGED_AT:] for each in rows]
    if isinstance(row.new, OverProgram):
        wanted = [each for each in wanted if each["id"] in {one["id"] for one in found}]
    else:
        wanted = [each for rows in after[CHANGED_AT:] for each in rows]
    if isinstance(row.new, RollingProgram):  # a key that was not seen since the change comes out once more
        wanted, found = (list({each["k"]: each for each in rows}.values()) for rows in (wanted, found))
    assert wanted
    assert difference(wanted, found) is None


def _applied(batches: list[Rows], calls: dict[str, str | None]) -> dict[Any, dict[str, Any]]:
    """Return the rows that a changelog leaves, by their key: calls by name, with their earlier names."""
    table: dict[Any, dict[str, Any]] = {}
    for row in (row for rows in batches for row in rows):
        if row[CHANGE_TYPE] in (DELETE, UPDATE_PREIMAGE):
            del table[row["id"]]
        else:
            table[row["id"]] = {name: row.get(name, row.get(old or "")) for name, old in calls.items()}
    return table


ACCEPTED = [(name, row) for name, row in zip(IDS, TABLE, strict=True) if row.law is None and row.verdict == "accept"]


@pytest.mark.parametrize("row", [row for _, row in ACCEPTED], ids=[name for name, _ in ACCEPTED])
def test_an_accepted_change_goes_on(row: Row) -> None:
    _, after, got = _run(row)
    assert [each for rows in got[CHANGED_AT:] for each in rows]
    assert {*got[-1][0]} == {*after[-1][0]} if got[-1] and after[-1] else True


def shown() -> list[str]:
    """Return the rows of the table as the documentation has them, with what a report says of each."""
    lines: dict[tuple[str, str], str] = {}
    for row in TABLE:
        parts = _changed(row).parts
        said = next(each for each in parts if each.outcome.verdict.name.lower() == row.verdict)
        lines.setdefault((row.of, row.change), f"| {row.of} | {row.change} | {row.verdict} | {said.outcome.effect} |")
    return list(lines.values())


def test_the_documentation_shows_the_table() -> None:
    page = PAGE.read_text()
    assert [line for line in shown() if line not in page] == []
