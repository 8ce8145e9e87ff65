"""Runs TPC-H as views, and says what each batch cost: ``python -m tests.sql.tpch SCALE [STORE]``."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from tests.sql.tpch.rounds import QUERIES, Rounds, generate
from windowpane.sql import Session


def main(scale: float, store: str) -> None:
    """Keep all views up to date, compare each after each flush, and end with the most memory that the process had."""
    with tempfile.TemporaryDirectory() as folder, Session(store) as session, duckdb.connect(f"{folder}/oracle.duckdb") as oracle:
        data = Path(folder)
        generate(scale, data)
        oracle.execute("SET memory_limit = '300MB'")
        rounds = Rounds(session, oracle, data, parts=4)
        rounds.views(list(QUERIES))
        began = time.process_time()
        for step in rounds.run():
            print(f"{step}: {time.process_time() - began:.1f} s of processor time")
            rows = {name: rounds.compare(name) for name in QUERIES}
            began = time.process_time()
    print(", ".join(f"{name} {count}" for name, count in rows.items()))
    print(f"all equal; at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ":memory:")
