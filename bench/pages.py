"""Pages: the tables of docs/performance.md and docs/performance/, written between markers from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

from bench import scoreboard
from bench.chart import PATH as CHART
from bench.environments import ROOT
from bench.report import cells
from bench.results import Results
from bench.standings import Standing
from bench.systems import TITLES

_BEGIN, _END = "<!-- {name}: written by `make bench` -->", "<!-- end of {name} -->"
_GOALS = ("case", "keys", "against", "goal", "reached", "in Arrow", "")


def write_pages(results: Results, standings: Sequence[Standing], root: Path = ROOT) -> None:
    """Put the tables between the markers."""
    goals = _table(_GOALS, [_goal_row(each) for each in standings])
    figures = f"{_figures(results)}\n\n![rows a second]({CHART.name})"
    blocks = {"machine": _machine(results), "goals": goals, "figures": figures}
    _write(root / "docs" / "performance" / "figures.md", blocks)
    write_scoreboard(results, root)


def write_scoreboard(results: Results, root: Path = ROOT) -> None:
    """Write the scoreboard: its picture, and the tables between the markers of its page and the README."""
    rows = scoreboard.rows_of(results)
    where = scoreboard.span(results, rows)
    (root / scoreboard.PICTURE.relative_to(ROOT)).write_text(scoreboard.picture(rows, where))
    _write(root / "docs" / "performance.md", {"scoreboard": scoreboard.table(rows), "day": f"Measured on {where}."})
    _write(root / "README.md", {"scoreboard": scoreboard.readme_table(rows)})


def _write(page: Path, blocks: Mapping[str, str]) -> None:
    text = page.read_text()
    for name, body in blocks.items():
        text = between(text, name, body)
    page.write_text(text)


def between(text: str, name: str, body: str) -> str:
    """Return ``text`` with ``body`` between the markers of ``name``, or as it is if it has none."""
    begin, end = _BEGIN.format(name=name), _END.format(name=name)
    if begin not in text or end not in text:
        return text
    return f"{text.partition(begin)[0]}{begin}\n{body}\n{end}{text.partition(end)[2]}"


def _goal_row(each: Standing) -> tuple[str, ...]:
    against = TITLES.get(each.against, each.against)
    verdict = f"**{each.verdict}**" if each.verdict == "not met" else each.verdict
    return each.case, f"{each.keys:,}", against, each.goal, each.reached, each.in_arrow, verdict


def _figures(results: Results) -> str:
    head = ("case", "keys", "system", "rows", "runs", "rows/s", "batch", "whole job", "peak memory", "state", "day")
    return _table(head, [(f.case, f"{f.keys:,}", TITLES[f.system], *cells(f), f.day) for f in results.figures])


def _machine(results: Results) -> str:
    held = results.machine
    packages = ", ".join(f"{name} {held[name]}" for name in ("pyspark", "pyarrow", "pandas", "numpy", "duckdb"))
    where = f"{held['processor']}, {held['cores']} cores, {held['memory_gb']} GB; {held['system']}; {held['java']}"
    return fill(f"{held['when']} on {where}; Python {held['python']}, {packages}.", 100, break_on_hyphens=False)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
