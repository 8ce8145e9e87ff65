"""The state of an operator in another number of buckets, and what is wrong with that of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.errors import UnmovableStateError, WindowpaneError
from windowpane.planning.rescaling import nodes
from windowpane.planning.rescaling.keys import Key, parts_of_keys
from windowpane.planning.rescaling.nodes import Places, no_places
from windowpane.planning.rescaling.programs import Buckets, Moving, blob_of, counted, is_of_bucket, latest
from windowpane.state.codec import encode_key, kind_of, unframe
from windowpane.state.listing import nodes_in
from windowpane.state.memory import MemoryBlobStore

_COUNTED = ("reference", "row", "sessions")
"""Engines that count windows of keys as open."""
_SHOWN = 5


def rescaled(old: Buckets, count: int, forgets: Key | None = None, places_of: Places = no_places) -> list[MemoryBlobStore]:
    """Return the state of an operator in so many buckets, without the key that it ``forgets``.

    Args:
        old: its buckets.
        count: how many there will be.
        forgets: a key.
        places_of: says where rows of nodes of SQL belong, see ``nodes``.

    Raises:
        UnmovableStateError: state that belongs to no key, or that other programs wrote.
        UnreadableDescriptionError: a part of the user's own that is not found by its name.
    """
    if any(nodes_in(store) for store in old):
        if forgets is not None:
            raise UnmovableStateError(_OF_NODES)
        return nodes.moved(old, count, places_of)
    if any(map(_is_of_nobody, old)):
        raise UnmovableStateError(_OF_NOBODY)
    parted = [_by_generation(store) for store in old if HEADER in store]
    newest = max((generation for parts in parted for generation in parts), default=0)
    new = [MemoryBlobStore() for _ in range(count)]
    open_windows = [0] * count
    for generation in range(newest + 1):
        parts = [each[generation] for each in parted if generation in each]
        for number, moved in enumerate(Moving(parts, count, forgets).stores() if parts else ()):
            for name in moved:
                is_bare = not generation and (name != HEADER or not newest)
                new[number].put(name if is_bare else f"{generation}/{name}", blob_of(moved, name))
            open_windows[number] += BucketHeader.of(blob_of(moved, HEADER)).open_windows
    if newest:
        whole = latest([BucketHeader.of(blob_of(store, HEADER)) for store in old if HEADER in store])
        for number, store in enumerate(new):
            replace(counted(whole, number, forgets), open_windows=open_windows[number]).write(store)
    return new


_OF_NODES = (
    "its state is of nodes of a SQL view, whose rows are in its results, in files of changes and in the store, too. "
    "Delete the rows where the view has them from: it follows, and so does what reads it"
)
_OF_NOBODY = "it holds state, and nothing that says of which program it is"


def problems(store: MemoryBlobStore, bucket: int, count: int, places_of: Places = no_places) -> list[str]:
    """Return what is wrong with one of ``count`` buckets: blobs that do not decode, keys of other buckets, a wrong count."""
    found = [said for name in store if (said := _unreadable(store, name)) is not None]
    if found:
        return found
    strays: list[str] = []

    def note(keys: pa.Table, numbers: Integers) -> None:
        stray = keys.filter(pa.array(numbers != bucket))
        strays.extend(", ".join(map(repr, key)) for key in parts_of_keys(stray, keys.column_names))

    try:
        if nodes_in(store):
            nodes.moved([store], count, places_of, note)
        elif _is_of_nobody(store):
            return [f"bucket {bucket}: {_OF_NOBODY}"]
        else:
            for part in _programs_in(store):
                held = [BucketHeader.of(blob_of(each, HEADER)) for each in Moving([part], count, None, note).stores()]
                header, open_windows = BucketHeader.of(blob_of(part, HEADER)), sum(each.open_windows for each in held)
                if header.description["engine"] in _COUNTED and header.open_windows != open_windows:
                    return [f"bucket {bucket}: its header counts {header.open_windows} open windows, and it holds {open_windows}"]
    except Exception as error:  # damage may raise anything
        return [f"bucket {bucket}: {error}"]
    strays = list(dict.fromkeys(strays))
    several = f" and {len(strays) - _SHOWN} more" if len(strays) > _SHOWN else ""
    return [f"bucket {bucket}: it holds keys of other buckets: {', '.join(strays[:_SHOWN])}{several}"] if strays else []


def holds(store: MemoryBlobStore, key: Key) -> bool:
    """Whether a bucket has state of a key, given by its parts.

    Raises:
        UnmovableStateError: its state is of nodes of SQL, or nothing says of which program it is.
    """
    if nodes_in(store):
        raise UnmovableStateError(_OF_NODES)
    if _is_of_nobody(store):
        raise UnmovableStateError(_OF_NOBODY)
    found = set[bytes]()
    for part in _programs_in(store):
        moving = Moving([part], 1, None, lambda keys, _: found.update(map(encode_key, parts_of_keys(keys, keys.column_names))))
        moving.stores()
        if moving.keys.encoded(key) in found:
            return True
    return False


def _is_of_nobody(store: MemoryBlobStore) -> bool:
    if HEADER in store:
        return not BucketHeader.of(blob_of(store, HEADER)).description
    return any(not is_of_bucket(name) for name in store)


def _unreadable(store: MemoryBlobStore, name: str) -> str | None:
    blob = blob_of(store, name)
    kind = kind_of(blob)
    try:
        unframe(kind or "any", blob)
    except WindowpaneError as error:
        return f"blob {name!r}: {error}"
    return None


def _programs_in(store: MemoryBlobStore) -> Iterable[MemoryBlobStore]:
    return _by_generation(store).values() if HEADER in store else ()


def _by_generation(store: MemoryBlobStore) -> dict[int, MemoryBlobStore]:
    """Return the blobs of each program before and behind cuts under their own names."""
    found: dict[int, MemoryBlobStore] = {}
    is_cut = BucketHeader.of(blob_of(store, HEADER)).generation > 0
    for name in store:
        generation, _, own = name.rpartition("/")
        if name != HEADER or not is_cut:
            found.setdefault(int(generation or 0), MemoryBlobStore()).put(own, blob_of(store, name))
    return found
