"""Options of a JVM that lives for seconds or minutes and runs queries of a few rows."""

from __future__ import annotations

import sys

_COMPILER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_PROCESSES = "-Djdk.lang.Process.launchMechanism=VFORK" if sys.platform == "linux" else ""

BRIEF = f"{_COMPILER} {_PROCESSES}".strip()
"""No optimizing compiler, whose work never pays; and a cheap way to start the processes by which Hadoop sets modes of files."""
