"""Grouped fold: rows -> one row of partials a group -> fewer rows of partials -> results.

A step is one pass of Arrow's group_by, or, where the rows of each group are known, one reduction of each column.

Invariant: a table of partials has the group columns, then every partial column of every aggregate, normalised; folding rows in
any number of parts and merging gives what folding them at once does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Self

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat, replaced
from windowpane.hidden_columns import ARRIVAL, hidden
from windowpane.kernels.aggregates.protocol import ColumnarAggregate, KernelAggregate, Partial, SegmentAggregate, columnar_form
from windowpane.kernels.grouping.coded_groups import Groups, coded_groups
from windowpane.kernels.grouping.group_folds import counted, folded, is_folded
from windowpane.kernels.grouping.hashed_groups import hashed_groups
from windowpane.kernels.keys.coded_texts import CodedTexts, are_coded
from windowpane.kernels.segments import Runs, Segments
from windowpane.sizes import Size
from windowpane.windowing.aggregates import Aggregate

_ROW = hidden("row")

Step = tuple[str | list[str], str]
"""A column, none for ``count_all``, and the kernel that folds it."""

FEW_WITH_NULLS = Size("places that a hash table finds as fast where there are nulls", 1 << 17, (0, 8))
"""numpy reads a column with nulls several times, a hash table reads all once."""


@dataclass(frozen=True)
class GroupedFold:
    aggregates: tuple[ColumnarAggregate, ...]

    @classmethod
    def of(cls, aggregates: Sequence[tuple[str, Aggregate, tuple[str, ...]]], types: pa.Schema) -> Self | None:
        """Return the fold of (output name, aggregate, columns of its arguments), ``None`` if one has no columnar form."""
        found = []
        for number, (_, aggregate, slots) in enumerate(aggregates):
            kinds = [types.field(slot).type for slot in slots]
            found.append(columnar_form(aggregate, hidden(f"{number}_"), slots, kinds))
        parts = tuple(part for part in found if part is not None)
        return cls(parts) if parts and len(parts) == len(found) else None

    @property
    def is_ordered(self) -> bool:
        """Whether a result depends on the order of arrival: ``fold`` then needs rows with the column ``ARRIVAL``."""
        return any(aggregate.is_ordered for aggregate in self.aggregates)

    @cached_property
    def _kernels(self) -> tuple[KernelAggregate, ...]:
        return tuple(each for each in self.aggregates if isinstance(each, KernelAggregate))

    @cached_property
    def _segmented(self) -> tuple[SegmentAggregate, ...]:
        return tuple(each for each in self.aggregates if isinstance(each, SegmentAggregate))

    @cached_property
    def _partials(self) -> tuple[Partial, ...]:
        return tuple(chain.from_iterable(aggregate.partials for aggregate in self._kernels))

    @cached_property
    def _read(self) -> frozenset[str]:
        return frozenset(chain([ARRIVAL], *(aggregate.slots for aggregate in self.aggregates)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the partial columns of all aggregates, in the order of a table of partials."""
        return tuple(chain.from_iterable(aggregate.columns for aggregate in (*self._kernels, *self._segmented)))

    def fold(
        self, rows: pa.Table, groups: Sequence[str], counted: str | None = None, kept: Sequence[tuple[str, str]] = ()
    ) -> pa.Table:
        """Return the partials of ``rows`` by the columns ``groups``; ``kept``: further columns, and the kernels they fold by."""
        columns: dict[str, pa.Array] = {name: rows[name] for name in (*groups, *(name for name, _ in kept))} | self._lifted(rows)
        steps: list[Step] = [([], p.fold) if p.fold == "count_all" else (p.name, p.fold) for p in self._partials]
        extra: list[tuple[str, Step]] = [] if counted is None else [(counted, ([], "count_all"))]
        extra += [(name, (name, how)) for name, how in kept]
        return self._grouped(pa.table(columns), groups, steps, extra, is_fold=True)

    def fold_segments(self, rows: pa.Table, segments: Segments) -> pa.Table:
        """Return the partials of ``rows``, one row a segment, without group columns."""
        rows = rows.select([name for name in rows.column_names if name in self._read]).take(pa.array(segments.order))
        segments = Runs.at(segments.offsets)
        named: list[Step] = [(p.name, p.fold) for p in self._partials if p.fold != "count_all"]
        lifted, coded = _by_code(pa.table(self._lifted(rows)), (), named)
        steps = [(p.name, None if p.fold == "count_all" else lifted[p.name], p.fold) for p in self._partials]
        found = self._reduced(steps, segments)
        for name, texts in coded.items():
            found[name] = texts.spelled(found[name])
        for segmented in self._segmented:
            found |= segmented.fold(lifted, segments)
        return pa.table(found)

    def merge_segments(self, partials: pa.Table, segments: Segments) -> pa.Table:
        """Return partials merged, one row a segment, without group columns."""
        found = self._reduced([(p.name, partials[p.name], p.merge) for p in self._partials], segments)
        for segmented in self._segmented:
            found |= segmented.merge(partials, segments)
        return pa.table(found)

    def merge(self, partials: Sequence[pa.Table], groups: Sequence[str], kept: Sequence[tuple[str, str]] = ()) -> pa.Table:
        """Return the partials of all tables together; ``kept`` are further columns, each with the kernel it merges by."""
        steps: list[Step] = [(p.name, p.merge) for p in self._partials]
        return self._grouped(pa.concat_tables(partials), groups, steps, [(name, (name, how)) for name, how in kept])

    def renumbered(self, partials: pa.Table, by: Integers) -> pa.Table:
        """Return partials whose rows arrived later, those of each row by a number of its own."""
        for aggregate in self.aggregates:
            for name, column in aggregate.renumbered(partials, by).items():
                partials = replaced(partials, name, column)
        return partials

    def _lifted(self, rows: pa.Table) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for aggregate in self._kernels:
            columns |= aggregate.prepare(rows)
        for segmented in self._segmented:
            columns |= segmented.lift(rows)
        return columns

    def _reduced(self, steps: Sequence[tuple[str, pa.Array, str]], segments: Segments) -> dict[str, pa.Array]:
        found = {name: counted(segments) if column is None else folded(column, how, segments) for name, column, how in steps}
        others = [(name, column, how) for name, column, how in steps if found[name] is None]
        if others:
            found |= _by_number(others, segments)
        return self._normalised(found)

    def _normalised(self, partials: dict[str, pa.Array]) -> dict[str, pa.Array]:
        table = pa.table(partials)
        for aggregate in self._kernels:
            table = aggregate.normalise(table)
        return dict(zip(table.column_names, table.columns, strict=True))

    def _grouped(
        self,
        table: pa.Table,
        groups: Sequence[str],
        steps: Sequence[Step],
        extra: Sequence[tuple[str, Step]],
        is_fold: bool = False,
    ) -> pa.Table:
        asked = dict(zip((p.name for p in self._partials), steps, strict=True)) | dict(extra)
        table, coded = _by_code(table, groups, [*asked.values()])
        known = self._known_groups(table, groups, [*asked.values()])
        if known is not None:
            members = pa.array(known.members)
            found: dict[str, pa.Array] = {name: flat(table[name]).take(members) for name in groups}
            found |= {name: _applied(table, step, known) for name, step in asked.items()}
            segments = known if isinstance(known, Segments) else None
        else:
            rows: list[Step] = [(_ROW, "list")] if self._segmented else []
            numbered = table.append_column(_ROW, pa.array(np.arange(table.num_rows))) if rows else table
            grouped = numbered.group_by(list(groups), use_threads=False).aggregate([*asked.values(), *rows]).combine_chunks()
            # Arrow puts the groups first, then the steps in their order.
            found = dict(zip((*groups, *asked, *(_ROW for _ in rows)), grouped.columns, strict=True))
            segments = Segments.of(found.pop(_ROW).combine_chunks()) if rows else None
        partials = self._normalised({p.name: found.pop(p.name) for p in self._partials})
        if segments is not None:
            for segmented in self._segmented:
                partials |= segmented.fold(table, segments) if is_fold else segmented.merge(table, segments)
        kept = {name: found.pop(name) for name, _ in extra}
        result = pa.table(found | partials | kept).combine_chunks()
        for name, texts in coded.items():
            result = replaced(result, name, texts.spelled(result[name]))
        return result

    def _known_groups(self, table: pa.Table, groups: Sequence[str], steps: Sequence[Step]) -> Groups | None:
        """Return the rows of each group where that is faster than Arrow's hash table, and every step has a form on them."""
        is_folded_so = all(how == "count_all" or is_folded(table.schema.field(name).type, how) for name, how in steps)
        if not is_folded_so or not groups:
            return None
        columns = [table[name] for name in groups]
        if self._segmented:
            found = coded_groups(columns, is_numbered=False)
            return None if found is None else found.segments()
        coded = coded_groups(columns)
        has_nulls = any(table[name].null_count for name, _ in steps if isinstance(name, str))
        if coded is not None:
            return None if has_nulls and coded.most <= FEW_WITH_NULLS.value else coded
        return None if has_nulls else hashed_groups(columns)

    def finish(self, partials: pa.Table) -> list[pa.Array]:
        return list(chain.from_iterable(aggregate.results(partials) for aggregate in self.aggregates))


