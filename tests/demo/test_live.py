"""The live demo on a clock of its own: windows fill, and their last results count all flights that were not too late."""

from __future__ import annotations

import io
import sys
from collections import Counter

import pytest
from rich.console import Console

from windowpane.demo import live
from windowpane.demo.live import Board, Flight, drawn, flights_of, show

MINUTE = 60_000_000
HOUR = 60 * MINUTE


class FakeClock:
    """A clock that goes on only while somebody sleeps."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def text(board: Board) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(drawn(board))
    written = console.file
    assert isinstance(written, io.StringIO)
    return written.getvalue()


def test_a_window_fills_gives_an_early_result_one_on_time_and_a_refined_one() -> None:
    board = Board([Flight("JFK", scheduled, arrives, delay) for scheduled, arrives, delay in FEW])
    board.advance(5 * MINUTE)
    assert "▇" in text(board)
    assert board.counted() == {"early": 0, "on time": 0, "refined": 0}
    board.advance(51 * MINUTE)  # the watermark, 30 minutes behind 50, passes the first quarter
    assert "2 early, +3 min" in text(board)
    board.advance(91 * MINUTE)
    assert "2 on time, +3 min" in text(board)
    board.advance(95 * MINUTE)
    assert "3 refined, +30 min" in text(board)
    assert board.is_done
    board.close()
    assert board.counted() == {"early": 1, "on time": 2, "refined": 1}
    assert "late and dropped 0" in text(board)


FEW = [(0, 4 * MINUTE, 4), (50 * MINUTE, 50 * MINUTE, 2), (90 * MINUTE, 91 * MINUTE, 1), (10 * MINUTE, 94 * MINUTE, 84)]


def test_a_day_is_paced_by_the_clock_and_its_last_results_count_all_of_its_flights() -> None:
    day, clock = flights_of(live.DAY), FakeClock()
    board = show(Console(file=io.StringIO(), width=120), day, 60, clock.now, clock.sleep)
    hours = (day[-1].arrives - day[0].arrives) / HOUR
    assert set(clock.slept) == {1 / live.FRAMES}
    assert hours <= clock.time - 100 < hours + 1 / live.FRAMES + 0.001
    final = {window: hour.results[-1] for window, hour in board.hours.items() if hour.results}
    expected = Counter((flight.scheduled - flight.scheduled % HOUR, flight.origin) for flight in day)
    found = Counter({window: each["flights"] + each["cancelled"] for window, each in final.items()})
    assert board.dropped > 0
    assert found.total() == len(day) - board.dropped
    assert found <= expected
    assert all(board.counted().values())


def test_what_makes_no_day_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in ((["--speed", "0"], "time goes forward"), (["--day", "2014-01-01"], "those of 2013")):
        with pytest.raises(SystemExit):
            live.main(arguments)
        assert said in capsys.readouterr().err


def test_the_command_shows_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import runpy

    monkeypatch.setattr(sys, "argv", ["demo", "--live", "--speed", "100000"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("windowpane.demo", run_name="__main__")
    assert not ended.value.code
    assert "The whole year on Spark: windowpane demo" in capsys.readouterr().out
