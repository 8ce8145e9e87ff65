"""A program's composable trigger as windowpane's."""

from __future__ import annotations

from collections.abc import Callable

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from windowpane.windowing.triggers.composable import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    Always,
    ComposableTrigger,
    Default,
    Never,
    OrFinally,
    Repeatedly,
)

_FIELDS: dict[str, tuple[str, ...]] = {
    "after_watermark": ("early", "late"),
    "after_count": ("count",),
    "after_processing_time": ("delay_ms",),
    "after_any": ("triggers",),
    "after_all": ("triggers",),
    "after_each": ("triggers",),
    "repeatedly": ("trigger",),
    "or_finally": ("main", "until"),
    "default": (),
    "always": (),
    "never": (),
}


def parse_composable(fields: Json) -> ComposableTrigger:
    """Return the trigger.

    Raises:
        InvalidSpecError: a tree that windowpane refuses.
        NotUnderstoodError: a trigger or field that is unknown.
    """
    kind = fields.get("type")
    if kind not in _FIELDS:
        raise NotUnderstoodError(f"composable trigger {kind!r} is not understood")
    require_known(fields, {"type", *_FIELDS[kind]}, f"trigger {kind}")
    return _MAKERS[kind](fields)


def _parts(fields: Json) -> list[ComposableTrigger]:
    return [parse_composable(part) for part in fields["triggers"]]


def _after_watermark(fields: Json) -> ComposableTrigger:
    parts = (fields.get(name) for name in ("early", "late"))
    early, late = (None if part is None else parse_composable(part) for part in parts)
    return AfterWatermark(early=early, late=late)


_MAKERS: dict[str, Callable[[Json], ComposableTrigger]] = {
    "after_watermark": _after_watermark,
    "after_count": lambda fields: AfterCount(fields["count"]),
    "after_processing_time": lambda fields: AfterProcessingTime(fields["delay_ms"]),
    "after_any": lambda fields: AfterAny(*_parts(fields)),
    "after_all": lambda fields: AfterAll(*_parts(fields)),
    "after_each": lambda fields: AfterEach(*_parts(fields)),
    "repeatedly": lambda fields: Repeatedly(parse_composable(fields["trigger"])),
    "or_finally": lambda fields: OrFinally(parse_composable(fields["main"]), parse_composable(fields["until"])),
    "default": lambda fields: Default(),
    "always": lambda fields: Always(),
    "never": lambda fields: Never(),
}
