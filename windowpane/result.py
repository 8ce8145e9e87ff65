"""Results: a program of either fluent API, ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from windowpane.errors import InvalidSpecError, SparkGoneError
from windowpane.guidance import Guided
from windowpane.planning.sinks import Sink
from windowpane.windowing.tags import OutputTag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from windowpane.spark.building.program import BuiltProgram


class Runnable(Guided):
    """A program ready to run: its outputs as DataFrames, or one query with a sink for each."""

    _built: BuiltProgram
    """Set by the classes of results; a step of the fluent API that is a result already builds it when an output is first used."""

    def __repr__(self) -> str:
        return self.explain()

    @cached_property
    def df(self) -> DataFrame:
        """The main output, for any sink. Starting it and a side output as two queries runs the program twice: see ``start``.

        A program that waits for the clock ends ``availableNow`` runs by itself here too, but not on Spark Connect, whose client
        cannot see the trigger of a query: use ``start`` there.
        """
        main: DataFrame = self._built.output("main")
        return main

    def get_side_output(self, tag: OutputTag | str) -> DataFrame:
        """Return a side output as a DataFrame; of windows over results also one of an earlier operator.

        Raises:
            UndeclaredSideOutputError: it is not declared.
        """
        side: DataFrame = self._built.output(tag if isinstance(tag, str) else tag.name)
        return side

    def start(
        self,
        *unnamed: Any,
        checkpoint: str | None = None,
        trigger: Mapping[str, Any] | None = None,
        query_name: str | None = None,
        flush_at_end: bool = False,
        **sinks: Sink,
    ) -> StreamingQuery:
        """Start one query that writes several outputs, with the state kept once.

        Args:
            unnamed: refused: a sink is given by the name of its output.
            checkpoint: checkpoint location; a temporary one if left out, with a warning: no restart can continue from it.
            trigger: as ``DataStreamWriter.trigger`` takes it, for example ``{"availableNow": True}``; such a run ends by
                itself, also for programs that wait for the clock.
            query_name: name of the query.
            flush_at_end: with ``availableNow``: when all rows are taken, close the windows that are still open, and end the
                stream. ``start`` then returns when that is done, and refuses to start from this checkpoint again.
            sinks: by output name (``main``, or the name of a side output): a path, a sink spec, or a callable
                ``(DataFrame, batch_id)``. A batch repeated after a crash reaches a sink again with the same batch id. Of windows
                over results, the side outputs of each operator can be written; where two have one name, by ``operator.name``.

        Returns:
            The ``StreamingQuery``.

        Raises:
            UnknownOutputError: a sink for an output that there is not.
            InvalidSpecError: a sink without a name; the DataFrame is static: write ``df`` instead; a trigger that is none of
                Spark's.
            RunningCheckpointError: a query with this checkpoint runs already.
            SparkGoneError: the JVM of the session was killed, or has ended.
            EndedStreamError: ``flush_at_end`` has ended the stream of this checkpoint.

        Example:
            >>> result.start(main="out/hourly", late="out/late", checkpoint="ckpt", trigger={"availableNow": True})
        """
        from windowpane.spark.queries.running import start

        if unnamed:
            raise InvalidSpecError(
                f"start({unnamed[0]!r}): a sink is given by the name of its output, start(main={unnamed[0]!r})."
            )
        with SparkGoneError.instead():
            query: StreamingQuery = start(self._built, sinks, checkpoint, trigger, query_name, flush_at_end)
        return query

    def explain(self) -> str:
        """Return the plan as text: which engine runs it, and why."""
        return self._built.explain()
