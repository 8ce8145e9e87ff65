"""Scoreboard: the figures that matter most, as one picture and one table, chosen from the results by ``scoreboard.json``.

A row there names a case of the results, or gives the seconds of a figure that is measured elsewhere, with its day.
``python -m bench.scoreboard`` writes picture and tables anew, without measuring anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import log10
from pathlib import Path
from typing import Any

from bench.environments import ROOT
from bench.results import Figure, Results

PATH = Path(__file__).resolve().parent / "scoreboard.json"
PICTURE = ROOT / "docs" / "pictures" / "scoreboard.svg"

_WIDTH, _MARGIN, _ROW, _BAR = 560, 16, 42, 12
_SLOWEST, _FASTEST = 0.4, 200.0
_STYLE = """<style>
  text { font: 15px system-ui, sans-serif; fill: #24292f }
  .paper { fill: #ffffff } .head { font-weight: 600 } .small { font-size: 13px }
  .faster { fill: #00897b } .slower { fill: #c8553d } .even { stroke: #6e7781 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e2e4e9 } .paper { fill: #1e2129 }
    .faster { fill: #4db6ac } .slower { fill: #e08a74 } .even { stroke: #8b949e }
  }
</style>"""


@dataclass(frozen=True)
class Row:
    """One line: what was done, and how long a peer and windowpane took.

    Args:
        against: the peer.
        what: what was done.
        peer_s: seconds of the peer: of a million rows, a batch or a job.
        ours_s: seconds of windowpane.
        day: when it was measured.
        in_readme: whether the README shows it.
        reached: how many times as fast windowpane is, where the seconds are rounded.
    """

    against: str
    what: str
    peer_s: float
    ours_s: float
    day: str
    in_readme: bool = False
    reached: float | None = None

    @property
    def times(self) -> float:
        """How many times as fast windowpane is."""
        return self.reached or self.peer_s / self.ours_s


def rows_of(results: Results, path: Path = PATH) -> list[Row]:
    """Return the rows of the scoreboard."""
    return [_row(group["against"], row, results) for group in json.loads(path.read_text()) for row in group["rows"]]


def _row(against: str, row: dict[str, Any], results: Results) -> Row:
    in_readme = bool(row.get("in_readme"))
    if "case" not in row:
        return Row(against, row["what"], row["peer"], row["ours"], row["day"], in_readme, row.get("times"))
    found = results.of(row["case"], row["keys"], row.get("emit", ""))
    peer, ours = found[row["peer"]], found[row["ours"]]
    measure = row.get("measure", "")
    return Row(against, row["what"], _seconds(peer, measure), _seconds(ours, measure), ours.day, in_readme)


def _seconds(figure: Figure, measure: str) -> float:
    """Return what a figure says, in seconds: of a million rows, or by the name of what is measured."""
    taken = getattr(figure, measure) if measure else figure.rows_per_s
    assert taken is not None, figure
    return float(taken) if measure else 1e6 / float(taken)


def table(rows: Sequence[Row]) -> str:
    """Return the table of the page; a line across it names the peer of those below."""
    lines = ["| | peer | windowpane | |", "|---|--:|--:|--:|"]
    for against, group in groupby(rows, lambda row: row.against):
        lines.append(f"| **beside {against}** | | | |")
        lines += [f"| {row.what} | {_text(row.peer_s)} | {_text(row.ours_s)} | {_times(row)} |" for row in group]
    return "\n".join(lines)


def readme_table(rows: Sequence[Row]) -> str:
    """Return the table of the README."""
    lines = ["| | windowpane against native Spark |", "|---|---|"]
    lines += [f"| {row.what} | {row.times:.1f}x |" for row in rows if row.in_readme]
    return "\n".join(lines)


def span(results: Results, rows: Sequence[Row]) -> str:
    """Return where and when the rows were measured."""
    held, days = results.machine, sorted(row.day for row in rows)
    return f"{held['processor']}, {held['cores']} cores, {held['memory_gb']} GB, {days[0]} to {days[-1]}"


def _text(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def _times(row: Row) -> str:
    text = _ratio(row)
    return text if row.times >= 1 else f"**{text}**"


def _ratio(row: Row) -> str:
    return f"{row.times:.0f}x" if row.times >= 10 else f"{row.times:.1f}x" if row.times >= 1 else f"{row.times:.2f}x"


def picture(rows: Sequence[Row], where: str) -> str:
    """Return the picture as SVG: a bar a row, on a logarithmic scale, to the right of the line where windowpane is faster."""
    parts, y = list[str](), 30
    parts.append(_words(_MARGIN, y, "How many times as fast windowpane is", "head"))
    parts.append(_words(_MARGIN, y + 20, f"logarithmic; {where}", "small"))
    y += 34
    for against, group in groupby(rows, lambda row: row.against):
        y += 28
        parts.append(_words(_MARGIN, y, f"beside {against}", "head"))
        y += 8
        for row in group:
            parts += _bar(row, y)
            y += _ROW
    return "\n".join([*_head(y + 16), *parts, "</svg>"]) + "\n"


def _head(height: int) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
    yield _STYLE
    yield f'<rect class="paper" width="{_WIDTH}" height="{height}" rx="8"/>'


def _bar(row: Row, y: int) -> Iterator[str]:
    end, even = _x(row.times), _x(1)
    left, width = min(end, even), max(2.0, abs(end - even))
    yield _words(_MARGIN, y + 16, row.what)
    kind = "faster" if row.times >= 1 else "slower"
    yield f'<rect class="{kind}" x="{left:.1f}" y="{y + 23}" width="{width:.1f}" height="{_BAR}" rx="2"/>'
    yield f'<line class="even" x1="{even:.0f}" x2="{even:.0f}" y1="{y + 20}" y2="{y + 26 + _BAR}"/>'
    yield _words(max(end, even) + 6, y + 23 + _BAR, _ratio(row), "small")


def _x(times: float) -> float:
    share = log10(times / _SLOWEST) / log10(_FASTEST / _SLOWEST)
    return _MARGIN + (_WIDTH - 2 * _MARGIN - 40) * min(1.0, max(0.0, share))


def _words(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}"{f" class={kind!r}" if kind else ""}>{escape(text)}</text>'


if __name__ == "__main__":
    from bench.pages import write_scoreboard
    from bench.results import read

    write_scoreboard(read())
