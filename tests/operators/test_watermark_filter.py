"""The watermark filter. Expected values follow RisingWave's rules: judge by the watermark before the chunk, then raise it."""

from __future__ import annotations

from windowpane.operators.watermark_filter import Change, WatermarkFilter


def inserts(*times: int | None) -> list[Change]:
    return [("+", {"at": time}) for time in times]


def late_by_5(watermark: int | None = None) -> WatermarkFilter:
    return WatermarkFilter.bounded("at", 5, watermark)


def test_the_first_chunk_passes_and_makes_the_watermark() -> None:
    rows = late_by_5()

    assert rows.process(inserts(10, 2, None)) == inserts(10, 2, None)
    assert rows.watermark == 5


def test_a_row_is_judged_by_the_watermark_before_its_chunk() -> None:
    rows = late_by_5(watermark=5)

    assert rows.process(inserts(100, 6, 4)) == inserts(100, 6)
    assert rows.process(inserts(94, 95)) == inserts(95)


def test_the_watermark_never_falls() -> None:
    rows = late_by_5(watermark=50)
    rows.process(inserts(52))

    assert rows.watermark == 50


def test_rows_without_a_time_are_dropped_once_there_is_a_watermark() -> None:
    rows = late_by_5()

    assert rows.process(inserts(None)) == inserts(None)
    assert rows.watermark is None
    assert late_by_5(watermark=0).process(inserts(None)) == []


def test_half_an_update_is_a_delete_or_an_insert() -> None:
    old, new = {"at": 3}, {"at": 20}

    assert late_by_5(watermark=5).process([("U-", old), ("U+", new)]) == [("+", new)]
    assert late_by_5(watermark=5).process([("U-", new), ("U+", old)]) == [("-", new)]
    assert late_by_5(watermark=5).process([("U-", new), ("U+", new)]) == [("U-", new), ("U+", new)]
    assert late_by_5(watermark=5).process([("U-", old), ("U+", old)]) == []


def test_any_expression_can_make_the_watermark() -> None:
    rows = WatermarkFilter("at", lambda row: None if row["at"] is None else row["at"] // 10 * 10)

    rows.process(inserts(19, None))

    assert rows.watermark == 10
