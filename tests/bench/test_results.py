"""Results of several runs are side by side, case by case."""

from __future__ import annotations

from bench.results import Figure, Results, dated, machine, merged, read, read_kept, write


def test_a_case_that_ran_again_replaces_all_its_figures_and_no_other(tmp_path):
    path = tmp_path / "results.json"
    assert read_kept(path) == ()
    write(Results(machine(), (Figure("a", 1, "spark", rows=1), Figure("a", 1, "tws"), Figure("a", 2, "spark"))), path)
    again = merged(read_kept(path), [Figure("b", 1, "spark"), Figure("a", 1, "spark", rows=2)])
    assert [(figure.case, figure.keys, figure.rows) for figure in again.figures] == [("a", 1, 2), ("a", 2, 0), ("b", 1, 0)]
    write(dated(again), path)
    assert read(path) == dated(again)


def test_a_figure_keeps_its_day_when_other_cases_run_again(tmp_path):
    path = tmp_path / "results.json"
    write(Results(machine() | {"when": "2026-01-02 03:04 UTC"}, (Figure("a", 1, "spark"), Figure("b", 1, "spark"))), path)
    again = merged(read_kept(path), [Figure("a", 1, "spark")])
    days = [figure.day for figure in dated(Results(again.machine | {"when": "2026-05-06 07:08 UTC"}, again.figures)).figures]
    assert days == ["2026-05-06", "2026-01-02"]
