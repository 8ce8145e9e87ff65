"""What is in the bytes of a message: what users write for ``value`` and ``key``. Small: it comes with ``import windowpane``."""

from __future__ import annotations

from dataclasses import dataclass

PLAIN = ("text", "bytes")


@dataclass(frozen=True)
class Json:
    """A JSON object a message, with these columns."""

    schema: object  # DDL or StructType
