"""Other names for what is there: ALTER ... RENAME TO, and views that take the place of others.

ALTER ... RENAME TO: another name for an entry of the catalog, in its own text, in those that read it, and in the store.

Definitions are kept as texts, so a rename is an edit of texts: ``FROM t`` becomes ``FROM u AS t``, as RisingWave rewrites them,
and every name in the query means what it meant. What a view, table or sink keeps is named after it, and is renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from windowpane.connectors.object_stores import shown
from windowpane.sql.embedded.storage import Storage, as_part
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.parse.cursor import Cursor
from windowpane.sql.parse.dialect import TokenType, tokenize
from windowpane.sql.parse.reader import rows_of, split
from windowpane.sql.values.text_values import text_literal


@dataclass(frozen=True)
class Edit:
    """The characters from ``start`` up to ``end`` (included) of a text become ``words``."""

    start: int
    end: int
    words: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        text = text[: edit.start] + edit.words + text[edit.end + 1 :]
    return text


_SECRET = ("password", "secret", "token", "credential", "access.key", "access-key", "pem", "jaas", "account.key", "sas")
"""What names of options have that hold a secret; ``key`` alone names a column."""


def without_secrets(text: str) -> str:
    """Return a definition as it is shown: with ``...`` for the values of options that are secret, and in addresses."""
    tokens, edits = tokenize(text), []
    for number, token in enumerate(tokens):
        if token.token_type != TokenType.STRING or number < 2 or tokens[number - 1].text != "=":
            continue
        first = number - 2
        while first >= 2 and tokens[first - 1].text in (".", "-"):
            first -= 2
        name = "".join(each.text for each in tokens[first : number - 1]).lower()
        address = _address(token.text)
        if any(part in name for part in _SECRET):
            edits.append(Edit(token.start, token.end, "'...'"))
        elif address != token.text:
            edits.append(Edit(token.start, token.end, text_literal(address)))
    return edited(text, edits)


def _address(text: str) -> str:
    """Return an address without its password, and of an object store without its options; other texts as they are."""
    scheme, found, rest = shown(text).partition("://")
    place, slash, path = rest.partition("/")
    who, at, host = place.rpartition("@")
    user, colon, _ = who.partition(":")
    return f"{scheme}{found}{user}:...{at}{host}{slash}{path}" if found and colon else shown(text)


def own_name(text: str, new: str) -> Edit:
    return _next_name(_behind_kind(text), new)


def followed_name(text: str, new: str) -> Edit:
    """Return the edit that renames the relation of ``CREATE SINK name FROM``, or of ``CREATE INDEX name ON``."""
    cursor = _behind_kind(text)
    cursor.name()
    cursor.skip()
    rows_of(cursor)
    return _next_name(cursor, new)


def read_names(reads: Iterable[exp.Table], query: exp.Expr, new: str) -> list[Edit]:
    """Return the edits of a query in which ``reads`` are the places where it reads what is renamed.

    A place is among them as often as it is read: a WITH query that is named twice, or IN whose subquery is bound again.
    """
    in_text = {id(table) for table in query.find_all(exp.Table)}
    edits: dict[int, Edit] = {}
    for table in sorted(reads, key=lambda each: id(each) in in_text):
        place = table.this.meta
        keeps_its_name = id(table) in in_text and not table.args.get("alias")
        words = f"{written(new)} AS {written(table.name)}" if keeps_its_name else written(new)
        edits[int(place["start"])] = Edit(int(place["start"]), int(place["end"]), words)
    return list(edits.values())


def _behind_kind(text: str) -> Cursor:
    cursor = next(iter(split(text)))
    cursor.expect("CREATE")
    cursor.take("MATERIALIZED")
    cursor.skip()
    cursor.take("IF", "NOT", "EXISTS")
    return cursor


def _next_name(cursor: Cursor, new: str) -> Edit:
    if cursor.peek(1) == ".":
        cursor.skip()
        cursor.skip()
    token = cursor.skip()
    return Edit(token.start, token.end, written(new))


def written(name: str) -> str:
    """Return a name as SQL text: quoted only where it must be."""
    is_plain = re.fullmatch("[a-z_][a-z0-9_]*", name) and tokenize(name)[0].token_type == TokenType.VAR
    return name if is_plain else quoted(name)


_NAMED_BY = (
    ("watermarks", "relation"),
    ("splits", "relation"),
    ("counters", "name"),
    ("files", "relation"),
    ("offsets", "relation"),
    ("catalog", "name"),
    ("errors", "view"),
    ("malformed", "source"),
    ("malformed_to", "source"),
    ("malformed_to", "relation"),
    ("malformed", "reader"),
    ("settings", "name"),
    ("sinks", "name"),
    ("plans", "view"),
    ("kept", "view"),
    ("streams", "name"),
    ("mail", "name"),
    ("mail", "relation"),
)
"""Tables of schema ``windowpane``, and the column that names an entry of the catalog."""


def move_stored(storage: Storage, old: str, new: str) -> None:
    """Give what the store keeps of an entry its new name: its rows, its pending changes, its outbox and its operators' state."""
    storage.waiting.save()
    storage.waiting.forget()
    for table, column in _NAMED_BY:
        storage.run(f"UPDATE windowpane.{table} SET {column} = ? WHERE {column} = ?", [new, old])
    old_part, new_part = as_part(old), as_part(new)
    owners = "UPDATE windowpane.blobs SET owner = ? || '/' || substr(owner, ?) WHERE starts_with(owner, ?)"
    storage.run(owners, [new_part, len(old_part) + 2, f"{old_part}/"])
    for name in _tables(storage, "main"):
        if name == old:
            storage.run(f"ALTER TABLE main.{quoted(old)} RENAME TO {quoted(new)}")
    for name in _tables(storage, "windowpane_state"):
        moved = _moved(name, old_part, new_part)
        if moved is not None:
            storage.run(f"ALTER TABLE windowpane_state.{quoted(name)} RENAME TO {quoted(moved)}")


def drop_stored(storage: Storage, view: str) -> None:
    for table, column in _NAMED_BY:
        storage.run(f"DELETE FROM windowpane.{table} WHERE {column} = ?", [view])
    storage.run(f"DROP TABLE IF EXISTS main.{quoted(view)}")
    drop_state(storage, view)


def drop_state(storage: Storage, view: str) -> None:
    part = as_part(view)
    storage.run("DELETE FROM windowpane.blobs WHERE starts_with(owner, ?)", [f"{part}/"])
    for name in _tables(storage, "windowpane_state"):
        if _is_of_view(name, part):
            storage.run(f"DROP TABLE windowpane_state.{quoted(name)}")


def _tables(storage: Storage, schema: str) -> list[str]:
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = ? ORDER BY ALL"
    return [row[0] for row in storage.run(query, [schema])]


def _moved(table: str, old: str, new: str) -> str | None:
    if table in (f"pending/{old}", f"outbox/{old}"):
        return f"{table.split('/')[0]}/{new}"
    return f"{new}{table[len(old) :]}" if _is_of_view(table, old) else None


def _is_of_view(table: str, view: str) -> bool:
    """Whether a table is one of a view's operators; ``pending/t`` is not one of a view with the name ``pending``."""
    return re.match(rf"{re.escape(view)}/\d+/", table) is not None
