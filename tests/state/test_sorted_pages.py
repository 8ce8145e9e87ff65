"""SortedPages against a dict, its invariants on the stored blobs, and how often it calls the store."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.examples import examples
from windowpane.errors import PageLimitError, UnknownStateFormatError, UnreadableStateError
from windowpane.state.codec import encode_int64, encode_key, unframe
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.page_rewrite import ENTRY_OVERHEAD
from windowpane.state.sorted_pages import SortedPages, prefix_end

KEYS = st.one_of(st.binary(max_size=3), st.integers(0, 60).map(lambda number: b"%03d" % number))
ENTRY_VALUES = st.one_of(st.binary(max_size=6), st.integers(0, 90).map(bytes))
INDEX_SCHEMA = pa.schema([("fence", pa.binary()), ("page", pa.int64()), ("rows", pa.int64()), ("bytes", pa.int64())])
PAGE_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary())])


def read(kind, schema, blob):
    return pa.ipc.read_record_batch(pa.py_buffer(unframe(kind, blob)), schema).to_pylist()


def stored_index(store, name="p"):
    blob = store.get(f"{name}.i")
    return [] if blob is None else read("sorted-pages-index", INDEX_SCHEMA, blob)


def stored_pages(store, name="p"):
    """The (index row, entries) of every page in order, read without SortedPages."""
    return [
        (row, [(e["key"], e["value"]) for e in read("sorted-pages-page", PAGE_SCHEMA, blob)])
        for row in stored_index(store, name)
        for blob in [store.get(f"{name}.{row['page']:x}")]
    ]


def size_of(entries):
    return sum(len(key) + len(value) + ENTRY_OVERHEAD for key, value in entries)


def check_invariants(store, page_rows, page_bytes, name="p"):
    pages = stored_pages(store, name)
    names = {f"{name}.{row['page']:x}" for row, _ in pages} | ({f"{name}.i"} if pages else set())
    assert set(store.keys()) == names, "no blob is missing, none is left behind"
    for row, entries in pages:
        assert entries, "no empty page"
        assert row["fence"] == entries[0][0]
        assert row["rows"] == len(entries)
        assert row["bytes"] == size_of(entries)
        assert len(entries) == 1 or (len(entries) <= page_rows and size_of(entries) <= page_bytes)
    keys = [key for _, entries in pages for key, _ in entries]
    assert all(before < after for before, after in pairwise(keys))
    for (left, _), (right, _) in pairwise(pages):
        rows, size = left["rows"] + right["rows"], left["bytes"] + right["bytes"]
        small = any(4 * p["rows"] < page_rows and 4 * p["bytes"] < page_bytes for p in (left, right))
        assert not (small and rows <= 0.75 * page_rows and size <= 0.75 * page_bytes), "small pages join"


def filled(store, count, **limits):
    pages = SortedPages(store, "p", **limits)
    for number in range(count):
        pages.put(encode_int64(number), b"v%d" % number)
    pages.flush()
    store.reads = store.writes = store.removes = 0
    return pages


class PagesAgainstADict(RuleBasedStateMachine):
    """Any program of changes, reads, flushes and reopenings gives what a dict gives."""

    @initialize(page_rows=st.integers(1, 20), page_bytes=st.integers(1, 400))
    def open(self, page_rows, page_bytes):
        self.limits = {"page_rows": page_rows, "page_bytes": page_bytes}
        self.store = MemoryBlobStore()
        self.pages = SortedPages(self.store, "p", **self.limits)
        self.expected = {}
        self.flushed = {}

    @rule(key=KEYS, value=ENTRY_VALUES)
    def put(self, key, value):
        self.pages.put(key, value)
        self.expected[key] = value

    @rule(entries=st.dictionaries(KEYS, ENTRY_VALUES, max_size=40))
    def put_many(self, entries):
        for key, value in entries.items():
            self.put(key, value)

    @rule(key=KEYS)
    def delete(self, key):
        self.pages.delete(key)
        self.expected.pop(key, None)

    @rule(low=KEYS, high=KEYS)
    def delete_range_while_scanning(self, low, high):
        for key, _ in self.pages.scan(low, high):
            self.delete(key)
        assert not [key for key in self.expected if low <= key < high]

    @rule(key=KEYS)
    def get(self, key):
        assert self.pages.get(key) == self.expected.get(key)

    @rule(prefix=KEYS)
    def keys(self, prefix):
        assert self.pages.keys(prefix) == sorted(key for key in self.expected if key.startswith(prefix))

    @rule(low=KEYS, high=st.none() | KEYS)
    def scan(self, low, high):
        expected = [(k, v) for k, v in sorted(self.expected.items()) if low <= k and (high is None or k < high)]
        assert list(self.pages.scan(low, high)) == expected

    @rule(
        low=KEYS,
        steps=st.lists(st.tuples(st.sampled_from(["put", "delete", "flush", "forget", "none"]), KEYS), max_size=20),
    )
    def change_while_scanning(self, low, steps):
        """The next entry is always the first above the last one, as of the moment it is asked for."""
        scan, bound = self.pages.scan(low), low
        for action, key in steps:
            ahead = sorted(other for other in self.expected if other >= bound)
            entry = next(scan, None)
            assert entry == ((ahead[0], self.expected[ahead[0]]) if ahead else None)
            if entry is None:
                return
            bound = entry[0] + b"\0"
            if action == "put":
                self.put(key, b"new")
            elif action == "delete":
                self.delete(key)
            elif action == "flush":
                self.flush()
            elif action == "forget":
                self.lose_what_was_not_flushed()

    @rule()
    def flush(self):
        self.pages.flush()
        self.flushed = dict(self.expected)

    @rule()
    def flush_and_reopen(self):
        self.flush()
        self.pages = SortedPages(self.store, "p", **self.limits)

    @rule()
    def lose_what_was_not_flushed(self):
        self.pages.forget()
        self.expected = dict(self.flushed)

    @invariant()
    def store_holds_what_was_flushed(self):
        check_invariants(self.store, **self.limits)
        entries = [entry for _, page in stored_pages(self.store) for entry in page]
        assert entries == sorted(self.flushed.items())
        assert len(self.pages) == len(self.flushed)
        assert self.pages.byte_size == size_of(self.flushed.items())


PagesAgainstADict.TestCase.settings = settings(max_examples=examples(120), stateful_step_count=25, deadline=None)
TestPagesAgainstADict = PagesAgainstADict.TestCase


class TestCalls:
    def test_a_new_object_calls_nothing(self):
        store = MemoryBlobStore()
        pages = SortedPages(store, "p")
        pages.put(b"a", b"1")
        assert (store.reads, store.writes, store.removes) == (0, 0, 0)

    @pytest.mark.parametrize("appended", [1, 5, 16, 100])
    def test_appends_touch_only_the_last_page(self, appended):
        store = MemoryBlobStore()
        filled(store, 1000, page_rows=16)
        pages = SortedPages(store, "p", page_rows=16)
        for number in range(1000, 1000 + appended):
            pages.put(encode_int64(number), b"")
        pages.flush()
        assert store.reads == 2, "the index and the last page"
        assert store.writes <= 2 + (appended + 15) // 16, "index, last page, and one per 16 rows"
        assert store.removes == 0

    def test_rows_appended_in_order_leave_full_pages(self):
        store = MemoryBlobStore()
        pages = SortedPages(store, "p", page_rows=16)
        for number in range(1000):
            pages.put(encode_int64(number), b"")
            if number % 7 == 0:
                pages.flush()
        pages.flush()
        assert [row["rows"] for row in stored_index(store)] == [16] * 62 + [8]

    def test_a_point_read_touches_one_page_once(self):
        store = MemoryBlobStore()
        filled(store, 1000, page_rows=16)
        pages = SortedPages(store, "p", page_rows=16)
        assert pages.get(encode_int64(500)) == b"v500"
        assert pages.get(encode_int64(500)) == b"v500"
        assert store.reads == 2

    def test_a_key_before_the_first_fence_needs_no_page(self):
        store = MemoryBlobStore()
        pages = filled(store, 100, page_rows=16)
        assert pages.get(b"") is None
        assert list(pages.scan(b"", encode_int64(0))) == []
        assert store.reads == 0

    def test_a_range_read_touches_only_its_pages(self):
        store = MemoryBlobStore()
        pages = filled(store, 1000, page_rows=16)
        found = list(pages.scan(encode_int64(160), encode_int64(192)))
        assert len(found) == 32
        assert store.reads == 2

    def test_the_first_entry_of_an_open_scan_needs_one_page(self):
        store = MemoryBlobStore()
        pages = filled(store, 1000, page_rows=4)
        assert next(pages.scan(encode_int64(400))) == (encode_int64(400), b"v400")
        assert store.reads == 1

    def test_a_change_rewrites_only_its_page(self):
        store = MemoryBlobStore()
        pages = filled(store, 1000, page_rows=16)
        names = store.keys()
        before = {key: store.get(key) for key in names}
        store.reads = 0
        pages.put(encode_int64(500), b"changed")
        pages.flush()
        assert (store.reads, store.writes, store.removes) == (1, 2, 0)
        assert sum(store.get(key) != blob for key, blob in before.items()) == 2

    def test_changes_that_alter_nothing_write_nothing(self):
        store = MemoryBlobStore()
        pages = filled(store, 100, page_rows=16)
        pages.put(encode_int64(50), b"v50")
        pages.delete(b"absent")
        pages.flush()
        pages.flush()
        assert (store.writes, store.removes) == (0, 0)

    def test_deletes_of_an_empty_map_write_nothing(self):
        store = MemoryBlobStore()
        pages = SortedPages(store, "p")
        pages.delete(b"absent")
        pages.flush()
        assert (store.writes, store.removes, store.keys()) == (0, 0, [])

    def test_deleting_everything_removes_every_blob(self):
        store = MemoryBlobStore()
        pages = filled(store, 100, page_rows=16)
        for key, _ in pages.scan(b""):
            pages.delete(key)
        pages.flush()
        assert store.keys() == []
        assert store.writes == 0
        assert (len(pages), pages.byte_size) == (0, 0)

    def test_the_index_is_written_last(self):
        class Recorder(MemoryBlobStore):
            def __init__(self):
                super().__init__()
                self.calls = []

            def put(self, key, blob):
                self.calls.append(key)
                super().put(key, blob)

            def remove(self, key):
                self.calls.append(key)
                super().remove(key)

        store = Recorder()
        pages = filled(store, 100, page_rows=16)
        for number in range(0, 100, 2):
            pages.delete(encode_int64(number))
        store.calls.clear()
        pages.flush()
        assert store.calls.count("p.i") == 1
        assert store.calls[-1] == "p.i"


class TestPages:
    def test_a_large_entry_gets_a_page_of_its_own(self):
        store = MemoryBlobStore()
        pages = filled(store, 20, page_rows=16, page_bytes=1000)
        pages.put(encode_int64(7) + b"x", bytes(5000))
        pages.flush()
        large = [entries for _, entries in stored_pages(store) if size_of(entries) > 1000]
        assert large == [[(encode_int64(7) + b"x", bytes(5000))]]
        check_invariants(store, 16, 1000)

    @given(st.lists(st.integers(0, 400), min_size=1, max_size=60), st.integers(60, 500))
    def test_pages_keep_the_byte_limit(self, lengths, page_bytes):
        store = MemoryBlobStore()
        pages = SortedPages(store, "p", page_bytes=page_bytes)
        pages.put(b"\xff", b"")
        pages.flush()
        for number, length in enumerate(lengths):
            pages.put(b"%03d" % number, bytes(length))
        pages.flush()
        check_invariants(store, 1024, page_bytes)
        assert len(pages) == len(lengths) + 1

    def test_two_maps_share_a_store(self):
        store = MemoryBlobStore()
        left, right = SortedPages(store, "a"), SortedPages(store, "b")
        left.put(b"k", b"left")
        right.put(b"k", b"right")
        left.flush()
        right.flush()
        assert SortedPages(store, "a").get(b"k") == b"left"
        assert SortedPages(store, "b").get(b"k") == b"right"

    def test_buffered_keys_stay_ordered_however_they_arrive(self):
        """More keys than one run of the buffer holds, put between scans in a scattered order."""
        pages, expected = SortedPages(MemoryBlobStore(), "p"), {}
        for number in range(5000):
            key = encode_int64(number * 7919 % 5003)
            pages.put(key, b"")
            expected[key] = b""
            if number % 3 == 0:
                assert next(pages.scan(key)) == (key, b"")
        assert list(pages.scan(b"")) == sorted(expected.items())

    @pytest.mark.parametrize("limits", [{"page_rows": 0}, {"page_bytes": 0}])
    def test_limits_below_one_are_refused(self, limits):
        with pytest.raises(PageLimitError, match="at least 1"):
            SortedPages(MemoryBlobStore(), "p", **limits)


class TestUnreadableState:
    @pytest.mark.parametrize(("key", "kind"), [("p.i", "sorted-pages-index"), ("p.0", "sorted-pages-page")])
    def test_a_truncated_blob_is_refused_by_name(self, key, kind):
        store = MemoryBlobStore()
        filled(store, 10)
        blob = store.get(key)
        assert blob is not None
        store.put(key, blob[: len(blob) // 2])
        with pytest.raises(UnreadableStateError, match=f"'{kind}'.*damaged"):
            SortedPages(store, "p").get(encode_int64(1))

    def test_a_missing_page_is_named(self):
        store = MemoryBlobStore()
        filled(store, 10)
        store.remove("p.0")
        with pytest.raises(UnreadableStateError, match=r"'p\.0'"):
            SortedPages(store, "p").get(encode_int64(1))


class TestMemoryBlobStore:
    def test_restore_takes_back_what_snapshot_gave(self):
        store = MemoryBlobStore()
        pages = filled(store, 100, page_rows=16)
        snapshot = store.snapshot()
        pages.delete(encode_int64(3))
        pages.flush()
        store.restore(snapshot)
        pages.forget()
        assert pages.get(encode_int64(3)) == b"v3"
        assert store.snapshot() == snapshot

    def test_counts_its_calls(self):
        store = MemoryBlobStore()
        store.put("a", b"1")
        assert (store.get("a"), store.get("b")) == (b"1", None)
        store.remove("a")
        store.remove("absent")
        assert (store.reads, store.writes, store.removes) == (2, 1, 2)

    def test_refuses_a_foreign_snapshot(self):
        with pytest.raises(UnknownStateFormatError, match="memory-blobs"):
            MemoryBlobStore().restore(b"something else")


class TestPrefixEnd:
    @given(st.binary(max_size=4), st.binary(max_size=5))
    def test_separates_those_with_the_prefix_from_all_above(self, prefix, key):
        end = prefix_end(prefix)
        assert (prefix <= key and (end is None or key < end)) == key.startswith(prefix)

    def test_selects_the_rows_of_one_key(self):
        pages = SortedPages(MemoryBlobStore(), "p")
        for airport in ("EWR", "JFK", "LGA"):
            for number in range(3):
                pages.put(encode_key(airport) + encode_int64(number), b"")
        prefix = encode_key("JFK")
        keys = [key for key, _ in pages.scan(prefix, prefix_end(prefix))]
        assert keys == [prefix + encode_int64(number) for number in range(3)]
