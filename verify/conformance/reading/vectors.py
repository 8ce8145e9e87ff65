"""Vector files to cases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from verify.conformance.reading.fields import Json, with_limits


@dataclass(frozen=True)
class Case:
    """One case of a vector file, ``written`` in JSON."""

    file: Path
    id: str
    kind: str
    written: Json

    @cached_property
    def body(self) -> Json:
        """The JSON with times as integers; made when it is asked for, since most cases of a large file may be left out."""
        return cast(Json, with_limits(self.written))

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
    for body in _bodies(content):
        yield Case(file, str(body["id"]), str(body["kind"]), body)


def _bodies(content: Json) -> Iterator[Json]:
    """Yield the bodies of a file's cases; of one input with many queries, a body for each with the input as ``input``."""
    if "point_in_time" in content:
        yield from _rolling(content)
    elif "with_late" in content:
        for query in content["queries"]:
            yield {**query, "id": query["name"], "kind": "join", "join": query["kind"], "input": content["steps"]}
    elif content.get("kind") == "pattern":
        for query in content["queries"]:
            yield {**query, "id": f"{content['id']}-{query['name']}", "kind": "pattern", "input": content["steps"]}
    else:
        yield from content["cases"]


def _rolling(content: Json) -> Iterator[Json]:
    """Yield a body for each query of an input of rolling features, one for its rows and one for its labels."""
    given = {name: content[name] for name in ("windows", "hop", "features")}
    given |= {"kind": "rolling", "edge": "exact", "input": content["steps"]}
    for query in content["queries"]:
        yield {**given, **query, "id": f"{content['id']}-{query['emit']}-{query['edge']}"}
    yield {**given, "id": f"{content['id']}-each", "emit": "each", "each": content["each"]}
    labels = {"labels": content["labels"], "point_in_time": content["point_in_time"]}
    yield {**given, **labels, "id": f"{content['id']}-at", "emit": "at"}
