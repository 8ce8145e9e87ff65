"""RETURNING: the rows that a change wrote, or removed, through a list of expressions (PostgreSQL)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from windowpane.sql.catalog.relations import PlainView, Relation, Schema
from windowpane.sql.nodes import Node, Project, Scan


@dataclass(frozen=True)
class ChangedRows:
    """A schema in which one table holds the rows of a change only; other names mean what they mean."""

    schema: Schema
    relation: Relation
    rows: str

    def find(self, name: str) -> Relation | PlainView | None:
        return replace(self.relation, storage=self.rows) if name == self.relation.name else self.schema.find(name)

    def names(self) -> list[str]:
        return self.schema.names()


def is_row_by_row(node: Node) -> bool:
    """Whether a plan has a row for each changed row: it aggregates nothing, and reads nothing else."""
    return isinstance(node, Scan) or (isinstance(node, Project) and is_row_by_row(node.input))


def over_changed_rows(items: exp.Select, table: str) -> exp.Select:
    source = exp.Table(this=exp.to_identifier(table, quoted=True))
    query = items.copy()
    query.set("from_", exp.From(this=source))
    return query
