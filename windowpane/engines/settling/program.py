"""The program of a settling: everything an engine needs to settle a changelog on a bucket, as one picklable value.

Input tables carry the columns of ``SettlingProgram.columns``, CHANGE_TYPE, and the system columns TIME, PARTITION and POSITION;
behind another operator also FIRING_WATERMARK. The main output has the columns, TIME and FIRING_WATERMARK; late changes have the
columns, CHANGE_TYPE, and why they are late.

The rule: a change waits until the watermark has passed the event time of its row. Then all changes of equal rows of one time are
counted, and a row that was inserted n times more than it was deleted is emitted n times. So what is emitted is the table that
the changelog makes, as far as the watermark says that it is final. A change at or below the watermark is late.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windowpane.engines.batch.late_rows import late_schema
from windowpane.engines.program import BucketProgram
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.windowing.outputs import CHANGE_TYPE


@dataclass(frozen=True)
class SettlingProgram(BucketProgram):
    keys: tuple[str, ...]  # the columns that say in which bucket a row is: equal rows meet
    columns: pa.Schema  # names and types of all columns of rows

    @property
    def main_schema(self) -> pa.Schema:
        return pa.schema([*self.columns, pa.field(TIME, pa.int64()), pa.field(FIRING_WATERMARK, pa.int64())])

    @property
    def waiting(self) -> pa.Schema:
        """The columns of changes that wait."""
        return pa.schema([*self.change_schema, pa.field(TIME, pa.int64())])

    @property
    def change_schema(self) -> pa.Schema:
        return pa.schema([*self.columns, pa.field(CHANGE_TYPE, pa.string())])

    @property
    def late_schema(self) -> pa.Schema:
        """The columns of late changes; as nobody asked for them, columns of such names are no reason to refuse a program."""
        changes, why = self.change_schema, late_schema(pa.schema([]))
        return changes if {*changes.names} & {*why.names} else late_schema(changes)
