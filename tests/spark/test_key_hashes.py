"""Bucket numbers: a hash's remainder, never negative, as Spark's ``pmod``."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windowpane.hidden_columns import KEY_HASH
from windowpane.spark.stages.key_hashes import bucket_numbers

HASHES = [0, 1, -1, 7, -8, 199, -200, 2**62 + 3, -(2**62) - 5, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("buckets", [1, 2, 3, 7, 8, 200, 1_024, 65_537])
def test_a_hash_falls_into_the_bucket_of_its_remainder(buckets: int) -> None:
    rows = pa.table({"k": ["key"] * len(HASHES), KEY_HASH: HASHES})
    assert bucket_numbers(rows, ["k"], buckets).tolist() == [each % buckets for each in HASHES]
