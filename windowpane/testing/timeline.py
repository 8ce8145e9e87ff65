"""A picture of the input of a harness and its results: event time to the right, order of arrival downwards, as SVG.

Dots are elements, the stepped line is the watermark, bars are firings over the span of their window. An element that
was too late for every window is a ring. Source of the picture: Akidau et al., The Dataflow Model, 2015.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

from windowpane.hidden_columns import PREFIX
from windowpane.testing.records import ClockRecord, ElementRecord, Emitted, Given, LateRecord, OutputRecord, WatermarkRecord
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import TimeWindow, Window

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 860, 24, 24, 56, 26
_COLORS = {"early": "#e8a33d", "on time": "#1f9e89", "late": "#c8553d"}
_INK, _FAINT, _WATERMARK = "#26323a", "#d5dbdf", "#4b6bbf"
_SECOND, _MINUTE, _HOUR, _DAY = 10**6, 60 * 10**6, 3600 * 10**6, 86_400 * 10**6
_STEPS = [
    *(unit * 10**power for power in range(6) for unit in (1, 2, 5)),
    *(unit * _SECOND for unit in (1, 2, 5, 10, 15, 30)),
    *(unit * _MINUTE for unit in (1, 2, 5, 10, 15, 30)),
    *(unit * _HOUR for unit in (1, 2, 3, 6, 12)),
    *(unit * _DAY for unit in (1, 2, 7, 14, 30, 90, 365)),
]
_LONGEST = 34
_ARRIVING = """\
<style>@media (prefers-reduced-motion: no-preference) {{
#so-far rect {{ animation: arrive {seconds}s linear infinite; transform-origin: 0 {top}px; }}
@keyframes arrive {{ from {{ transform: scaleY(0); }} 75%, to {{ transform: scaleY(1); }} }}
}}</style>
<clipPath id="so-far"><rect y="{top}" width="{width}" height="{height}"/></clipPath>
<g clip-path="url(#so-far)">"""
"""What arrives is drawn downwards, so a sheet that goes down uncovers it; it rests for a quarter of the time."""


@dataclass(frozen=True)
class _Step:
    given: Given
    emitted: list[Emitted] = field(default_factory=list)


class Timeline:
    """The picture; a notebook shows it by itself.

    Args:
        history: what happened, each emitted part behind the element or clock that caused it.

    Example:
        >>> harness.timeline().save("windows.svg")
    """

    def __init__(self, history: Sequence[Given | Emitted]) -> None:
        self._steps: list[_Step] = []
        for entry in history:
            if isinstance(entry, Given):
                self._steps.append(_Step(entry))
            elif self._steps:
                self._steps[-1].emitted.append(entry)
        self._low, self._high = self._span()
        self._unit = next((step for step in _STEPS if (self._high - self._low) / step <= 12), _STEPS[-1])

    @property
    def svg(self) -> str:
        """The picture as text."""
        return self._drawn(None)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path, seconds: float | None = None) -> None:
        """Write the picture to a file.

        Args:
            path: the file.
            seconds: how long the rows take to arrive, over and over, where the reader has nothing against movement; ``None`` for
                a picture that stands.
        """
        Path(path).write_text(self._drawn(seconds))

    # What is drawn.

    def _drawn(self, seconds: float | None) -> str:
        height = _TOP + _ROW * (sum(1 + max(_levels(step), default=0) for step in self._rows()) + 1) + 34
        moves = seconds is not None
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
            'font-family="system-ui, sans-serif" font-size="12">',
            f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
            *self._legend(),
            *self._axis(height - 34),
            *([_ARRIVING.format(seconds=seconds, top=_TOP, width=_WIDTH, height=height - _TOP)] if moves else []),
            *self._events(),
            *(["</g>"] if moves else []),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _rows(self) -> list[_Step]:
        """Return the steps that show something: a clock that brought nothing about does not."""
        return [step for step in self._steps if step.emitted or not isinstance(step.given, ClockRecord)]

    def _events(self) -> Iterator[str]:
        fired: set[tuple[str, Window]] = set()
        watermark, line = MIN, ""
        dots: list[str] = []
        y: float = _TOP
        for step in self._rows():
            y += _ROW
            if isinstance(step.given, WatermarkRecord):
                above, reached = y - _ROW / 2, self._x(step.given.watermark)
                line += f" L{self._x(watermark)},{above} L{reached},{above}" if line else f"M{reached},{above}"
                watermark = step.given.watermark
            if line:
                line += f" L{self._x(watermark)},{y}"
            at = self._x(step.given.timestamp) if isinstance(step.given, ElementRecord) else None
            levels = _levels(step)
            for record, level in zip(_outputs(step), levels, strict=True):
                yield from self._bar(record, y + _ROW * level, _timing(record, watermark, fired), at if level == 0 else None)
            if isinstance(step.given, ElementRecord):
                is_dropped = any(isinstance(record, LateRecord) and record.dropped for record in step.emitted)
                dots.append(self._dot(step.given, y, is_dropped))
            y += _ROW * max(levels, default=0)
        if line:
            yield f'<path d="{line}" fill="none" stroke="{_WATERMARK}" stroke-width="2" stroke-dasharray="5 3"/>'
        yield from dots

    def _bar(self, record: OutputRecord, y: float, timing: str, dot: float | None) -> Iterator[str]:
        start, end = self._bounds(record.window)
        text = _shown(record.value) if record.key is None else f"{record.key}: {_shown(record.value)}"
        sign = {"update_preimage": "− ", "delete": "− "}.get(record.change or "", "")
        color = _COLORS[timing]
        yield (
            f'<rect x="{start}" y="{y - 9}" width="{max(end - start, 2)}" height="18" rx="4" fill="{color}" fill-opacity="0.22" '
            f'stroke="{color}"/>'
        )
        is_covered = dot is not None and dot > end - 90  # by the element whose arrival fired the window
        x, anchor = (start + 6, "start") if is_covered else (end - 6, "end")
        yield f'<text x="{x}" y="{y + 4}" text-anchor="{anchor}" fill="{_INK}">{escape(sign + text)}</text>'

    def _dot(self, element: ElementRecord, y: float, is_dropped: bool) -> str:
        x = self._x(element.timestamp)
        fill = "#ffffff" if is_dropped else _INK
        stroke = _COLORS["late"] if is_dropped else _INK
        label = escape(f"{_shown(element.value)}{' dropped' if is_dropped else ''}")
        circle = f'<circle cx="{x}" cy="{y}" r="4.5" fill="{fill}" stroke="{stroke}" stroke-width="2"/>'
        return f'{circle}<text x="{x + 9}" y="{y + 4}" fill="{stroke}">{label}</text>'

    def _axis(self, bottom: float) -> Iterator[str]:
        at = -(-self._low // self._unit) * self._unit
        while at <= self._high:
            x = self._x(at)
            yield f'<line x1="{x}" y1="{_TOP - 8}" x2="{x}" y2="{bottom}" stroke="{_FAINT}"/>'
            yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="{_INK}">{self._label(at)}</text>'
            at += self._unit

    def _legend(self) -> Iterator[str]:
        x = _LEFT
        for name, color in _COLORS.items():
            yield f'<rect x="{x}" y="14" width="22" height="14" rx="4" fill="{color}" fill-opacity="0.22" stroke="{color}"/>'
            yield f'<text x="{x + 28}" y="25" fill="{_INK}">{name}</text>'
            x += 96
        yield (
            f'<line x1="{x}" y1="21" x2="{x + 26}" y2="21" stroke="{_WATERMARK}" stroke-width="2" stroke-dasharray="5 3"/>'
            f'<text x="{x + 32}" y="25" fill="{_INK}">watermark</text>'
        )
        right = _WIDTH - _RIGHT
        yield f'<text x="{right}" y="25" text-anchor="end" fill="{_INK}">event time →, arrival ↓</text>'

    # Times.

    def _span(self) -> tuple[int, int]:
        times = [step.given.timestamp for step in self._steps if isinstance(step.given, ElementRecord)]
        outputs = [each for step in self._steps for each in step.emitted if isinstance(each, OutputRecord)]
        windows = [each.window for each in outputs if isinstance(each.window, TimeWindow)]
        times += [bound for window in windows for bound in (window.start, window.end)]
        times = [time for time in times if MIN < time < MAX] or [0, 1]
        low, high = min(times), max(times)
        return low, high if high > low else low + 1

    def _x(self, time: int) -> float:
        share = (min(max(time, self._low), self._high) - self._low) / (self._high - self._low)
        return round(_LEFT + 16 + share * (_WIDTH - _LEFT - _RIGHT - 56), 1)

    def _bounds(self, window: Window) -> tuple[float, float]:
        if isinstance(window, TimeWindow):
            return self._x(window.start), self._x(window.end)
        return self._x(self._low), self._x(self._high)

    def _label(self, at: int) -> str:
        if self._unit < _SECOND:
            return f"{at}"
        instant = datetime.fromtimestamp(at / _SECOND, UTC)
        return instant.strftime("%d %b" if self._unit >= _DAY else "%H:%M" if self._unit >= _MINUTE else "%H:%M:%S")


def _outputs(step: _Step) -> list[OutputRecord]:
    return [record for record in step.emitted if isinstance(record, OutputRecord)]


def _levels(step: _Step) -> list[int]:
    """Return how many lines below the step each of its firings is drawn: none covers another."""
    taken: list[list[Window]] = []
    levels = []
    for record in _outputs(step):
        free = (n for n, windows in enumerate(taken) if not any(_overlap(record.window, window) for window in windows))
        level = next(free, len(taken))
        if level == len(taken):
            taken.append([])
        taken[level].append(record.window)
        levels.append(level)
    return levels


def _overlap(one: Window, other: Window) -> bool:
    if not (isinstance(one, TimeWindow) and isinstance(other, TimeWindow)):
        return True
    return one.start < other.end and other.start < one.end


def _timing(record: OutputRecord, watermark: int, fired: set[tuple[str, Window]]) -> str:
    """Return whether a result is early, on time or late: as its pane says, else by the watermark."""
    if record.pane is not None:
        return record.pane.timing.name.lower().replace("_", " ")
    which = (repr(record.key), record.window)
    if record.window.max_timestamp > watermark:
        return "early"
    is_first = which not in fired
    fired.add(which)
    return "on time" if is_first else "late"


def _shown(value: object) -> str:
    text = ", ".join(_column(str(name), each) for name, each in value.items()) if isinstance(value, dict) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _column(name: str, value: object) -> str:
    """Return a column as text; what was computed for an aggregate has no name to show."""
    return f"{value}" if name.startswith(PREFIX) else f"{name} {value}"
