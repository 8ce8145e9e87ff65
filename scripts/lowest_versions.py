"""Print a constraints file with the lowest version of every direct dependency that pyproject.toml allows, extras included.

Argument: the extras to leave out, with a comma between them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
LOWEST = re.compile(r"(?P<name>[\w.-]+)(\[[\w,]+\])?(>=|==)(?P<version>[\w.]+)")


def lowest_versions(left_out: set[str]) -> list[str]:
    """Return a line for each dependency, in order of their names."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    extras = project["optional-dependencies"]
    groups = [project["dependencies"], *(extras[name] for name in extras if name not in left_out)]
    found = (LOWEST.match(requirement) for group in groups for requirement in group)
    return sorted({f"{match['name']}=={match['version']}" for match in found if match})


if __name__ == "__main__":
    print("\n".join(lowest_versions(set(sys.argv[1].split(",")) if len(sys.argv) > 1 else set())))
