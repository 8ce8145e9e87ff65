"""A program's evictor as windowpane's."""

from __future__ import annotations

from windowpane.testing.conformance.reading.fields import Json, NotUnderstoodError, require_known
from windowpane.testing.conformance.reading.triggers import parse_delta
from windowpane.windowing.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor


def parse_evictor(fields: Json | None) -> Evictor | None:
    """Return the evictor, ``None`` for none.

    Raises:
        NotUnderstoodError: an unknown type or field.
    """
    if fields is None:
        return None
    known = {"type", "evict_after", "count", "keep_ms", "threshold", "delta", "delta_fn"}
    require_known(fields, known, "evictor")
    after = fields.get("evict_after", False)
    if fields["type"] == "count":
        return CountEvictor.of(fields["count"], after)
    if fields["type"] == "time":
        return TimeEvictor.of(fields["keep_ms"], after)
    if fields["type"] == "delta":
        return DeltaEvictor.of(fields["threshold"], parse_delta(fields), after)
    raise NotUnderstoodError(f"evictor type {fields['type']!r} is not understood")
