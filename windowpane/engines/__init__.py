"""Engines: what runs one bucket of keys. An engine is built from a program and sees state only through the blob store."""
