"""Keyed state: maps of small names to framed, versioned blobs, and the structures built on them.

- ``blob_store``: the protocol a backend implements; ``memory``: the backend in memory.
- ``codec``: the frame around every blob and the canonical encoding of keys.
- ``sorted_pages``: rows in one global byte order, a two-level B+tree over a blob store.
"""

from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import decode_key, encode_key
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.sorted_pages import SortedPages, prefix_end

__all__ = ["BlobStore", "MemoryBlobStore", "SortedPages", "decode_key", "encode_key", "prefix_end"]
