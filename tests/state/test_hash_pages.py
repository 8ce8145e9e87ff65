"""Hash pages: every row in the page of its hash, whatever is written, split, joined and restarted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from windowpane.errors import present
from windowpane.state.hash_pages import HashPages, PageSummary
from windowpane.state.memory import MemoryBlobStore


def hashes(table: pa.Table) -> np.ndarray:
    numbers: np.ndarray = table["hash"].to_numpy()
    return numbers.astype(np.uint64)


def summary(table: pa.Table) -> PageSummary:
    return PageSummary(min(table["due"].to_pylist()), sum(table["live"].to_pylist()))


def opened(store: MemoryBlobStore, page_rows: int = 4) -> HashPages:
    return HashPages(store, "p", hashes, summary, page_rows, dense_rows=4 * page_rows)


def rows(values: dict[int, int]) -> pa.Table:
    """Return rows by hash, the value being when each is due; even hashes are live."""
    columns = [list(values), list(values.values()), [int(n % 2 == 0) for n in values]]
    return pa.table([pa.array(column, pa.int64()) for column in columns], names=["hash", "due", "live"])


def held(pages: HashPages, most: int = 4) -> dict[int, int]:
    found = dict[int, int]()
    for position in range(len(pages)):
        table = pages.read(position)
        assert table is not None
        assert 0 < table.num_rows <= most
        assert set(pages.locate(hashes(table)).tolist()) == {position}
        found |= dict(zip(table["hash"].to_pylist(), table["due"].to_pylist(), strict=True))
    assert pages.rows == sum(present(pages.read(position), "it was read").num_rows for position in range(len(pages)))
    return found


def change(pages: HashPages, changes: dict[int, int | None]) -> None:
    """Set, or with ``None`` remove, rows in the pages they belong to."""
    places: dict[int, dict[int, int | None]] = {}
    for number, value in changes.items():
        position = int(pages.locate(np.array([number], np.uint64))[0])
        places.setdefault(position, {})[number] = value
    for position, changed in places.items():
        table = pages.read(position)
        before = {} if table is None else dict(zip(table["hash"].to_pylist(), table["due"].to_pylist(), strict=True))
        pages.write(position, rows({n: v for n, v in {**before, **changed}.items() if v is not None}))
    pages.commit()


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.dictionaries(st.integers(0, 60), st.one_of(st.none(), st.integers(0, 9)), max_size=30), max_size=6))
def test_pages_hold_what_a_dict_holds_and_know_what_is_due(batches):
    store, expected = MemoryBlobStore(), dict[int, int]()
    for changes in batches:
        change(opened(store), changes)
        expected = {n: v for n, v in {**expected, **changes}.items() if v is not None}
        pages = opened(store)
        assert held(pages) == expected
        assert pages.live == sum(n % 2 == 0 for n in expected)
        assert pages.next_due == min(expected.values(), default=None)
        due = {int(pages.locate(np.array([n], np.uint64))[0]) for n, value in expected.items() if value <= 4}
        assert set(pages.due(4)) == due
        assert len(store.keys()) == (len(pages) + 1 if expected else 0)
        assert pages.byte_size == sum(len(store.get(key) or b"") for key in set(store.keys()) - {"p.i"})


def test_rows_that_share_one_hash_share_a_page_of_any_size():
    pages = opened(MemoryBlobStore())
    table = pa.concat_tables([rows({5: 1})] * 9 + [rows({3: 1, 8: 1})])
    pages.write(0, table)
    pages.commit()
    sizes = [present(pages.read(position), "it was written").num_rows for position in range(len(pages))]
    assert max(sizes) == 9, "the others stand apart"
    assert sum(sizes) == 11


def test_a_batch_that_touches_one_page_writes_it_and_the_index():
    store = MemoryBlobStore()
    change(opened(store), dict.fromkeys(range(40), 1))
    pages = opened(store)
    assert len(pages) >= 10
    reads, writes = store.reads, store.writes
    change(pages, {7: 5})
    assert (store.reads - reads, store.writes - writes) == (1, 2)
    assert held(opened(store))[7] == 5


def test_neighbours_that_became_small_are_joined():
    store = MemoryBlobStore()
    change(opened(store, 64), dict.fromkeys(range(640), 1))
    before = len(opened(store, 64))
    change(opened(store, 64), dict.fromkeys((n for n in range(640) if n % 20), None))
    after = opened(store, 64)
    assert before >= 10
    assert len(after) <= 3


def test_a_run_of_pages_is_replaced_by_a_few_large_ones_and_cut_again_by_small_changes():
    store = MemoryBlobStore()
    change(opened(store), dict.fromkeys(range(40), 1))
    pages = opened(store)
    assert len(pages) >= 10
    pages.replace(range(len(pages)), rows(dict.fromkeys(range(38), 2)))
    pages.commit()
    assert len(pages) < 10
    assert held(opened(store), 16) == dict.fromkeys(range(38), 2)
    assert len(store.keys()) == len(pages) + 1
    change(opened(store), {7: 5})
    held_then = held(opened(store), 16)
    assert held_then[7] == 5
    assert len(opened(store)) > len(pages)


def test_many_rows_meet_all_pages_at_once_and_few_those_of_theirs():
    store = MemoryBlobStore()
    change(opened(store), dict.fromkeys(range(40), 1))
    pages, met, asked = opened(store), list[int](), list[int]()

    def step(found: pa.Table | None, numbers: np.ndarray) -> None:
        met.append(present(found, "there are pages").num_rows)

    def hashes_of(arriving: int) -> np.ndarray:
        asked.append(arriving)
        return hashes(rows(dict.fromkeys(range(arriving), 1)))

    pages.each(10, lambda: hashes_of(10), 0, 1000, step)
    assert (met, asked) == ([40], [])
    pages.each(9, lambda: hashes_of(9), 0, 1000, step)
    assert asked == [9]
    assert 9 <= sum(met[1:]) < 40


def test_part_of_the_pages_may_be_replaced():
    store = MemoryBlobStore()
    change(opened(store), dict.fromkeys(range(40), 1))
    pages = opened(store)
    tables = [pages.read(position) for position in (2, 3, 4)]
    numbers = [number for table in tables if table is not None for number in table["hash"].to_pylist()]
    pages.replace([2, 3, 4], rows(dict.fromkeys(numbers[1:], 3)))
    pages.commit()
    expected = {number: 3 if number in numbers else 1 for number in range(40) if number != numbers[0]}
    assert held(opened(store), 16) == expected
