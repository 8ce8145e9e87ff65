"""The hop window table function. Expected values follow RisingWave's definition of HOP, computed by hand."""

from __future__ import annotations

import pytest

from windowpane.errors import InvalidSpecError, TimestampOverflowError
from windowpane.operators.hop_window import HopWindow
from windowpane.windowing.times import MAX
from windowpane.windowing.windows import TimeWindow

HOP = HopWindow.of("at", slide=10, size=30)


@pytest.mark.parametrize(
    ("instant", "starts"),
    [(0, [-20, -10, 0]), (9, [-20, -10, 0]), (10, [-10, 0, 10]), (-1, [-30, -20, -10])],
)
def test_a_row_is_in_size_over_slide_windows(instant: int, starts: list[int]) -> None:
    assert HOP.windows(instant) == [TimeWindow(start, start + 30) for start in starts]


@pytest.mark.parametrize("offset", [3, -7, 33, -77])
def test_offsets_of_any_length_shift_the_starts(offset: int) -> None:
    assert HopWindow.of("at", 10, 10, offset).windows(4) == [TimeWindow(3, 13)]


def test_the_halves_of_an_update_come_out_as_delete_and_insert() -> None:
    tumble = HopWindow.of("at", 10, 10)
    changes = [("U-", {"at": 1}), ("U+", {"at": 11})]

    assert list(tumble.process(changes)) == [
        ("-", {"at": 1, "window_start": 0, "window_end": 10}),
        ("+", {"at": 11, "window_start": 10, "window_end": 20}),
    ]


def test_rows_of_one_input_row_stand_together_in_order_of_their_start() -> None:
    hop = HopWindow.of("at", 10, 20, columns=["window_start", "id"])
    changes = [("+", {"id": 1, "at": 5}), ("-", {"id": 2, "at": 15})]

    assert list(hop.process(changes)) == [
        ("+", {"window_start": -10, "id": 1}),
        ("+", {"window_start": 0, "id": 1}),
        ("-", {"window_start": 0, "id": 2}),
        ("-", {"window_start": 10, "id": 2}),
    ]


def test_a_row_without_a_time_is_in_no_window() -> None:
    assert list(HOP.process([("+", {"at": None})])) == []


@pytest.mark.parametrize(("watermark", "start"), [(0, -20), (9, -20), (10, -10)])
def test_a_watermark_becomes_the_bounds_of_the_earliest_window_to_come(watermark: int, start: int) -> None:
    assert HOP.watermark("at", watermark) == [("window_start", start), ("window_end", start + 30)]


def test_watermarks_pass_only_on_columns_that_are_output() -> None:
    narrow = HopWindow.of("at", 10, 30, columns=["window_end", "id"])

    assert narrow.watermark("at", 10) == [("window_end", 20)]
    assert narrow.watermark("id", 7) == [("id", 7)]
    assert narrow.watermark("other", 7) == []


@pytest.mark.parametrize(("slide", "size"), [(0, 10), (-1, 10), (10, 0), (10, -10), (10, 25)])
def test_windows_that_are_no_whole_number_of_slides_are_refused(slide: int, size: int) -> None:
    with pytest.raises(InvalidSpecError, match=f"slide is {slide} µs and size {size} µs"):
        HopWindow.of("at", slide, size)


def test_a_window_beyond_int64_is_refused() -> None:
    with pytest.raises(TimestampOverflowError, match=str(MAX)):
        list(HOP.explode({"at": MAX}))
