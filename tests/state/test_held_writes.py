"""Writes that wait: what is read is what was written last, and the store changes once."""

from __future__ import annotations

from random import Random

import pytest

from windowpane.state.memory import HeldWrites, MemoryBlobStore


@pytest.mark.parametrize("seed", range(20))
def test_reads_and_what_is_left_are_those_of_a_map(seed: int) -> None:
    random, below = Random(seed), MemoryBlobStore()
    expected = dict.fromkeys("abc", b"before")
    for name, blob in expected.items():
        below.put(name, blob)
    for _ in range(3):
        held, stored = HeldWrites(below), below.snapshot()
        for number in range(random.randrange(30)):
            name = random.choice("abcdef")
            if random.random() < 0.4:
                expected[name] = b"%d" % number
                held.put(name, expected[name])
            elif random.random() < 0.5:
                expected.pop(name, None)
                held.remove(name)
            asked = random.choices("abcdef", k=2)
            held.prefetch(asked)
            assert [held.get(name) for name in asked] == [expected.get(name) for name in asked]
        assert below.snapshot() == stored
        held.write()
        assert below.keys() == sorted(expected)
        assert [below.get(name) for name in expected] == list(expected.values())


def test_each_blob_is_written_once_and_what_was_added_and_removed_not_at_all() -> None:
    below = MemoryBlobStore()
    held = HeldWrites(below)
    held.put("rows", b"many")
    held.put("header", b"1")
    held.remove("rows")
    held.put("header", b"2")
    held.write()
    held.write()
    assert (below.writes, below.keys()) == (1, ["header"])
