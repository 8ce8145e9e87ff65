"""What ``windowpane inspect`` shows: which tables, of one batch."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windowpane.errors import InvalidSpecError
from windowpane.inspect import holder_of
from windowpane.inspect.inspection import Inspection
from windowpane.inspect.key_texts import value_of_text
from windowpane.inspect.tables import TABLES


def shown_tables(
    location: str, table: str | None, key: Sequence[str], window: str | None, most: int, before: int = -2
) -> tuple[int, list[tuple[str, pa.Table]]]:
    """Return the number of the last batch, and tables by name.

    Args:
        location: the checkpoint.
        table: the table that is asked for, ``None`` for all that hold something.
        key: the values of a key whose contents are asked for, none for no key.
        window: start and end of a window, with a slash between, whose contents are asked for.
        most: how many rows are shown at most.
        before: the batch that was shown already: nothing is read until there is another.

    Raises:
        InvalidSpecError: there is no such table, or the window is none.
    """
    holder = holder_of(location)
    if holder.last_batch() == before:
        return before, []
    found = Inspection(holder, most)
    if key or window is not None or table == "contents":
        bounds = None if window is None else tuple(each.strip() for each in window.split("/"))
        if bounds is not None and len(bounds) != 2:
            raise InvalidSpecError(f"--window {window!r}: say start and end, such as '2013-01-01 10:00/2013-01-01 11:00'.")
        one = None if not key else tuple(map(value_of_text, key))
        return found.batch, [("contents", found.contents(one, None if bounds is None else (bounds[0], bounds[1])))]
    if table is not None:
        return found.batch, [(table, found.table(table))]
    tables = [(name, found.table(name)) for name in TABLES]
    return found.batch, [(name, each) for name, each in tables if each.num_rows]
