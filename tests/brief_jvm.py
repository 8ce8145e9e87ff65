"""Options of a JVM that lives for seconds or minutes and runs queries of a few rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage, JVMView

_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
_PROCESSES = "-Djdk.lang.Process.launchMechanism=VFORK" if sys.platform == "linux" else ""

BRIEF = f"{_COMPILER} {_PROCESSES}".strip()
"""No optimizing compiler, whose work never pays; and a cheap way to start the processes by which Hadoop sets modes of files.

Without that compiler there is room for 48 MB of code, which a hundred queries fill: from then on nothing is compiled any more.
"""


def brief_settings(work: object, partitions: str = "2") -> dict[str, Any]:
    """Return the settings of a session of such a JVM: tiny batches are faster without generated code.

    Args:
        work: the folder that takes what Spark writes for itself.
        partitions: of a shuffle.
    """
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": BRIEF,
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": partitions,
        "spark.local.dir": f"{work}/scratch",
    }


_TOP = ("org", "java", "scala")
"""Packages that no import gives another meaning to."""


def remember_names() -> None:
    """Ask a JVM once what a name is: for ``org.apache.spark.sql`` it looks through hundreds of jars for classes of each part.

    A tenth of what the JVM did in the tests was that. What is a package, or a class, stays one, whatever jars are added.
    """
    for kind in (JavaPackage, JVMView):
        kind.__getattr__ = _remembering(kind.__getattr__)


def _remembering(ask: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def remembered(of: Any, name: str) -> Any:
        known: dict[str, Any] = of._gateway_client.__dict__.setdefault("names", {})
        place = f"{of._fqn}.{name}" if isinstance(of, JavaPackage) else name
        if place in known:
            return known[place]
        found = ask(of, name)
        if isinstance(of, JavaPackage) or isinstance(found, JavaClass) or name in _TOP:
            known[place] = found
        return found

    return remembered
