"""What a columnar aggregate is: partial columns, lifted from rows, merged by group, finished into results.

Two kinds differ in how a group's partials become one. A kernel aggregate names a grouped kernel of Arrow for each partial column
and costs one pass over any number of groups. A segment aggregate is given all rows of each group together and computes its
columns with whole-array operations.

Rules, for every aggregate here: partials are Arrow columns whose names begin with the aggregate's prefix; merging partials of any
parts of the rows, in any grouping, gives what folding all rows at once does; results are those of the bound aggregates of
``windowing.aggregates`` (sums of doubles up to rounding). An aggregate that is ordered carries the arrival number of the rows in
its partials, so parts may be merged in any order, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.errors import InvalidSpecError
from windowpane.kernels.segments import Segments
from windowpane.windowing.aggregates import Aggregate, ColumnarCall
from windowpane.windowing.aggregates.canonical import is_array
from windowpane.windowing.aggregates.decimals import is_duration


@dataclass(frozen=True)
class Partial:
    """A partial column of a kernel aggregate: its name, the kernel that makes it from rows, and the one that merges it."""

    name: str
    fold: str
    merge: str


class ColumnarAggregate(ABC):
    """One aggregate over its partial columns, whose names begin with ``prefix``."""

    is_ordered: ClassVar[bool] = False
    """Whether the result depends on the order of arrival: rows then need the column ``ARRIVAL``."""
    takes_codes: ClassVar[bool] = False
    """Whether texts may be coded as in ``kernels.keys.coded_texts``, in all ``slots``; see ``coded_slots`` for some of them."""

    def __init__(self, prefix: str, slots: tuple[str, ...]) -> None:
        self.prefix = prefix
        self.slots = slots

    @property
    def coded_slots(self) -> tuple[str, ...]:
        """The columns whose texts may be coded as in ``kernels.keys.coded_texts``."""
        return self.slots if self.takes_codes else ()

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the partial columns."""

    @abstractmethod
    def finish(self, partials: pa.Table) -> pa.Array:
        """Return the result of each group."""

    def renumbered(self, partials: pa.Table, by: Integers) -> Mapping[str, pa.Array]:
        """Return the columns that hold arrival numbers, those of each row greater by a number of its own."""
        return {}

    def results(self, partials: pa.Table) -> list[pa.Array]:
        """Return the output columns: the result, or, of a function with several, one array each."""
        return [self.finish(partials)]


class KernelAggregate(ColumnarAggregate):
    """An aggregate whose partial columns fold and merge by grouped kernels."""

    sums: ClassVar[tuple[str, ...]] = ()
    """What the names of partial columns end with that are added up; where there are others, ``partials`` says so."""

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The partial columns."""
        return tuple(Partial(self.prefix + part, "sum", "sum") for part in self.sums)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(partial.name for partial in self.partials)

    def prepare(self, rows: pa.Table) -> dict[str, pa.Array]:
        """Return the arrays that the partial columns are folded from, by partial name."""
        return {partial.name: rows[self.slots[0]] for partial in self.partials}

    def normalise(self, partials: pa.Table) -> pa.Table:
        return partials


class SegmentAggregate(ColumnarAggregate):
    """An aggregate that is given the rows of each group together."""

    parts: ClassVar[tuple[str, ...]] = ("v",)
    """What the names of the partial columns end with."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.prefix + part for part in self.parts)

    @abstractmethod
    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        """Return the columns that ``fold`` is given, one value a row: by default the partials of each row alone."""

    def fold(self, lifted: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        """Return the partial columns of each group of lifted rows."""
        return self.merge(lifted, segments)

    @abstractmethod
    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        """Return the partial columns of each group of partials."""


_SCALARS = (
    pa.types.is_signed_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_boolean,
    pa.types.is_date32,
    pa.types.is_timestamp,
    pa.types.is_decimal128,
    is_duration,
)


def is_scalar(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _SCALARS)


def _is_known(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _is_known(kind.key_type) and _is_known(kind.item_type)
    if is_array(kind):
        return _is_known(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_known(field.type) for field in kind)
    return is_scalar(kind)


def columnar_form(
    aggregate: Aggregate, prefix: str, slots: tuple[str, ...], types: Sequence[pa.DataType]
) -> ColumnarAggregate | None:
    """Return the columnar form of an aggregate, ``None`` if it has none for arguments of these types."""
    definition = aggregate.definition
    if definition.columnar is None or not all(map(_is_known, types)):
        return None
    bound = aggregate.bind(types)
    form = definition.columnar(ColumnarCall(repr(aggregate), tuple(types), dict(aggregate.parameters), prefix, slots, bound))
    if form is not None and (not isinstance(form, ColumnarAggregate) or form.is_ordered != definition.ordered):
        raise InvalidSpecError(
            f"the columnar form of {aggregate.name} is {form!r}: it is a ColumnarAggregate with is_ordered={definition.ordered}, "
            "as the definition says."
        )
    return form
