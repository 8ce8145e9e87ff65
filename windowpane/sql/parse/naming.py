"""Which names relations and columns may have: stores tell names apart without regard to case, and some are windowpane's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from windowpane.errors import SqlNameError
from windowpane.sql.parse.positions import Place

_RESERVED = re.compile(r"_row_id|_watermark|_key_\d+|_change_type|windowpane_.*", re.IGNORECASE)
"""Hidden columns of tables, views and changelogs."""
_SYSTEM = ("ctid", "tableoid", "xmin", "cmin", "xmax", "cmax")
"""Columns that every table of PostgreSQL has."""


def check_relation(name: str, others: Iterable[str], place: Place) -> None:
    """Refuse the name of a new relation.

    Raises:
        SqlNameError: it is empty, or differs from another only in case.
    """
    _check_length(name, place)
    for other in others:
        if other != name and other.lower() == name.lower():
            message = f"{name!r} differs from {other!r}, which is there, only in case. Choose another name."
            raise place.error(SqlNameError, message)


def check_columns(relation: str, names: Sequence[str], place: Place) -> None:
    """Refuse names of the columns of a table or materialized view.

    Raises:
        SqlNameError: one is empty, is windowpane's own or PostgreSQL's, or appears twice, perhaps in other case.
    """
    for index, name in enumerate(names):
        _check_length(name, place)
        if _RESERVED.fullmatch(name):
            message = f"column {name!r} of {relation!r}: the name is windowpane's own. Choose another, with AS in a query."
            raise place.error(SqlNameError, message)
        if name in _SYSTEM:
            message = f"column {name!r} of {relation!r} conflicts with a system column name. Choose another, with AS in a query."
            raise place.error(SqlNameError, message)
        for other in (other for other in names[:index] if other.lower() == name.lower()):
            what = "stands there twice" if other == name else f"differs from {other!r} only in case"
            raise place.error(SqlNameError, f"column {name!r} of {relation!r} {what}. Give one another name, with AS in a query.")


def _check_length(name: str, place: Place) -> None:
    if not name or "\0" in name:
        raise place.error(SqlNameError, "a name is empty, or has a zero byte.")
