"""A description of a program is JSON, and reads back into the same program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from random import Random
from typing import Any

import pytest

from tests.examples import seeds
from verify.fuzz import filling as filled_gaps
from verify.fuzz import joins, rolling, windowed
from verify.fuzz.over_parts.inputs import random_trial
from verify.fuzz.patterns import random_program as random_pattern
from verify.fuzz.windowed_programs import random_program
from verify.fuzz.windowed_streams import random_stream
from windowpane.engines.protocol import Clock
from windowpane.errors import UnreadableDescriptionError, WindowpaneError
from windowpane.planning.description.programs import of_filling, of_join, of_over, of_patterns, of_rolling, read_back
from windowpane.planning.description.values import read, written
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.evictors import DeltaEvictor
from windowpane.windowing.triggers import DeltaTrigger

OF_A_RUN = {
    "side_outputs",
    "late_columns",
    "order_by",
    "upstream",
    "foresees_watermark",
    "engine_reason",
    "has_late_output",
    "until",
    "cut",
    "late_names",
    "on_inconsistent",
    "read",
}
"""Fields that may be others in each run."""


def same(program: Any, other: Any) -> Iterator[str]:
    """Yield the fields that differ, but for those of a run and functions, which have no equality."""
    for field in fields(program):
        one, two = getattr(program, field.name), getattr(other, field.name)
        if field.name in ("left", "right"):
            one, two = (replace(side, has_late_output=False) for side in (one, two))
        if field.name == "spec" and hasattr(one, "function"):
            one, two = ({**vars(spec), "function": None} for spec in (one, two))
        if hasattr(one, "subsets"):  # sets have no order that each has
            one, two = ({**vars(spec), "subsets": {name: sorted(of) for name, of in spec.subsets.items()}} for spec in (one, two))
        if field.compare and field.name not in OF_A_RUN and repr(one) != repr(two):
            yield field.name


def written_and_read(description: Any) -> Any:
    text = json.dumps(description)
    assert json.loads(text) == description
    return read_back(json.loads(text))


@pytest.mark.parametrize("seed", seeds(150))
def test_a_program_of_windows_reads_back_and_gives_the_same(seed: int) -> None:
    draw = Random(seed)
    try:
        program, columns = random_program(draw)
    except WindowpaneError:
        return
    got = replace(
        written_and_read(program.description),
        upstream=program.upstream,
        order_by=program.order_by,
        side_outputs=program.side_outputs,
        late_columns=program.late_columns,
        values=program.values,
    )
    assert list(same(program, got)) == []
    stores = [MemoryBlobStore(), MemoryBlobStore()]
    for batch in random_stream(draw, program, columns):
        clock = Clock(batch.watermark, batch.processing_time)
        outputs: list[Any] = []
        for each, store in zip((program, got), stores, strict=True):
            try:
                outputs.append(make_engine(each).run(store, list(batch.parts), clock))
            except WindowpaneError as error:
                outputs.append(error)
        if isinstance(outputs[0], WindowpaneError):
            assert repr(outputs[0]) == repr(outputs[1])
            return
        assert windowed._differences(program, *outputs) == []


@pytest.mark.parametrize("seed", seeds(100))
def test_other_programs_read_back(seed: int) -> None:
    over, join, features = random_trial(seed).program, joins.random_program(Random(seed)), rolling.random_program(Random(seed))
    assert list(same(over, written_and_read(of_over(over)))) == []
    assert list(same(join, written_and_read(of_join(join, ("t", "t"))))) == []
    assert list(same(features, written_and_read(of_rolling(features, features.keys.names, "t")))) == []
    filling = filled_gaps.random_program(Random(seed))
    assert list(same(filling, written_and_read(of_filling(filling)))) == []
    pattern = random_pattern(Random(seed))
    assert list(same(pattern, written_and_read(of_patterns(pattern, {})))) == []


class Marked:
    """A trigger of a user's that is no dataclass."""

    def __init__(self, column: str) -> None:
        self.column = column


def distance(old: Any, new: Any) -> float:
    return 0.0


def test_code_of_a_user_is_known_by_module_and_name() -> None:
    assert read(written(DeltaEvictor.of(1.5, distance))) == DeltaEvictor.of(1.5, distance)
    with pytest.raises(UnreadableDescriptionError, match="lambda"):
        read(written(DeltaTrigger.of(1.0, lambda old, new: 0.0)))
    with pytest.raises(UnreadableDescriptionError, match="test_descriptions:Marked"):
        read(written(Marked("x")))
