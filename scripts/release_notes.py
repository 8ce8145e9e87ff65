"""Print the changelog of a version: what its tag says."""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parent.parent / "CHANGELOG.md"


def notes(text: str, version: str) -> str:
    """Return the section of a version, its heading as the first line.

    Raises:
        SystemExit: the changelog has no section of it.
    """
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        if version in re.split(r"[\s\[\]-]+", heading):
            return f"windowpane {version}\n\n{body.strip()}\n"
    sys.exit(f"error: CHANGELOG.md has no section of {version}.")


if __name__ == "__main__":
    print(notes(CHANGELOG.read_text(), sys.argv[1]), end="")
