"""A PySpark daemon whose workers start with windowpane, pandas and pyarrow imported.

Spark starts one daemon an executor, which forks a worker for each task that runs at the same time. PySpark's own daemon leaves
imports to the workers: more than a second of processor time each. Choose this one when the session is made, with
``spark.python.daemon.module=windowpane.spark.daemon``; windowpane must be installed where executors run. In a local session it
runs anyway, see ``forked_workers``.
"""

from __future__ import annotations

import socket

from pyspark import daemon

from windowpane.spark.internals.worker import freeze_imported, import_needed

_work = daemon.worker


def main() -> None:
    """Import what every worker needs, then run PySpark's daemon."""
    import_needed()
    freeze_imported()  # workers share these objects for as long as nothing looks at them
    daemon.worker = worker
    daemon.manager()


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Run tasks as PySpark's worker does; where Spark has gone meanwhile nobody reads what it says, and it says nothing."""
    try:
        return _work(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    main()
