"""Checkpoints on disk: rows before and after, results, and Spark's folder, packed."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from tests.golden.programs import CHANGES, OUTPUTS, PROGRAMS, SCHEMA
from tests.spark.helpers import Feed, run

FOLDER = Path(__file__).parent / "spark"
INPUT = FOLDER / "input.json"
"""The rows of every program, batch by batch."""

SPLIT = 3
"""So many batches came before the checkpoint."""
_INPUT, _CHECKPOINT = "@INPUT@", "@CHECKPOINT@"

Batch = list[list[Any]]


Results = dict[str, list[str]]
"""Rows as text, by output."""


def read_results(name: str) -> Results:
    """Read what a program gives after its checkpoint."""
    results: Results = json.loads((FOLDER / f"{name}.json").read_text())
    return results


def write_results(name: str, results: Results) -> None:
    """Write what a program gives after its checkpoint."""
    (FOLDER / f"{name}.json").write_text(json.dumps(results, indent=0, ensure_ascii=False) + "\n")


def pack(name: str, checkpoint: Path, folder: Path) -> None:
    """Pack a checkpoint of a stream from a folder, with words in place of where both stand."""
    replace_words(checkpoint, {str(folder): _INPUT, str(checkpoint): _CHECKPOINT})
    with tarfile.open(FOLDER / f"{name}.tar.xz", "w:xz") as archive:
        archive.add(checkpoint, arcname=".", filter=plain)


def unpack(name: str, checkpoint: Path, folder: Path) -> None:
    """Unpack a checkpoint, as that of a stream from ``folder``."""
    extract(FOLDER / f"{name}.tar.xz", checkpoint)
    replace_words(checkpoint, {_INPUT: str(folder), _CHECKPOINT: str(checkpoint)})


def extract(packed: Path, folder: Path) -> None:
    """Extract an archive into a folder, with the filter that Python has since 3.11.4."""
    with tarfile.open(packed) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        archive.extractall(folder)


def replace_words(checkpoint: Path, words: Mapping[str, str]) -> None:
    """Replace texts where Spark writes down paths: what its file source has read, and where it keeps schemas of state."""
    for log in (*checkpoint.glob("sources/*/*"), *checkpoint.glob("state/*/_metadata/v2/*")):
        if not log.name.startswith("."):
            text = log.read_text()
            for old, new in words.items():
                text = text.replace(old, new)
            log.write_text(text)


def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out checksums of Hadoop's local file system, which are optional, and whose the files were."""
    if entry.name.endswith(".crc"):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def go_on(spark: Any, name: str, batches: Sequence[Batch], folder: Path, checkpoint: Path) -> Results:
    """Run a program over batches, those that its checkpoint has not read yet, and return the rows of its outputs as text."""
    schema = CHANGES if name == "over_changelog" else SCHEMA
    feed = Feed(folder, schema).add(*[_typed(batch, name == "over_changelog") for batch in batches])
    outputs = OUTPUTS.get(name, ("main",))
    collected = run(PROGRAMS[name](feed.stream(spark)), *outputs, checkpoint=checkpoint)
    return {output: [_text(row) for row in collected.rows(output)] for output in outputs}


def _typed(batch: Batch, changes: bool) -> list[tuple[Any, ...]]:
    """Rows of JSON as those of the schema: the sixth column is a decimal, the last but one says what is changed."""
    rows = []
    for row in batch:
        *values, heartbeat, change = row
        if changes and heartbeat:
            continue
        if not changes and change not in ("insert", None):
            continue
        values[6] = None if values[6] is None else Decimal(values[6])
        values[10] = None if values[10] is None else {"x": values[10][0], "y": values[10][1]}
        rows.append((*values, heartbeat, change) if changes else (*values, heartbeat))
    return rows


def _text(row: tuple[Any, ...]) -> str:
    return repr(tuple(_rounded(value) for value in row))


def _rounded(value: Any) -> Any:
    """Doubles to twelve digits: in which order they are added is no part of what is promised."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, list | tuple):
        return type(value)(_rounded(each) for each in value)
    return value


def random_batches(seed: int, count: int) -> list[Batch]:
    """Make batches: late rows, NULLs, ties, sessions, and a changelog of the same rows; a heartbeat ends the last."""
    draw = Random(seed)
    batches: list[Batch] = []
    live: dict[int, list[Any]] = {}
    number = 0
    for index in range(count):
        batch: Batch = []
        for _ in range(12):
            number += 1
            row = _random_row(draw, number, 8 * index)
            live[number] = row
            batch.append([*row, False, "insert"])
        for gone in draw.sample(sorted(live), 3):
            batch.append([*live.pop(gone), False, "delete"])
        for changed in draw.sample(sorted(live), 3):
            batch.append([*live[changed], False, "update_preimage"])
            live[changed] = [changed, *_random_row(draw, changed, 8 * index)[1:]]
            batch.append([*live[changed], False, "update_postimage"])
        batches.append(batch)
    batches.append([[None, None, None, 8 * count + 200, *[None] * 7, True, None]])
    return batches


def _random_row(draw: Random, number: int, second: int) -> list[Any]:
    behind = draw.choice([0, 0, 0, 1, 1, 2, 3, 5, 9, 17, 45])
    text = draw.choice([None, "", "a", "bb", "ccc", "bb", "Ärger", "x" * 20])
    return [
        number,
        draw.choice(["red", "green", "blue", None, "green"]),
        draw.choice([1, 2, None]),
        second + 60 + draw.randrange(8) - behind,
        draw.choice([None, draw.randrange(-50, 50), draw.randrange(10**12)]),
        draw.choice([None, 0.0, draw.uniform(-100, 100)]),
        draw.choice([None, f"{draw.randrange(-(10**6), 10**6) / 100:.2f}"]),
        text,
        draw.choice([True, False, None]),
        draw.choice([None, [], ["p", None], ["q"]]),
        draw.choice([None, [1, "one"], [2, None]]),
    ]
