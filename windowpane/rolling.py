"""The fluent API of rolling features: aggregates over windows that end now, for serving and for training.

``rolling(df, ...)`` -> ``by`` -> ``over`` -> ``edge``, ``hop``, ``step`` -> ``emit`` or ``at``. Every step returns a new value;
``emit`` and ``at`` resolve names and types against the DataFrame and refuse what cannot work.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.guidance import Guided, begins
from windowpane.planning.rolling import EDGES, RollingRequest, named_calls
from windowpane.result import Selectable
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.rolling import RollingEmit
from windowpane.windowing.times import Duration, to_micros
from windowpane.windowing.watermarks import Watermarks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowpane.spark.building.program import BuiltProgram
    from windowpane.spark.sources.arrow_rows import ArrowRows
    from windowpane.spark.sources.source import Source


@begins
def rolling(
    dataframe: DataFrame | ArrowRows,
    event_time: str,
    watermark: Duration | Watermarks | None = None,
    heartbeat: str | None = None,
    *,
    name: str = "windowpane",
) -> RollingStream:
    """Begin rolling features on a DataFrame.

    Args:
        dataframe: streaming or static, Spark classic or Connect.
        event_time: name of a timestamp column: rows count by it.
        watermark: how far behind the largest event time seen a row may still arrive, as ``withWatermark`` takes it, or a
            strategy: ``wp.Watermarks``. Leave it out where the DataFrame has a watermark already, and for a static one.
        heartbeat: name of a boolean column; rows where it is true move the watermark and count in no window.
        name: name of the operator in ``wp.progress(query).operators``.

    Returns:
        A stream to call ``by`` on.

    Raises:
        UnknownColumnError: there is no such column.

    Example:
        >>> wp.rolling(payments, event_time="at", watermark="10 minutes").by("card").over("1 hour", n=wp.count()).emit("changed")
    """
    from windowpane.spark.sources.source import Source

    return RollingStream(Source.of(dataframe, event_time, watermark, heartbeat, name))


@dataclass(frozen=True)
class RollingStream(Guided):
    """Rows of which features are made."""

    source: Source

    def by(self, *keys: str) -> RollingFeatures:
        """Compute features for each key: names of columns. NULL is a key as any other.

        Raises:
            InvalidSpecError: something else was given than names.
            UnknownColumnError: there is no such column.
        """
        if not keys or not all(isinstance(key, str) for key in keys):
            raise InvalidSpecError(f"by takes names of columns, such as by('card'), got {keys!r}.")
        return RollingFeatures(self.source, RollingRequest(self.source.require(keys, "by")))


@dataclass(frozen=True, eq=False)
class RollingFeatures(Guided):
    """Features of a key: add windows with ``over``, then ``emit`` them, or give them to labels with ``at``."""

    source: Source
    request: RollingRequest

    def over(self, *lengths: Duration, **calls: object) -> RollingFeatures:
        """Add windows that end now, and what is computed over them.

        Args:
            lengths: how far back they go; with several, names of features end with the length: ``n_24h``, ``n_7d``.
            calls: built-in aggregates by name, with ``.filter(condition)`` perhaps, and expressions over them, which Spark
                computes behind the operator: ``wp.sum("amount") / wp.count()``.

        Raises:
            InvalidSpecError: something else was given.

        Example:
            >>> features.over("1 hour", "7 days", n=wp.count(), big=wp.count().filter(F.col("amount") > 100))
        """
        added, results = named_calls(lengths, calls)
        return self._with(calls=(*self.request.calls, *added), results=(*self.request.results, *results))

    def edge(self, edge: Literal["exact", "hop"]) -> RollingFeatures:
        """Say where windows begin; left out, windows of up to a day are exact, longer ones begin at hops.

        Args:
            edge: ``"exact"``: rows decide; they are kept as long as the longest window. ``"hop"``: the window begins at the
                start of a tile, so it is up to one hop too long, and never too short.
        """
        if edge not in EDGES:
            raise InvalidSpecError(f"edge={edge!r}: it is one of {', '.join(map(repr, EDGES))}.")
        return self._with(edge=edge)

    def hop(self, hop: Duration) -> RollingFeatures:
        """Set the length of the tiles of all windows.

        Left out, it is 5 minutes for windows under 12 hours, an hour under 12 days, and a day above, as in Chronon. A window is
        a whole number of tiles.
        """
        return self._with(hop=to_micros(hop))

    def step(self, step: Duration) -> RollingFeatures:
        """Set the distance of ticks, at which features of silent keys go down; left out, it is the smallest hop.

        It is a multiple of the smallest hop.
        """
        return self._with(step=to_micros(step))

    def unbounded_state(self) -> RollingFeatures:
        """Allow aggregates that keep every value (``count_distinct``, ``median``, ...) over more than a day."""
        return self._with(keeps_unbounded_state=True)

    def side_output_late_data(self, tag: OutputTag | str) -> RollingFeatures:
        """Send the rows that no window can see any more to a side output: their columns, and why they were late.

        Args:
            tag: the side output, or its name.
        """
        if not isinstance(tag, OutputTag | str):
            raise InvalidSpecError(f"side_output_late_data takes an OutputTag or a name, such as 'late', got {tag!r}.")
        settings = dataclasses.replace(self.request.settings, late_tag=OutputTag(tag) if isinstance(tag, str) else tag)
        return self._with(settings=settings)

    def engine(self, name: str) -> RollingFeatures:
        """Run on this engine instead of the planner's choice: ``explain`` names it. ``"rolling reference"`` runs everything."""
        return self._with(settings=dataclasses.replace(self.request.settings, engine=name))

    def emit(
        self,
        mode: Literal["changed", "batch", "tick", "each"],
        *,
        on_empty: Literal["row", "delete"] = "row",
        corrections: bool = False,
        until: dt.datetime | None = None,
    ) -> RollingResult:
        """Say which rows are emitted: each has the keys, ``as_of``, and the features as of then.

        Args:
            mode: ``"changed"``: the keys of a batch, and at a tick the keys whose rows have left a window: the latest row of
                each key, for an online store. ``"batch"``: the keys of a batch only; silent keys keep their values. ``"tick"``:
                at each tick the keys that have changed since the one before, a history. ``"each"``: one row for each row of the
                input, once the watermark has passed it.
            on_empty: a key whose windows are all empty is emitted once more, with counts of 0 and NULLs (``"row"``), or, with
                ``"changed"``, as a ``"delete"`` in ``_change_type``.
            corrections: with ``"tick"``: ticks that were emitted are emitted again where a late row changes them, and the column
                ``revision`` is 1, 2, ... there; readers take the largest. Rows of revision 0 are those without corrections. A
                late row may bring as many rows as there are ticks in the longest window. The reference engine makes them.
            until: on a static DataFrame, the instant up to which features go down; left out, the first tick after the newest
                row, which Spark looks up at once.

        Raises:
            MissingWatermarkError: a stream without a watermark.
            TileMismatchError: a window or the step is no whole number of tiles.
            EdgeError: ``"each"`` with a hop edge.
            UnboundedStateError: an aggregate that keeps every value over more than a day.
            DuplicateColumnError: two columns of one name.
            InvalidSpecError: another word.

        Example:
            >>> online = features.emit("changed")
        """
        from windowpane.spark.building.rolling import build_rolling

        known = [each.value for each in RollingEmit]
        if mode not in known:
            raise InvalidSpecError(f"emit({mode!r}): it is one of {', '.join(map(repr, known))}.")
        if on_empty not in ("row", "delete"):
            raise InvalidSpecError(f"on_empty={on_empty!r}: it is 'row' or 'delete'.")
        if on_empty == "delete" and mode != "changed":
            raise InvalidSpecError(
                f"on_empty='delete' is for the latest row of each key, emit('changed'), which a table follows; emit({mode!r}) is "
                "no changelog."
            )
        if corrections and mode != "tick":
            raise InvalidSpecError(
                f"corrections=True is for a history of ticks, emit('tick'). With emit({mode!r}) late rows count from the next "
                "row of their key on."
            )
        if until is not None and self.source.is_streaming:
            raise InvalidSpecError("until= ends a static DataFrame; a stream ends where its watermark is.")
        return RollingResult(
            build_rolling(self.source, self.request, RollingEmit(mode), on_empty == "delete", until, corrects=corrections)
        )

    def at(
        self,
        labels: DataFrame,
        time: str,
        on: str | Sequence[str] | None = None,
        *,
        inclusive: bool = False,
        known_at: str | None = None,
    ) -> RollingResult:
        """Give labels the features of their keys as of their times: training data, from the definition that is used online.

        Columns are those of the labels, then the features; a column with the name of a feature gets ``label_`` before it. A label
        whose key has no rows gets counts of 0 and NULLs.

        Args:
            labels: a DataFrame, static if the rows of the features are, else a stream with a watermark (``withWatermark``).
                Labels of a stream wait until both watermarks have passed them, and are emitted once. One may be late by a tile;
                later ones go to the side output.
            time: name of its timestamp column.
            on: name(s) of its key columns; left out, those of ``by``.
            inclusive: let rows at the time of a label count, as in ``emit``; else only rows strictly before it do.
            known_at: name of a timestamp column of the rows that says when each was known: only what was known at the time of
                the label counts. Left out, event time decides, and a row counts even if it arrived late.

        Raises:
            InvalidSpecError: one of both is a stream, and the other is not, or types differ.
            MissingWatermarkError: a stream without a watermark.
            UnknownColumnError: there is no such column.

        Example:
            >>> training = features.at(labels, time="decided_at", on="card").df
        """
        from windowpane.spark.building.rolling import build_point_in_time

        keys = self.request.keys if on is None else (on,) if isinstance(on, str) else tuple(on)
        return RollingResult(build_point_in_time(self.source, self.request, labels, time, keys, inclusive, known_at))

    def _with(self, **parts: Value) -> RollingFeatures:
        return RollingFeatures(self.source, dataclasses.replace(self.request, **parts))


@dataclass(frozen=True, repr=False)
class RollingResult(Selectable):
    """Rolling features, ready to run: as DataFrames, or through ``start``.

    Columns of the main output: the keys, ``as_of``, the features, and with ``on_empty="delete"`` ``_change_type``. Those of
    ``at``: the columns of the labels, and the features.

    ``start`` with a ``history`` has its rows in the state before the first batch. None of them is emitted by itself
    (``history_results="emit"`` is refused): the first tick after the cut gives every key that has rows, and from then on rows are
    those of one stream over both. Source of the rule: Chronon's batch upload and streaming update of one GroupBy.
    """

    _built: BuiltProgram


__all__ = ["RollingFeatures", "RollingResult", "RollingStream", "rolling"]
