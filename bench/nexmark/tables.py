"""The columns of persons, auctions and bids, by name, in the words of a dialect."""

from __future__ import annotations

from collections.abc import Mapping

_TEXT, _NUMBER, _TIME = "text", "number", "time"
_COLUMNS = {
    "person": {
        "id": _NUMBER,
        "name": _TEXT,
        "email_address": _TEXT,
        "credit_card": _TEXT,
        "city": _TEXT,
        "state": _TEXT,
        "date_time": _TIME,
        "extra": _TEXT,
    },
    "auction": {
        "id": _NUMBER,
        "item_name": _TEXT,
        "description": _TEXT,
        "initial_bid": _NUMBER,
        "reserve": _NUMBER,
        "date_time": _TIME,
        "expires": _TIME,
        "seller": _NUMBER,
        "category": _NUMBER,
        "extra": _TEXT,
    },
    "bid": {
        "auction": _NUMBER,
        "bidder": _NUMBER,
        "price": _NUMBER,
        "channel": _TEXT,
        "url": _TEXT,
        "date_time": _TIME,
        "extra": _TEXT,
    },
}


def columns(entity: str, *, text: str, time: str) -> str:
    """Return the columns of an entity and their types, for a schema or a CREATE statement."""
    names: Mapping[str, str] = {_TEXT: text, _NUMBER: "bigint", _TIME: time}
    return ", ".join(f"{name} {names[kind]}" for name, kind in _COLUMNS[entity].items())


def times(entity: str) -> list[str]:
    """Return the names of the columns that are times."""
    return [name for name, kind in _COLUMNS[entity].items() if kind == _TIME]
