"""Panes: windows that fire key by key, by count or by clock, with or without an evictor, on Arrow tables."""
