"""What an output of ``start`` is written to, once a batch: a path, a spec, or a function.

A sink is any callable ``(DataFrame, batch_id)``, or one of the specs here. ``start`` may hand the same batch to a sink again
after a crash, so a sink must be idempotent by batch id; those here are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from windowpane.connectors.object_stores import shown
from windowpane.errors import InvalidSpecError
from windowpane.state.pairs import Pair

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SinkFunction: TypeAlias = "Callable[[DataFrame, int], object]"
SparkOptions: TypeAlias = Mapping[str, str | int | float | bool | None]
"""Options of a reader or a writer of Spark's."""
BatchTrigger: TypeAlias = Mapping[str, str | bool]
"""When a query runs a batch, as Spark's ``trigger`` takes it: ``{"processingTime": "10 seconds"}``."""


@dataclass(frozen=True)
class Shaped:
    """A sink whose rows are shaped before it."""

    sink: Sink
    columns: tuple[tuple[str, str | None], ...]  # names of columns, each with the SQL expression that it is, ``None`` for itself


class Selectable:
    """A sink that can be given some columns of an output, or others that Spark computes of them."""

    def select(self, *columns: str, **computed: str) -> Shaped:
        """Return the sink for rows of these columns.

        Args:
            columns: names of columns of the output.
            computed: by the name of a new column its expression, in Spark's SQL.

        Raises:
            InvalidSpecError: there are none, or they are no names.

        Example:
            >>> late = wp.Files("out/late").select("key", missed="size(windows_missed)")
        """
        wrong = [each for each in (*columns, *computed.values()) if not isinstance(each, str)]
        if wrong or not (columns or computed):
            raise InvalidSpecError(
                f"select({', '.join(map(repr, wrong))}) of a sink takes names of columns, and by name expressions in SQL: "
                "select('key', missed='size(windows_missed)')."
            )
        return Shaped(self, (*((name, None) for name in columns), *computed.items()))


@dataclass(frozen=True)
class Files(Selectable):
    """Files below ``path``, in a folder of its own for each query and batch, so that a repeated batch overwrites itself.

    Read them back with ``spark.read.parquet(path)``; the folders show as the columns ``query`` and ``batch``, or ``query_2`` and
    ``batch_2`` where rows have a column of such a name.

    Example:
        >>> result.start(main=Files("out/hourly"), late=Files("out/late", format="json"), checkpoint="ckpt")
    """

    path: str  # folder, on any file system Spark can write; or ``s3://``, ``gs://``, ``abfss://``, which tasks write by pyarrow
    format: str = "parquet"  # ``"parquet"``, ``"json"``, ``"csv"``, ``"orc"``,
    options: Mapping[str, str] = field(default_factory=dict)  # of the writer

    def __repr__(self) -> str:
        return f"Files({shown(self.path)!r}, {self.format!r})"


def folder_columns(columns: Iterable[str]) -> tuple[str, str]:
    """Return the columns that the folders of ``Files`` are when these are read: names that no column of the rows has."""
    taken = {name.lower() for name in columns}
    numbered = ((f"query{suffix}", f"batch{suffix}") for suffix in ("", *(f"_{number}" for number in range(2, len(taken) + 3))))
    return next(pair for pair in numbered if taken.isdisjoint(pair))


@dataclass(frozen=True)
class DeltaTable(Selectable):
    """Appends to a Delta table at ``path``; Delta itself drops a batch it has already seen from this query."""

    path: str  # folder of the table
    options: Mapping[str, str] = field(default_factory=dict)  # of the writer


@runtime_checkable
class KeyedSink(Protocol):
    """A sink that needs some columns of its rows."""

    @property
    def needs(self) -> Mapping[str, Sequence[str]]:
        """These columns, by what they are to it, as an error names that."""


class NumberedSink(Protocol):
    """A sink of one query that keeps the number of the last batch that it has taken."""

    @property
    def taker(self) -> str:
        """What it is, as an error names it; without secrets."""

    @property
    def way_out(self) -> str:
        """What to do where it and the checkpoint do not belong together."""

    def taken(self, dataframe: DataFrame) -> int:
        """Return the number of the last batch, ``pairs.NONE`` if there is none, with any DataFrame of the session."""

    def take(self, dataframe: DataFrame, number: int, pair: Pair, settled: int) -> None:
        """Write a batch, and its number, unless it has it; ``settled`` is the last one that it must have.

        Raises:
            MisplacedStateError: it is not in step with the checkpoint.
        """


@runtime_checkable
class QuerySink(Protocol):
    """A sink that numbers batches by query, and has to know which one it is of."""

    def for_query(self, read: Callable[[DataFrame], str]) -> NumberedSink:
        """Return the sink for one query, whose id ``read`` returns with a DataFrame of its session."""


Sink: TypeAlias = "SinkFunction | Selectable | Shaped | str"
"""A callable, a spec, what ``select`` of a spec returns, or a path, which means ``Files(path)``."""
