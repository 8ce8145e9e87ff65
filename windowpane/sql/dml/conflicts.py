"""Rows that are inserted with a key that the table has already: which row stays.

A table has one rule for all its rows: RisingWave's ``ON CONFLICT``, with version columns. Rows of one INSERT count one after the
other, as they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from windowpane.sql.catalog.relations import Relation
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.streaming.deltas import same

PLACE = "windowpane_n"
"""The column that numbers the rows of an INSERT, from 1."""


class Keep(Enum):
    """What happens to the stored row of a key: the new row replaces it, is ignored, or fills it where it has values."""

    NEW = "overwrite"
    OLD = "do nothing"
    FILLED = "do update if not null"


@dataclass(frozen=True)
class OnConflict:
    """What a table does with a row whose key it has already.

    Args:
        versions: columns that decide, one after the other: a row whose versions are lower than those of the stored row is
            ignored. NULL is the lowest (RisingWave's ``WITH VERSION COLUMN``).
    """

    keep: Keep = Keep.NEW
    versions: tuple[str, ...] = ()


OVERWRITE = OnConflict()
IGNORE = OnConflict(Keep.OLD)


def winners(rows: str, relation: Relation, rule: OnConflict) -> str:
    """Return the query of the rows that an INSERT of ``rows`` leaves at their keys, but for keys whose row stays as it is."""
    names = [column.name for column in relation.visible]
    listed, keys = ", ".join(map(quoted, names)), ", ".join(map(quoted, relation.key))
    with_same_key = f"SEMI JOIN {rows} AS n ON {same('s', 'n', relation.key)}"
    old = f"SELECT {_of('s', names)}, 0 AS {PLACE} FROM {relation.storage} AS s {with_same_key}"
    new = f"SELECT {listed}, {PLACE} FROM {rows}"
    candidates = new if rule == OVERWRITE else _newer(f"{new} UNION ALL {old}", keys, rule.versions)
    if rule.keep is not Keep.FILLED:
        which = "" if rule.keep is Keep.OLD else " DESC"
        last = f"SELECT * FROM ({candidates}) QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {PLACE}{which}) = 1"
        return f"SELECT {listed} FROM ({last}) WHERE {PLACE} > 0"
    filled = [
        quoted(name)
        if name in relation.key
        else f"arg_max({quoted(name)}, {PLACE}) FILTER (WHERE {quoted(name)} IS NOT NULL) AS {quoted(name)}"
        for name in names
    ]
    return f"SELECT {', '.join(filled)} FROM ({candidates}) GROUP BY {keys} HAVING max({PLACE}) > 0"


def _newer(candidates: str, keys: str, versions: Sequence[str]) -> str:
    """Return the candidates without those that are older than one before them."""
    if not versions:
        return candidates
    order = ", ".join(f"{quoted(name)} NULLS FIRST" for name in versions)
    ranked = f"SELECT *, dense_rank() OVER (ORDER BY {order}) AS windowpane_v FROM ({candidates})"
    before = f"max(windowpane_v) OVER (PARTITION BY {keys} ORDER BY {PLACE} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    return f"SELECT * EXCLUDE (windowpane_v) FROM ({ranked}) QUALIFY windowpane_v >= coalesce({before}, 0)"


def _of(alias: str, names: Sequence[str]) -> str:
    return ", ".join(f"{alias}.{quoted(name)}" for name in names)
