"""One query with EMIT ON WINDOW CLOSE in windowpane's SQL on Spark: ``on_closing INPUT WORK QUERY``."""

from __future__ import annotations

from bench.nexmark.on_windowpane import run

QUERIES = frozenset({"q5", "q8", "q11"})
"""Those whose windows Flink emits once, when they close."""


if __name__ == "__main__":
    run(closes=True)
