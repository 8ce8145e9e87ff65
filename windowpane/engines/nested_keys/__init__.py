"""Nested keys: structs and arrays as the bytes of ``encode_key``, and back, whole columns at once.

The layout of the bytes is the codec's (``state/codec.py``); nothing here may give other bytes, or other values, than it gives.
"""
