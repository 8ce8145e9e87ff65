"""Names of files that Spark takes for patterns, though they are names.

A batch of Spark's file source is a list of files. For each path in it with a character of patterns Spark lists all files of the
batch, and the others once more: beside ``a[1].parquet`` every other file is there twice. Where a batch has one file, or Arrow
reads, and knows each place that it has read, rows are right.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path

from windowpane.errors import PatternNameError

START_AGAIN = "Start the query again: where such a name is there, each file is read once."
"""What to do about a name that has come while the query runs."""

_CHARACTERS = frozenset("?*[]{}\\")


def is_pattern(path: str) -> bool:
    return not _CHARACTERS.isdisjoint(path)


def has_one_file_a_batch(options: Mapping[str, str]) -> bool:
    """Whether a stream reads its files one by one, so that no name adds others; options by lower-case name."""
    return options.get("maxfilespertrigger") == "1"


def odd_name(path: str, options: Mapping[str, str]) -> str | None:
    """Return the path of a file that Spark would take for a pattern, of those that a stream reads now."""
    return None if has_one_file_a_batch(options) else next(filter(is_pattern, _files(path)), None)


def refuse_odd_name(path: str | None) -> None:
    """Refuse a file that Spark reads with others."""
    if path is not None:
        raise PatternNameError(path, "Rename it, or read one file a batch, with maxFilesPerTrigger=1.")


def _files(path: str) -> Iterator[str]:
    for found in glob(path) or glob(re.sub(r"\\(.)", r"[\1]", path)):
        if Path(found).is_file():
            yield found
        for folder, _, names in os.walk(found):
            yield from (f"{folder}/{name}" for name in names if not name.startswith(("_", ".")))
