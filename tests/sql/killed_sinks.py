"""``python -m tests.sql.killed_sinks FOLDER WORK URL ENGINE [SEED]``: a session with sinks takes all files, until done or killed.

The engine is ``spark`` or ``embedded``. With a seed, deliveries and the batches of views kill the process before or after they
ran, one call in ``ODDS``, by the seed.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

from tests.spark.killed_sinks_program import dangerous
from tests.sql.killed_streams import SOURCE, VIEWS
from windowpane.sql import Session
from windowpane.sql.embedded.outbox import Outbox
from windowpane.sql.embedded.sinks import Delivery
from windowpane.sql.on_spark.view_batches import ViewBatches

KEYS = "SELECT k, max(v) AS high FROM trades GROUP BY k"
"""The query of a sink that has one of its own."""
LARGE = "SELECT k, v, at FROM trades WHERE v > 900"
"""Another one, whose rows go through the store on Spark, as those of closed windows do."""


def endanger(seed: int) -> None:
    """Make deliveries, and the way to them, dangerous."""
    chance = random.Random(seed)
    for owner, name in ((Delivery, "_write"), (Outbox, "delivered"), (Outbox, "put"), (ViewBatches, "_took")):
        setattr(owner, name, dangerous(chance, getattr(owner, name)))


def session_of(engine: str) -> Any:
    """Return a session of Spark, or none."""
    if engine == "embedded":
        return None
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": False,
        "spark.sql.session.timeZone": "UTC",
    }
    return SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()


def link(file: Path, folder: Path) -> None:
    """Link a file into a folder, unless it is there."""
    if not (folder / file.name).exists():
        (folder / file.name).hardlink_to(file)


def main(folder: str, work: str, url: str, engine: str, *seed: str) -> None:
    spark, feed = session_of(engine), Path(work) / "feed"
    feed.mkdir(exist_ok=True)
    if seed:
        endanger(int(seed[0]))
    sinks = {
        "duck": f"FROM totals WITH (connector = 'duckdb', path = '{work}/sink.duckdb', table = 'totals')",
        "server": f"FROM totals WITH (connector = 'postgres', url = '{url}', table = 'totals_sink')",
        "changes": f"FROM totals WITH (connector = 'parquet', path = '{work}/totals')",
        "minutes_sink": f"FROM minutes WITH (connector = 'parquet', path = '{work}/minutes')",
        "high": f"AS {KEYS} WITH (connector = 'postgres', url = '{url}', table = 'high_sink')",
        "large": f"AS {LARGE} WITH (connector = 'parquet', path = '{work}/large')",
        "closed": f"AS {VIEWS['minutes']} WITH (connector = 'parquet', path = '{work}/closed')",
    }
    files = sorted(Path(folder).iterdir())
    with Session(spark, f"{work}/views.duckdb") as session:
        if not session.relations():
            link(files[0], feed)  # which shows the columns
            source = SOURCE.format(folder=feed)
            session.run(source if spark is not None else source.replace(", maxFilesPerTrigger = '1'", ""))
        for name in ("totals", "minutes"):
            session.run(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {name} AS {VIEWS[name]}")
        for name, sink in sinks.items():
            session.run(f"CREATE SINK IF NOT EXISTS {name} {sink}")
        for file in files:
            link(file, feed)
            session.run("FLUSH")
        session.run("FLUSH")


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main(*sys.argv[1:])
