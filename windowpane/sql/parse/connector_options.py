"""The options of WITH (...): which connectors there are, and what each needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from windowpane.connectors.json_records import LOCATION, MESSAGE, PASSWORD, RECORDS, REGISTRY, USERNAME
from windowpane.connectors.kafka_client import INCLUDE, MILLIS, PROPERTIES, SERVERS, STARTUP
from windowpane.connectors.object_stores import shown
from windowpane.errors import InvalidDurationError, SqlNameError, UnsupportedSqlError
from windowpane.malformed import POLICIES
from windowpane.sql.parse.positions import Place
from windowpane.windowing.times import to_micros

MALFORMED = "malformed"
"""The option of a source that says what becomes of its malformed rows."""


FORMAT, ENCODE, KEY_ENCODE = "format", "encode", "key_encode"
"""The options that ``FORMAT ... ENCODE ... KEY ENCODE ...`` behind ``WITH (...)`` is."""


IDLE = "scan.watermark.idle-timeout"
"""The option of Kafka, in Flink's words, that says how long the watermark waits for a partition that is silent."""
_OF_KAFKA = {"kafka": ("topic", SERVERS)}
_OF_SCHEMAS = (REGISTRY, USERNAME, PASSWORD, LOCATION, MESSAGE)
_KNOWN_OF_KAFKA = ("topic", PROPERTIES, STARTUP, MILLIS, IDLE, MALFORMED, FORMAT, ENCODE, INCLUDE, *_OF_SCHEMAS)


def check_kafka(options: Mapping[str, str], place: Place) -> None:
    """Refuse what a source of Kafka in RisingWave's words cannot be."""
    known_connector(options, _OF_KAFKA, place)
    refuse_other_options(options, _KNOWN_OF_KAFKA, place)
    check_policy(options, place)
    values = {
        FORMAT: (("plain", "upsert", "debezium"), ""),
        ENCODE: (("json", "bytes", *RECORDS), "Read bytes, or write the messages as JSON."),
        STARTUP: (("earliest", "latest", "timestamp"), "With 'timestamp' say scan.startup.timestamp.millis, too."),
    }
    for option, (known, instead) in values.items():
        if options.get(option, known[0]).lower() not in known:
            message = f"{option} = {options[option]!r} is not supported. There is {', '.join(map(repr, known))}. {instead}"
            raise place.error(UnsupportedSqlError, message.rstrip())
    _check_schema(options, place)
    _check_idleness(options, place)
    if options.get(ENCODE, "json").lower() == "bytes" and options.get(FORMAT, "plain").lower() != "plain":
        raise place.error(UnsupportedSqlError, "ENCODE BYTES of changes is not supported. Write FORMAT PLAIN.")
    if options.get(STARTUP, "").lower() == "timestamp" and not options.get(MILLIS, "").isdecimal():
        raise place.error(SqlNameError, f"{STARTUP} = 'timestamp' needs {MILLIS}, milliseconds since 1970.")


def idleness(options: Mapping[str, str]) -> int | None:
    """Return how many microseconds a partition may be silent before the watermark goes on without it; ``None`` for ever."""
    return to_micros(options[IDLE]) if IDLE in options else None


def _check_idleness(options: Mapping[str, str], place: Place) -> None:
    try:
        found = idleness(options)
    except InvalidDurationError:
        found = 0
    if found is not None and found <= 0:
        message = f"{IDLE} = {options[IDLE]!r} is not supported. It is a duration, such as '1 minute'."
        raise place.error(UnsupportedSqlError, message)


def _check_schema(options: Mapping[str, str], place: Place) -> None:
    """Refuse a schema that is not said, or one where there is none."""
    encode = options.get(ENCODE, "json").lower()
    given = [name for name in _OF_SCHEMAS if name in options]
    if encode not in RECORDS:
        if given:
            message = (
                f"option {given[0]!r} is not supported with ENCODE {encode.upper()}. It says the schema of AVRO or PROTOBUF."
            )
            raise place.error(UnsupportedSqlError, message)
        return
    if encode == "protobuf" and options.get(FORMAT, "plain").lower() == "debezium":
        raise place.error(UnsupportedSqlError, "FORMAT DEBEZIUM ENCODE PROTOBUF is not supported. AVRO and JSON are.")
    needed = (MESSAGE, LOCATION) if encode == "protobuf" else () if REGISTRY in options else (LOCATION,)
    for name in needed:
        if name not in options:
            instead = {
                MESSAGE: "the full name of the type, 'shop.Order'",
                LOCATION: "the path of what protoc --descriptor_set_out --include_imports wrote"
                if encode == "protobuf"
                else f"the path of a schema, or {REGISTRY}, the address of a registry",
            }[name]
            raise place.error(SqlNameError, f"ENCODE {encode.upper()} (...) needs {name}: {instead}.")
    if encode == "avro" and REGISTRY in options and LOCATION in options:
        message = f"{LOCATION} beside {REGISTRY} is not supported for AVRO. The registry has the schema: leave one out."
        raise place.error(UnsupportedSqlError, message)


def check_policy(options: Mapping[str, str], place: Place) -> None:
    """Refuse a way to treat malformed rows that is none."""
    if options.get(MALFORMED, "null") not in POLICIES:
        known = ", ".join(map(repr, POLICIES))
        raise place.error(UnsupportedSqlError, f"{MALFORMED} = {options[MALFORMED]!r} is not supported. It is one of {known}.")


def check_local(path: str, place: Place) -> None:
    """Refuse an address where a path of this machine is needed: it would be taken for a folder of that name."""
    if "://" in path:
        message = (
            f"path = {shown(path)!r} is not supported: files are on this machine, and those of connectors parquet, csv and json "
            "at s3://, gs:// or abfss://, too. Give a path without a scheme."
        )
        raise place.error(UnsupportedSqlError, message)


def known_connector(options: Mapping[str, str], needed: Mapping[str, tuple[str, ...]], place: Place, sink: str = "") -> str:
    """Return the connector of options that have what it needs.

    Args:
        options: the options given.
        needed: the options that each connector needs.
        place: where they are written.
        sink: the name of the sink, empty for a source.
    """
    connector = options.get("connector", "")
    if connector not in needed:
        kind = " of a sink" if sink else ""
        message = f"connector {connector!r}{kind} is not supported. There are {', '.join(needed)}.{meant(connector, needed)}"
        raise place.error(UnsupportedSqlError, message)
    missing = [name for name in needed[connector] if name not in options]
    if missing:
        who = f"sink {sink!r}" if sink else f"connector {connector!r}"
        near = get_close_matches(missing[0], [name for name in options if name not in needed[connector]], n=1, cutoff=0.7)
        instead = f" {near[0]!r} is no option of it." if near else ""
        raise place.error(SqlNameError, f"{who} needs the option {missing[0]!r} in WITH (...).{instead}")
    return connector


def refuse_other_options(options: Mapping[str, str], known: Iterable[str], place: Place) -> None:
    """Refuse options beside the connector and those it knows."""
    known = ("connector", *known)
    for name in options:
        if name in known or any(each.endswith(".") and name.startswith(each) for each in known):
            continue
        raise place.error(SqlNameError, f"connector {options.get('connector', '')!r} has no option {name!r}.{meant(name, known)}")


def meant(name: str, known: Iterable[str]) -> str:
    """Return a question for the nearest of known names, ``""`` where none is near."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""
