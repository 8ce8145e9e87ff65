"""The options of WITH (...): which connectors there are, and what each needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from windowpane.connectors.object_stores import shown
from windowpane.errors import SqlNameError, UnsupportedSqlError
from windowpane.malformed import POLICIES
from windowpane.sql.parse.positions import Place

MALFORMED = "malformed"
"""The option of a source that says what becomes of its malformed rows."""


PROPERTIES = "properties."
SERVERS = "properties.bootstrap.server"
"""What options of Kafka's client begin with, and the one that names its servers."""
INCLUDE = "include."
"""What options begin with that say what of a message a column is."""
FORMAT, ENCODE, KEY_ENCODE = "format", "encode", "key_encode"
"""The options that ``FORMAT ... ENCODE ... KEY ENCODE ...`` behind ``WITH (...)`` is."""


STARTUP, MILLIS = "scan.startup.mode", "scan.startup.timestamp.millis"
"""The options of Kafka that say where a new source begins."""
_OF_KAFKA = {"kafka": ("topic", SERVERS)}
_KNOWN_OF_KAFKA = ("topic", PROPERTIES, STARTUP, MILLIS, MALFORMED, FORMAT, ENCODE, INCLUDE)


def check_kafka(options: Mapping[str, str], place: Place, formats: tuple[str, ...]) -> None:
    """Refuse what a source of Kafka in RisingWave's words cannot be.

    Args:
        options: those of the source.
        place: where they are written.
        formats: the words behind FORMAT that the session takes.

    Raises:
        SqlError: an option or a value that there is not, or one that is missing.
    """
    known_connector(options, _OF_KAFKA, place)
    refuse_other_options(options, _KNOWN_OF_KAFKA, place)
    check_policy(options, place)
    values = {
        FORMAT: (formats, "On Spark rows of a source are inserts: UPSERT and DEBEZIUM are read by a session without Spark."),
        ENCODE: (("json", "bytes"), "Read bytes, or write the messages as JSON."),
        STARTUP: (("earliest", "latest", "timestamp"), "With 'timestamp' say scan.startup.timestamp.millis, too."),
    }
    for option, (known, instead) in values.items():
        if options.get(option, known[0]).lower() not in known:
            message = f"{option} = {options[option]!r} is not supported. There is {', '.join(map(repr, known))}. {instead}"
            raise UnsupportedSqlError(message, place.line, place.column)
    if options.get(ENCODE, "json").lower() == "bytes" and options.get(FORMAT, "plain").lower() != "plain":
        raise UnsupportedSqlError("ENCODE BYTES of changes is not supported. Write FORMAT PLAIN.", place.line, place.column)
    if options.get(STARTUP, "").lower() == "timestamp" and not options.get(MILLIS, "").isdecimal():
        raise SqlNameError(f"{STARTUP} = 'timestamp' needs {MILLIS}, milliseconds since 1970.", place.line, place.column)


def check_policy(options: Mapping[str, str], place: Place) -> None:
    """Refuse a way to treat malformed rows that is none.

    Raises:
        UnsupportedSqlError: it is none.
    """
    if options.get(MALFORMED, "null") not in POLICIES:
        known = ", ".join(map(repr, POLICIES))
        message = f"{MALFORMED} = {options[MALFORMED]!r} is not supported. It is one of {known}."
        raise UnsupportedSqlError(message, place.line, place.column)


def check_local(path: str, place: Place) -> None:
    """Refuse an address where a path of this machine is needed: it would be taken for a folder of that name.

    Raises:
        UnsupportedSqlError: it has a scheme.
    """
    if "://" in path:
        message = (
            f"path = {shown(path)!r} is not supported: files are on this machine, and those of connectors parquet, csv and json "
            "at s3://, gs:// or abfss://, too. Give a path without a scheme."
        )
        raise UnsupportedSqlError(message, place.line, place.column)


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
    known = ("connector", *known)
    for name in options:
        if name in known or any(each.endswith(".") and name.startswith(each) for each in known):
            continue
        close = get_close_matches(name, known, n=1, cutoff=0.5)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        message = f"connector {options.get('connector', '')!r} has no option {name!r}.{meant}"
        raise SqlNameError(message, place.line, place.column)
