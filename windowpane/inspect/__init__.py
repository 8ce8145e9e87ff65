"""Looking into what runs: a checkpoint, or a harness, as a few Arrow tables, read without Spark and without writing.

``holders`` says who holds state. ``checkpoints`` reads Spark's files (``sorted_tables``, ``change_logs``), also of a query that
runs; ``buckets`` finds the program and engine of each bucket, and engines list their own state. ``tables`` says which tables
there are; the command line, the page and metrics show these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowpane.inspect.inspection import Inspection


def inspect(checkpoint: Any, most: int = 1000) -> Inspection:
    """Return what a query holds and does, as Arrow tables, from its checkpoint.

    Nothing is written, and a query that runs is not disturbed. All tables are of the last committed batch. A program in a test is
    looked into by its harness.

    Args:
        checkpoint: a checkpoint location, such as ``"checkpoints/hourly"`` or ``"s3://bucket/hourly"``; or a harness of
            ``windowpane.testing``, whose tables are those of its state now.
        most: how many windows, keys and batches a table shows at most.

    Returns:
        An object whose attributes are the tables ``query``, ``watermarks``, ``windows``, ``keys``, ``timers``, ``late``,
        ``state``, ``batches``, ``over``, ``join``, ``rolling``, ``deduplication`` and ``patterns``; ``contents(key=, window=)``
        has what a window or a key holds.

    Raises:
        MissingCheckpointError: there is no checkpoint at that place.
        InvalidSpecError: the keys of a harness have values of several types.
        UnreadableStateError: its files are damaged, or of a form that only Spark reads.

    Example:
        >>> import windowpane as wp
        >>> wp.inspect("checkpoints/hourly").windows.to_pandas()
    """
    from windowpane.inspect.checkpoints import Checkpoint  # with all engines, which workers do not need
    from windowpane.inspect.holders import Holds
    from windowpane.inspect.inspection import Inspection

    return Inspection(checkpoint.holder() if isinstance(checkpoint, Holds) else Checkpoint(str(checkpoint)), most)
