"""An inspection: the tables of one committed batch of a checkpoint, each made when it is asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.common.held_panes import ELEMENTS, NEXT, OF_PANES, PARTIALS, SIZE, WORDS, Wanted
from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.engines.registry import engines_for
from windowpane.engines.spec import choose
from windowpane.errors import InvalidSpecError, UnreadableStateError
from windowpane.hidden_columns import END, PREFIX, START
from windowpane.inspect.buckets import Bucket
from windowpane.inspect.held_rows import SIDES, held_rows, joined, key_row, table_of
from windowpane.inspect.holders import Holder
from windowpane.inspect.key_texts import value_of_text
from windowpane.inspect.tables import INSTANT, TABLES, instants
from windowpane.inspect.watermarks import late_rows, watermarks_of
from windowpane.inspect.windows import Listing, keys_of, timers_of, windows_of
from windowpane.planning.changing import complete_since

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNTED = 30
"""Of so many of the last batches the counters are read, from the headers that each has left."""

_TRIES = 5
"""A query that runs removes what batches long past have left: so often a later batch is read in the place of one that is gone."""

_EMITTED = ("firings", "pairs", "padded")
"""The counters of rows that operators emit."""

Key = Any
"""A key: its value, those of several columns as a tuple, or a mapping of columns to values; texts are cast."""


class Inspection:
    """What a query holds and does, as Arrow tables; ``contents`` has what a window or a key holds.

    All tables are of one committed batch: make another inspection for a later one.

    Args:
        holder: who holds the state: a checkpoint, or a harness.
        most: how many windows, keys and batches are shown at most.
        recent: the progress of the last batches, where the query runs in this process.
        totals: the counters up to batches that earlier inspections have read, by batch: they are kept there.
    """

    def __init__(
        self,
        holder: Holder,
        most: int = 1000,
        recent: Iterable[Mapping[str, Any]] = (),
        totals: dict[int, dict[str, int]] | None = None,
    ) -> None:
        self.location = holder.location
        self._known = {} if totals is None else totals
        self._holder, self._most, self._recent = holder, most, list(recent)
        for left in range(_TRIES)[::-1]:
            self.batch = holder.last_batch()
            try:
                self._operators = list(holder.operators()) if self.batch >= 0 else []
                self._buckets = [bucket for each in self._operators for bucket in holder.programs(each, self.batch)]
                break
            except (UnreadableStateError, OSError):
                if not left or holder.last_batch() == self.batch:
                    raise

    def __repr__(self) -> str:
        return f"Inspection({self.location!r}, batch={self.batch})"

    def table(self, name: str) -> pa.Table:
        """Return a table by its name.

        Raises:
            InvalidSpecError: there is none of that name.
        """
        if name not in TABLES:
            raise InvalidSpecError(f"there is no table {name!r} to look at; there are {', '.join(map(repr, TABLES))}.")
        found: pa.Table = getattr(self, name)
        return found

    def to_df(self, spark: SparkSession, table: str | None = None) -> Any:
        """Return a table as a static DataFrame, or all that hold something by their names."""
        if table is not None:
            return spark.createDataFrame(self.table(table))
        filled = {name: self.table(name) for name in TABLES}
        return {name: spark.createDataFrame(found) for name, found in filled.items() if found.num_rows}

    # The tables.

    @cached_property
    def query(self) -> pa.Table:
        """One row an operator: what runs, and since when."""
        changes = self._holder.changes()
        batches = self._holder.batches(2) if self.batch >= 0 else []
        rows = []
        for operator in self._operators:
            of = [each for each in self._buckets if each.operator == operator]
            first = of[-1] if of else None
            rows.append(
                {
                    "id": self._holder.query_id,
                    "name": next((each.get("name") for each in self._recent), None),
                    "operator": operator,
                    "plan": None if first is None else json.dumps(first.header.description),
                    "engine": None if first is None else first.header.description.get("engine", "nodes of SQL"),
                    "why": None if first is None else _why(of),
                    "buckets": len({each.number for each in of}),
                    "batches": self.batch + 1,
                    "last_batch_time": batches[-1].committed * 1000 if batches else None,
                    "input_rate": self._recent[-1].get("inputRowsPerSecond") if self._recent else None,
                    "processing_rate": self._recent[-1].get("processedRowsPerSecond") if self._recent else None,
                    "changes": json.dumps(changes),
                    "complete_since": json.dumps({} if first is None else complete_since(first.header.description)),
                }
            )
        return TABLES["query"].of(rows)

    @cached_property
    def watermarks(self) -> pa.Table:
        """A row for each source, or clock of a key, and which of them holds the others back."""
        now = time.time_ns() // 1000
        after = self._holder.next_watermark(self.batch) if self.batch >= 0 else 0
        rows = [row for operator in self._operators for row in watermarks_of(self._of(operator), after, now)]
        return TABLES["watermarks"].of(rows)

    @cached_property
    def windows(self) -> pa.Table:
        """A row for each open window and bucket, those that end first in front."""
        return self._listed("windows", windows_of, lambda row: (row["end"] is None, row["end"], row["start"]))

    @cached_property
    def keys(self) -> pa.Table:
        """A row for each key, the largest first."""
        return self._listed("keys", keys_of, lambda row: -(row["bytes"] or 0))

    @cached_property
    def timers(self) -> pa.Table:
        """How many timers are due when, the first ones in front."""
        counts: dict[tuple[Any, ...], int] = {}
        listed = [timers_of(bucket, self._most) for bucket in self._windows_buckets]
        for row in (row for each in listed for row in each.rows):
            at = row["operator"], row["time"], row["clock"], row["kind"]
            counts[at] = counts.get(at, 0) + row["how_many"]
        columns = ("operator", "time", "clock", "kind")
        rows = [dict(zip(columns, at, strict=True)) | {"how_many": counts[at]} for at in sorted(counts)]
        is_complete = self._is_known and all(each.is_complete for each in listed) and len(rows) <= self._most
        return TABLES["timers"].of(rows[: self._most], is_complete)

    @cached_property
    def late(self) -> pa.Table:
        """How many rows were late, by the hour of their event time and by how much."""
        return TABLES["late"].of([row for operator in self._operators for row in late_rows(operator, self._of(operator))])

    @cached_property
    def state(self) -> pa.Table:
        """A row for each structure of each bucket, from its index."""
        rows = []
        for bucket in self._buckets:
            for holds, found in bucket.listed():
                is_time = found.first is not None and found.kind == "segment log" and holds.startswith(("partials", "panes"))
                waiting = f"{found.waiting} parts wait for it" if found.waiting else "nothing waits for it"
                rewritten = "pages are rewritten as they change" if found.kind.endswith("pages") else None
                rows.append(
                    {
                        "operator": bucket.operator,
                        "bucket": bucket.number,
                        "structure": holds,
                        "kind": found.kind,
                        "blobs": found.blobs,
                        "bytes": found.size,
                        "entries": found.entries,
                        "compaction": waiting if found.kind == "segment log" else rewritten,
                        "oldest": found.first if is_time else None,
                    }
                )
        return TABLES["state"].of(rows)

    @cached_property
    def batches(self) -> pa.Table:
        """The last batches: times and watermarks are Spark's, the counters those of the headers, or of the query's progress."""
        known = {each["batchId"]: each for each in self._recent}
        committed = self._holder.batches(self._most)
        totals = {number: self._totals(number) for number in range(self.batch - _COUNTED, self.batch + 1) if number >= 0}
        rows = []
        for each in committed:
            row: dict[str, Any] = {
                "batch": each.batch,
                "time": each.committed * 1000,
                "watermark": each.watermark * 1000 if each.watermark else None,
                "seconds": max(each.committed - each.planned, 0) / 1000,
            }
            before = {} if each.batch == 0 else totals.get(each.batch - 1)
            rows.append(row | _of_totals(before, totals.get(each.batch)) | _of_progress(known.get(each.batch)))
        return TABLES["batches"].of(rows)

    over = cached_property(lambda self: self._held("over"))
    """What OVER windows hold, by key."""
    join = cached_property(lambda self: self._held("join"))
    """What joins hold, by side and key."""
    rolling = cached_property(lambda self: self._held("rolling"))
    """What rolling features hold, by key."""
    deduplication = cached_property(lambda self: self._held("deduplication"))
    """The rows that others can be duplicates of, by key."""
    patterns = cached_property(lambda self: self._held("patterns"))
    """The rows that wait for the rest of a pattern, by key."""
    nodes = cached_property(lambda self: self._held("nodes"))
    """What nodes of SQL views hold, by key: rows of joins, groups, the top of partitions."""
    between = cached_property(lambda self: self._held("between"))
    """Changes that wait to be settled, and windows that gaps are filled from, by key."""

    def contents(self, key: Key = None, window: tuple[Any, Any] | None = None, operator: int | None = None) -> pa.Table:
        """Return what windows hold: the results that a firing now would give, and the partials in words; of others their rows.

        Args:
            key: a key, ``None`` for all.
            window: start and end of a window, as instants; ``None`` for all.
            operator: of which operator, ``None`` for the last one of windows; where there is none, for all.

        Raises:
            InvalidSpecError: the key has other columns, or a value cannot be one of its type; a window of rows without windows.
        """
        found = [each for each in self._windows_buckets if operator in (None, each.operator)]
        if not found:
            if window is not None:
                raise InvalidSpecError("the query holds rows, and no windows: say a key, or none.")
            return self._rows([each for each in self._buckets if operator in (None, each.operator)], key)
        of = [each for each in found if each.operator == found[-1].operator]
        start, end = (None, None) if window is None else (micros_of(window[0]), micros_of(window[1]))
        tables, count = list[pa.Table](), 0
        for bucket in of:
            asked = None if key is None else key_row(bucket.keys, key, "the query")
            for table in bucket.held(Wanted(asked, start, end, results=True)):
                tables.append(_contents(bucket, table))
                count += table.num_rows
                if count >= self._most:
                    break
        if not tables:
            program = of[0].windows
            nothing = pa.schema([*(() if program is None else program.keys), *OF_PANES]).empty_table()
            return _contents(of[0], nothing)
        return pa.concat_tables(tables, promote_options="permissive").slice(0, self._most)

    def _rows(self, buckets: Iterable[Bucket], key: Key) -> pa.Table:
        """Return the rows that are held, with the values of their columns, and until when they stay."""
        tables, count, refused = list[pa.Table](), 0, list[InvalidSpecError]()
        for bucket in buckets:
            for held in held_rows(bucket):
                table = held.as_table(bucket.operator, bucket.number)
                try:
                    table = table if key is None else table.filter(pc.equal(held.keys, held.text_of(key)))
                except InvalidSpecError as error:
                    refused.append(error)
                    continue
                tables.append(table)
                count += table.num_rows
            if count >= self._most:
                break
        if refused and not tables:
            raise refused[0]
        found = joined([table for table in tables if table.num_rows] or tables[:1])
        return found.slice(0, self._most) if found.num_columns else found  # no column has a slice of as many rows as asked for

    # What they are made of.

    @property
    def _is_known(self) -> bool:
        """Whether all programs are known: what others hold is in ``state`` alone, and ``query`` says why."""
        return all(each.program is not None or each.node is not None for each in self._buckets)

    @property
    def _windows_buckets(self) -> list[Bucket]:
        return [each for each in self._buckets if each.windows is not None]

    def _totals(self, batch: int) -> dict[str, int] | None:
        """Return the counters of all batches up to one, and its gauges; ``None`` where its state is not kept any more."""
        if batch not in self._known:
            totals: dict[str, int] = {}
            try:
                headers = self._headers(batch)
            except (UnreadableStateError, OSError):
                return None
            for name, number in (pair for header in headers for pair in header.totals.items()):
                totals[name] = totals.get(name, 0) + number
            self._known[batch] = totals
            for old in sorted(self._known)[: -_COUNTED - 1]:
                del self._known[old]
        return self._known[batch]

    def _headers(self, batch: int) -> list[BucketHeader]:
        if batch == self.batch:
            return [bucket.header for bucket in self._buckets]
        return [header for operator in self._operators for header in self._holder.headers(operator, batch)]

    def _of(self, operator: int) -> list[Bucket]:
        return [each for each in self._buckets if each.operator == operator]

    def _listed(self, name: str, list_rows: Callable[[Bucket, int], Listing], order: Callable[[Any], Any]) -> pa.Table:
        found = [list_rows(bucket, self._most) for bucket in self._windows_buckets]
        rows = sorted((row for each in found for row in each.rows), key=order)
        return TABLES[name].of(
            rows[: self._most], self._is_known and all(each.is_complete for each in found) and len(rows) <= self._most
        )

    def _held(self, name: str) -> pa.Table:
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for bucket in self._buckets:
            if table_of(bucket) != name:
                continue
            for held in held_rows(bucket):
                _add(rows, bucket, held)
        largest = sorted(rows.values(), key=lambda row: (-row["rows"], row["holds"], row["key"]))
        return TABLES[name].of(largest[: self._most], self._is_known and len(largest) <= self._most)


def _add(rows: dict[tuple[Any, ...], dict[str, Any]], bucket: Bucket, held: Any) -> None:
    count = len(held.keys)
    nothing = pa.nulls(count, pa.int64())
    table = pa.table(
        {
            "key": held.keys,
            "rows": pa.array([1] * count) if held.counts is None else held.counts,
            "oldest": nothing if held.times is None else held.times,
            "leaves": nothing if held.leaves is None else held.leaves,
        }
    )
    grouped = table.group_by("key").aggregate([("rows", "sum"), ("oldest", "min"), ("oldest", "max"), ("leaves", "max")])
    for row in grouped.to_pylist():
        at = bucket.operator, bucket.number, held.holds, row["key"]
        side = SIDES.get(held.holds.split()[0])
        mine = rows.setdefault(
            at, {"operator": at[0], "bucket": at[1], "holds": at[2], "key": at[3], "rows": 0, "bytes": 0, "side": side}
        )
        mine["bytes"] += held.size * row["rows_sum"] // max(sum(table["rows"].to_pylist()), 1)
        mine["rows"] += row["rows_sum"]
        for name, side, pick in (("oldest", "oldest_min", min), ("newest", "oldest_max", max), ("leaves", "leaves_max", max)):
            given = [value for value in (mine.get(name), row[side]) if value is not None]
            mine[name] = pick(given) if given else None
        if held.stays is not None:
            mine["stays"] = held.stays(mine["leaves"])


def _why(buckets: Sequence[Bucket]) -> str:
    """Return why the engine runs a program: as it is chosen now, or that it was asked for; of nodes of SQL which they are."""
    bucket, said = buckets[-1], [each.said for each in buckets if each.said]
    if said or bucket.program is None or bucket.runs_on is None:
        return "; ".join(dict.fromkeys(said))
    chosen = choose(engines_for(bucket.program), bucket.program)
    return chosen.reason if chosen.engine.name == bucket.runs_on.name else "asked for"


def _contents(bucket: Bucket, table: pa.Table) -> pa.Table:
    """Return panes with the names that people know."""
    program = bucket.windows
    names = zip(bucket.keys.names, [] if program is None else program.keys.names, strict=True)
    bound = INSTANT if program is None else program.window_bound
    columns = {
        "operator": pa.array([bucket.operator] * table.num_rows, pa.int64()),
        "bucket": pa.array([bucket.number] * table.num_rows, pa.int64()),
    }
    columns |= {name: table[own] for name, own in names}
    columns |= {WINDOW_START: table[START].cast(bound), WINDOW_END: table[END].cast(bound)}
    columns |= {"elements": table[ELEMENTS], "partials": table[PARTIALS], "bytes": table[SIZE]}
    columns |= {"next_timer": instants(table[NEXT])}
    columns |= {name: table[name] for name in table.column_names if name not in columns and not name.startswith(PREFIX)}
    return pa.table(columns | ({"in_words": table[WORDS]} if WORDS in table.column_names else {}))


def micros_of(instant: Any) -> int:
    """Return an instant in microseconds: an int is one, a text or datetime without a zone is of UTC.

    Raises:
        InvalidSpecError: it is none.
    """
    if isinstance(instant, int):
        return instant
    try:
        value = pa.array([instant]).cast(pa.timestamp("us"), safe=False)[0]
        return int(value.value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise InvalidSpecError(f"{instant!r} is no instant: say one such as '2013-01-01 10:00:00', of UTC.") from None


def _of_totals(before: Mapping[str, int] | None, after: Mapping[str, int] | None) -> dict[str, Any]:
    if not after:
        return {}
    of_batch = {"rows_out": _EMITTED, "late": ("late_elements",), "firings": ("firings",), "merges": ("merges",)}

    def total(totals: Mapping[str, int], counters: Iterable[str]) -> int:
        return sum(totals.get(counter, 0) for counter in counters)

    counted = {} if before is None else {name: total(after, of) - total(before, of) for name, of in of_batch.items()}
    return counted | {"state_bytes": after.get("state_bytes")}


def _of_progress(progress: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what only the process of the query knows of a batch: how many rows came in, and how long stages took."""
    if progress is None:
        return {}
    stages = progress.get("durationMs") or {}
    return {
        "rows_in": progress.get("numInputRows"),
        "seconds": stages.get("triggerExecution", 0) / 1000,
        "stages": ", ".join(f"{name} {took / 1000:g} s" for name, took in sorted(stages.items())),
    }


