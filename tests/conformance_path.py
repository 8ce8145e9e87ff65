"""Where the conformance vectors are: WINDOWPANE_CONFORMANCE, else ../shared/conformance beside the project.

A plain function beside the fixture, because parametrized tests need the folder at collection.
"""

import os
from pathlib import Path

VARIABLE = "WINDOWPANE_CONFORMANCE"
FALLBACK = Path(__file__).resolve().parents[2] / "shared" / "conformance"
ABSENT = f"conformance vectors absent: set {VARIABLE}"


def find_conformance_root() -> Path | None:
    """Return the folder of the vectors, or None where there is none.

    Raises:
        NotADirectoryError: The variable names no folder; skipping would hide a typing error.
    """
    named = os.environ.get(VARIABLE)
    if named is None:
        return FALLBACK if FALLBACK.is_dir() else None
    if not Path(named).is_dir():
        raise NotADirectoryError(f"{VARIABLE}={named!r} is not a folder; correct it, or unset it to skip")
    return Path(named)
