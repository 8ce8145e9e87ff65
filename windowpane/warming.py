"""Warming up: the Python workers of a session start while its first query is still put together."""

from __future__ import annotations

from threading import Thread
from typing import Any


def warm_up(spark: Any) -> Thread:
    """Start the Python workers of a session in the background.

    A session that is made for one query starts its Python workers when the first batch waits for them, and they import pandas,
    pyarrow and windowpane for seconds. Called right after the session is made, this lets a small job of its own, in the job group
    ``windowpane.warm_up``, do so while the query is put together and planned. On two cores, a job that took 13 seconds from its
    session to its end was done a second earlier. Where sessions live long it saves little, and on a cluster it
    reaches the executors that are running, one task a core.

    Args:
        spark: the session, Spark classic or Connect.

    Returns:
        The thread that waits for the job, which a caller may join. If the job fails, the thread ends all the same: the query
        will raise what is wrong with the workers.

    Example:
        >>> spark = SparkSession.builder.getOrCreate()
        >>> wp.warm_up(spark)
        >>> wp.stream(bids, event_time="at", watermark="5 seconds")
    """
    from windowpane.spark.internals.worker import warm_workers
    from windowpane.spark.session.worker_python import fork_driver_workers

    fork_driver_workers(spark)
    thread = Thread(target=warm_workers, args=(spark,), name="windowpane-warm-up", daemon=True)
    thread.start()
    return thread
