"""Pages of rows against a plain sorted list, with flush and reopen anywhere."""

import random

import numpy as np
import pytest

from verify.sizes import given_sizes
from windowpane.errors import UnreadableStateError
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.row_pages import BLOCK_PAGES, NewPage, RowPages

Model = list[tuple[bytes, list[bytes]]]
"""Pages in order: fence, keys."""


def a_page(keys: list[bytes]) -> bytes:
    return b",".join(keys)


def keys_of(pages: RowPages, ordinal: int) -> list[bytes]:
    return pages.read(ordinal).split(b",")


def check(pages: RowPages, model: Model) -> None:
    assert len(pages) == len(model)
    for ordinal, (fence, keys) in enumerate(model):
        assert pages.fence(ordinal) == fence
        assert keys_of(pages, ordinal) == keys
    for key in random.Random(0).sample([key for _, keys in model for key in keys], min(5, len(model))):
        expected = next(i for i, (_, keys) in enumerate(model) if key in keys)
        assert pages.locate(np.array([key]))[0] == expected


@pytest.mark.parametrize("seed", range(15))
@given_sizes({BLOCK_PAGES: 4})
def test_replaced_pages_are_found_again(seed: int) -> None:
    rng, store = random.Random(seed), MemoryBlobStore()
    model: Model = []
    pages = RowPages(store, "x")
    for _ in range(60):
        start = rng.randint(0, len(model))
        end = min(start + rng.randint(0, 3), len(model))
        low = int(model[start - 1][1][-1]) + 1 if start else 0
        high = int(model[end][0]) if end < len(model) else 10**6
        for ordinal in range(start, end):
            pages.read(ordinal)
        keys = sorted(rng.sample(range(low, high), min(rng.randint(0, 9), high - low)))
        cut = [[b"%07d" % key for key in keys[at : at + 2]] for at in range(0, len(keys), 2)]
        pages.replace(start, end, [NewPage(each[0], a_page(each)) for each in cut])
        model[start:end] = [(each[0], each) for each in cut]
        if rng.random() < 0.3:
            pages.flush()
            pages = RowPages(store, "x")
        check(pages, model)
    pages.flush()
    names = store.keys()
    written = [store.get(name) or b"" for name in names if name.startswith("x.p")]
    assert RowPages(store, "x").byte_size == sum(map(len, written)), f"seed {seed}"
    assert len(written) == len(model)


def test_a_page_rewritten_keeps_its_place() -> None:
    store = MemoryBlobStore()
    pages = RowPages(store, "x")
    pages.replace(0, 0, [NewPage(b"a", a_page([b"a"])), NewPage(b"m", a_page([b"m"]))])
    pages.read(1)
    pages.rewrite(1, a_page([b"n", b"o"]))
    pages.flush()
    again = RowPages(store, "x")
    assert [keys_of(again, ordinal) for ordinal in range(2)] == [[b"a"], [b"n", b"o"]]
    assert again.locate(np.array([b"0", b"b", b"m", b"z"])).tolist() == [0, 0, 1, 1]


def test_a_page_that_is_missing_is_named() -> None:
    store = MemoryBlobStore()
    pages = RowPages(store, "x")
    pages.replace(0, 0, [NewPage(b"a", a_page([b"a"]))])
    store.remove("x.p0")
    with pytest.raises(UnreadableStateError, match=r"x\.p0"):
        pages.read(0)
