"""The options of WITH (...): which connectors there are, and what each needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from windowpane.errors import SqlNameError, UnsupportedSqlError
from windowpane.sql.parse.positions import Place


def known_connector(options: Mapping[str, str], needed: Mapping[str, tuple[str, ...]], place: Place, sink: str = "") -> str:
    """Return the connector of options that have what it needs.

    Args:
        options: the options given.
        needed: the options that each connector needs.
        place: where they are written.
        sink: the name of the sink, empty for a source.

    Raises:
        UnsupportedSqlError: there is no such connector.
        SqlNameError: an option is missing.
    """
    connector = options.get("connector", "")
    if connector not in needed:
        kind = " of a sink" if sink else ""
        message = f"connector {connector!r}{kind} is not supported. There are {', '.join(needed)}."
        raise UnsupportedSqlError(message, place.line, place.column)
    missing = [name for name in needed[connector] if name not in options]
    if missing:
        who = f"sink {sink!r}" if sink else f"connector {connector!r}"
        raise SqlNameError(f"{who} needs the option {missing[0]!r} in WITH (...).", place.line, place.column)
    return connector


def refuse_other_options(options: Mapping[str, str], known: Iterable[str], place: Place) -> None:
    """Refuse options beside the connector and those it knows.

    Raises:
        SqlNameError: naming one.
    """
    unknown = set(options) - {"connector", *known}
    if unknown:
        message = f"connector {options.get('connector', '')!r} has no option {unknown.pop()!r}."
        raise SqlNameError(message, place.line, place.column)
