"""What nodes of SQL hold, on Spark and in a store: one reader of the rows that they keep, whatever kind of node it is.

A node says beside its state which columns its rows have, which of them are the key, and what holds of a row that a watermark has
made useless (``sql.streaming.kept``). The instant from which on it holds is found by halving: the condition is asked of all rows
under instants that come ever closer. So what is shown follows from the condition by which rows are removed, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from windowpane.arrays.instants import format_instant
from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.errors import WindowpaneError
from windowpane.inspect.buckets import MOST_PANES, Bucket, bucket_of
from windowpane.inspect.held_rows import Held
from windowpane.inspect.key_texts import key_texts
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.streaming.deltas import same
from windowpane.sql.streaming.kept import REACHED, KeptTable
from windowpane.state.blob_store import Below, BlobStore
from windowpane.state.listing import Listed, hash_pages, listed, nodes_in
from windowpane.windowing.times import MAX

_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 and 9999


class KeptRows(Protocol):
    """Where the tables of a node are."""

    def listed(self, table: KeptTable) -> Listed | None:
        """Return the size of a table, ``None`` where it has no rows."""

    def parts(self, table: KeptTable) -> Iterator[tuple[int, pa.Table]]:
        """Yield its rows in parts, each with its bytes."""


@dataclass(frozen=True)
class InPages:
    """The tables are hash pages of a bucket."""

    store: BlobStore

    def listed(self, table: KeptTable) -> Listed | None:
        return listed(self.store, table.pages)

    def parts(self, table: KeptTable) -> Iterator[tuple[int, pa.Table]]:
        pages = hash_pages(self.store, table.pages)
        for position in pages.in_order_of_due():
            rows = pages.read(position)
            if rows is not None:
                yield pages.size_of(position), rows


@dataclass(frozen=True)
class NodeState:
    """What a node keeps.

    Args:
        name: the node, for people.
        tables: its tables.
        rows: where they are.
    """

    name: str
    tables: Sequence[KeptTable]
    rows: KeptRows

    def listed(self) -> Iterator[tuple[str, Listed]]:
        for table in self.tables:
            found = self.rows.listed(table)
            if found is not None:
                yield f"{self.name}: {table.holds}", found

    def held(self) -> Iterator[Held]:
        """Yield the rows of each table, with the watermark under which each of them goes."""
        for table in self.tables:
            size, parts, count = 0, list[pa.Table](), 0
            for part_size, part in self.rows.parts(table):
                size, count = size + part_size, count + part.num_rows
                parts.append(part)
                if count > MOST_PANES.value:
                    break
            if count:
                yield _held(f"{self.name}: {table.holds}", table, size, pa.concat_tables(parts))


def buckets_of_nodes(operator: int, number: int, store: BlobStore) -> Iterator[Bucket]:
    """Yield what each node of SQL keeps in a bucket; nothing where it is of no node."""
    for prefix, kept in nodes_in(store).items():
        own = Below(store, prefix)
        yield node_bucket(operator, number, kept, own, InPages(own), prefix and f"node {prefix.removesuffix('.')}, ")


def node_bucket(operator: int, number: int, kept: dict[str, Any], store: BlobStore, rows: KeptRows, named: str = "") -> Bucket:
    """Return what a node keeps as a bucket: of a program, where an engine runs it.

    Args:
        operator: the number of the operator.
        number: the number of the bucket.
        kept: what the node keeps, as JSON.
        store: the blobs of the node.
        rows: where its tables are.
        named: what its name begins with.
    """
    reached = _instants({name: value for name, value in kept["clock"].items() if name in kept["follows"]})
    said = f"{kept['node']}: {kept['detail']}" if kept["detail"] else str(kept["node"])
    if "program" not in kept:
        state = NodeState(f"{named}{kept['node']}", [KeptTable.of(each) for each in kept["tables"]], rows)
        return Bucket(
            operator, number, store, BucketHeader({"kind": "nodes of SQL", **kept}), None, None, said, state, reached=reached
        )
    held, description = store.get(HEADER), kept["program"]
    header = BucketHeader(description) if held is None else BucketHeader.of(held)
    found = bucket_of(operator, number, store, replace(header, description=description))
    return replace(found, said=found.said or said, names=kept["names"], reached=reached)


@cache
def _scratch() -> Storage:
    return Storage(":memory:")


def _instants(clock: Mapping[str, str]) -> dict[str, int]:
    """Return watermarks that are written as SQL in microseconds; those that are no instants are left out."""
    found = {}
    for relation, value in clock.items():
        with suppress(duckdb.Error, WindowpaneError):
            found[relation] = int(_scratch().value(f"SELECT epoch_us(CAST({value} AS TIMESTAMP))"))
    return found


def _held(holds: str, table: KeptTable, size: int, rows: pa.Table) -> Held:
    storage, columns = _scratch(), (*table.columns, *table.added)
    with storage.transaction():
        items = ", ".join(f"CAST({quoted(each.id)} AS {each.type}) AS {quoted(each.id)}" for each in table.columns)
        with storage.reading(rows) as given:
            typed = storage.temporary(f"SELECT {items} FROM {given}")
        numbered = f"SELECT *, row_number() OVER () AS windowpane_row FROM {table.rows.replace('{rows}', typed)}"
        held = storage.temporary(numbered)
        ends = _ends(storage, table, held)
        time = "NULL" if table.time is None else quoted(table.time)
        at = f"CASE WHEN isfinite({time}) THEN epoch_us(CAST({time} AS TIMESTAMP)) END" if table.time else time
        found = storage.arrow(
            f"SELECT h.*, CAST({at} AS BIGINT) AS windowpane_time, e.windowpane_end FROM {held} AS h JOIN {ends} AS e "
            "USING (windowpane_row) ORDER BY windowpane_row"
        )
    shown = found.select([each.id for each in columns]).rename_columns([each.name for each in columns])
    ended = found["windowpane_end"].combine_chunks()
    keys = key_texts([found[name] for name in table.key], found.num_rows)
    names = {each.id: each.name for each in columns}
    return Held(
        holds,
        keys,
        found["windowpane_time"].combine_chunks(),
        None if table.ended is None else ended,
        size,
        shown,
        stays=lambda leaves: _stays(table, leaves),
        key_names=tuple(names[name] for name in table.key),
    )


def _ends(storage: Storage, table: KeptTable, held: str) -> str:
    """Return the relation of the instant from which on each row is useless, by its number: ``MAX`` for none."""
    if not table.ended:
        return f"(SELECT windowpane_row, CAST({MAX} AS BIGINT) AS windowpane_end FROM {held})"
    asked = [each.id for each in (*table.columns, *table.added) if quoted(each.id) in table.ended]
    names = ", ".join(map(quoted, asked)) or "1 AS windowpane_one"
    holds = f"({table.ended.replace(REACHED, 'windowpane_at')}) IS TRUE"
    pairs = (("windowpane_low", "windowpane_at + 1"), ("windowpane_at", "windowpane_high"))
    low, high = (f"CASE WHEN {holds} THEN {held_then} ELSE {else_then} END" for held_then, else_then in pairs)
    halved = "SELECT *, windowpane_low + (windowpane_high - windowpane_low) // 2 AS windowpane_at FROM halves"
    search = (
        f"WITH RECURSIVE halves AS (SELECT DISTINCT {names}, CAST({_FIRST} AS BIGINT) AS windowpane_low, "
        f"CAST({_LAST} AS BIGINT) AS windowpane_high FROM {held} UNION ALL SELECT * EXCLUDE (windowpane_at) "
        f"REPLACE ({low} AS windowpane_low, {high} AS windowpane_high) FROM ({halved} WHERE windowpane_low < windowpane_high)) "
        "SELECT * EXCLUDE (windowpane_high), windowpane_low AS windowpane_at FROM halves WHERE windowpane_low = windowpane_high"
    )
    found = storage.temporary(f"SELECT *, CASE WHEN {holds} THEN windowpane_at ELSE {MAX} END AS windowpane_end FROM ({search})")
    matching = same("h", "f", asked) if asked else "TRUE"
    return f"(SELECT h.windowpane_row, f.windowpane_end FROM {held} AS h JOIN {found} AS f ON {matching})"


def _stays(table: KeptTable, leaves: int | None) -> str:
    """Return until when a row stays, in words."""
    ends = [table.until] if table.until else []
    if table.ended is None:
        ends.insert(0, f"{table.by} passes it")
    elif leaves is not None and leaves != MAX:
        ends.insert(0, f"{table.by} reaches {format_instant(leaves)}{table.partners}")
    return f"until {', or '.join(ends)}" if ends else "without end"
