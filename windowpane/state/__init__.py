"""Keyed state: maps of small names to framed, versioned blobs, and the structures built on them.

- ``blob_store``: the protocol a backend implements; ``memory``: the backend in memory.
- ``codec``: the frame around every blob and the canonical encoding of keys.
- ``sorted_pages``: rows in one global byte order, a two-level B+tree over a blob store.
"""
