"""A store of SQL views on disk: the scripts before and after it, the rows of its views, and DuckDB's file, packed."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from windowpane.sql import Session

FOLDER = Path(__file__).parent / "views"
PACKED = FOLDER / "store.duckdb.xz"
RESULTS = FOLDER / "results.json"

Views = dict[str, list[list[str]]]
"""The rows of every view, as PostgreSQL prints them, sorted."""


def run(store: Path, *scripts: str) -> Views:
    """Run scripts in a session on a store, and return the rows of all views after them."""
    with Session(store=str(store)) as session:
        for script in scripts:
            session.run((FOLDER / script).read_text())
        names = [row[0] for row in session.query("SHOW MATERIALIZED VIEWS").rows()]
        return {name: _rows(session, name) for name in names}


def _rows(session: Session, view: str) -> list[list[str]]:
    return sorted([str(value) for value in row] for row in session.query(f"SELECT * FROM {view}").text_rows())


def unpack(store: Path) -> None:
    """Unpack the store as a file."""
    store.write_bytes(lzma.decompress(PACKED.read_bytes()))


def write(folder: Path) -> None:
    """Write the store and the results of going on from it.

    Raises:
        SystemExit: a run that was never stopped gives other rows.
    """
    store, undisturbed = folder / "views.duckdb", folder / "undisturbed.duckdb"
    before = run(store, "before.sql")
    PACKED.write_bytes(lzma.compress(store.read_bytes()))
    after = run(store, "after.sql")
    if run(undisturbed, "before.sql", "after.sql") != after:
        raise SystemExit("the store that was closed in the middle gives other rows than one that was not")
    lines = json.dumps({"before": before, "after": after}, ensure_ascii=False)
    RESULTS.write_text(lines.replace("]], ", "]],\n").replace("}, ", "},\n") + "\n")
