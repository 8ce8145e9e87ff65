"""The segment log equals a dict of lists of rows, whatever is flushed or reopened in between."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.state.codec import unframe
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.segment_log import MAX_CHUNKS, SegmentLog

segment = st.integers(-3, 3)
rows = st.lists(st.integers(-9, 9), max_size=4)
steps = st.one_of(
    st.tuples(st.just("append"), segment, rows),
    st.tuples(st.just("drop"), segment, rows),
    st.tuples(st.just("compact"), segment, rows),
    st.tuples(st.just("reopen"), segment, rows),
)


def table(values):
    return pa.table({"v": pa.array(values, pa.int64())})


def values(log, at):
    return [value for chunk in log.read(at) for value in chunk["v"].to_pylist()]


@settings(deadline=None)
@given(st.lists(steps, max_size=40))
def test_segments_are_those_of_a_dict(program):
    store = MemoryBlobStore()
    log = SegmentLog(store, "s")
    model: dict[int, list[int]] = {}
    for action, at, appended in program:
        if action == "append":
            log.append(at, table(appended))
            model.setdefault(at, []).extend(appended)
        elif action == "drop":
            log.drop(at)
            model.pop(at, None)
        elif action == "compact" and at in log.segments():
            log.replace(at, table(values(log, at)))
            assert len(log.read(at)) == 1
        elif action == "reopen":
            log.flush()
            log = SegmentLog(store, "s")
        model = {number: held for number, held in model.items() if held}
        assert log.segments() == sorted(model)
        assert {number: values(log, number) for number in model} == model
    for number in log.segments():
        log.drop(number)
    log.flush()
    assert store.keys() == []


def test_a_batch_appends_without_reading_and_many_chunks_want_compaction():
    store = MemoryBlobStore()
    log = SegmentLog(store, "s")
    reads = store.reads
    for number in range(MAX_CHUNKS.usual):
        log.append(7, table([number]))
    assert not log.wants_compaction(7)
    log.append(7, table([MAX_CHUNKS.usual]))
    assert log.wants_compaction(7)
    log.flush()
    assert store.reads == reads
    assert log.byte_size > 0


def test_a_large_chunk_takes_fewer_bytes_in_state_than_its_texts_and_reads_back() -> None:
    store = MemoryBlobStore()
    log = SegmentLog(store, "s")
    persons = pa.table({"person": [f"person {number % 100:>40}" for number in range(5000)]})
    log.append(0, persons)
    log.flush()
    assert log.byte_size * 4 < persons.nbytes
    assert SegmentLog(store, "s").read(0)[0].equals(persons)


def test_texts_that_repeat_are_stored_once_in_a_large_chunk():
    """Texts that differ are stored as they are; what is read is what was appended, NULLs and empty texts among it."""
    store = MemoryBlobStore()
    log = SegmentLog(store, "s")
    names = [None, "", *(f"a name of thirty letters {n:06}" for n in range(100))]
    schema = pa.schema([pa.field("name", pa.string()), pa.field("id", pa.string(), nullable=False)])
    rows = pa.table([[names[n * 7919 % 102] for n in range(20_000)], [f"id {n * 7919 % 20_000}" for n in range(20_000)]], schema)
    log.append(0, rows)
    log.append(0, rows.slice(5, 6_000))
    blob = store.get("s.0.0")
    assert blob is not None
    with pa.ipc.open_stream(unframe("segment-log-chunk", blob)) as reader:
        assert [pa.types.is_dictionary(kind) for kind in reader.schema.types] == [True, False]
    assert log.read(0) == [rows, rows.slice(5, 6_000)]
    assert all(table.schema.equals(schema) for table in log.read(0))
