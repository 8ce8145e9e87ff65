"""One query as a sink of Parquet files in windowpane's SQL on Spark: ``on_sink INPUT WORK QUERY``."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from bench.nexmark import on_fluent
from bench.nexmark.on_windowpane import run


def kept(work: Path) -> pa.Table:
    """Return the rows that are there when the job has ended, without the hidden columns of their key."""
    found = on_fluent.kept(work)
    return found.select([name for name in found.column_names if not name.startswith("_")])


if __name__ == "__main__":
    run(into_files=True)
