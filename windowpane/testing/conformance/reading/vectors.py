"""Vector files to cases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windowpane.testing.conformance.reading.fields import Json, with_limits


@dataclass(frozen=True)
class Case:
    """One case of a vector file; ``body`` is its JSON with times as integers, ``glossary`` belongs to the file."""

    file: Path
    id: str
    kind: str
    body: Json
    glossary: Json

    def get(self, field: str, default: Any = None) -> Any:
        """Return a field of the case."""
        return self.body.get(field, default)


def find_files(paths: Sequence[Path]) -> list[Path]:
    """Return the given files, and all JSON files below the given folders, in order of their names.

    Raises:
        FileNotFoundError: a path is neither, or a folder holds no vectors.
    """
    files: list[Path] = []
    for path in paths:
        found = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        if not found or not all(file.is_file() for file in found):
            raise FileNotFoundError(f"{path} holds no conformance vectors: name a JSON file, or a folder of them")
        files += found
    return files


def read_cases(file: Path) -> Iterator[Case]:
    """Yield the cases of a file."""
    content = json.loads(file.read_text(encoding="utf-8"))
    glossary = content.get("glossary") or {}
    for body in content["cases"]:
        yield Case(file, str(body["id"]), str(body["kind"]), with_limits(body), glossary)
