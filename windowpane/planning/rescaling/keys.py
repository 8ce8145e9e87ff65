"""The keys of a program, in the rows and entries of its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.engines.changes import Description
from windowpane.engines.deduplication.batch import key_names
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.join.windows import JoinWindowEngine
from windowpane.engines.nested_keys.writing import ENCODED
from windowpane.engines.over.program import OverProgram
from windowpane.engines.program import BucketProgram, Program
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.engines.rows import python_keys
from windowpane.hidden_columns import hidden
from windowpane.kernels.keys.coded_texts import spelled
from windowpane.planning.description.programs import read_back
from windowpane.planning.description.values import read_columns
from windowpane.state.codec import decode_key, encode_key
from windowpane.windowing.joins import WindowMatch

Key = tuple[Value, ...]


@dataclass(frozen=True)
class KeysOf:
    """The keys of the program that a description is of."""

    parts: Description

    @cached_property
    def program(self) -> BucketProgram:
        return read_back(self.parts)

    @cached_property
    def schema(self) -> pa.Schema:
        """The parts of keys, without the program where that is enough: lambdas do not read back."""
        if self.parts["kind"] == "windows":
            return read_columns(self.parts["keys"])
        program = self.program
        if isinstance(program, Program | RollingProgram | PointInTimeProgram):
            return program.keys
        if isinstance(program, OverProgram):
            return pa.schema([program.columns.field(name) for name in program.spec.partition_by])
        side: Any = program.left if isinstance(program, JoinProgram) else program
        return pa.schema([side.columns.field(name) for name in side.keys])

    def columns(self, name: str) -> list[str]:
        """Return the columns of the key in rows of a layout."""
        program = self.program
        if isinstance(program, Program):
            return list(program.key_columns)
        if isinstance(program, DeduplicationProgram):
            return key_names(program)
        if isinstance(program, RollingProgram):
            return [hidden(f"key_{number}") for number in range(len(program.keys))]
        if isinstance(program, JoinProgram) and isinstance(program.match, WindowMatch):
            return JoinWindowEngine(program).key_columns
        if isinstance(program, JoinProgram) and name != "l":
            return list(program.right.keys)
        return list(self.schema.names)

    def encoded(self, given: Key) -> bytes | None:
        """Return a key as bytes, ``None`` if it has other parts; texts are read as what the parts of keys are."""
        types = self.schema.types
        if len(given) != len(types):
            return None
        parts = [
            pa.array([part]) if isinstance(part, str) else pa.array([part], kind) for part, kind in zip(given, types, strict=True)
        ]
        columns = [part.cast(kind) for part, kind in zip(parts, types, strict=True)]
        names = [str(number) for number in range(len(columns))]
        return encode_key(parts_of_keys(pa.table(columns, names=names), names)[0])

    def of(self, rows: pa.Table, names: Sequence[str]) -> pa.Table:
        """Return the keys of rows that have them in some columns, each part as a column."""
        if all(name in rows.column_names for name in names):
            return spelled(rows.select(names)).rename_columns(self.schema.names)
        parts = zip(*parts_of_keys(rows, names), strict=True) if rows.num_rows else [()] * len(names)
        columns = [pa.array(part, kind) for part, kind in zip(parts, self.schema.types, strict=True)]
        return pa.table(columns, self.schema.names)


def parts_of_keys(rows: pa.Table, names: Sequence[str]) -> list[tuple[Value, ...]]:
    """Return the key of each row; nested parts may be there as bytes alone."""
    columns = []
    for name in names:
        if name in rows.column_names:
            columns.append(python_keys(rows, [name]))
        else:
            columns.append([decode_key(each) for each in rows[ENCODED + name].to_pylist()])
    return list(zip(*columns, strict=True))
