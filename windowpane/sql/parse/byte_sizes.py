"""Sizes in bytes as settings write them: ``'512MB'``, ``'2 GB'``, or a number of bytes."""

from __future__ import annotations

import re

_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def read_size(text: str) -> int | None:
    """Return the bytes that a text means, ``None`` if it means none. A unit is 1,024 of the one before, as in PostgreSQL.

    Example:
        >>> read_size("1.5 kB"), read_size("0"), read_size("much")
        (1536, 0, None)
    """
    found = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?b?)\s*", text, re.IGNORECASE)
    unit = _UNITS.get(found[2].upper()) if found else None
    return None if found is None or unit is None else int(float(found[1]) * unit)
