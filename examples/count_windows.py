"""Count windows: every three readings of a sensor, and, at every reading, the mean of its last two."""

from replay import session

import windowpane as wp

READINGS = [(number, "a" if number % 3 else "b", float(number)) for number in range(1, 13)]


def main(spark):
    """Print both; ``order_by`` makes "the last two" mean the same on every run."""
    readings = spark.createDataFrame(READINGS, "number int, sensor string, value double")
    by_sensor = wp.stream(readings).key_by("sensor", order_by="number")
    threes = by_sensor.count_window(3).aggregate(first=wp.first("number"), last=wp.last("number"), mean=wp.avg("value"))
    threes.df.orderBy("sensor", "first").show()
    moving = by_sensor.count_window(2, slide=1).aggregate(at=wp.last("number"), mean=wp.avg("value"))
    moving.df.orderBy("sensor", "at").show()


if __name__ == "__main__":
    main(session())
