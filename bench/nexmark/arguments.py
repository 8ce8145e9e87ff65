"""What the process of one system is given."""

from __future__ import annotations

import sys
from pathlib import Path


def given() -> tuple[Path, Path, str]:
    """Return the folder with the events, the folder to work in, and the name of the query."""
    folder, work, query = sys.argv[1:]
    return Path(folder), Path(work), query