def _by_code(table: pa.Table, groups: Sequence[str], steps: Sequence[Step]) -> tuple[pa.Table, dict[str, CodedTexts]]:
    """Return a table with codes where steps or groups have coded texts, and the texts of the results that are codes, too."""
    coded: dict[str, CodedTexts] = {}
    for name, how in (*((name, "group") for name in groups), *steps):
        if not isinstance(name, str) or not are_coded(table.schema.field(name).type):
            continue
        if how == "count":
            table = replaced(table, name, flat(table[name]).indices)
            continue
        texts = CodedTexts.of(table[name]) if how == "group" else CodedTexts.in_order(table[name])
        if texts is None:
            table = replaced(table, name, table[name].cast(table[name].type.value_type))
        else:
            table, coded[name] = replaced(table, name, texts.codes), texts
    return table, coded


def _by_number(steps: Sequence[tuple[str, pa.Array, str]], segments: Segments) -> dict[str, pa.Array]:
    table = pa.table({_ROW: segments.numbers, **{name: segments.gather(column) for name, column, _ in steps}})
    grouped = table.group_by([_ROW], use_threads=False).aggregate([(name, how) for name, _, how in steps])
    grouped = grouped.rename_columns([_ROW, *(name for name, _, _ in steps)]).combine_chunks()
    grouped = grouped.take(pa.array(np.argsort(grouped[_ROW].to_numpy())))
    return {name: flat(grouped[name]) for name, _, _ in steps}


def _applied(table: pa.Table, step: Step, groups: Groups) -> pa.Array | None:
    name, how = step
    return counted(groups) if how == "count_all" else folded(table[name], how, groups)
