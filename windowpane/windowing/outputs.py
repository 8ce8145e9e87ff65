"""What an operator emits: the words of a changelog, those of Spark's and Delta's change feeds, and the names of side outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from windowpane.arrays.values import Row

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

CHANGE_TYPE = "_change_type"
"""The column that says what a row of a changelog is."""

INSERT = "insert"
UPDATE_PREIMAGE = "update_preimage"
UPDATE_POSTIMAGE = "update_postimage"
DELETE = "delete"

APPEARING = frozenset({INSERT, UPDATE_POSTIMAGE})
"""Words of rows that exist afterwards. Each image of an update is taken by itself: the other may be in another partition."""
CHANGE_TYPES = APPEARING | {DELETE, UPDATE_PREIMAGE}

Schema: TypeAlias = "str | StructType"  # As DDL text or as PySpark's


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one row: ``before`` is absent for an insert, ``after`` for a delete."""

    before: Row | None
    after: Row | None

    def entries(self) -> Iterator[tuple[str, Row]]:
        if self.before is not None:
            yield (DELETE if self.after is None else UPDATE_PREIMAGE), self.before
        if self.after is not None:
            yield (INSERT if self.before is None else UPDATE_POSTIMAGE), self.after


@dataclass(frozen=True)
class OutputTag:
    """Names a side output, as Flink's OutputTag does.

    Args:
        name: the name, unique within a program.
        schema: for a side output that a process function writes to, its columns as a DDL string or StructType; late data
            needs none, it has the columns of the input.

    Example:
        >>> OutputTag("late")
        OutputTag(name='late', schema=None)
    """

    name: str
    schema: Schema | None = None
