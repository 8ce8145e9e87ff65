"""What a table holds, and what changed between two of its versions, as rows with ``_change_type``.

Delta: the change data feed where the table has one, else the files that appends added. Iceberg: the files that appended snapshots
added. What is neither an append nor in a feed stops the reader: its changes of rows are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.connectors import delta, iceberg
from windowpane.connectors.tables import plain_type
from windowpane.errors import InvalidSpecError, TableChangesError, present
from windowpane.windowing.outputs import CHANGE_TYPE, INSERT

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyiceberg.table import FileScanTask
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table.snapshots import Snapshot

_BEFORE = -1  # The version before the first
_MOST_PARTS = 16
_SILENT = (
    "OPTIMIZE",
    "VACUUM",
    "SET TBLPROPERTIES",
    "ADD COLUMN",
    "CREATE TABLE",
    "ADD FEATURE",
    "UPDATE FIELD METADATA",
    "FSCK",
)
_FEED = "delta.enableChangeDataFeed"
_START_ANEW = "Start with a new checkpoint, which begins with the table as it is now."


class Changes(Protocol):
    def columns(self) -> pa.Schema:
        """Return the columns of the table."""

    def first(self) -> int:
        """Return the version that a new query begins behind."""

    def last(self) -> int:
        """Return the version of the table now."""

    def parts(self, since: int, until: int) -> list[tuple[int, int, int, int]]:
        """Return what lies between two versions, cut for tasks."""

    def read(self, since: int, until: int, part: int, of: int) -> Iterator[pa.Table]:
        """Yield the rows of one part."""


Starting: TypeAlias = "int | str | datetime | None"


@dataclass(frozen=True)
class DeltaChanges:
    table: delta.Table
    with_kinds: bool
    starting: Starting  # a version, a time, ``"latest"``, or ``None`` for the table as it is

    def _at(self, version: int | None = None) -> DeltaTable:
        from deltalake import DeltaTable

        return DeltaTable(self.table.uri, version=version, storage_options=dict(self.table.storage))

    def columns(self) -> pa.Schema:
        return pa.schema(self._at().schema().to_arrow())

    def first(self) -> int:
        if self.starting is None:
            return _BEFORE
        if self.starting == "latest":
            return self.last()
        if isinstance(self.starting, int):
            return self.starting - 1
        if isinstance(self.starting, datetime):
            there = self._at()
            there.load_as_version(self.starting)
            return int(there.version())
        raise InvalidSpecError(
            f"starting={self.starting!r}: it is a version, a datetime, 'latest', or left out for the whole table."
        )

    def last(self) -> int:
        return int(self._at().version())

    def parts(self, since: int, until: int) -> list[tuple[int, int, int, int]]:
        if since == until:
            return []
        many = min(_MOST_PARTS, max(1, len(self._at(until).file_uris()))) if since == _BEFORE else 1
        return [(since, until, part, many) for part in range(many)]

    def read(self, since: int, until: int, part: int, of: int) -> Iterator[pa.Table]:
        if since == _BEFORE:
            yield from self._files(self._at(until), None, part, of)
        elif self._at(until).metadata().configuration.get(_FEED) == "true":
            yield from self._feed(since, until)
        else:
            for version in range(since + 1, until + 1):
                yield from self._appended(version)

    def _feed(self, since: int, until: int) -> Iterator[pa.Table]:
        from deltalake.exceptions import DeltaError

        try:
            found = pa.table(self._at(until).load_cdf(starting_version=since + 1, ending_version=until))
        except (DeltaError, OSError) as error:
            what = f"its changes from version {since + 1} to {until} cannot be read: {str(error).splitlines()[0]}"
            raise TableChangesError(str(self.table), what, _START_ANEW) from None
        found = found.cast(pa.schema([each.with_type(plain_type(each.type)) for each in found.schema]))
        # of one version, what takes rows away comes before what brings them
        brings = pc.cast(pc.is_in(found[CHANGE_TYPE], pa.array([INSERT, "update_postimage"])), pa.int8())
        order = found.append_column("brings", brings)
        yield order.sort_by([("_commit_version", "ascending"), ("brings", "ascending")]).select(
            [*self.columns().names, CHANGE_TYPE]
        )

    def _appended(self, version: int) -> Iterator[pa.Table]:
        now = self._at(version)
        (said,) = now.history(1)
        operation = str(said.get("operation"))
        if operation in _SILENT:
            return
        before = set(self._at(version - 1).file_uris())
        if operation != "WRITE" or before - set(now.file_uris()):
            raise TableChangesError(
                str(self.table),
                f"version {version} ({operation}) changed rows, and the table has no change data feed",
                f"Set {_FEED} = true on the table. {_START_ANEW}",
            )
        yield from self._files(now, before, 0, 1)

    def _files(self, there: DeltaTable, before: set[str] | None, part: int, of: int) -> Iterator[pa.Table]:
        dataset = there.to_pyarrow_dataset()
        names = {uri.rpartition("/")[2] for uri in before or ()}
        fragments = sorted(dataset.get_fragments(), key=lambda each: str(each.path))
        chosen = [each for each in fragments if str(each.path).rpartition("/")[2] not in names]
        for fragment in chosen[part::of]:
            yield self._kept(fragment.to_table(schema=dataset.schema))

    def _kept(self, rows: pa.Table) -> pa.Table:
        return _inserts(rows) if self.with_kinds else rows


def _inserts(rows: pa.Table) -> pa.Table:
    return rows.append_column(CHANGE_TYPE, pa.array([INSERT] * rows.num_rows, pa.string()))


@dataclass(frozen=True)
class IcebergChanges:
    table: iceberg.Table
    with_kinds: bool
    starting: Starting  # a snapshot's id, ``"latest"``, or ``None`` for the table as it is
    skips: bool  # whether snapshots that took rows away are passed over

    def columns(self) -> pa.Schema:
        return iceberg.columns_of(present(self.table.opened(), "the source was opened"))

    def first(self) -> int:
        if self.starting is None:
            return _BEFORE
        if self.starting == "latest":
            return self.last()
        if isinstance(self.starting, int):
            return self.starting
        raise InvalidSpecError(
            f"starting={self.starting!r}: it is the id of a snapshot, 'latest', or left out for the whole table."
        )

    def last(self) -> int:
        there = present(self.table.opened(), "the source was opened")
        found = there.current_snapshot()
        return _BEFORE if found is None else int(found.snapshot_id)

    def parts(self, since: int, until: int) -> list[tuple[int, int, int, int]]:
        if since == until:
            return []
        there = present(self.table.opened(), "the source was opened")
        many = len(self._tasks(there, since, until))
        count = min(_MOST_PARTS, many)
        return [(since, until, part, count) for part in range(count)]

    def read(self, since: int, until: int, part: int, of: int) -> Iterator[pa.Table]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        there = present(self.table.opened(), "the source was opened")
        tasks = self._tasks(there, since, until)[part::of]
        scan = ArrowScan(there.metadata, there.io, there.schema(), AlwaysTrue())
        rows = scan.to_table(tasks)
        yield _inserts(rows) if self.with_kinds else rows

    def _tasks(self, there: IcebergTable, since: int, until: int) -> Sequence[FileScanTask]:
        """Return the files that were added between two snapshots, in one order."""
        tasks = {each.file.file_path: each for each in there.scan(snapshot_id=until).plan_files()}
        if since == _BEFORE:
            return [tasks[path] for path in sorted(tasks)]
        found: list[FileScanTask] = []
        for snapshot in self._between(there, since, until):
            operation = snapshot.summary.operation.value if snapshot.summary is not None else "append"
            if operation == "replace":
                continue
            if operation != "append":
                if self.skips:
                    continue
                raise TableChangesError(
                    str(self.table),
                    f"snapshot {snapshot.snapshot_id} ({operation}) took rows away, and which is not known",
                    f"overwrites='skip' passes such snapshots over. {_START_ANEW}",
                )
            now = {each.file.file_path: each for each in there.scan(snapshot_id=snapshot.snapshot_id).plan_files()}
            before = {each.file.file_path for each in there.scan(snapshot_id=snapshot.parent_snapshot_id).plan_files()}
            found += [now[path] for path in sorted(now.keys() - before)]
        return found

    def _between(self, there: IcebergTable, since: int, until: int) -> list[Snapshot]:
        """Return the snapshots behind one, up to another, oldest first."""
        found = []
        at = there.snapshot_by_id(until)
        while at is not None and at.snapshot_id != since:
            found.append(at)
            at = None if at.parent_snapshot_id is None else there.snapshot_by_id(at.parent_snapshot_id)
        if at is None:
            raise TableChangesError(
                str(self.table), f"snapshot {since}, which was read last, is no longer among those before {until}", _START_ANEW
            )
        return found[::-1]