def shown_tables(
    holder: Holder, table: str | None, key: Sequence[str], window: str | None, most: int, before: int = -2
) -> tuple[int, list[tuple[str, pa.Table]]]:
    """Return what ``windowpane inspect`` shows: the number of the last batch, and tables by name.

    Args:
        holder: who holds the state.
        table: the table that is asked for, ``None`` for all that hold something.
        key: the values of a key whose contents are asked for, none for no key.
        window: start and end of a window, with a slash between, whose contents are asked for.
        most: how many rows are shown at most.
        before: the batch that was shown already: nothing is read until there is another.

    Raises:
        InvalidSpecError: there is no such table, or the window is none.
    """
    if holder.last_batch() == before:
        return before, []
    found = Inspection(holder, most)
    if key or window is not None or table == "contents":
        bounds = None if window is None else tuple(each.strip() for each in window.split("/"))
        if bounds is not None and len(bounds) != 2:
            raise InvalidSpecError(f"--window {window!r}: say start and end, such as '2013-01-01 10:00/2013-01-01 11:00'.")
        one = None if not key else tuple(map(value_of_text, key))
        return found.batch, [("contents", found.contents(one, None if bounds is None else (bounds[0], bounds[1])))]
    if table is not None:
        return found.batch, [(table, found.table(table))]
    tables = [(name, found.table(name)) for name in TABLES]
    return found.batch, [(name, each) for name, each in tables if each.num_rows]
