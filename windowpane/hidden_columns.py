"""Hidden columns: what travels beside users' columns, under names that begin with one prefix. They are part of the state format.

Names that one module alone uses for a step of its own are made there by ``hidden``.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__windowpane_"  # What the name of every hidden column begins with


def hidden(name: str) -> str:
    """Return the name of a hidden column."""
    return PREFIX + name


# Of rows on their way to an operator, and out of it.

TIME: Final = hidden("time")  # Event time of a row in microseconds, null if it has none
FIRING_WATERMARK: Final = hidden("judged")
"""The watermark under which a window emitted a row. The next window compares the row with it to find whether the row is late."""
PARTITION: Final = hidden("partition")  # Input partition of a row
POSITION: Final = hidden("position")
"""Position of a row in its input partition: with ``PARTITION`` it makes the arrival order deterministic."""
ORIGIN: Final = hidden("origin")  # Where a row was read, as text, for those who ask when it is malformed
MISREAD: Final = hidden("misread")  # The text of a document that is no row of its format; NULL in rows
SPLIT: Final = hidden("kafka_partition")  # Which partition of Kafka a row is of, where each has a watermark of its own
WHY_MISREAD: Final = hidden("why_misread")  # Beside it the reason, where whoever read the document knows it
PASSED: Final = hidden("passed")  # A blob that the next operator of a chain hands on unread
SYSTEM: Final = (TIME, FIRING_WATERMARK, PASSED)  # What rows of an operator before carry

# Of rows and partial aggregates in a bucket.

ARRIVAL: Final = hidden("arrival")
"""Number of a row in the order of arrival, unique in its bucket: what ordered aggregates need of rows."""
HASH: Final = hidden("hash")  # The hash of the key of a row that is held
ROWS: Final = hidden("rows")  # How many rows were folded into a row of partials; where it is late, so many rows were
SLICE: Final = hidden("slice")  # The start of a row's slice
SEGMENT: Final = hidden("segment")  # The window or shard of keys whose segment log holds a row
COUNT: Final = hidden("count")  # How many rows a key's window has counted
START: Final = hidden("start")  # The start of a session, in microseconds
END: Final = hidden("end")  # The end of a session or window, in microseconds
FILLED: Final = hidden("filled")  # Whether a session holds something
HELD: Final = hidden("held")  # How many elements a session was given
SORT_KEY: Final = hidden("key")
"""What is stored of the sort key of a row of OVER windows: what is not made anew whenever the row is read."""
