"""A process function with state and a side output: each day's total against the best day so far, alerts on the side."""

from replay import replay, session, show

import windowpane as wp

ALERTS = wp.OutputTag("alerts", schema="shop string, message string")
SALES = [("north", 1, 40), ("north", 1, 20), ("north", 2, 90), ("south", 2, 10), ("north", 3, 30), ("south", 4, 0)]


class AgainstBest(wp.ProcessWindowFunction):
    """Keeps the best total of each key and emits a row when it is beaten."""

    def process(self, key, context, elements):
        total = sum(row["amount"] for row in elements)
        best = context.global_state("best")
        before = best.get()
        if before is not None and total > before:
            context.output(ALERTS, {"shop": key, "message": f"{total} beats {before}"})
        best.update(max(total, before or 0))
        yield {"total": total, "best_before": before}


def main(spark):
    """Run to the end of the input, printing each batch; the second batch holds only the row that closes the days before."""
    rows = [(shop, f"2024-05-0{day} 12:00:00", amount) for shop, day, amount in SALES]
    sales = replay(spark, "shop string, at timestamp, amount int", rows, [("south", "2024-05-09 12:00:00", 0)])
    daily = (
        wp.stream(sales, event_time="at", watermark="0 seconds")
        .key_by("shop")
        .window(wp.TumblingEventTimeWindows.of("1 day"))
        .side_output(ALERTS)
        .process(AgainstBest(), schema="total bigint, best_before bigint")
    )
    daily.start(main=show("daily"), alerts=show("alert"), trigger={"availableNow": True}).awaitTermination()


if __name__ == "__main__":
    main(session())
