"""A trigger of one's own: early results at every large order, and the final one when the window ends. Tested without Spark."""

from replay import replay, session, show

import windowpane as wp
from windowpane.testing import WindowTestHarness


class LargeOrderTrigger(wp.EventTimeTrigger):
    """Fires at once for an order of at least 1,000, and when the watermark passes the end of the window."""

    def on_element(self, element, timestamp, window, context):
        result = super().on_element(element, timestamp, window, context)
        return wp.TriggerResult.FIRE if element["amount"] >= 1000 else result


def test_large_order_fires_early_and_leaves_nothing_behind():
    harness = WindowTestHarness(wp.TumblingEventTimeWindows.of(10), LargeOrderTrigger())
    harness.process_element({"amount": 5}, timestamp=1, key="eu")
    harness.process_element({"amount": 2000}, timestamp=2, key="eu")
    assert [len(record.value) for record in harness.take_output()] == [2]
    harness.process_watermark(9)
    assert [len(record.value) for record in harness.take_output()] == [2]
    assert harness.state_entries() == []


def main(spark):
    """Run the test, then the trigger on a stream."""
    test_large_order_fires_early_and_leaves_nothing_behind()
    first = [("eu", "2024-05-01 10:00:00", 5), ("eu", "2024-05-01 10:10:00", 2000), ("us", "2024-05-01 10:15:00", 7)]
    rows = replay(spark, "region string, at timestamp, amount int", first, [("eu", "2024-05-01 11:00:00", 1)])
    orders = wp.stream(rows, event_time="at", watermark="0 seconds").key_by("region")
    hourly = orders.window(wp.TumblingEventTimeWindows.of("1 hour")).trigger(LargeOrderTrigger())
    result = hourly.aggregate(total=wp.sum("amount"))
    result.start(main=show("orders"), trigger={"availableNow": True}).awaitTermination()


if __name__ == "__main__":
    main(session())
