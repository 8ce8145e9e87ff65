"""Rows that are inserted with a key that the table has already: which row stays.

A table has one rule for all its rows (RisingWave's ``ON CONFLICT``, with version columns), an INSERT one for its own
(PostgreSQL's ``ON CONFLICT ... DO``). Rows of one INSERT count one after the other, as they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from sqlglot import exp

from windowpane.sql.bind.scope import Column, Scope, Visible
from windowpane.sql.catalog.relations import Relation
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.parse.positions import Place
from windowpane.sql.streaming.deltas import same

PLACE = "windowpane_n"
"""The column that numbers the rows of an INSERT, from 1."""

EXCLUDED = "excluded"
"""The name of the row that was to be inserted, in the expressions of DO UPDATE (PostgreSQL)."""


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


@dataclass(frozen=True)
class InsertConflict:
    """``ON CONFLICT (target) DO ...`` of one INSERT; no assignments mean DO NOTHING.

    Args:
        target: the columns in parentheses, which must be the primary key; none means any.
        assignments: columns and their new values, over the old row and ``excluded``.
        where: an old row for which it is not true stays.
    """

    place: Place
    target: tuple[str, ...] = ()
    assignments: tuple[tuple[str, exp.Expr], ...] = ()
    where: exp.Expr | None = None


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


def old_and_excluded(relation: Relation) -> Scope:
    """Return the names in DO UPDATE, where a bare name is ambiguous, as in PostgreSQL."""
    old = [Visible(relation.name, Column(f"old.{c.name}", c.name, c.type)) for c in relation.visible]
    new = [Visible(EXCLUDED, Column(f"new.{c.name}", c.name, c.type)) for c in relation.visible]
    return Scope((*old, *(replace(each, starred=False) for each in new)))


def conflicting(rows: str, relation: Relation) -> str:
    """Return the query of pairs of old and new rows with the same key, under the ids of ``old_and_excluded``."""
    names = [column.name for column in relation.visible]
    old = ", ".join(f"s.{quoted(name)} AS {quoted(f'old.{name}')}" for name in names)
    new = ", ".join(f"n.{quoted(name)} AS {quoted(f'new.{name}')}" for name in names)
    return f"SELECT {old}, {new} FROM {relation.storage} AS s JOIN {rows} AS n ON {same('s', 'n', relation.key)}"


def _of(alias: str, names: Sequence[str]) -> str:
    return ", ".join(f"{alias}.{quoted(name)}" for name in names)
