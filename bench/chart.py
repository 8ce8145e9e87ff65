"""Chart: rows a second of each system in each case, as bars on a logarithmic scale, written as plain SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10
from pathlib import Path

from bench.environments import ROOT
from bench.results import Figure, Results
from bench.systems import OURS, TITLES

PATH = ROOT / "docs" / "performance" / "figures.svg"
_LEFT, _WIDTH, _BAR, _GAP = 290, 560, 16, 12
_LOWEST, _HIGHEST = 3, 7
_OWN, _OTHER, _TEXT = "#2f7d5d", "#a9b4bd", "#24292f"


def draw(results: Results, path: Path = PATH) -> None:
    """Write the chart."""
    parts, y, before = [], 60, None
    for figure in (f for f in results.figures if f.rows_per_s):
        group = (figure.case, figure.keys)
        if group != before:
            y += _GAP if before is None else _GAP + 18
            parts.append(_text(10, y - 4, f"{figure.case}, {figure.keys:,} keys", "bold"))
            before = group
        parts += _bar(figure, y)
        y += _BAR + 3
    path.write_text(_document(parts, y + 30))


def _bar(figure: Figure, y: int) -> list[str]:
    rate = float(figure.rows_per_s or 0)
    length = max(2.0, _x(rate) - _LEFT)
    colour = _OWN if figure.system in OURS else _OTHER
    return [
        _text(_LEFT - 8, y + _BAR - 4, TITLES[figure.system], anchor="end"),
        f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>',
        _text(_LEFT + length + 6, y + _BAR - 4, f"{rate:,.0f}"),
    ]


def _x(rate: float) -> float:
    share = (log10(max(rate, 1)) - _LOWEST) / (_HIGHEST - _LOWEST)
    return _LEFT + _WIDTH * min(1.0, max(0.0, share))


def _text(x: float, y: float, text: str, weight: str = "normal", anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y}" font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'


def _document(parts: Sequence[str], height: int) -> str:
    grid = []
    for power in range(_LOWEST, _HIGHEST + 1):
        x = _x(10**power)
        grid.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="48" y2="{height - 20}" stroke="#e1e4e8"/>')
        grid.append(_text(x, 42, f"{10**power:,}", anchor="middle"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 110}" height="{height}"'
    style = f' font-family="sans-serif" font-size="12" fill="{_TEXT}"><rect width="100%" height="100%" fill="white"/>'
    title = _text(10, 22, "Rows a second, logarithmic", "bold")
    return "\n".join([head + style, title, *grid, *parts, "</svg>"]) + "\n"
