"""Processes that tests kill."""

from __future__ import annotations

import subprocess


def workers_of(session: int) -> list[int]:
    """Return the Python workers of Spark in a session of processes: daemons, what they forked, and those beside drivers."""
    listed = subprocess.run(["ps", "-eww", "-o", "pid=,sid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, sid, args in rows if int(sid) == session and "python" in args and "daemon" in args]
