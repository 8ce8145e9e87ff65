"""Partials of approx_quantile that an earlier commit made: they have their results, and merge with those of this one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.kernels.test_quantile_sketch import expected, partials_of
from windowpane.kernels.aggregates import columnar_form
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.grouping.segments import Segments

KEPT = json.loads((Path(__file__).parent / "partials" / "approx_quantile.json").read_text())
"""By name: the type, groups of values, and the partial of each group, as hexadecimal digits."""
LATER: dict[str, list[Any]] = {"int64": [3, -7, 2**53 + 1], "int32": [3, -7, 40], "double": [0.5, -2.25, math.nan]}


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", KEPT)
def test_kept_partials_have_their_results_alone_and_with_newer_ones(name: str, q: float) -> None:
    kept = KEPT[name]
    kind = pa.type_for_alias(kept["type"])
    read = float if kept["type"] == "double" else int
    values = [[None if value is None else read(value) for value in group] for group in kept["groups"]]
    later = LATER[kept["type"]]
    form = columnar_form(wp.approx_quantile("v", q), "p", ("v",), [kind])
    assert isinstance(form, SegmentAggregate)
    old = pa.table({"pb": pa.array([bytes.fromhex(partial) for partial in kept["partials"]], pa.binary())})
    assert [str(each) for each in form.finish(old).to_pylist()] == [str(expected(group, q)) for group in values]
    together = pa.concat_tables([old, partials_of(form, [later], kind)])
    merged = form.merge(together, Segments(np.arange(len(together)), np.array([0, len(together)])))
    (found,) = form.finish(pa.table(dict(merged))).to_pylist()
    assert str(found) == str(expected([*later, *(value for group in values for value in group)], q))
