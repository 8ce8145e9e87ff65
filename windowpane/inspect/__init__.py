"""Looking into what runs: a checkpoint, or a harness, as a few Arrow tables, read without Spark and without writing.

``holders`` says who holds state. ``checkpoints`` reads Spark's files (``sorted_tables``, ``change_logs``), also of a query that
runs; ``buckets`` finds the program and engine of each bucket, and engines list their own state. ``tables`` says which tables
there are; the command line, the page and metrics show these.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowpane.inspect.holders import Holder
    from windowpane.inspect.inspection import Inspection


def inspect(checkpoint: Any, most: int = 1000) -> Inspection:
    """Return what a query holds and does, as Arrow tables, from its checkpoint.

    Nothing is written, and a query that runs is not disturbed. All tables are of the last committed batch. A program in a test is
    looked into by its harness, views of SQL without Spark by their session or the DuckDB file of the store.

    Args:
        checkpoint: a checkpoint location, such as ``"checkpoints/hourly"`` or ``"s3://bucket/hourly"``; or a harness of
            ``windowpane.testing``, a SQL session, or the DuckDB file that it has closed: their tables are those of the state now.
        most: how many windows, keys and batches a table shows at most.

    Returns:
        An object whose attributes are the tables ``query``, ``watermarks``, ``windows``, ``keys``, ``timers``, ``late``,
        ``state``, ``batches``, ``over``, ``join``, ``rolling``, ``deduplication``, ``patterns``, ``nodes`` and ``between``;
        ``contents(key=, window=)`` has what a window or a key holds.

    Raises:
        MissingCheckpointError: there is no checkpoint at that place.
        InvalidSpecError: the keys of a harness have values of several types; the views of a session run on Spark.
        UnreadableStateError: its files are damaged, or of a form that only Spark reads; another process has the store open.

    Example:
        >>> import windowpane as wp
        >>> wp.inspect("checkpoints/hourly").windows.to_pandas()
    """
    from windowpane.inspect.inspection import Inspection  # with all engines, which workers do not need

    return Inspection(holder_of(checkpoint), most)


def holder_of(place: Any) -> Holder:
    """Return who holds the state that is looked into; see ``inspect``."""
    from windowpane.inspect.checkpoints import Checkpoint
    from windowpane.inspect.holders import Holds

    if isinstance(place, Holds):
        return place.holder()
    is_session = hasattr(place, "steps")
    if is_session or ("://" not in str(place) and Path(str(place)).is_file()):
        from windowpane.inspect.stores import Store

        return Store(place if is_session else str(place))
    return Checkpoint(str(place))
