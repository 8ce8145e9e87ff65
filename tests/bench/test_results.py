"""Results of several runs stand side by side, case by case."""

from __future__ import annotations

from bench.results import Figure, Results, machine, merged, read, read_kept, write


def test_a_case_that_ran_again_replaces_all_its_figures_and_no_other(tmp_path):
    path = tmp_path / "results.json"
    assert read_kept(path) == ()
    write(Results(machine(), (Figure("a", 1, "spark", rows=1), Figure("a", 1, "tws"), Figure("a", 2, "spark"))), path)
    again = merged(read_kept(path), [Figure("b", 1, "spark"), Figure("a", 1, "spark", rows=2)])
    assert again.figures == (Figure("a", 1, "spark", rows=2), Figure("a", 2, "spark"), Figure("b", 1, "spark"))
    write(again, path)
    assert read(path) == again
