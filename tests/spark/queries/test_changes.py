"""A query that goes on under another program: what is safe goes on, what is not is said on the driver, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import windowpane as wp
from tests.spark.helpers import Feed, run
from windowpane.cli import app
from windowpane.errors import ChangedPlanError
from windowpane.spark.queries.continuing import programs_of

pytestmark = pytest.mark.spark

FIRST = [("a", 1, 1), ("a", 3, 2), ("b", 12, 4)]
SECOND = [("a", 13, 8), ("b", 18, 16), ("a", 22, 32), ("a", 9, 64), ("b", 27, 128), ("a", 34, 256)]
END = [("z", 90, 0)]


def keyed(feed: Feed, spark: Any) -> Any:
    return wp.stream(feed.stream(spark), "t", watermark="5 seconds").key_by("k")


def tens(feed: Feed, spark: Any) -> Any:
    return keyed(feed, spark).window(wp.TumblingEventTimeWindows.of("10 seconds")).aggregate(s=wp.sum("v"))


def fives(feed: Feed, spark: Any) -> Any:
    return keyed(feed, spark).window(wp.TumblingEventTimeWindows.of("5 seconds")).aggregate(s=wp.sum("v"))


def more(feed: Feed, spark: Any) -> Any:
    windowed = keyed(feed, spark).window(wp.TumblingEventTimeWindows.of("10 seconds")).allowed_lateness("1 minute")
    return windowed.aggregate(n=wp.count(), total=wp.sum("v"))


def program(spark: Any) -> Any:
    """Return the program with another call, as the command line imports it; its rows are of no matter."""
    rows = spark.readStream.schema("k string, t timestamp, v long").parquet(str(Path(__file__).parent))
    windowed = wp.stream(rows, "t", watermark="5 seconds").key_by("k").window(wp.TumblingEventTimeWindows.of("10 seconds"))
    return windowed.allowed_lateness("1 minute").aggregate(n=wp.count(), total=wp.sum("v"))


def test_windows_become_shorter_by_a_cut_and_none_is_partial_or_lost(spark: Any, tmp_path: Path) -> None:
    feed, checkpoint = Feed(tmp_path / "in").add(FIRST), tmp_path / "checkpoint"
    assert run(tens(feed, spark), checkpoint=checkpoint).rows() == []
    found = wp.changes(fives(feed, spark), str(checkpoint))
    assert found.verdict == "safe"
    # the latest row so far is that of second 12, whose millisecond ends at 12.001: the first five seconds above begin at 15
    assert [(each["part"], each["verdict"], each["cut"] - 1_704_067_200_000_000) for each in found.parts] == [
        ("assigner", "safe", 15_000_000)
    ]
    feed.add(SECOND)
    second = run(fives(feed, spark), checkpoint=checkpoint).rows()
    feed.add(END)
    third = run(fives(feed, spark), checkpoint=checkpoint).rows()
    # old windows are those of ten seconds that start before 15, new ones those of five from there on
    assert sorted([*second, *third]) == [
        ("a", 0, 10, 67),
        ("a", 10, 20, 8),
        ("a", 20, 25, 32),
        ("a", 30, 35, 256),
        ("b", 10, 20, 20),
        ("b", 15, 20, 16),
        ("b", 25, 30, 128),
    ]
    first, changed = programs_of(spark, str(checkpoint))
    assert (first["batch"], first["parts"]) == (0, [])
    assert [each["part"] for each in changed["parts"]] == ["assigner"]


@pytest.mark.slow
def test_an_early_cut_says_what_new_windows_lack(spark: Any, tmp_path: Path) -> None:
    feed, checkpoint = Feed(tmp_path / "in").add([*FIRST, ("a", 27, 8), ("a", 28, 16), ("b", 34, 32)]), tmp_path / "checkpoint"

    def windows(size: str) -> Any:
        return keyed(feed, spark).window(wp.TumblingEventTimeWindows.of(size)).aggregate(n=wp.count(), s=wp.sum("v"))

    run(windows("10 seconds"), checkpoint=checkpoint)
    found = wp.changes(windows("5 seconds"), str(checkpoint), cut="2024-01-01 00:00:20")
    assert found.verdict == "accept"
    # a's window of 20 to 30 has two rows, b's of 30 to 40 one; a's of 0 to 10 and b's of 10 to 20 end before the cut
    lacking = "lack the rows that came so far; of the program before 2 windows of keys are open there, at most 3 rows"
    assert lacking in str(found)
    assert lacking in found.parts[0]["lacking"]
    feed.add([("a", 31, 64), ("b", 41, 128)], END)
    rows = run(windows("5 seconds"), checkpoint=checkpoint, changes="accept", cut="2024-01-01 00:00:20").rows()
    # those that end before second 29 were over when the old program stopped; b's row of second 34 is in its window alone
    assert rows == [("a", 30, 35, 1, 64), ("b", 40, 45, 1, 128)]


@pytest.mark.slow
def test_sessions_take_another_trigger(spark: Any, tmp_path: Path) -> None:
    feed, checkpoint = Feed(tmp_path / "in").add(FIRST), tmp_path / "checkpoint"

    def sessions(trigger: Any) -> Any:
        return (
            keyed(feed, spark).window(wp.EventTimeSessionWindows.with_gap("4 seconds")).trigger(trigger).aggregate(s=wp.sum("v"))
        )

    run(sessions(wp.PurgingTrigger.of(wp.CountTrigger.of(3))), checkpoint=checkpoint)
    feed.add([("a", 5, 8), ("b", 14, 16)])
    by_end = sessions(wp.EventTimeTrigger.create())
    with pytest.raises(ChangedPlanError, match="its timers and counts begin anew for open windows"):
        run(by_end, checkpoint=checkpoint)
    second = run(by_end, checkpoint=checkpoint, changes="accept").rows()
    feed.add(END)
    third = run(by_end, checkpoint=checkpoint).rows()
    feed.add([("y", 95, 1)])
    fourth = run(by_end, checkpoint=checkpoint).rows()
    # a's first session was over when the old program stopped, whose trigger did not fire it; b's has the rows 4 and 16
    assert sorted([*second, *third, *fourth]) == [("a", 5, 9, 8), ("b", 12, 18, 20)]
    feed.add([("z", 93, 2)])
    assert run(sessions(wp.EachBatch()), checkpoint=checkpoint, changes="accept").rows() == [("z", 90, 97, 2)]


@pytest.mark.slow
def test_a_start_that_has_committed_nothing_leaves_the_old_program(spark: Any, tmp_path: Path) -> None:
    feed, checkpoint = Feed(tmp_path / "in").add(FIRST), tmp_path / "checkpoint"
    run(tens(feed, spark), checkpoint=checkpoint)
    feed.add(SECOND)

    def fails(rows: Any, batch: int) -> None:
        rows.collect()
        raise RuntimeError("the sink is down")

    query = fives(feed, spark).start(main=fails, checkpoint=str(checkpoint), trigger={"availableNow": True})
    with pytest.raises(Exception, match="the sink is down"):
        query.awaitTermination()
    assert wp.changes(tens(feed, spark), str(checkpoint)).verdict == "same"
    assert run(tens(feed.add(END), spark), checkpoint=checkpoint).rows() == [
        ("a", 0, 10, 67),
        ("a", 10, 20, 8),
        ("a", 20, 30, 32),
        ("a", 30, 40, 256),
        ("b", 10, 20, 20),
        ("b", 20, 30, 128),
    ]


@pytest.mark.slow
def test_a_checkpoint_of_a_dataframe_is_asked_for_its_state_and_one_with_a_cut_needs_start(spark: Any, tmp_path: Path) -> None:
    feed, checkpoint = Feed(tmp_path / "in").add(FIRST), tmp_path / "checkpoint"

    def written(result: Any) -> Any:
        query = result.df.writeStream.foreachBatch(lambda rows, batch: rows.collect()).trigger(availableNow=True)
        return query.option("checkpointLocation", str(checkpoint)).start()

    written(tens(feed, spark)).awaitTermination()
    found = wp.changes(fives(feed, spark), str(checkpoint))
    assert [(each["part"], each["verdict"]) for each in found.parts] == [("assigner", "safe")]
    assert "open: 2 windows or keys" in str(found)
    assert run(fives(feed.add(SECOND), spark), checkpoint=checkpoint).rows()[0] == ("a", 0, 10, 67)
    feed.add(END)
    with pytest.raises(Exception, match="parted by a cut between programs, which result"):
        written(fives(feed, spark)).awaitTermination()


@pytest.mark.slow
def test_an_added_call_asks_and_is_null_in_windows_of_before(spark: Any, tmp_path: Path) -> None:
    feed, checkpoint = Feed(tmp_path / "in").add(FIRST), tmp_path / "checkpoint"
    run(tens(feed, spark), checkpoint=checkpoint)
    feed.add(SECOND, END)
    with pytest.raises(ChangedPlanError, match=r"call n: was absent, is n = count\(\)\n +accept: NULL in results") as refused:
        run(more(feed, spark), checkpoint=checkpoint)
    assert "changes='accept'" in str(refused.value)
    assert set(refused.value.differences) == {"allowed lateness", "call n", "call total"}
    shown = CliRunner().invoke(app, ["checkpoint", "diff", str(checkpoint), f"{__name__}:program", "--json"])
    assert shown.exit_code == 1
    parts = json.loads(shown.output.splitlines()[-1])["parts"]
    assert {each["part"]: each["verdict"] for each in parts} == {
        "allowed lateness": "safe",
        "call n": "accept",
        "call total": "safe",
    }
    rows = run(more(feed, spark), checkpoint=checkpoint, changes="accept").rows()
    assert rows == [
        ("a", 0, 10, None, 67),
        ("a", 10, 20, None, 8),
        ("a", 20, 30, 1, 32),
        ("a", 30, 40, 1, 256),
        ("b", 10, 20, None, 20),
        ("b", 20, 30, 1, 128),
    ]


@pytest.mark.slow
def test_other_keys_are_refused_before_anything_runs(spark: Any, tmp_path: Path) -> None:
    feed, checkpoint = Feed(tmp_path / "in").add(FIRST), tmp_path / "checkpoint"
    run(tens(feed, spark), checkpoint=checkpoint)
    other = wp.stream(feed.stream(spark), "t", watermark="5 seconds").key_by("v")
    result = other.window(wp.TumblingEventTimeWindows.of("10 seconds")).aggregate(s=wp.count())
    assert wp.changes(result, str(checkpoint)).verdict == "refused"
    with pytest.raises(ChangedPlanError, match="keys: was k string, is v int64"):
        run(result, checkpoint=checkpoint, changes="accept")
    assert run(tens(feed.add(END), spark), checkpoint=checkpoint).rows() == [("a", 0, 10, 3), ("b", 10, 20, 4)]


def test_a_cut_is_above_the_rows_that_came_under_a_longer_delay(spark: Any, tmp_path: Path) -> None:
    feed, checkpoint = Feed(tmp_path / "in").add([("a", 100, 1)]), tmp_path / "checkpoint"

    def windows(delay: str, size: str) -> Any:
        rows = wp.stream(feed.stream(spark), "t", watermark=delay).key_by("k")
        return rows.window(wp.TumblingEventTimeWindows.of(size)).aggregate(s=wp.sum("v"))

    run(windows("60 seconds", "10 seconds"), checkpoint=checkpoint)
    feed.add([("a", 50, 2)])
    run(windows("5 seconds", "10 seconds"), checkpoint=checkpoint)
    (found,) = wp.changes(windows("5 seconds", "5 seconds"), str(checkpoint)).parts
    # the watermark is at 45 now, but the row of second 100 has come under the one of 60 seconds' delay
    assert found["cut"] - 1_704_067_200_000_000 >= 105_000_000
